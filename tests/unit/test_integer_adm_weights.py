"""The integer twin's CSF weights against the bits that the specification lists (section 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.base import Arithmetic, Refused
from backends.features.integer_adm.spec import DIALECTS, NEAREST, IntegerAdmOptions, require
from backends.features.integer_adm.weights import Weights, csf_weights

NETFLIX, VMAFX = map(Arithmetic, DIALECTS)
BARTEN = {"adm_csf_mode": 1}
SAME_RESOLUTION = {"adm_norm_view_dist": 1.5, "adm_ref_display_height": 2160}


def weights(arithmetic: Arithmetic, options: dict[str, Any]) -> list[Weights]:
    chosen = IntegerAdmOptions.model_validate(options)
    return [csf_weights(scale, arithmetic, chosen) for scale in range(4)]


def integers(of: Weights) -> tuple[int, int]:
    hv, d = map(int, of.whole)
    return hv, d


def bits(found: list[Weights]) -> str:
    return " ".join(
        "/".join(f"{np.float32(w).view(np.uint32):08X}" for w in each.exact) for each in found
    )


@pytest.mark.parametrize("arithmetic", [NETFLIX, VMAFX])
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, "3C8E63BA/3BC106AA 3D030286/3C6A46A3 3D31A788/3CC7DC06 3D3B140B/3D0041C9"),
        (
            SAME_RESOLUTION,
            "3C8E63BA/3BC106AA 3D030286/3C6A46A3 3D31A788/3CC7DC06 3D3B140B/3D0041C9",
        ),
        (BARTEN, "3F9AF18D/3F9AF18D 40A159E3/40A159E3 416A0875/416A0875 41D7CE9B/41D7CE9B"),
        (
            {**BARTEN, "adm_csf_scale": 2.0, "adm_csf_diag_scale": 0.5},
            "401AF18D/3F1AF18D 412159E3/402159E3 41EA0875/40EA0875 4257CE9B/4157CE9B",
        ),
    ],
)
def test_weights_have_the_listed_bits(
    options: dict[str, Any], shown: str, arithmetic: Arithmetic
) -> None:
    assert bits(weights(arithmetic, options)) == shown


@pytest.mark.parametrize("arithmetic", [NETFLIX, VMAFX])
@pytest.mark.parametrize("options", [{}, SAME_RESOLUTION])
def test_the_default_weights_are_the_listed_integers(
    options: dict[str, Any], arithmetic: Arithmetic
) -> None:
    found = weights(arithmetic, options)
    assert [integers(each) for each in found] == [
        (36453, 49417),
        (137373792, 61414028),
        (186284160, 104783920),
        (196165808, 134487184),
    ]
    assert {each.halvings for each in found} == {0}


def test_scale_0_is_not_listed_but_computed_in_other_conditions() -> None:
    near, far = (weights(VMAFX, {"adm_norm_view_dist": v}) for v in (3.0, 3.00001))
    assert integers(near[0]) == (36453, 49417)
    assert integers(far[0]) == (int(far[0].exact[0] * 2.0**21), int(far[0].exact[1] * 2.0**23))
    table = weights(VMAFX, {"adm_csf_mode": 2})
    assert integers(table[0]) == (
        int(np.float32(0.01183) * 2.0**21),
        int(np.float32(0.004302) * 2.0**23),
    )


def test_netflix_keeps_the_low_bits_of_what_does_not_fit() -> None:
    """0x3F9AF18D is 1.2105...: 21 and 23 places behind the point are more than 16 bits."""
    mantissa = 0x9AF18D  # 24 bits, of 1.21 in units of 2^-23
    found = weights(NETFLIX, BARTEN)
    assert integers(found[0]) == ((mantissa >> 2) & 0xFFFF, mantissa & 0xFFFF)
    assert integers(found[1]) == ((0xA159E3 << 11) & 0xFFFFFFFF,) * 2  # 5.04 in units of 2^-21
    assert {each.halvings for each in found} == {0}


@pytest.mark.parametrize(
    ("factor", "halvings"), [(1.0, (8, 7, 7, 8)), (0.0001, (0, 0, 0, 0)), (50.0, (13, 12, 13, 14))]
)
def test_vmafx_halves_weights_until_they_fit(factor: float, halvings: tuple[int, ...]) -> None:
    scaled = {**BARTEN, "adm_csf_scale": factor, "adm_csf_diag_scale": factor}
    found = weights(VMAFX, scaled)
    limits = [(43900, 65536), *((n, n) for n in (279958309, 539893111, 546406567))]
    for scale, (each, limit) in enumerate(zip(found, limits, strict=True)):
        places = (21, 23) if scale == 0 else (32, 32)
        exact = [float(w) * 2.0**n for w, n in zip(each.exact, places, strict=True)]
        halved = [value / 2**each.halvings for value in exact]
        assert integers(each) == tuple(map(int, halved))
        assert all(value < top for value, top in zip(halved, limit, strict=True))
        once_less = [2 * value for value in halved]
        fits = all(value < top for value, top in zip(once_less, limit, strict=True))
        assert each.halvings == 0 or not fits
    assert tuple(each.halvings for each in found) == halvings


def test_one_band_that_does_not_fit_halves_both() -> None:
    found = weights(VMAFX, {**BARTEN, "adm_csf_scale": 50.0, "adm_csf_diag_scale": 0.0})
    assert all(each.halvings > 0 and each.whole[0] > 0 == each.whole[1] for each in found)


TABULATED = [(1080, 3.0), (2160, 1.5), (1080, 5.0), (2160, 3.0), (2160, 5.0), (720, 5.0)]
ROWS = """
.01183 .025026 .04295 .058621  .004302 .011778 .023918 .035901
.01183 .025026 .04295 .058621  .004302 .011778 .023918 .035901
.004212 .014809 .029642 .047464  .000984 .005852 .0146 .027574
.00226 .01183 .025026 .04295  .000479 .004302 .011778 .023918
.000092 .004212 .014809 .029642  .000050 .000984 .005852 .0146
.010144 .022561 .040309 .05672  .003463 .010282 .021839 .034641
.011249 .022606 .035930 .045673  .004097 .010921 .021430 .031313
.011249 .022606 .035930 .045673  .004097 .010921 .021430 .031313
.004052 .013939 .026298 .038833  .000927 .005544 .013415 .024515
.002166 .011249 .022606 .035930  .000447 .004097 .010921 .021430
.000077 .004052 .013939 .026298  .000045 .000927 .005544 .013415
.009689 .020577 .034162 .044523  .003302 .009579 .019661 .030318
"""


@pytest.mark.parametrize("mode", [2, 3])
def test_tables_hold_the_listed_decimals(mode: int) -> None:
    rows = [list(map(np.float32, line.split())) for line in ROWS.split("\n") if line]
    of_mode = rows[6 * (mode - 2) : 6 * (mode - 1)]
    for (height, distance), row in zip(TABULATED, of_mode, strict=True):
        options = {
            "adm_csf_mode": mode,
            "adm_ref_display_height": height,
            "adm_norm_view_dist": distance,
        }
        found = weights(VMAFX, options)
        assert [each.exact[0] for each in found] == row[:4]
        assert [each.exact[1] for each in found] == row[4:]
        require(VMAFX, IntegerAdmOptions.model_validate(options))


@pytest.mark.parametrize("mode", [2, 3])
@pytest.mark.parametrize(("height", "distance"), [(1080, 4.0), (1081, 3.0), (2160, 1.50001)])
def test_a_condition_without_a_row_is_refused_in_vmafx_only(
    mode: int, height: int, distance: float
) -> None:
    options = {
        "adm_csf_mode": mode,
        "adm_ref_display_height": height,
        "adm_norm_view_dist": distance,
    }
    chosen = IntegerAdmOptions.model_validate(options)
    listed = "1080 and 3, 2160 and 1.5, 1080 and 5, 2160 and 3, 2160 and 5, 720 and 5"
    with pytest.raises(Refused) as refusal:
        require(VMAFX, chosen)
    assert str(refusal.value) == (
        f"adm_csf_mode {mode} has no weights for adm_ref_display_height {height} and "
        f"adm_norm_view_dist {distance:g}; dialect vmafx takes {listed}"
    )
    require(NETFLIX, chosen)
    found = weights(NETFLIX, options)
    assert {float(weight) for each in found for weight in each.exact} == {
        -22
    }  # libvmaf's error code
    assert [integers(each) for each in found] == [(0, 0)] * 4


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("scales", [0.0, 1.0, 50.0])
def test_formulas_give_weights_that_vmafx_takes(mode: int, scales: float) -> None:
    """Over the whole range of viewing conditions: only a table can lack a weight."""
    for height in (135, 136, 480, 1080, 2161, 4320):
        for distance in (0.75, 1.5, 3.0, 12.0, 24.0):
            if height * distance < NEAREST:
                continue
            options = {
                "adm_csf_mode": mode,
                "adm_ref_display_height": height,
                "adm_norm_view_dist": distance,
                "adm_csf_scale": scales,
                "adm_csf_diag_scale": scales,
            }
            require(VMAFX, IntegerAdmOptions.model_validate(options))
            for each in weights(VMAFX, options):
                assert all(0 <= weight < np.inf for weight in each.exact)
