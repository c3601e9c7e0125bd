from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gate.model import Cell, Result, Run, Status, failure_sentence
from reports import wording

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]


def test_failure_sentence_has_the_form_of_the_design(failed: Result) -> None:
    expected = "frame 3 adm2: 0x1.de3b6cp-1 expected 0x1.de3b6ep-1 (-1 ulp32), 4 of 84 scores"
    assert failure_sentence(failed) == expected


def test_failure_without_a_mismatch_says_its_reason(failed: Result) -> None:
    bare = replace(failed, comparison=None, reason="the repeats differ")
    assert failure_sentence(bare) == "the repeats differ"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tab\tand\nline", "tab\tand\nline"),
        ("a\r\nb\rc", "a\nb\\rc"),
        ("\x00\x1b[31m\x7f\x9b", r"\x00\x1b[31m\x7f\x9b"),
        ("\ufffe\udc80\u202e\U0001fffe", r"\ufffe\udc80\u202e\U0001fffe"),
        ("größer ≥ 😀", "größer ≥ 😀"),
    ],
)
def test_control_characters_are_spelled_and_the_rest_is_kept(text: str, shown: str) -> None:
    assert wording.printable(text) == shown


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (29, "x" * 29),
        (30, "x" * 30),
        (31, "x" * 20 + "\n[... 1 characters cut ...]\n" + "x" * 10),
    ],
)
def test_cut_keeps_the_limit_and_tells_the_rest(length: int, shown: str) -> None:
    assert wording.cut("x" * length, 30) == shown


def test_cut_keeps_the_last_line_of_a_traceback() -> None:
    assert wording.cut("start" + "-" * 1000 + "ValueError: 9", 60).endswith("ValueError: 9")


def test_every_red_exit_code_without_a_red_cell_has_a_problem(
    build_run: BuildRun, passed: Result, skipped: Result
) -> None:
    missing = build_run(passed, missing=("opencl:nvidia: no driver",))
    assert [p.name for p in wording.problems(missing)] == ["required backend opencl:nvidia"]
    assert [p.name for p in wording.problems(build_run())] == ["no cells"]
    assert [p.name for p in wording.problems(build_run(skipped))] == ["all skipped"]
    interrupted = build_run(passed, interrupted=True)
    assert [p.name for p in wording.problems(interrupted)] == ["interrupted"]
    assert wording.problems(build_run(passed, skipped)) == []


def test_empty_selection_names_the_globs_and_what_to_do(build_run: BuildRun) -> None:
    (problem,) = wording.problems(build_run(selection=("*/cuda9",), planned=150))
    assert problem.sentence == (
        "no cell of matrices/pr.yaml was run: --cell */cuda9 selects 0 of its 150 cells; "
        "`parity-gate list` shows the ids"
    )


def test_shared_id_keeps_what_the_cells_have_in_common(build_cell: BuildCell) -> None:
    cells = [build_cell("a/slash"), build_cell("other", dialect="ieee-double")]
    results = [Result(cell, Status.SKIP, "why") for cell in cells]
    assert wording.shared_id(results) == "float_adm/*/egl_1.2/*/cuda"
    assert wording.shared_id(results[:1]) == cells[0].id


def test_reasons_are_shared_only_with_the_same_detail(broken: Result) -> None:
    other = replace(broken, detail="another log")
    assert wording.by_reason([broken, other, broken]) == [[broken, broken], [other]]


def test_reference_time_is_counted_once_for_all_candidates(
    build_run: BuildRun, build_cell: BuildCell
) -> None:
    cells = (build_cell(), build_cell(candidate="opencl:pocl"), build_cell("another"))
    results = (Result(cell, Status.PASS, reference_seconds=0.5) for cell in cells)
    assert wording.reference_seconds(build_run(*results)) == {"cpu": 1.0}
