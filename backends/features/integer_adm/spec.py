"""`integer_adm`: its options, dialects, outputs and names. Source: integer_adm.md, section 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from backends.base import Arithmetic, Refused
from backends.outputs import ExtractorOptions, Short

SCORES = (
    "integer_adm2",
    "integer_aim",
    "integer_adm3",
    *(f"integer_adm_scale{scale}" for scale in range(4)),
)
DEBUG_SCORES = (
    "integer_adm",
    "integer_adm_num",
    "integer_adm_den",
    *(f"integer_adm_{part}_scale{scale}" for scale in range(4) for part in ("num", "den")),
)
LONG_NAMES = {
    f"integer_{key}": f"VMAF_integer_feature_{key}_score" for key in ("adm2", "aim", "adm3")
}

DIALECTS = ("netflix", "vmafx")
STAGES = ("dwt", "decouple", "csf", "mask", "pool", "conclusion")

CUBE = 3.0  # the adm_p_norm of the dialect that has no such option
NEAREST = 3240.0  # adm_norm_view_dist * adm_ref_display_height; libvmaf refuses a nearer eye
FARTHEST = 24  # the largest adm_norm_view_dist
LOWEST = math.ceil(NEAREST / FARTHEST)  # display height
WATSON, BARTEN, *TABLES = range(4)  # of adm_csf_mode
# adm_ref_display_height and adm_norm_view_dist of the tables' rows. The specification has three
# more, for eyes nearer than libvmaf allows. Source: section 6.3.
TABULATED = ((1080, 3.0), (2160, 1.5), (1080, 5.0), (2160, 3.0), (2160, 5.0), (720, 5.0))
MOST_LOST = 23  # bits, once a sample and once a row, from the denominators of scale 3
LARGEST = 40928  # side of a square frame that loses no more


class IntegerAdmOptions(ExtractorOptions):
    """Options of libvmaf's extractor `adm`, under libvmaf's names, defaults and ranges."""

    scores: ClassVar[tuple[str, ...]] = SCORES
    debug_scores: ClassVar[tuple[str, ...]] = DEBUG_SCORES
    long_names: ClassVar[Mapping[str, str]] = LONG_NAMES

    adm_csf_scale: Annotated[
        float, Field(ge=0, le=50, description="factor of the h/v weight, csf mode 1"), Short("scf")
    ] = 1.0
    adm_csf_diag_scale: Annotated[
        float, Field(ge=0, le=50, description="factor of the d weight, csf mode 1"), Short("scfd")
    ] = 1.0
    adm_dlm_weight: Annotated[
        float, Field(ge=0, le=1, description="weight of adm2 in adm3"), Short("dlmw")
    ] = 0.5
    adm_enhn_gain_limit: Annotated[
        float, Field(ge=1, le=100, description="gain bound in the decouple"), Short("egl")
    ] = 100.0
    adm_ref_display_height: Annotated[
        int, Field(ge=1, le=4320, description="display height in pixels"), Short("rdh")
    ] = 1080
    adm_norm_view_dist: Annotated[
        float,
        Field(
            ge=0.75,
            le=FARTHEST,
            description="viewing distance / display height",
            validate_default=True,
        ),
        Short("nvd"),
    ] = 3.0
    adm_csf_mode: Annotated[
        int,
        Field(ge=0, le=3, description="0 Watson97, 1 Barten, 2 and 3 tables"),
        Short("csf"),
    ] = WATSON
    adm_noise_weight: Annotated[
        float, Field(ge=0, le=1500, description="noise floor of den and num"), Short("nw")
    ] = 0.03125
    adm_skip_aim: Annotated[bool, Field(description="no AIM: its numerators are 0")] = False
    adm_skip_scale0: Annotated[
        bool, Field(description="scale 0: low-pass only, no score"), Short("ssz")
    ] = False
    adm_min_val: Annotated[
        float, Field(ge=0, le=1, description="lower clip of adm3"), Short("min")
    ] = 0.0
    adm_p_norm: Annotated[
        float,
        Field(ge=1, le=20, description="root of the numerators, dialect vmafx only"),
        Short("apn"),
    ] = CUBE

    @field_validator("adm_ref_display_height")
    @classmethod
    def _not_too_low(cls, value: int) -> int:
        if value < LOWEST:
            sentence = (
                f"adm_ref_display_height {value} is too low for every adm_norm_view_dist; "
                f"required: at least {LOWEST}"
            )
            raise _mistake(sentence)
        return value

    @field_validator("adm_norm_view_dist")
    @classmethod
    def _not_too_near(cls, value: float, info: ValidationInfo) -> float:
        height = info.data.get("adm_ref_display_height")  # None where it is refused itself
        if height is not None and value * height < NEAREST:
            sentence = (
                f"adm_norm_view_dist {value:g} * adm_ref_display_height {height} is "
                f"{value * height:g}; required: at least {NEAREST:g}"
            )
            raise _mistake(sentence)
        return value


def _mistake(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("mistake", "{sentence}", {"sentence": sentence})


def repaired(arithmetic: Arithmetic) -> bool:
    """Return whether the dialect has VMAFx's repairs (section 13) for Netflix's overflows."""
    return arithmetic.dialect == "vmafx"


def require(arithmetic: Arithmetic, options: IntegerAdmOptions) -> None:
    """Refuse options that a dialect has not.

    Raises:
        Refused: `adm_p_norm` in dialect netflix; in dialect vmafx a table without the viewing
            condition, where netflix computes on with an error code.
    """
    if not repaired(arithmetic):
        if options.adm_p_norm != CUBE:
            message = f"adm_p_norm {options.adm_p_norm:g} is an option of dialect vmafx only"
            raise Refused(message)
        return
    height, distance = options.adm_ref_display_height, options.adm_norm_view_dist
    if options.adm_csf_mode in TABLES and (height, distance) not in TABULATED:
        listed = ", ".join(f"{height} and {distance:g}" for height, distance in TABULATED)
        message = (
            f"adm_csf_mode {options.adm_csf_mode} has no weights for adm_ref_display_height "
            f"{height} and adm_norm_view_dist {distance:g}; dialect vmafx takes {listed}"
        )
        raise Refused(message)


def require_size(width: int, height: int) -> None:
    """Refuse frames whose sums at scale 3 lose more bits than libvmaf has places for (section 8).

    The other scales and the numerators reach their limits later.

    Raises:
        Refused: as above.
    """
    columns, rows = (_scored(-(-n // 16)) for n in (width, height))  # four wavelets
    lost = (columns - 1).bit_length() + (rows - 1).bit_length()
    if lost > MOST_LOST:
        message = (
            f"frame {width}x{height} is too large: the sums over scale 3's score region of "
            f"{columns}x{rows} lose {lost} bits; allowed: {MOST_LOST}, as at {LARGEST}x{LARGEST}"
        )
        raise Refused(message)


def _scored(n: int) -> int:
    """Return how many of n samples of a band are in the score region (section 2)."""
    return n - 2 * (max(0, n - 5) // 10)
