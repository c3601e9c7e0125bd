"""What to ask real libvmaf's `float_adm` for, and what its numbers mean."""

from __future__ import annotations

from backends.base import Arithmetic
from backends.extraction import Extraction
from backends.features.float_adm import spec

KEYS = spec.SCORES + spec.DEBUG_SCORES


def _metric(key: str) -> str:
    """Return the name under which a model reads an output, whatever the options.

    No model can read `adm`: it is missing in libvmaf's table of names. It is emitted from the same
    number as adm2, which stands in for it.
    """
    if key == spec.UNSUFFIXED:
        return _metric("adm2")
    return f"VMAF_feature_{key}_score" if key in spec.SCORES else key


EXTRACTION = Extraction(
    name="float_adm",
    own=Arithmetic("rcpss-single"),
    metrics=tuple(_metric(key) for key in KEYS),
    denominator=KEYS.index("adm_den"),
    undefined=(KEYS.index("aim"), KEYS.index("adm3")),
)
