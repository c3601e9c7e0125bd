"""Clips in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.base import Luma


@dataclass
class Clip:
    """A picture pair held in arrays (frames, height, width)."""

    ref: NDArray[Any]
    dist: NDArray[Any]
    bit_depth: int

    @property
    def frames(self) -> int:
        return int(self.ref.shape[0])

    @property
    def height(self) -> int:
        return int(self.ref.shape[1])

    @property
    def width(self) -> int:
        return int(self.ref.shape[2])

    def read(self, first: int, count: int) -> tuple[Luma, Luma]:
        assert 0 <= first < first + count <= self.frames
        return self.ref[first : first + count], self.dist[first : first + count]


def noise(width: int, height: int, frames: int, bit_depth: int = 8) -> Clip:
    """Return independent noise on both sides."""
    random = np.random.default_rng(width * 1000 + height)
    dtype = np.uint8 if bit_depth == 8 else np.uint16
    ref, dist = random.integers(0, 1 << bit_depth, (2, frames, height, width), dtype)
    return Clip(ref, dist, bit_depth)
