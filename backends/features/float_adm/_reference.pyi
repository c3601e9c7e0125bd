from collections.abc import Mapping
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from backends.base import Luma

HAS_RCPSS: bool
COMPILER: str
FLAGS: str

class Division(Enum):
    ieee = 0
    instruction = 1
    table = 2
    quotient = 3

def replayed_estimates(table: NDArray[np.uint32], values: NDArray[np.float32]) -> None: ...
def compute(
    ref: Luma,
    dist: Luma,
    bit_depth: int,
    options: Mapping[str, bool | int | float],
    division: Division,
    table: NDArray[np.uint32] | None,
    double_weights: bool,
    vmafx_conclusion: bool,
    threads: int,
    scores: NDArray[np.float64],
    unset: NDArray[np.bool_],
) -> None: ...
