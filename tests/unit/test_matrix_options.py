"""Tests of options in a matrix file: taken as libvmaf takes them, and a change is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends import registry
from gate.errors import MatrixError
from gate.matrix import Matrix, load
from gate.plan import plan

FILE = Path("m.yaml")
FEATURE = registry.features()["float_adm"]

MATRIX = """\
version: 1
fixtures:
  a: {generator: noise, width: 17, height: 17, bit_depth: 8}
matrix:
  - feature: float_adm
    candidates: [cuda]
    options: [{}, {%s}]
    fixtures: [a]
include:
  - {feature: float_adm, candidate: "opencl:pocl", fixture: a}
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(options: str, more: str = "") -> Matrix:
    FILE.write_text(MATRIX % options + more, "utf-8")
    return load(FILE)


@pytest.mark.parametrize(("text", "warns"), [("1e-400", 1), ("0.000", 0), ("0e5", 0), ("1e-50", 1)])
def test_a_number_that_becomes_0_is_told_however_small_it_was(text: str, warns: int) -> None:
    matrix = loaded(f"adm_noise_weight: {text}")
    told = [f"adm_noise_weight {text} becomes 0, as libvmaf takes it"] * warns
    assert list(matrix.warnings.values()) == told


def names(matrix: Matrix) -> list[str]:
    products = (*matrix.products, *matrix.include)
    return [FEATURE.options_name(options) for product in products for options in product.options]


def test_a_number_that_libvmaf_takes_as_another_is_told_and_taken_so() -> None:
    cell = (
        "  - {feature: float_adm, candidate: cuda, fixture: a, options: {adm_f1s0: -0.12345678}}\n"
    )
    matrix = loaded("adm_enhn_gain_limit: 1.23456789, adm_csf_mode: 1.70", cell)
    assert list(matrix.warnings.items()) == [
        ("m.yaml:7:41", "adm_enhn_gain_limit 1.23456789 becomes 1.23457, as libvmaf takes it"),
        ("m.yaml:7:67", "adm_csf_mode 1.70 becomes 1, as libvmaf takes it"),
        ("m.yaml:11:75", "adm_f1s0 -0.12345678 becomes -0.123457, as libvmaf takes it"),
    ]
    assert names(matrix) == ["default", "csf_1_egl_1.23457", "default", "f1s0_-0.123457"]
    cells = {tuple(cell.options.items()) for cell in plan(matrix)}
    assert (("adm_enhn_gain_limit", 1.23457), ("adm_csf_mode", 1)) in cells


def test_the_text_is_rounded_once() -> None:
    matrix = loaded("adm_noise_weight: 10.000050067901611328125000000001")
    assert names(matrix)[1] == "nw_10.0001"  # by way of a float64: 10


@pytest.mark.parametrize(
    "options",
    [
        "adm_enhn_gain_limit: 1.20, adm_p_norm: 3, adm_csf_mode: 1.0, adm_noise_weight: 1e-1",
        "debug: true, adm_skip_scale0: false, adm_csf_mode: 0x1",
    ],
)
def test_a_number_that_stays_the_same_in_libvmaf_gives_no_warning(options: str) -> None:
    assert loaded(options).warnings == {}


def test_a_matrix_without_options_gives_no_warning() -> None:
    FILE.write_text((MATRIX % "").replace("    options: [{}, {}]\n", ""), "utf-8")
    assert load(FILE).warnings == {}


def test_a_range_holds_for_the_number_that_libvmaf_takes() -> None:
    matrix = loaded("adm_enhn_gain_limit: 100.00001, adm_csf_mode: 1000000")
    assert list(matrix.warnings.values()) == [
        "adm_enhn_gain_limit 100.00001 becomes 100, as libvmaf takes it",
        "adm_csf_mode 1000000 becomes 1, as libvmaf takes it",  # of 1e+06
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            "adm_enhn_gain_limit: 100.001",
            "7:41: adm_enhn_gain_limit 100.001 is out of range; allowed: 1 to 100",
        ),
        (
            "adm_noise_weight: -0",
            "7:38: adm_noise_weight -0 is a 0 that libvmaf refuses for its sign; write 0",
        ),
        (
            "adm_noise_weight: -1e-50",
            "7:38: adm_noise_weight -1e-50 is a 0 that libvmaf refuses for its sign; write 0",
        ),
        (
            "adm_bypass_cm: -0.30",
            "7:35: adm_bypass_cm -0.30 is a 0 that libvmaf refuses for its sign; write 0",
        ),
        (
            "adm_skip_aim_scale: -1",
            "7:40: adm_skip_aim_scale -1 is out of range; allowed: 0 to 3",
        ),
        ('adm_csf_scale: "1.2"', "7:35: adm_csf_scale '1.2' must be a number"),
        ("adm_csf_scale: .nan", "7:35: adm_csf_scale '.nan' must be a finite number"),
        ("adm_csf_scale: 1e39", "7:35: adm_csf_scale 1e39 must be a finite number"),
        ("adm_csf_mode: 1e39", "7:34: adm_csf_mode 1e39 must be an integer"),
        ("adm_csf_mode: true", "7:34: adm_csf_mode true must be an integer"),
        ("adm_skip_scale0: 1", "7:37: adm_skip_scale0 1 must be true or false"),
    ],
)
def test_what_libvmaf_refuses_is_told_with_its_place(options: str, sentence: str) -> None:
    with pytest.raises(MatrixError) as caught:
        loaded(options)
    assert caught.value.problems == [f"m.yaml:{sentence}"]
