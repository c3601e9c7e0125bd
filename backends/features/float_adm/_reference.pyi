from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from backends.base import Luma

HAS_RCPSS: bool
COMPILER: str
FLAGS: str

def compute(
    ref: Luma,
    dist: Luma,
    bit_depth: int,
    options: Mapping[str, bool | int | float],
    rcpss: bool,
    double_weights: bool,
    threads: int,
    scores: NDArray[np.float64],
    unset: NDArray[np.bool_],
) -> None: ...
