"""`float_adm`: its options, dialects, outputs and names. Source: float_adm.md, sections 1-4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from backends.outputs import ExtractorOptions, Short

BandWeight = Annotated[float, Field(ge=-1, le=10, description="CSF weight, used if >= 0")]

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


class FloatAdmOptions(ExtractorOptions):
    """Options of libvmaf's `float_adm`, under libvmaf's names, defaults and ranges."""

    scores: ClassVar[tuple[str, ...]] = SCORES
    debug_scores: ClassVar[tuple[str, ...]] = DEBUG_SCORES
    long_names: ClassVar[Mapping[str, str]] = {key: f"VMAF_feature_{key}_score" for key in SCORES}
    unsuffixed: ClassVar[tuple[str, ...]] = (UNSUFFIXED,)

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
