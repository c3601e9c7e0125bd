"""The C library's float power over arrays: its own bits, however many threads share the work."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform

import numpy as np
import pytest
from numpy.typing import NDArray

from backends import _c_library, c_library

LIBRARY = ctypes.CDLL(ctypes.util.find_library("m"))
SHARE = 1 << 15  # values that a thread takes at least


def one_by_one(values: list[float], exponents: list[float]) -> bytes:
    powf = LIBRARY.powf
    powf.argtypes, powf.restype = [ctypes.c_float, ctypes.c_float], ctypes.c_float
    return np.array([powf(*pair) for pair in zip(values, exponents, strict=True)], "f4").tobytes()


def pairs(count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    random = np.random.default_rng(count)
    values = random.integers(0, 0x7F800000, count, np.uint32).view(np.float32)
    return values, random.uniform(0.05, 20, count).astype(np.float32)


def test_every_result_is_the_c_librarys() -> None:
    values, exponents = pairs(2000)
    values[:4] = 0, np.inf, 1, 2.0**-149
    wanted = one_by_one(values.tolist(), exponents.tolist())
    assert c_library.powf(values, exponents).tobytes() == wanted


@pytest.mark.parametrize("count", [0, 1, SHARE - 1, SHARE, SHARE + 1, 2 * SHARE, 2 * SHARE + 1])
@pytest.mark.parametrize("threads", [0, 1, 2, 3, 64])
def test_the_number_of_threads_changes_no_bit(count: int, threads: int) -> None:
    values, exponents = pairs(count)
    results, alone = np.full((2, count), np.nan, np.float32)
    _c_library.powf(values, exponents, results, threads)
    _c_library.powf(values, exponents, alone, 1)
    assert results.tobytes() == alone.tobytes()
    assert not np.isnan(alone).any()


def test_arrays_in_another_memory_order_give_the_same_bits() -> None:
    values, exponents = pairs(1000)
    wanted = c_library.powf(values[::2].copy(), exponents[::2].copy())
    assert c_library.powf(values[::2], exponents[::2]).tobytes() == wanted.tobytes()


def test_arrays_of_different_lengths_are_refused() -> None:
    values, exponents = pairs(3)
    for lengths in ((2, 3, 3), (3, 2, 3), (3, 3, 2)):
        x, p, results = (
            array[:n].copy() for array, n in zip((values, exponents, values), lengths, strict=True)
        )
        with pytest.raises(ValueError, match="must have the same length"):
            _c_library.powf(x, p, results, 1)


def test_doubles_are_refused() -> None:
    values, exponents = pairs(3)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        c_library.powf(values.astype(np.float64), exponents)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the register MXCSR is x86's")
def test_denormals_are_kept_in_a_process_that_has_lost_them() -> None:
    """As after loading a library built with -ffast-math; and it finds its setting again."""
    values = np.full(SHARE + 1, 2.0**-149, np.float32)  # one thread more than this
    exponents, results = np.ones_like(values), np.zeros_like(values)
    before, lost, after = ((ctypes.c_uint32 * 8)() for _ in range(3))
    LIBRARY.fegetenv(before)
    LIBRARY.fegetenv(lost)
    lost[7] |= 0x8040  # the last word is MXCSR: flush results to zero, read denormals as zero
    LIBRARY.fesetenv(lost)
    try:
        _c_library.powf(values, exponents, results, 2)
        LIBRARY.fegetenv(after)
    finally:
        LIBRARY.fesetenv(before)
    assert set(results.view(np.uint32).tolist()) == {1}
    assert after[7] & 0x8040 == 0x8040
