"""Tests of known deviations: the file that lists them, and what it makes of a comparison."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from runner_desk import make_cell

from gate.deviations import judged
from gate.errors import MatrixError
from gate.matrix import load
from gate.model import Comparison, Deviation, Mismatch, Result, Status
from gate.plan import plan

FILE = Path("m.yaml")
LIST = Path("deviations.yaml")

MATRIX = """\
version: 1
deviations: deviations.yaml
fixtures:
  a: {generator: noise, width: 17, height: 17, bit_depth: 8}
  b: {generator: noise, width: 18, height: 17, bit_depth: 8}
matrix:
  - feature: float_adm
    candidates: [cuda, "opencl:pocl"]
    options: [{}, {adm_enhn_gain_limit: 1.2}]
    fixtures: ["*"]
    skip: [{cells: "*/egl_1.2/b/cuda", reason: slow}]
"""

LISTED = """\
version: 1
deviations:
  - cells: ["*/egl_1.2/*/opencl:pocl"]
    outputs: ["adm*_egl_1.2", aim_egl_1.2]
    reason: rounds the limited product
    owner: kernels
    expires: 2031-02-28
  - {cells: ["*/default/a/cuda"], outputs: ["*"], reason: r, owner: o, expires: 2031-12-31}
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.write_text(MATRIX, "utf-8")
    LIST.write_text(LISTED, "utf-8")


def problems() -> str:
    with pytest.raises(MatrixError) as caught:
        load(FILE)
    return "\n".join(caught.value.problems)


def changed(old: str, new: str, text: str = LISTED) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


# The file


def test_cells_carry_what_is_listed_about_them() -> None:
    matrix = load(FILE)
    assert matrix.deviations is not None
    assert matrix.deviations.path == LIST
    listed = {cell.id: cell.deviation for cell in plan(matrix) if cell.deviation}
    assert list(listed) == [
        "float_adm/rcpss-double/default/a/cuda",
        "float_adm/rcpss-double/egl_1.2/a/opencl:pocl",
        "float_adm/rcpss-double/egl_1.2/b/opencl:pocl",
    ]
    assert listed["float_adm/rcpss-double/egl_1.2/a/opencl:pocl"] == Deviation(
        outputs=("adm*_egl_1.2", "aim_egl_1.2"),
        reason="rounds the limited product",
        owner="kernels",
        expires="2031-02-28",
        place="deviations.yaml:3",
    )


def test_a_matrix_that_names_no_list_has_no_deviations() -> None:
    FILE.write_text(changed("deviations: deviations.yaml\n", "", MATRIX), "utf-8")
    matrix = load(FILE)
    assert matrix.deviations is None
    assert {cell.deviation for cell in plan(matrix)} == {None}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("version: 1", "version: 2", "1:10: version 2 is out of range; allowed: 1"),
        ("    owner: kernels\n", "", "3:5: key 'owner' is missing; add it"),
        (
            "owner: kernels",
            "owners: kernels",
            (
                "3:5: key 'owner' is missing; add it\n"
                "deviations.yaml:6:5: unknown key 'owners'; did you mean 'owner'? "
                "allowed: cells, outputs, reason, owner, expires, not_finite"
            ),
        ),
        ("reason: rounds the", "reason: ' ' #", "5:13: reason is empty; write something"),
        ('["adm*_egl_1.2", aim_egl_1.2]', "[]", "4:14: outputs is empty; give at least one"),
        ("2031-02-28", "2031-02-29", "7:14: expires '2031-02-29' is not a day; write YYYY-MM-DD"),
        ("2031-02-28", "2031-W09-5", "7:14: expires '2031-W09-5' is not a day; write YYYY-MM-DD"),
        ("2031-02-28", "20310228", "7:14: expires 20310228 must be text; put it in quotes"),
        (
            "*/egl_1.2/*/opencl:pocl",
            "*/egl_1.3/*/opencl:pocl",
            "3:13: cells '*/egl_1.3/*/opencl:pocl' names no cell that runs; correct or delete it",
        ),
        (
            "*/egl_1.2/*/opencl:pocl",
            "*/egl_1.2/b/cuda",
            "3:13: cells '*/egl_1.2/b/cuda' names no cell that runs; correct or delete it",
        ),
        (
            '["*/default/a/cuda"]',
            '["*/default/a/cuda", "*/default/c/cuda"]',
            "8:34: cells '*/default/c/cuda' names no cell that runs; correct or delete it",
        ),
        (
            "*/default/a/cuda",
            "*/egl_1.2/*/*",
            (
                "8:13: cell float_adm/rcpss-double/egl_1.2/a/opencl:pocl and 1 more "
                "listed in line 3 and again in line 8; narrow one"
            ),
        ),
        (
            "*/default/a/cuda",
            "*/egl_1.2/b/*",
            (
                "8:13: cell float_adm/rcpss-double/egl_1.2/b/opencl:pocl "
                "listed in line 3 and again in line 8; narrow one"
            ),
        ),
        (
            "aim_egl_1.2",
            "aim_egl_1.20",
            "4:31: outputs 'aim_egl_1.20' names no output of its cells; correct or delete it",
        ),
        ("version: 1\n", "version: &x 1\n", "1:10: anchor &x is not allowed; delete it"),
        (
            LISTED,
            "[",
            "1:2: expected the node content, but found '<stream end>' while parsing a flow node",
        ),
        (LISTED, "", "1:1: the file must be a mapping, not null"),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, sentence: str) -> None:
    LIST.write_text(changed(old, new), "utf-8")
    assert problems() == f"deviations.yaml:{sentence}"


def test_every_key_of_an_entry_is_required() -> None:
    LIST.write_text("version: 1\ndeviations: [{}]\n", "utf-8")
    keys = ("cells", "expires", "outputs", "owner", "reason")
    told = [f"deviations.yaml:2:14: key '{key}' is missing; add it" for key in keys]
    assert problems() == "\n".join(told)


def test_mistakes_of_both_files_are_told_in_one_run() -> None:
    FILE.write_text(changed("width: 18", "width: 0", MATRIX), "utf-8")
    LIST.write_text(changed("2031-02-28", "soon").replace("version: 1", "version: 3"), "utf-8")
    assert problems().splitlines() == [
        "m.yaml:5:32: width 0 is out of range; allowed: 1 to 32768",
        "deviations.yaml:1:10: version 3 is out of range; allowed: 1",
        "deviations.yaml:7:14: expires 'soon' is not a day; write YYYY-MM-DD",
    ]


def test_a_wrong_matrix_makes_no_entry_look_unused() -> None:
    FILE.write_text(changed("[cuda, ", "[cude, ", MATRIX), "utf-8")
    assert [line.split(": ")[0] for line in problems().splitlines()] == ["m.yaml:8:18"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("../d.yaml", "'../d.yaml' leaves the matrix's folder; name a file inside it"),
        ("x/../../d.yaml", "'x/../../d.yaml' leaves the matrix's folder; name a file inside it"),
        (
            "/d.yaml",
            "'/d.yaml' is not a relative path; write it relative to the matrix's folder",
        ),
        ("''", "is empty; write something"),
        ("", "must be text, not null"),
        ("none.yaml", "'none.yaml' is no file; put one there or correct the path"),
        ("folder", "'folder' is no file; put one there or correct the path"),
    ],
)
def test_a_list_is_a_file_in_the_folder_of_the_matrix(name: str, sentence: str) -> None:
    Path("folder").mkdir()
    FILE.write_text(changed("deviations.yaml", name, MATRIX), "utf-8")
    place = "2:13" if name else "2:12"
    assert problems() == f"m.yaml:{place}: deviations {sentence}"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "m.yaml").write_text(MATRIX, "utf-8")
    (inner / "deviations.yaml").symlink_to(tmp_path / "deviations.yaml")
    with pytest.raises(MatrixError) as caught:
        load(inner / "m.yaml")
    (problem,) = caught.value.problems
    assert problem == (
        f"{inner}/m.yaml:2:13: deviations 'deviations.yaml' leads to {tmp_path}/deviations.yaml; "
        f"only files inside {inner} are read"
    )


def test_a_list_in_a_folder_below_is_read() -> None:
    Path("folder").mkdir()
    LIST.rename("folder/d.yaml")
    FILE.write_text(changed("deviations.yaml", "folder/d.yaml", MATRIX), "utf-8")
    places = {cell.deviation.place for cell in plan(load(FILE)) if cell.deviation}
    assert places == {"folder/d.yaml:3", "folder/d.yaml:8"}


# What it makes of a comparison


DAY = date(2031, 2, 28)
DEVIATION = Deviation(("one*",), "rounds", "kernels", DAY.isoformat(), "d.yaml:3")
CELL = make_cell(deviation=DEVIATION)
PLAIN = make_cell()
SAME = Comparison(6, nans=0, unsets=0, different=0, mismatches=())


def mismatch(score: str, frame: int = 0) -> Mismatch:
    return Mismatch(frame, score, 4.0, math.nextafter(4, 5), 1, "ulp64")


def differing(*mismatches: Mismatch) -> Comparison:
    return replace(SAME, different=len(mismatches), mismatches=mismatches)


def test_without_an_entry_equal_scores_pass_and_others_fail() -> None:
    assert judged(PLAIN, SAME, DAY) == Result(PLAIN, Status.PASS, comparison=SAME)
    result = judged(PLAIN, differing(mismatch("one")), DAY)
    assert (result.status, result.reason) == (
        Status.FAIL,
        "frame 0 one: 0x1.0000000000001p+2 expected 0x1p+2 (+1 ulp64), 1 of 6 scores",
    )


def test_a_listed_difference_is_known_and_keeps_its_comparison() -> None:
    comparison = differing(mismatch("one"), mismatch("one_more", 2))
    result = judged(CELL, comparison, DAY)
    assert (result.status, result.comparison) == (Status.KNOWN, comparison)
    assert result.reason == "rounds (d.yaml:3, owner kernels, expires 2031-02-28)"


@pytest.mark.parametrize("today", [DAY, date(2031, 3, 1)])
def test_an_unexpected_agreement_fails(today: date) -> None:
    result = judged(CELL, SAME, today)
    assert (result.status, result.comparison) == (Status.FAIL, SAME)
    assert result.reason == "agrees although d.yaml:3 lists it; narrow or delete the entry"


def test_another_output_fails_and_is_named_first() -> None:
    listed, other, last = mismatch("one"), mismatch("two", 1), mismatch("one", 2)
    result = judged(CELL, differing(listed, other, last), DAY)
    assert result.status is Status.FAIL
    assert result.comparison == differing(other, listed, last)
    assert result.reason == (
        "frame 1 two: 0x1.0000000000001p+2 expected 0x1p+2 (+1 ulp64), 3 of 6 scores; "
        "d.yaml:3 does not list this output"
    )


@pytest.mark.parametrize(
    ("today", "status"),
    [
        (date(2031, 2, 27), Status.KNOWN),
        (date(2031, 2, 28), Status.KNOWN),
        (date(2031, 3, 1), Status.FAIL),
    ],
)
def test_an_entry_holds_until_the_end_of_its_last_day(today: date, status: Status) -> None:
    assert judged(CELL, differing(mismatch("one")), today).status is status


def test_an_expired_entry_fails_with_the_day_and_the_first_mismatch() -> None:
    result = judged(CELL, differing(mismatch("one")), date(2031, 3, 1))
    assert result.reason == (
        "frame 0 one: 0x1.0000000000001p+2 expected 0x1p+2 (+1 ulp64), 1 of 6 scores; "
        "d.yaml:3, which lists it, expired on 2031-02-28; renew or delete it"
    )


def test_case_matters_in_globs_over_outputs() -> None:
    capital = make_cell(deviation=replace(DEVIATION, outputs=("ONE",)))
    assert judged(capital, differing(mismatch("one")), DAY).status is Status.FAIL


@pytest.mark.parametrize("candidate", [math.nan, math.inf, None])
def test_what_is_no_number_is_never_known(candidate: float | None) -> None:
    lost = replace(mismatch("one", 1), candidate=candidate, steps=None, unit="")
    result = judged(CELL, differing(mismatch("one"), lost), DAY)
    assert result.status is Status.FAIL
    assert result.reason.startswith("frame 1 one: ")
    assert result.reason.endswith("; d.yaml:3 lists finite numbers only")
    tolerant = make_cell(deviation=replace(DEVIATION, not_finite=True))
    assert judged(tolerant, differing(lost), DAY).status is Status.KNOWN
