"""`float_adm`: its options, dialects, outputs and names. Source: float_adm.md, sections 1-4."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from backends.base import Arithmetic, NoResult, Options, Scores


class Short(NamedTuple):
    """The alias by which an option appears in an output's name."""

    alias: str


BandWeight = Annotated[float, Field(ge=-1, le=10, description="CSF weight, used if >= 0")]

NAME_BYTES = 255  # libvmaf cuts output names here

SCORES = ("adm2", "aim", "adm3", "adm_scale0", "adm_scale1", "adm_scale2", "adm_scale3")
DEBUG_SCORES = (
    "adm",
    "adm_num",
    "adm_den",
    *(f"adm_{part}_scale{scale}" for scale in range(4) for part in ("num", "den")),
)
UNSUFFIXED = "adm"  # libvmaf's name table lacks this key, so it never gets a suffix

DIALECTS = ("rcpss-double", "rcpss-single", "ieee-double", "ieee-single")
STAGES = ("pixels", "dwt", "decouple", "csf", "mask", "pool", "conclusion")


def uses_rcpss(dialect: str) -> bool:
    """Return whether the dialect divides through the reciprocal estimate."""
    return dialect.startswith("rcpss-")


def double_weights(dialect: str) -> bool:
    """Return whether the dialect computes its CSF weights with fp64 intermediates."""
    return dialect.endswith("-double")


def vmafx(arithmetic: Arithmetic) -> bool:
    """Return whether a frame ends by VMAFx's rules instead of Netflix's."""
    return arithmetic.conclusion == "vmafx"


class FloatAdmOptions(Options):
    """Options of libvmaf's `float_adm`, under libvmaf's names, defaults and ranges."""

    debug: Annotated[bool, Field(description="11 additional outputs")] = False
    adm_enhn_gain_limit: Annotated[
        float, Field(ge=1, le=100, description="gain bound in the decouple"), Short("egl")
    ] = 100.0
    adm_norm_view_dist: Annotated[
        float, Field(ge=0.75, le=24, description="viewing distance / display height"), Short("nvd")
    ] = 3.0
    adm_noise_weight: Annotated[
        float, Field(ge=0, le=1500, description="noise floor of den and num"), Short("nw")
    ] = 0.03125
    adm_csf_scale: Annotated[
        float, Field(ge=0, le=50, description="factor of the h/v weight, csf mode 1"), Short("scf")
    ] = 1.0
    adm_csf_diag_scale: Annotated[
        float, Field(ge=0, le=50, description="factor of the d weight, csf mode 1"), Short("scfd")
    ] = 1.0
    adm_ref_display_height: Annotated[
        int, Field(ge=1, le=4320, description="display height in pixels"), Short("rdf")
    ] = 1080
    adm_csf_mode: Annotated[
        int, Field(ge=0, le=9, description="1 Barten, 2 native ADM, others Watson97"), Short("csf")
    ] = 0
    adm_bypass_cm: Annotated[
        int, Field(ge=0, le=1, description="1: no contrast masking"), Short("bcm")
    ] = 0
    adm_adm3_apply_hm: Annotated[
        bool, Field(description="adm3 is a harmonic mean"), Short("aah")
    ] = False
    adm_p_norm: Annotated[
        float, Field(ge=1, le=20, description="exponent of all energies and roots"), Short("apn")
    ] = 3.0
    adm_dlm_weight: Annotated[
        float, Field(ge=0, le=1, description="weight of adm2 in linear adm3"), Short("dlmw")
    ] = 0.5
    adm_min_val: Annotated[
        float, Field(ge=0, le=1, description="lower clip of adm3"), Short("min")
    ] = 0.0
    adm_f1s0: Annotated[BandWeight, Short("f1s0")] = -1.0
    adm_f1s1: Annotated[BandWeight, Short("f1s1")] = -1.0
    adm_f1s2: Annotated[BandWeight, Short("f1s2")] = -1.0
    adm_f1s3: Annotated[BandWeight, Short("f1s3")] = -1.0
    adm_f2s0: Annotated[BandWeight, Short("f2s0")] = -1.0
    adm_f2s1: Annotated[BandWeight, Short("f2s1")] = -1.0
    adm_f2s2: Annotated[BandWeight, Short("f2s2")] = -1.0
    adm_f2s3: Annotated[BandWeight, Short("f2s3")] = -1.0
    # The default lies outside the range, as in libvmaf: leaving it out is the only way to get it.
    adm_skip_aim_scale: Annotated[
        int, Field(ge=0, le=3, description="scale left out of the AIM sums"), Short("sasc")
    ] = -1
    adm_skip_scale0: Annotated[
        bool, Field(description="scale 0: low-pass only, no score"), Short("ssz")
    ] = False

    def suffix(self) -> str:
        """Return what libvmaf appends to the outputs' names, empty for defaults."""
        pieces = []
        for name, field in sorted(type(self).model_fields.items()):
            value = getattr(self, name)
            short = next((item for item in field.metadata if isinstance(item, Short)), None)
            if short is None or value == field.default:
                continue
            shown = "" if isinstance(value, bool) else f"_{value:g}"
            if isinstance(value, int) and not isinstance(value, bool):
                shown = f"_{value:d}"
            pieces.append(f"_{short.alias}{shown}")
        return "".join(pieces)

    def outputs(self) -> tuple[str, ...]:
        """Return the 7 output names of a frame, or all 18 with debug, in libvmaf's order."""
        suffix = self.suffix()
        if suffix:
            named = {key: key + suffix for key in SCORES + DEBUG_SCORES}
        else:
            named = {key: f"VMAF_feature_{key}_score" for key in SCORES}
            named.update({key: key for key in DEBUG_SCORES})
        named[UNSUFFIXED] = UNSUFFIXED
        keys = SCORES + DEBUG_SCORES if self.debug else SCORES
        return tuple(named[key][:NAME_BYTES] for key in keys)

    def name(self) -> str:
        """Return the options' part of a cell id: `default`, `egl_1.2`, `debug`, `debug_bcm_1`."""
        pieces = ("debug" if self.debug else "", self.suffix().removeprefix("_"))
        return "_".join(piece for piece in pieces if piece) or "default"


def own(options: Options) -> FloatAdmOptions:
    """Return the options as this feature's.

    Raises:
        TypeError: they are another feature's.
    """
    if not isinstance(options, FloatAdmOptions):
        message = f"float_adm was given {type(options).__name__}"
        raise TypeError(message)
    return options


def named(
    arithmetic: Arithmetic,
    options: FloatAdmOptions,
    values: NDArray[np.float64],
    unset: NDArray[np.bool_],
) -> Scores:
    """Keep the outputs that the options ask for.

    Args:
        arithmetic: its conclusion decides about scores that are not finite.
        options: decide about debug outputs and names.
        values: float64 (frames, 18), in the order of SCORES + DEBUG_SCORES.
        unset: bool of the same shape.

    Raises:
        NoResult: the conclusion is `vmafx` and one of these outputs is not finite.
    """
    names = options.outputs()
    scores = Scores(names, values[:, : len(names)].copy(), unset[:, : len(names)].copy())
    if vmafx(arithmetic):
        _require_finite(scores)
    return scores


def _require_finite(scores: Scores) -> None:
    """VMAFx emits nothing of a frame with a score that is not finite."""
    for frame, column in np.argwhere(~np.isfinite(scores.values)).tolist():
        message = (
            f"frame {frame} {scores.names[column]} is {scores.values[frame, column]}; "
            "the conclusion vmafx refuses frames with a score that is not finite"
        )
        raise NoResult(message, scores)
