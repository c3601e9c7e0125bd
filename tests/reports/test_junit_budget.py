"""What goes first where a JUnit document would become too large."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import pytest

from gate.model import Control, Result, Run, Status
from reports import junit

BuildRun = Callable[..., Run]

CELLS = 240
SMALLEST = 10_000  # bytes


@pytest.fixture
def many(
    build_run: BuildRun,
    passed: Result,
    known: Result,
    failed: Result,
    unsteady: Result,
    broken: Result,
    skipped: Result,
) -> Run:
    """Return a run with 40 failures of much detail, 20 errors, 10 skips, 10 known, 160 passed.

    10 of the failures are of candidates that give other bits now and then.
    """
    failed, unsteady = (replace(result, detail="😀" * 30_000) for result in (failed, unsteady))
    ways = Control("reference", "<" * 2_000, 84, 0), Control("candidate", "again", 84, 3)
    kinds = [(30, failed), (10, replace(unsteady, controls=ways)), (20, broken), (10, skipped)]
    kinds += [(10, known), (160, passed)]
    results = [result for number, result in kinds for _ in range(number)]
    # Not in order of badness: what is cut must not depend on the plan's order.
    order = sorted(range(CELLS), key=lambda index: index * 7 % CELLS)
    cells = (replace(results[i], cell=replace(results[i].cell, fixture=f"f{i}")) for i in order)
    return build_run(*cells)


def _read(run: Run, limit: int) -> ET.Element:
    document = junit.render(run, limit)
    assert len(document.encode()) <= limit
    (suite,) = ET.fromstring(document)  # noqa: S314 - our own document
    return suite


def _cut(suite: ET.Element) -> str:
    told = {p.attrib["name"]: p.attrib["value"] for p in suite.iter("property")}
    return told.get("cut", "")


def _colours(suite: ET.Element) -> list[int]:
    return [len(list(suite.iter(tag))) for tag in ("failure", "error", "skipped", "system-out")]


def test_document_that_just_fits_is_whole_and_one_byte_less_costs_the_texts_of_passed_cells(
    many: Run,
) -> None:
    size = len(junit.render(many).encode())
    for limit, told in ((size + 1, ""), (size, ""), (size - 1, "no texts of passed cells; ")):
        suite = _read(many, limit)
        assert _cut(suite).startswith(told)
        assert len(list(suite.iter("testcase"))) == CELLS
        assert _colours(suite) == [40, 20, 10, 0 if told else 170]


@pytest.mark.parametrize("limit", [400_000, 200_000, 100_000])
def test_scarce_room_shortens_every_text_and_keeps_every_testcase(limit: int, many: Run) -> None:
    suite = _read(many, limit)
    assert len(list(suite.iter("testcase"))) == CELLS
    assert _colours(suite) == [40, 20, 10, 0]
    match = re.search(r"reasons and logs of at most (\d+) characters", _cut(suite))
    assert match is not None
    assert _cut(suite).startswith("no texts of passed cells, ")
    assert "all of it is in report.json" in _cut(suite)
    for failure in suite.iter("failure"):
        lines = (failure.text or "").splitlines()
        (repeat,) = (n for n, line in enumerate(lines) if line.startswith("repeat: "))
        log = "\n".join(lines[repeat + 1 :])
        assert len(log) <= int(match[1]) + len("\n[... 30000 characters cut ...]\n")


def test_places_go_after_all_texts(many: Run) -> None:
    limits = range(60_000, 35_000, -1_000)
    suites = [_read(many, limit) for limit in limits]
    whole = [suite for suite in suites if len(list(suite.iter("testcase"))) == CELLS]
    without = [suite for suite in whole if "no lines of the matrix" in _cut(suite)]
    assert whole[-1] is without[-1]
    for suite in without:
        assert _cut(suite) == "no texts, no lines of the matrix; all of it is in report.json"
        assert all("line" not in case.attrib for case in suite.iter("testcase"))
        told = [failure.attrib["message"] for failure in suite.iter("failure")]
        assert sorted(told) == ["FAIL"] * 30 + ["NONDETERMINISTIC"] * 10
        assert _colours(suite) == [40, 20, 10, 0]


@pytest.mark.parametrize("limit", [30_000, 20_000, SMALLEST])
def test_testcases_that_find_no_room_are_an_error_and_the_worst_stay(limit: int, many: Run) -> None:
    suite = _read(many, limit)
    gate, *cases = suite.iter("testcase")
    assert (gate.attrib["classname"], gate.attrib["name"]) == ("gate", "report too large")
    (error,) = gate
    gone = CELLS - len(cases)
    assert error.tag == "error"
    assert error.text == (
        f"{gone} testcases of {CELLS} found no room in {limit} bytes, the worst stay here; "
        "report.json has every cell"
    )
    names = {result.cell.id: result.status for result in many.results}
    kept = [names[case.attrib["name"]] for case in cases]
    red = [Status.FAIL] * 30 + [Status.NONDETERMINISTIC] * 10 + [Status.ERROR] * 20
    others = [Status.SKIP] * 10 + [Status.KNOWN] * 10 + [Status.PASS] * 160
    assert kept == [*red, *others][: len(kept)]
    assert len(kept) >= 20


@pytest.mark.parametrize("limit", [SMALLEST, 100_000, junit.LIMIT])
def test_more_facts_than_there_is_room_for_are_counted(limit: int, build_run: BuildRun) -> None:
    facts = {f"fact {number}": "<" * 3_000 for number in range(4_000)}
    suite = _read(build_run(environment={"host": facts}), limit)
    *shown, last = suite.iter("property")
    others = [
        *("verdict", "run", "selection", "required backends", "replayed table"),
        *("runs of each candidate", "control of the reference"),
    ]
    total = 4_000 + len(others) + bool(_cut(suite))
    gone = total - len(shown)
    assert (last.attrib["name"], last.attrib["value"]) == ("more", f"{gone} facts, in report.json")
    assert gone > 0


def test_hundreds_of_missing_backends_stay_within_the_limit(build_run: BuildRun) -> None:
    run = build_run(missing=tuple(f"b{n}: {'&' * 2_000}" for n in range(200)))
    cases = list(_read(run, 20_000).iter("testcase"))
    assert cases[0].attrib["name"] == "report too large"
    assert cases[1].attrib["name"] == "required backend b0"


def test_cell_larger_than_the_limit_is_counted(build_run: BuildRun, passed: Result) -> None:
    huge = replace(passed, cell=replace(passed.cell, fixture="f" * 20_000))
    (case,) = _read(build_run(huge), SMALLEST).iter("testcase")
    assert case[0].text is not None
    assert case[0].text.startswith("1 testcase of 1 found no room")
