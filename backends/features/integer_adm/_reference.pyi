from collections.abc import Mapping, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from backends.base import Luma

COMPILER: str
FLAGS: str
BLOCK_SAMPLES: int
EDGE_SAMPLES: int

class Spelling(Enum):
    golden = 0
    int64 = 1
    a = 2
    b = 3
    c = 4
    d = 5
    e = 6

class Source(Enum):
    near_parallel = 0
    band = 1
    width = 2
    walk = 3
    edges = 4

def compute(
    ref: Luma,
    dist: Luma,
    bit_depth: int,
    options: Mapping[str, bool | int | float],
    vmafx_dialect: bool,
    vmafx_conclusion: bool,
    threads: int,
    scores: NDArray[np.float64],
    unset: NDArray[np.bool_],
    spelling: Spelling = ...,
) -> None: ...
def stages(
    ref: Luma,
    dist: Luma,
    bit_depth: int,
    options: Mapping[str, bool | int | float],
    vmafx_dialect: bool,
    scale: int,
) -> tuple[dict[str, NDArray[np.int32]], tuple[float, float, float]]: ...
def columns(source: Source) -> int: ...
def angle_samples(
    source: Source, parameter: int, block: int, samples: NDArray[np.int64]
) -> None: ...
def angle_operands(vectors: NDArray[np.int64], operands: NDArray[np.int64]) -> None: ...
def angle_flags(
    spelling: Spelling, samples: NDArray[np.int64], flags: NDArray[np.uint8]
) -> None: ...
def survey(
    ref: Luma, dist: Luma, bit_depth: int, spellings: Sequence[Spelling]
) -> tuple[int, int, list[int]]: ...
