"""What to ask real libvmaf's `float_adm` for, and what its numbers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from backends.base import Arithmetic, Extractor, Refused
from backends.features.float_adm import spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.base import Scores
    from backends.features.float_adm.spec import FloatAdmOptions

OWN = Arithmetic("rcpss-single")

KEYS = spec.SCORES + spec.DEBUG_SCORES
UNSET_WITHOUT_DENOMINATOR = [KEYS.index("aim"), KEYS.index("adm3")]
DENOMINATOR = KEYS.index("adm_den")


def _metric(key: str) -> str:
    """Return the name under which a model reads an output, whatever the options.

    No model can read `adm`: it is missing in libvmaf's table of names. It is emitted from the same
    number as adm2, which stands in for it.
    """
    if key == spec.UNSUFFIXED:
        return _metric("adm2")
    return f"VMAF_feature_{key}_score" if key in spec.SCORES else key


METRICS = tuple(_metric(key) for key in KEYS)


def request(arithmetic: Arithmetic, options: FloatAdmOptions) -> Extractor:
    """Return what gives all 18 outputs.

    Args:
        arithmetic: must be libvmaf's own.
        options: those that differ from libvmaf's defaults are passed on.

    Raises:
        Refused: libvmaf has not this dialect or conclusion; the text says which it has.
    """
    _require_own(arithmetic)
    texts = {"debug": "true"}
    for name, field in type(options).model_fields.items():
        value = getattr(options, name)
        if name != "debug" and value != field.default:
            texts[name] = str(value).lower() if isinstance(value, bool) else f"{value:g}"
    return Extractor("float_adm", texts, METRICS, _logged(options))


def _logged(options: FloatAdmOptions) -> tuple[str, ...]:
    """Return the names of all outputs; the log has short keys where an output has a long name."""
    names = options.model_copy(update={"debug": True}).outputs()
    return tuple(name.removeprefix("VMAF_feature_").removesuffix("_score") for name in names)


def scores(options: FloatAdmOptions, values: NDArray[np.float64]) -> Scores:
    """Return the outputs that the options ask for.

    Args:
        options: decide about debug outputs and names.
        values: float64 (frames, 18), in the order of METRICS. Where adm_den is 0 libvmaf never
            sets aim, and emits it and adm3 from whatever lies in memory: they are UNSET.
    """
    unset = np.zeros(values.shape, np.bool_)
    unset[:, UNSET_WITHOUT_DENOMINATOR] = values[:, [DENOMINATOR]] == 0
    return spec.named(OWN, options, np.where(unset, 0, values), unset)


def _require_own(arithmetic: Arithmetic) -> None:
    if arithmetic.dialect != OWN.dialect:
        wrong = f"dialect {arithmetic.dialect}"
    elif arithmetic.conclusion != OWN.conclusion:
        wrong = f"conclusion {arithmetic.conclusion}"
    else:
        return
    message = (
        f"real libvmaf has only dialect {OWN.dialect} and conclusion {OWN.conclusion}; "
        f"asked for {wrong}"
    )
    raise Refused(message)
