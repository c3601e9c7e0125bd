"""Options, names and limits of `integer_adm` (integer_adm.md, sections 1, 11 and 13)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError
from stills import noise

from backends.base import Arithmetic, Refused
from backends.features.float_adm.spec import FloatAdmOptions
from backends.features.integer_adm import FEATURE, spec
from backends.features.integer_adm.spec import DEBUG_SCORES, SCORES, IntegerAdmOptions


@pytest.mark.parametrize(
    ("options", "index", "name"),
    [
        ({}, 0, "VMAF_integer_feature_adm2_score"),
        ({}, 1, "VMAF_integer_feature_aim_score"),
        ({}, 2, "VMAF_integer_feature_adm3_score"),
        ({}, 3, "integer_adm_scale0"),
        ({"debug": True}, 7, "integer_adm"),
        ({"debug": True}, 17, "integer_adm_den_scale3"),
        ({"adm_enhn_gain_limit": 1.2}, 0, "integer_adm2_egl_1.2"),
        ({"adm_skip_scale0": True}, 0, "integer_adm2_ssz"),
        ({"adm_skip_aim": True}, 0, "VMAF_integer_feature_adm2_score"),
        ({"adm_p_norm": 2.5, "debug": True}, 10, "integer_adm_num_scale0_apn_2.5"),
        # suffixes follow the full option names: csf_mode before enhn_gain_limit before min_val
        (
            {"adm_min_val": 0.5, "adm_enhn_gain_limit": 1.2, "adm_csf_mode": 2},
            6,
            "integer_adm_scale3_csf_2_egl_1.2_min_0.5",
        ),
    ],
)
def test_outputs_are_named_as_libvmaf_names_them(
    options: dict[str, Any], index: int, name: str
) -> None:
    assert IntegerAdmOptions.model_validate(options).outputs()[index] == name


def test_an_option_that_is_not_given_has_its_default_and_so_no_place_in_a_name() -> None:
    defaults = {name: field.default for name, field in IntegerAdmOptions.model_fields.items()}
    assert IntegerAdmOptions().model_dump() == defaults


def test_debug_adds_eleven_outputs_to_seven() -> None:
    assert len(IntegerAdmOptions().outputs()) == len(SCORES) == 7
    assert len(IntegerAdmOptions(debug=True).outputs()) == len(SCORES + DEBUG_SCORES) == 18


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "default"),
        ({"debug": True}, "debug"),
        ({"adm_skip_aim": True}, "skip_aim"),
        ({"debug": True, "adm_skip_aim": True, "adm_noise_weight": 0.0}, "debug_skip_aim_nw_0"),
    ],
)
def test_a_cell_names_its_options_those_without_a_suffix_too(
    options: dict[str, Any], name: str
) -> None:
    assert FEATURE.options_name(IntegerAdmOptions.model_validate(options)) == name


@pytest.mark.parametrize(
    "options",
    [
        {"adm_enhn_gain_limit": 0.999},
        {"adm_enhn_gain_limit": 100.001},
        {"adm_csf_mode": 4},
        {"adm_csf_mode": -1},
        {"adm_csf_scale": 50.001},
        {"adm_csf_diag_scale": -0.001},
        {"adm_dlm_weight": 1.001},
        {"adm_min_val": 1.001},
        {"adm_noise_weight": 1500.01},
        {"adm_norm_view_dist": 0.749},
        {"adm_norm_view_dist": 24.001},
        {"adm_ref_display_height": 0},
        {"adm_ref_display_height": 4321},
        {"adm_p_norm": 0.999},
        {"adm_p_norm": 20.001},
        {"adm_skip_aim": 1},
        {"adm_bypass_cm": 0},  # an option of float_adm
    ],
)
def test_what_libvmaf_refuses_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        IntegerAdmOptions.model_validate(options)


@pytest.mark.parametrize(
    ("height", "distance", "shown"),
    [(1080, 2.99999, "3239.99"), (1079, 3.0, "3237"), (4320, 0.75, None), (135, 24.0, None)],
)
def test_an_eye_nearer_than_three_heights_of_1080_is_refused(
    height: int, distance: float, shown: str | None
) -> None:
    options = {"adm_ref_display_height": height, "adm_norm_view_dist": distance}
    if shown is None:
        assert IntegerAdmOptions.model_validate(options).adm_norm_view_dist == distance
        return
    with pytest.raises(ValidationError, match=f"is {shown}; required: at least 3240"):
        IntegerAdmOptions.model_validate(options)


def test_a_nearer_eye_is_told_where_only_the_height_is_given() -> None:
    with pytest.raises(ValidationError, match=r"adm_norm_view_dist 3 \* .* 720 is 2160"):
        IntegerAdmOptions(adm_ref_display_height=720)


def test_p_norm_is_an_option_of_vmafx_only() -> None:
    options = IntegerAdmOptions(adm_p_norm=2.5)
    FEATURE.require_options(Arithmetic("vmafx"), options)
    with pytest.raises(Refused, match=r"^adm_p_norm 2.5 is an option of dialect vmafx only$"):
        FEATURE.require_options(Arithmetic("netflix"), options)
    FEATURE.require_options(Arithmetic("netflix"), IntegerAdmOptions(adm_p_norm=3.0))


@pytest.mark.parametrize(("dialect", "least"), [("netflix", 33), ("vmafx", 17)])
def test_a_frame_below_the_smallest_is_refused_with_the_reason(dialect: str, least: int) -> None:
    FEATURE.require(Arithmetic(dialect), noise(least, least, 1))
    for width, height in ((least - 1, least), (least, least - 1)):
        with pytest.raises(
            Refused, match=f"^frame {width}x{height} is below {least}x{least}"
        ) as no:
            FEATURE.require(Arithmetic(dialect), noise(width, height, 1))
        assert ("reads memory outside the picture" in str(no.value)) == (dialect == "netflix")


class Size(NamedTuple):
    """What a feature is asked about a picture that no memory holds."""

    width: int
    height: int
    bit_depth: int = 16


@pytest.mark.parametrize("dialect", spec.DIALECTS)
@pytest.mark.parametrize(
    ("sides", "told"),
    [
        ((40927, 40927), ""),
        ((40928, 40928), ""),
        ((40928, 40929), ""),
        ((40929, 40929), "2049x2049 lose 24 bits"),
        ((40930, 40930), "2049x2049 lose 24 bits"),
        ((20448, 81889), ""),
        ((20449, 81888), ""),
        ((20449, 81889), "1025x4097 lose 24 bits"),
    ],
)
def test_a_frame_whose_sums_leave_their_places_is_refused(
    dialect: str, sides: tuple[int, int], told: str
) -> None:
    """Of columns and rows at scale 3, each power of two that is passed costs a bit of 23."""
    if not told:
        FEATURE.require(Arithmetic(dialect), Size(*sides))
        FEATURE.require(Arithmetic(dialect), Size(*reversed(sides)))
        return
    with pytest.raises(Refused) as no:
        FEATURE.require(Arithmetic(dialect), Size(*sides))
    assert str(no.value) == (
        f"frame {sides[0]}x{sides[1]} is too large: the sums over scale 3's score region of "
        f"{told}; allowed: 23, as at 40928x40928"
    )
    with pytest.raises(Refused, match="is too large"):
        FEATURE.require(Arithmetic(dialect), Size(*reversed(sides)))


def test_options_of_another_feature_are_a_mistake() -> None:
    told = "^FloatAdmOptions were given; required: IntegerAdmOptions$"
    with pytest.raises(TypeError, match=told):
        FEATURE.outputs(FloatAdmOptions())
    with pytest.raises(TypeError, match=told):
        FEATURE.require_options(Arithmetic("vmafx"), FloatAdmOptions())
