"""Kernels as NVRTC compiles them, which needs no GPU."""

from __future__ import annotations

import re

from requirements import absent

from backends import cuda
from backends.base import Unavailable

ARCHITECTURES = ("compute_75", "compute_80", "compute_90")


def compiled(source: str, architecture: str, flags: tuple[str, ...] = cuda.FLAGS) -> str:
    try:
        return cuda.ptx(source, architecture, flags)
    except Unavailable as absence:
        absent("nvrtc", absence)


def kernels(text: str) -> dict[str, str]:
    """Return the PTX of each kernel by its name."""
    _, *parts = re.split(r"\.entry (\w+)", text)
    return dict(zip(parts[::2], parts[1::2], strict=True))
