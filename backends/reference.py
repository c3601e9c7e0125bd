"""What compiled references share: how frames reach them, and what decided their bits."""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from backends.base import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from backends.base import Clip, Luma

    Values = NDArray[np.float64]
    Unset = NDArray[np.bool_]
    Compute = Callable[[Luma, Luma, int, Values, Unset], None]  # the number is of threads

MEMORY_BUDGET = 2 << 30  # bytes, for all frames that are computed at a time


def load(package: str) -> Any:  # noqa: ANN401 - a module, described by its .pyi
    """Import a feature's compiled reference late, so that names and options work without it.

    Raises:
        Refused: it was never compiled.
    """
    try:
        return importlib.import_module(f"{package}._reference")
    except ImportError as error:
        message = f"the compiled reference is missing ({error}); run make gate or pip install -e ."
        raise Refused(message) from error


def threads(samples: int, bytes_per_sample: int) -> int:
    """Return how many frames of so many luma samples are computed at a time."""
    fitting = MEMORY_BUDGET // (bytes_per_sample * samples)
    return max(1, min(len(os.sched_getaffinity(0)), fitting))


def computed(
    compute: Compute, clip: Clip, columns: int, bytes_per_sample: int
) -> tuple[Values, Unset]:
    """Compute a clip in batches of frames.

    Args:
        compute: fills one batch from ref, dist, on so many threads: scores and what is unset.
        clip: is read in batches.
        columns: scores of a frame.
        bytes_per_sample: memory that `compute` and the clip take for a luma sample of a frame.

    Returns:
        float64 and bool (frames, columns).
    """
    shape = (clip.frames, columns)
    # What nobody writes is seen: NaN, and unset.
    values, unset = np.full(shape, np.nan), np.ones(shape, np.bool_)
    batch = threads(clip.width * clip.height, bytes_per_sample)
    for first in range(0, clip.frames, batch):
        count = min(batch, clip.frames - first)
        rows = slice(first, first + count)
        compute(*clip.read(first, count), batch, values[rows], unset[rows])
    return values, unset


def facts(compiled: Any) -> Mapping[str, str]:  # noqa: ANN401 - a module, described by its .pyi
    """Return the hash of a compiled reference, its compiler and flags, and the C library."""
    binary = hashlib.sha256(Path(compiled.__file__).read_bytes()).hexdigest()
    return {
        "reference": f"sha256 {binary}",
        "compiler": compiled.COMPILER,
        "flags": compiled.FLAGS,
        "C library": " ".join(platform.libc_ver()) or "unknown",
    }
