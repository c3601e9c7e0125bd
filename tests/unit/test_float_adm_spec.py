"""Names, suffixes and options of float_adm, as libvmaf has them."""

from __future__ import annotations

from typing import Any

import pytest
from option_sets import ALL_OPTIONS
from pydantic import ValidationError

from backends.features.float_adm.spec import SCORES, FloatAdmOptions
from backends.outputs import NAME_BYTES


@pytest.mark.parametrize(
    ("options", "index", "name"),
    [
        ({}, 0, "VMAF_feature_adm2_score"),
        ({}, 6, "VMAF_feature_adm_scale3_score"),
        ({"adm_enhn_gain_limit": 1.2}, 0, "adm2_egl_1.2"),
        ({"adm_enhn_gain_limit": 1.0}, 0, "adm2_egl_1"),
        ({"adm_bypass_cm": 1}, 6, "adm_scale3_bcm_1"),
        ({"adm_noise_weight": 0.0}, 1, "aim_nw_0"),
        (
            {"adm_norm_view_dist": 1.5, "adm_ref_display_height": 2160},
            0,
            "adm2_nvd_1.5_rdf_2160",
        ),
        ({"adm_csf_scale": 2.0, "adm_csf_diag_scale": 0.5}, 0, "adm2_scfd_0.5_scf_2"),
        (
            {"adm_adm3_apply_hm": True, "adm_dlm_weight": 0.3, "adm_min_val": 0.2},
            2,
            "adm3_aah_dlmw_0.3_min_0.2",
        ),
        ({"adm_skip_scale0": True, "adm_skip_aim_scale": 0}, 0, "adm2_sasc_0_ssz"),
        (
            {"adm_csf_mode": 1, "adm_csf_scale": 2.0, "adm_csf_diag_scale": 0.5},
            0,
            "adm2_scfd_0.5_csf_1_scf_2",
        ),
        ({"debug": True, "adm_enhn_gain_limit": 1.2}, 7, "adm"),
        ({"debug": True, "adm_enhn_gain_limit": 1.2}, 8, "adm_num_egl_1.2"),
        ({"debug": True, "adm_enhn_gain_limit": 1.2}, 15, "adm_den_scale2_egl_1.2"),
        ({"debug": True}, 8, "adm_num"),
        # libvmaf keeps a weight that means nothing in the name
        ({"adm_f1s0": -0.5}, 0, "adm2_f1s0_-0.5"),
        ({"adm_noise_weight": 0.123456789}, 0, "adm2_nw_0.123457"),
        ({"adm_enhn_gain_limit": 1.00000001}, 0, "adm2_egl_1"),
        ({"adm_enhn_gain_limit": 100.00001}, 0, "VMAF_feature_adm2_score"),
        ({"adm_csf_mode": 1.7}, 0, "adm2_csf_1"),
        ({"adm_ref_display_height": 5000000}, 0, "adm2_rdf_5"),  # 5e+06
    ],
)
def test_outputs_are_named_as_libvmaf_names_them(
    options: dict[str, Any], index: int, name: str
) -> None:
    assert FloatAdmOptions.model_validate(options).outputs()[index] == name


def test_a_default_given_explicitly_does_not_appear_in_a_name() -> None:
    assert FloatAdmOptions(adm_enhn_gain_limit=100.0).suffix() == ""


def test_an_option_that_is_not_given_has_its_default_and_so_no_place_in_a_name() -> None:
    defaults = {name: field.default for name, field in FloatAdmOptions.model_fields.items()}
    assert FloatAdmOptions().model_dump() == defaults


def test_debug_adds_eleven_outputs_to_seven() -> None:
    assert len(FloatAdmOptions().outputs()) == 7
    assert len(FloatAdmOptions(debug=True).outputs()) == 18


def test_a_long_name_is_cut_where_libvmaf_cuts_it() -> None:
    options = FloatAdmOptions.model_validate({**ALL_OPTIONS, "debug": True})
    lengths = {name: len(name) for name in options.outputs()}
    assert len(options.suffix()) == 248
    assert max(lengths.values()) == NAME_BYTES
    assert lengths["adm2" + options.suffix()] == 252


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "default"),
        ({"debug": True}, "debug"),
        ({"adm_enhn_gain_limit": 1.2}, "egl_1.2"),
        ({"debug": True, "adm_bypass_cm": 1}, "debug_bcm_1"),
    ],
)
def test_a_cell_names_its_options_after_the_suffix(options: dict[str, Any], name: str) -> None:
    assert FloatAdmOptions.model_validate(options).name() == name


@pytest.mark.parametrize(
    "options",
    [
        {"adm_skip_aim_scale": -1},  # libvmaf's default is outside its own range
        {"adm_enhn_gain_limit": 0.999},
        {"adm_enhn_gain_limit": 100.1},
        {"adm_enhn_gain_limit": 100.001},
        {"adm_noise_weight": -0.0},
        {"adm_bypass_cm": -0.3},
        {"adm_noise_weight": float("inf")},
        {"adm_csf_mode": 1e39},
        {"adm_noise_weight": float("nan")},
        {"adm_csf_mode": 10},
        {"adm_bypass_cm": True},
        {"debug": 1},
        {"adm_p_norm": "3"},
        {"egl": 1.2},  # an alias is no option name
    ],
)
def test_what_libvmaf_refuses_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FloatAdmOptions.model_validate(options)


def test_the_seven_scores_come_first() -> None:
    assert FloatAdmOptions(debug=True, adm_bypass_cm=1).outputs()[:7] == tuple(
        f"{key}_bcm_1" for key in SCORES
    )
