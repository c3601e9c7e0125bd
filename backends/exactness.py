"""Shows, before any cell, whether a device computes plain arithmetic as IEEE 754 says.

A wrong compiler flag is then reported as a wrong flag and not as four hundred mismatches.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from backends.base import Inexact

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.base import Device

COUNT = 4096  # one input can agree by chance: contraction changes about one in four


def prelude(name: str) -> str:
    """Return the text of `backends/dialect/<name>`."""
    return (resources.files("backends") / "dialect" / name).read_text("utf-8")


def prelude_hash(name: str) -> str:
    """Return the sha256 of a prelude, for reports."""
    return f"sha256 {hashlib.sha256(prelude(name).encode()).hexdigest()}"


def probe(device: Device) -> dict[str, int]:
    """Run the probe kernel and hold every result against numpy.

    Returns:
        For each property, how many of COUNT results are wrong; all zero on an exact device.
    """
    random = np.random.default_rng(1420)
    a, b, c = (random.uniform(-2, 2, COUNT).astype(np.float32) for _ in range(3))
    b[::7] = np.nan
    wide = [random.uniform(-2, 2, COUNT) for _ in range(3)]
    arrays: list[NDArray[np.generic]] = [a, b, c, *wide]
    inputs = [device.upload(array) for array in arrays]
    narrow_buffer, wide_buffer = device.empty(6 * 4 * COUNT), device.empty(2 * 8 * COUNT)
    kernels = device.compile(prelude("probe.cl.h"))
    kernels.launch("probe", (COUNT, 1, 1), *inputs, narrow_buffer, wide_buffer, np.int32(COUNT))
    narrow = device.download(narrow_buffer, (6, COUNT), np.dtype(np.float32))
    double = device.download(wide_buffer, (2, COUNT), np.dtype(np.float64))
    smallest_normal = np.float32(2.0**-126)
    with np.errstate(invalid="ignore"):
        return {
            "float a*b+c is two operations": _wrong(narrow[0], c + a * b),
            "float division is correctly rounded": _wrong(narrow[1], a / b),
            "denormals are kept": _wrong(narrow[2], (a * smallest_normal) * np.float32(0.25)),
            "NaN compares as unordered": _wrong(
                narrow[3], np.where(a < b, np.float32(1), np.float32(2))
            ),
            "double rounds to nearest float": _wrong(narrow[4], wide[0].astype(np.float32)),
            "float bits pass as integers": _wrong(narrow[5], np.abs(a)),
            "double a*b+c is two operations": _wrong(double[0], wide[2] + wide[0] * wide[1]),
            "double fma is one operation": _wrong(double[1], _fused(*wide)),
        }


def _fused(*wide: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a*b+c rounded once: exact as a fraction, whose conversion to float rounds."""
    rows = (map(Fraction, row) for row in np.stack(wide, axis=1).tolist())
    return np.array([float(a * b + c) for a, b, c in rows])


def _wrong(got: NDArray[np.generic], wanted: NDArray[np.generic]) -> int:
    """Count results whose bits differ; any NaN equals any NaN."""
    integers = f"u{wanted.dtype.itemsize}"
    same = got.view(integers) == wanted.view(integers)
    return int(np.count_nonzero(~(same | (np.isnan(got) & np.isnan(wanted)))))


def check(name: str, device: Device) -> str:
    """Probe the device and return what was shown, for reports.

    Raises:
        Inexact: a property does not hold.
    """
    counts = probe(device)
    wrong = {what: count for what, count in counts.items() if count}
    if wrong:
        listed = ", ".join(f"'{what}' fails for {count}" for what, count in wrong.items())
        message = f"{name} is not exact, check its compiler flags: of {COUNT} inputs {listed}"
        raise Inexact(message)
    return f"{len(counts)} properties hold on {COUNT} inputs: {', '.join(counts)}"
