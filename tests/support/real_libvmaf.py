"""Real libvmaf as tests ask for it: opened or skipped, and held against a feature's reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from requirements import absent

from backends import libvmaf
from backends.base import Unavailable
from gate import compare
from gate.fixtures import FixtureSpec, generators

if TYPE_CHECKING:
    from backends import base
    from backends.libvmaf import Libvmaf
    from gate.model import Comparison


def opened() -> Libvmaf:
    """Return the backend; skip where it is absent, fail where it is required."""
    try:
        return libvmaf.open_backend("libvmaf")
    except Unavailable as absence:
        absent("libvmaf", absence)


def generated(generator: str, width: int, height: int, bit_depth: int, **more: int) -> FixtureSpec:
    size = {"width": width, "height": height, "bit_depth": bit_depth}
    return generators()[generator].model_validate({"generator": generator, **size, **more})


def compared(
    backend: Libvmaf,
    feature: base.Feature,
    arithmetic: base.Arithmetic,
    clip: base.Clip,
    options: base.Options,
) -> Comparison:
    """Hold the reference against libvmaf, all 18 outputs; return what a cell would show."""
    names = feature.outputs(options)
    real = backend.compute(feature, arithmetic, options, clip)
    reference = feature.reference(arithmetic, options, clip)
    comparison = compare.compare(reference, real, clip.frames, names)
    assert comparison.scores == 18 * clip.frames
    return comparison
