"""The C library's float functions over arrays; numpy's are other routines with other bits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def powf(values: NDArray[np.float32], exponents: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return `powf(value, exponent)` of every pair, on as many threads as there are cores.

    Denormals are kept, whatever other libraries have done to this process.

    Args:
        values: float32 (n,).
        exponents: float32 (n,).
    """
    from backends import _c_library  # noqa: PLC0415 - names and options work without it

    results = np.empty(values.shape, np.float32)
    x, p = np.ascontiguousarray(values), np.ascontiguousarray(exponents)
    _c_library.powf(x, p, results, threads=len(os.sched_getaffinity(0)))
    return results
