"""The twin's CSF weights against the bits that the specification lists (float_adm.md, 9.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.features.float_adm.spec import FloatAdmOptions
from backends.features.float_adm.weights import band_weights

BARTEN = {"adm_csf_mode": 1}
SCALED = {**BARTEN, "adm_csf_scale": 2.0, "adm_csf_diag_scale": 0.5}
NATIVE = {"adm_csf_mode": 2}
FAR = {"adm_norm_view_dist": 5.0}
TALL = {"adm_ref_display_height": 2160}
SAME_RESOLUTION = {"adm_norm_view_dist": 1.5, "adm_ref_display_height": 2160}

TABLE = [
    ({}, False, "3C8E63BA/3BC106AA 3D030286/3C6A46A3 3D31A788/3CC7DC06 3D3B140B/3D0041C9"),
    ({}, True, "3C8E63B8/3BC106A9 3D030283/3C6A46A3 3D31A789/3CC7DC08 3D3B140B/3D0041C8"),
    (
        SAME_RESOLUTION,
        True,
        "3C8E63B8/3BC106A9 3D030283/3C6A46A3 3D31A789/3CC7DC08 3D3B140B/3D0041C8",
    ),
    (FAR, False, "3BE01B27/3B056BFF 3C6DF82C/3BBAE33C 3CBA3608/3C380033 3CE24E24/3C884687"),
    (FAR, True, "3BE01B27/3B056BFF 3C6DF82F/3BBAE33F 3CBA3606/3C380034 3CE24E22/3C884686"),
    (TALL, False, "3B9C9727/3AB2046C 3C2F0107/3B833860 3C9020AE/3C07F943 3CB85A7D/3C53FB42"),
    (TALL, True, "3B9C9726/3AB20467 3C2F0104/3B833860 3C9020AA/3C07F943 3CB85A7F/3C53FB43"),
    (BARTEN, False, "3F9AF18D/3F9AF18D 40A159E3/40A159E3 416A0875/416A0875 41D7CE9B/41D7CE9B"),
    (BARTEN, True, "3F9AF18E/3F9AF18E 40A159E4/40A159E4 416A0876/416A0876 41D7CE9C/41D7CE9C"),
    (SCALED, False, "401AF18D/3F1AF18D 412159E3/402159E3 41EA0875/40EA0875 4257CE9B/4157CE9B"),
    (SCALED, True, "401AF18E/3F1AF18E 412159E4/402159E4 41EA0876/40EA0876 4257CE9C/4157CE9C"),
    (NATIVE, False, "3BB2731D/3971C0DA 3E2AD6CF/3D26E4EC 3F2AF91A/3EC747CB 3F7C7BD6/3F609AA9"),
    (NATIVE, True, "3BB2731D/3971C0DA 3E2AD6CF/3D26E4EC 3F2AF91A/3EC747CB 3F7C7BD6/3F609AA9"),
]


@pytest.mark.parametrize(("options", "double", "bits"), TABLE)
def test_weights_have_the_listed_bits(
    options: dict[str, Any],
    double: bool,  # noqa: FBT001 - a column of the table
    bits: str,
) -> None:
    chosen = FloatAdmOptions.model_validate(options)
    scales = [band_weights(scale, chosen, double=double) for scale in range(4)]
    shown = ["/".join(f"{np.float32(w).view(np.uint32):08X}" for w in pair) for pair in scales]
    assert " ".join(shown) == bits


def test_a_weight_of_zero_is_an_override() -> None:
    chosen = FloatAdmOptions(adm_f1s1=0.0)
    assert band_weights(1, chosen, double=True)[0] == 0
    assert band_weights(0, chosen, double=True)[0] != 0
