"""What to ask real libvmaf's `adm` for, and what its numbers mean."""

from __future__ import annotations

from backends.base import Arithmetic
from backends.extraction import Extraction
from backends.features.integer_adm import spec

KEYS = spec.SCORES + spec.DEBUG_SCORES

EXTRACTION = Extraction(
    name="adm",
    own=Arithmetic("netflix"),
    # A model knows an output by its long name if it has one, and not by its key then.
    metrics=tuple(spec.LONG_NAMES.get(key, key) for key in KEYS),
    denominator=KEYS.index("integer_adm_den"),
    undefined=(KEYS.index("integer_aim"), KEYS.index("integer_adm3")),
    exact=False,  # libvmaf's vector code is not its scalar code
)
