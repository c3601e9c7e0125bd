"""Tests of which cells of a report run again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sharding import make_cell, make_cells, whole_run

from gate import rerun
from gate.model import Cell, ExitCode, Result, Status
from gate.rerun import NotRepeatable, Reported, of_junit, of_run, selected
from reports import junit

CELLS = tuple(make_cells())
WHOLE = whole_run(CELLS)
REPORTED = of_run(WHOLE)
RED = (Status.FAIL, Status.NONDETERMINISTIC, Status.ERROR)


def refusal(
    reported: list[Reported], cells: tuple[Cell, ...], *globs: str, failed: bool = False
) -> tuple[str, ExitCode]:
    with pytest.raises(NotRepeatable) as caught:
        selected(reported, cells, failed=failed, globs=globs)
    return str(caught.value), caught.value.exit_code


def junit_of(cases: str) -> bytes:
    return f"<?xml version='1.0'?><testsuites><testsuite>{cases}</testsuite></testsuites>".encode()


def test_all_cells_of_a_report_run_again_in_plan_order() -> None:
    assert selected(REPORTED[::-1], CELLS, failed=False, globs=()) == CELLS


def test_only_cells_of_the_report_run_again() -> None:
    assert selected(REPORTED[3:5], CELLS, failed=False, globs=()) == CELLS[3:5]


def test_only_red_cells_run_again_where_asked() -> None:
    red = tuple(result.cell for result in WHOLE.results if result.status in RED)
    assert 0 < len(red) < len(CELLS)
    assert selected(REPORTED, CELLS, failed=True, globs=()) == red


@pytest.mark.parametrize("status", list(Status))
def test_every_status_is_red_but_those_that_are_known_to_be_green(status: Status) -> None:
    green = (Status.PASS, Status.KNOWN, Status.SKIP)
    run = replace(WHOLE, results=(Result(CELLS[0], status),))
    assert of_run(run) == [Reported(CELLS[0].id, status not in green)]


def test_globs_choose_among_the_cells_of_the_report() -> None:
    globs = ("*/a/cuda", "float_adm/ieee/debug/b/*")
    expected = [cell for cell in CELLS if cell.id.endswith("/a/cuda")]
    expected += [cell for cell in CELLS if cell.id.startswith("float_adm/ieee/debug/b/")]
    chosen = selected(REPORTED, CELLS, failed=False, globs=globs)
    assert set(map(CELLS.index, chosen)) == set(map(CELLS.index, expected))
    assert list(chosen) == sorted(chosen, key=CELLS.index)


def test_globs_and_red_cells_are_both_asked_for() -> None:
    chosen = selected(REPORTED, CELLS, failed=True, globs=("*/cuda",))
    red = [r.cell for r in WHOLE.results if r.status in RED and r.cell.candidate == "cuda"]
    assert list(chosen) == red


def test_a_cell_that_is_reported_red_and_green_is_red() -> None:
    for both in ([True, False], [False, True]):
        reported = [Reported(CELLS[0].id, red) for red in both]
        assert selected(reported, CELLS, failed=True, globs=()) == CELLS[:1]


def test_a_cell_that_the_matrix_no_longer_has_is_named() -> None:
    sentence = f"the matrix no longer has cell {CELLS[0].id}; choose others with --cell"
    assert refusal(REPORTED, CELLS[1:]) == (sentence, ExitCode.USAGE)
    first = min(cell.id for cell in CELLS[:3])
    sentence = f"the matrix no longer has cell {first} and 2 more; choose others with --cell"
    assert refusal(REPORTED, CELLS[3:]) == (sentence, ExitCode.USAGE)


def test_a_cell_that_is_gone_and_not_asked_for_is_no_matter() -> None:
    last = CELLS[-1]
    assert selected(REPORTED, (last,), failed=False, globs=(last.id,)) == (last,)


def test_a_report_without_red_cells_says_so() -> None:
    green = [Reported(cell.id, red=False) for cell in CELLS]
    sentence = "none of the report's 64 cells is red; leave out --failed to repeat them"
    assert refusal(green, CELLS, failed=True) == (sentence, ExitCode.NOTHING)
    assert refusal(green, CELLS, "nothing", failed=True) == (sentence, ExitCode.NOTHING)


def test_a_report_without_cells_says_so() -> None:
    sentence = "the report has no cell to repeat; name one that has"
    assert refusal([], CELLS) == refusal([], CELLS, failed=True) == (sentence, ExitCode.NOTHING)


def test_a_glob_without_cells_is_refused_beside_one_that_has_some() -> None:
    sentence = "--cell '*/vulkan' matches none of the report's 64 cells; correct it"
    assert refusal(REPORTED, CELLS, "*/cuda", "*/vulkan") == (sentence, ExitCode.NOTHING)


def test_a_glob_with_green_cells_only_is_told_apart() -> None:
    glob = CELLS[0].id
    sentence = f"--cell {glob!r} matches 1 cell, and none of them is red; leave out --failed"
    assert refusal(REPORTED, CELLS, glob, failed=True) == (sentence, ExitCode.NOTHING)


def test_our_junit_file_says_what_the_run_says() -> None:
    run = replace(WHOLE, missing=("cuda: gone",), interrupted=True)
    document = junit.render(run)
    assert document.count('classname="gate"') == 2
    assert of_junit(document.encode()).cells == REPORTED


def test_errors_of_the_gate_redden_no_cell() -> None:
    cases = '<testcase name="a/b" classname="c"/><testcase name="x" classname="gate"><error/>'
    assert of_junit(junit_of(f"{cases}</testcase>")).cells == [Reported("a/b", red=False)]


def test_what_a_testcase_prints_does_not_redden_it() -> None:
    case = '<testcase name="a/b"><system-out>failure<error/></system-out><skipped/></testcase>'
    assert of_junit(junit_of(case)).cells == [Reported("a/b", red=False)]


def test_a_document_type_is_refused_before_anything_grows() -> None:
    bomb = b"<!DOCTYPE b [<!ENTITY a 'aa'><!ENTITY b '&a;&a;'>]><testsuites>&b;</testsuites>"
    external = b"<!DOCTYPE testsuites SYSTEM 'file:///etc/passwd'><testsuites/>"
    for document in (bomb, external):
        with pytest.raises(ValueError, match=r"^the file has a DTD; name a junit.xml"):
            of_junit(document)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (b"", "no element found"),
        (junit_of("")[:-5], "unclosed token"),
        (b'{"cells": []}', "not well-formed"),
        (junit_of("&x;"), "undefined entity"),
        (junit_of("\0"), "not well-formed"),
        (junit_of("x").replace(b"x", b"\xff"), "not well-formed"),
    ],
)
def test_what_is_no_xml_is_refused_in_one_sentence(document: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=rf"^the file is no whole XML \(.*({told})") as caught:
        of_junit(document)
    assert str(caught.value).endswith("); name a junit.xml of parity-gate")


def test_other_xml_is_refused() -> None:
    sentence = "the file has <html>; name a junit.xml of parity-gate"
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        of_junit(b"<html><testcase name='a/b'/></html>")


def test_elements_are_nested_as_deep_as_allowed_and_no_deeper() -> None:
    def nested(depth: int) -> bytes:
        return b"<testsuites>" + b"<a>" * (depth - 1) + b"</a>" * (depth - 1) + b"</testsuites>"

    assert of_junit(nested(rerun.DEEPEST)).cells == []
    with pytest.raises(ValueError, match=r"^the file has <testsuites/a/a/a/a/a/a/a/a>"):
        of_junit(nested(rerun.DEEPEST + 1))


def test_a_testcase_without_a_name_is_refused() -> None:
    for case in ("<testcase/>", '<testcase name=""/>'):
        with pytest.raises(ValueError, match=r"^the file has a testcase without a name"):
            of_junit(junit_of(case))


def test_a_file_is_as_large_as_allowed_and_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    document = junit_of('<testcase name="a/b"/>')
    monkeypatch.setattr(rerun, "LARGEST", len(document))
    assert of_junit(document).cells == [Reported("a/b", red=False)]
    with pytest.raises(ValueError, match=f"^the file is larger than {len(document)} bytes"):
        of_junit(document + b" ")


def test_a_cell_id_of_a_file_is_checked_against_the_plan() -> None:
    reported = of_junit(junit_of('<testcase name="../../etc/passwd"/>')).cells
    sentence = "the matrix no longer has cell ../../etc/passwd; choose others with --cell"
    assert refusal(reported, (make_cell(),)) == (sentence, ExitCode.USAGE)
