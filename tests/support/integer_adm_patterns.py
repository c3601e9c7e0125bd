"""The patterns of integer_adm.md, section 15, as pictures (height, width)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Picture = NDArray[Any]


def pattern(name: str, width: int, height: int, depth: int) -> tuple[Picture, Picture]:
    """Return ref and dist of a pattern."""
    pair = {"A": pattern_a, "B": pattern_b, "C": pattern_c}[name](width, height, depth)
    dtype = np.uint8 if depth == 8 else np.uint16
    return pair[0].astype(dtype), pair[1].astype(dtype)


def pattern_a(width: int, height: int, depth: int) -> tuple[Ints, Ints]:
    y, x = np.mgrid[0:height, 0:width].astype(np.int64)
    top = (1 << depth) - 1
    ref = (7 * x + 13 * y + ((3 * x * x + 5 * y * y + x * y) >> 3)) & top
    return ref, np.clip(ref + (31 * x + 17 * y) % 11 - 5, 0, top)


def pattern_b(width: int, height: int, depth: int) -> tuple[Ints, Ints]:
    samples, s = [], 12345
    for _ in range(2 * width * height):
        s = (1664525 * s + 1013904223) % 2**32
        samples.append(s >> (32 - depth))
    ref, dist = np.array(samples, np.int64).reshape(2, height, width)
    return ref, dist


def pattern_c(width: int, height: int, depth: int) -> tuple[Ints, Ints]:
    y, x = np.mgrid[0:height, 0:width].astype(np.int64)
    t = ((x * x + 3 * y * y) // 17 + (29 * x + 43 * y) % 23) % 128
    middle, q = 1 << (depth - 1), (t - 64) << (depth - 8)
    return middle + q, np.clip(middle + 5 * q // 4, 0, (1 << depth) - 1)


def pattern_o(depth: int) -> Picture:
    """Return a picture of 64x64 whose row totals at scale 0 pass 2^63 where both sides are it."""
    top = (1 << depth) - 1
    picture = np.full((64, 64), top // 2, np.uint8 if depth == 8 else np.uint16)
    for i in (8, 14, 20):
        for row in (2 * i - 1, 2 * i, 2 * i + 2):
            picture[row] = np.where(np.arange(64) < 60, 0, top)
        picture[2 * i + 1] = np.where(np.arange(64) < 60, top, 0)
    return picture
