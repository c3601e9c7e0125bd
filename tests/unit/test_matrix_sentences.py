"""Tests of the matrix file: one mistake is one sentence, and nothing false follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.errors import MatrixError
from gate.matrix import load

FILE = Path("m.yaml")

MATRIX = """\
version: 1
fixtures:
  a: {generator: noise, width: 17, height: 17, bit_depth: 8}
  b: {generator: flat, width: 17, height: 17, bit_depth: 8, ref_level: 1, dist_level: 128}
matrix:
  - feature: float_adm
    candidates: [cuda, "opencl:pocl"]
    dialects: [rcpss-double, ieee-single]
    options: [{}, {adm_enhn_gain_limit: 1.2}]
    fixtures: ["*"]
"""

FILES = """\
version: 1
fixtures:
  a:
    width: 17
    height: 17
    bit_depth: 8
    frames: 1
    subsampling: 4:2:0
    ref:
      file: d/ok.yuv
      sha256: 00000000000000000000000000000000000000000000000000000000000000ab
    dist: {file: d/ok.yuv, sha256: 00000000000000000000000000000000000000000000000000000000000000ab}
matrix:
  - {feature: float_adm, candidates: [cuda], fixtures: [a]}
"""

UNUSED_B = "4:3: fixture 'b' is used by no cell; list it in a product or delete it"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def problems(text: str) -> str:
    FILE.write_text(text, "utf-8")
    with pytest.raises(MatrixError) as caught:
        load(FILE)
    return "\n".join(problem.removeprefix("m.yaml:") for problem in caught.value.problems)


def changed(old: str, new: str, text: str = MATRIX) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


# Fixtures that no cell uses


@pytest.mark.parametrize("axes", ["[a]", '["*"]\n    exclude: ["*/b/*"]'])
def test_a_fixture_that_no_cell_uses_is_a_mistake(axes: str) -> None:
    assert problems(changed('["*"]', axes)) == UNUSED_B


def test_a_fixture_that_is_used_in_one_cell_is_used() -> None:
    cell = "include: [{feature: float_adm, candidate: cuda, fixture: b}]\n"
    FILE.write_text(changed('["*"]', "[a]") + cell, "utf-8")
    assert list(load(FILE).fixtures) == ["a", "b"]


def test_a_fixture_whose_cells_are_skipped_is_used() -> None:
    FILE.write_text(MATRIX + '    skip: [{cells: "*/b/*", reason: slow}]\n', "utf-8")
    assert list(load(FILE).fixtures) == ["a", "b"]


def test_an_unused_fixture_that_is_also_wrong_has_both_mistakes() -> None:
    text = changed("128}", "256}").replace('["*"]', "[a]")
    level = "4:87: dist_level 256 does not fit bit_depth 8; allowed: 0 to 255"
    assert problems(text) == f"{UNUSED_B}\n{level}"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('["*"]', "[a, c]", "10:19: unknown fixture 'c'; allowed: a, b"),
        ('["*"]', "[]", "10:15: fixtures is empty; give at least one"),
        (
            '["*"]',
            '["*"]\n    exclude: ["*"]',
            "6:5: no cell is left, every one is excluded; delete the product",
        ),
        ("width: 17, height: 17, bit_depth: 8}", "width: 17, height: 17}", "3:6: key 'bit_depth'"),
        (
            "matrix:",
            "matrx:",
            (
                "5:1: unknown key 'matrx'; did you mean 'matrix'? "
                "allowed: version, expect, fixtures, matrix, include"
            ),
        ),
    ],
)
def test_a_mistake_in_a_product_makes_no_fixture_unused(old: str, new: str, sentence: str) -> None:
    found = problems(changed(old, new))
    assert found.startswith(sentence)
    assert "\n" not in found


# Axes that name something twice


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "[cuda, ",
            "[cuda, cuda, ",
            "7:24: candidates[1] repeats candidates[0] (cuda); delete one",
        ),
        (
            "[cuda, ",
            "[cuda, cuda, cuda, ",
            (
                "7:24: candidates[1] repeats candidates[0] (cuda); delete one\n"
                "7:30: candidates[2] repeats candidates[0] (cuda); delete one"
            ),
        ),
        (
            "[rcpss-double, ieee-single]",
            "[rcpss-double, ieee-single, ieee-single]",
            "8:43: dialects[2] repeats dialects[1] (ieee-single); delete one",
        ),
        (
            "[{}, ",
            "[{}, {debug: false}, ",
            "9:19: options[1] repeats options[0] (default); delete one",
        ),
        (
            "{adm_enhn_gain_limit: 1.2}",
            "{adm_enhn_gain_limit: 1.2}, {adm_enhn_gain_limit: 1.20}, {}",
            (
                "9:47: options[2] repeats options[1] (egl_1.2); delete one\n"
                "9:76: options[3] repeats options[0] (default); delete one"
            ),
        ),
        (
            "{adm_enhn_gain_limit: 1.2}",
            "{adm_enhn_gain_limit: 1.2}, {adm_enhn_gain_limit: 1.2000001}",
            "9:47: options[2] repeats options[1] (egl_1.2); delete one",
        ),
        (
            "    options:",
            "    conclusions: [vmafx, netflix, vmafx]\n    options:",
            "9:35: conclusions[2] repeats conclusions[0] (vmafx); delete one",
        ),
    ],
)
def test_a_value_that_an_axis_names_twice_is_told_where_it_is(
    old: str, new: str, sentence: str
) -> None:
    assert problems(changed(old, new)) == sentence


def test_two_products_with_the_same_cells_are_still_told() -> None:
    text = MATRIX + "  - {feature: float_adm, candidates: [cuda], fixtures: [a]}\n"
    assert problems(text) == (
        "11:5: cell float_adm/rcpss-double/default/a/cuda "
        "declared in line 6 and again in line 11; exclude one"
    )


# Limits and depths


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "    width: 17",
            "    width: 32769",
            "4:12: width 32769 is out of range; allowed: 1 to 32768",
        ),
        (
            "    height: 17",
            "    height: 99999999999999999999",
            "5:13: height 99999999999999999999 is out of range; allowed: 1 to 32768",
        ),
        (
            "    frames: 1",
            "    frames: 1000001",
            "7:13: frames 1000001 is out of range; allowed: 1 to 1000000",
        ),
        (
            "    bit_depth: 8",
            "    bit_depth: 0",
            "6:16: bit_depth 0 is not supported; allowed: 8, 10, 12, 16",
        ),
        (
            "    bit_depth: 8",
            "    bit_depth: -8",
            "6:16: bit_depth -8 is not supported; allowed: 8, 10, 12, 16",
        ),
        (
            "      file: d/ok.yuv",
            '      file: "d/ok.yuv\\0"',
            "10:13: file 'd/ok.yuv\\x00' holds a NUL character; delete it",
        ),
        (
            "      file: d/ok.yuv",
            "      file: /d/ok.yuv",
            (
                "10:13: file '/d/ok.yuv' is not a relative path; "
                "write it relative to the matrix's folder"
            ),
        ),
        (
            "      file: d/ok.yuv",
            "      file: ../outside.yuv",
            "10:13: file '../outside.yuv' leaves the matrix's folder; name a file inside it",
        ),
        (
            "\n      sha256: 00",
            "\n      sha256: AB",
            (
                f"11:15: sha256 'AB{'0' * 60}ab' must be 64 lower-case hex digits "
                "as sha256sum prints them"
            ),
        ),
        (
            f"\n      sha256: {'0' * 62}ab",
            f"\n      sha256: {'1' * 64}",
            f"11:15: sha256 {'1' * 64} must be text; put it in quotes",
        ),
        (
            f"\n      sha256: {'0' * 62}ab",
            f"\n      sha256: {'1' * 32}e{'2' * 31}",
            f"11:15: sha256 {'1' * 32}e{'2' * 31} must be text; put it in quotes",
        ),
    ],
)
def test_a_wrong_value_of_a_file_fixture_is_one_sentence(old: str, new: str, sentence: str) -> None:
    assert problems(changed(old, new, FILES)) == sentence


def test_a_wrong_depth_of_a_generator_with_levels_is_one_sentence() -> None:
    text = changed("8, ref_level", "0, ref_level")
    assert problems(text) == "4:58: bit_depth 0 is not supported; allowed: 8, 10, 12, 16"


# What is not followed by false sentences


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("  a: {", "  1: {", "3:3: key 1 must be text; put it in quotes"),
        ("  a: {", "  0x1F: {", "3:3: key 0x1F must be text; put it in quotes"),
        ("  a: {", "  ~: {", "3:3: key must be text, not null"),
        ("  a: {", "  ? [x]\n  : {", "3:5: key must be text, not a list"),
        (
            "width: 17, height: 17, bit_depth: 8}",
            "<<: *x}",
            "3:25: merge key << is not allowed; write the keys out",
        ),
        ("    dialects", "    <<: *x\n    dialects", "8:5: merge key << is not allowed; write "),
        ("fixtures:\n", "fixtures:\n  <<: *x\n", "3:3: merge key << is not allowed; write the "),
        ("version: 1\n", "<<: *x\n", "1:1: merge key << is not allowed; write the keys out"),
        ("[{}, ", "[{<<: *x}, ", "9:16: merge key << is not allowed; write the keys out"),
    ],
)
def test_nothing_false_follows_from_a_key_that_is_not_allowed(
    old: str, new: str, sentence: str
) -> None:
    found = problems(changed(old, new))
    assert found.startswith(sentence)
    assert "\n" not in found


@pytest.mark.parametrize(
    ("fixtures", "sentence"),
    [
        ("fixtures: {}", "2:11: fixtures is empty; give at least one"),
        ("fixtures: 3", "2:11: fixtures 3 must be a mapping"),
        ("fixtures: *x", "2:11: alias *x is not allowed; write the value out"),
        ("fixtures: {1: *x}", None),
        ("expect: {}", "1:1: key 'fixtures' is missing; add it"),
    ],
)
def test_no_fixture_is_unknown_where_no_fixtures_are_known(
    fixtures: str, sentence: str | None
) -> None:
    text = f"version: 1\n{fixtures}\n" + MATRIX[MATRIX.index("matrix:") :]
    text += "include: [{feature: float_adm, candidate: cuda, fixture: a}]\n" if sentence else ""
    assert problems(text) == (
        sentence
        or "2:12: key 1 must be text; put it in quotes\n"
        "2:15: alias *x is not allowed; write the value out"
    )
