"""What every report says of sides that move, of control, repeats and the cache."""

from __future__ import annotations

import io
import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from gate import fuzz, record, rerun
from gate.model import (
    BOTH_REFUSE,
    Cell,
    Control,
    ExitCode,
    Result,
    Run,
    Stability,
    Status,
    control_sentence,
    stability_sentence,
)
from reports import console, github, junit, markdown, steadiness, wording
from reports import json as json_report

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]

AGAIN = Control("reference", "again", 84, 0)
ONE_THREAD = Control("reference", "on one thread", 84, 0)
OWN = Control("candidate", "again", 84, 0)
STEADY = "the reference gives the same bits again"
SAME = f"{STEADY}, on one thread"
OTHER = "the reference gives other bits when computed"
MOVED = (
    "the reference gives the same bits again, in dirty memory, but other bits when computed "
    "on one thread (3 of 84 scores); the candidate gives the same bits again"
)
ODD = "reference cpu gave other bits when computed on one thread (3 of 84 scores)"


def _console(run: Run) -> str:
    target = io.StringIO()
    Console(file=target, width=100).print(console.table(run), soft_wrap=True)
    return target.getvalue()


def _junit(run: Run) -> ET.Element:
    return ET.fromstring(junit.render(run))  # noqa: S314 - our own document


def _properties(run: Run) -> dict[str, str]:
    return {p.attrib["name"]: p.attrib["value"] for p in _junit(run).iter("property")}


def test_a_moved_reference_is_told_as_one_that_judges_nobody() -> None:
    moved = Control("reference", "on one thread", 84, 3)
    assert control_sentence(moved, "cpu") == f"{ODD}, so it judges no candidate"


def test_a_moved_candidate_is_told_with_its_name() -> None:
    sentence = control_sentence(Control("candidate", "again", 1, 1), "cuda")
    assert sentence == "candidate cuda gave other bits when computed again (1 of 1 score)"


@pytest.mark.parametrize(
    ("stability", "told", "probability"),
    [
        (Stability(30, 2, 3), "2 different results in 30 runs, 3 runs unlike", "0.96"),
        (Stability(13, 2, 1), "2 different results in 13 runs, 1 run unlike", "0.65"),
        (Stability(2, 2, 1), "2 different results in 2 runs, 1 run unlike", "0.75"),
        (Stability(300, 9, 200), "9 different results in 300 runs, 200 runs unlike", "0.99"),
    ],
)
def test_a_candidate_that_moves_is_told_with_its_probability(
    stability: Stability, told: str, probability: str
) -> None:
    runs = stability.runs
    assert stability_sentence("opencl:pocl", stability) == (
        f"opencl:pocl gave {told} the most frequent; "
        f"{runs} runs see a fault as frequent with probability {probability}"
    )


@pytest.mark.parametrize(
    ("controls", "stability", "sentence"),
    [
        ((), None, ""),
        ((), Stability(30, 1, 0), ""),
        ((AGAIN, ONE_THREAD), None, SAME),
        ((AGAIN, ONE_THREAD, OWN), None, f"{SAME}; the candidate gives the same bits again"),
        (
            (AGAIN, ONE_THREAD),
            Stability(30, 1, 0),
            f"{SAME}; the candidate gives the same bits in 30 runs",
        ),
        (
            (AGAIN,),
            Stability(30, 2, 3),
            f"{STEADY}; the candidate gives 2 different results in 30 runs",
        ),
        (
            (replace(AGAIN, scores=1, different=1), replace(ONE_THREAD, different=9)),
            None,
            f"{OTHER} again (1 of 1 score), on one thread (9 of 84 scores)",
        ),
        (
            (AGAIN, replace(OWN, scores=1, different=1)),
            None,
            f"{STEADY}; the candidate gives other bits when computed again (1 of 1 score)",
        ),
    ],
)
def test_sides_are_told_one_after_the_other(
    controls: tuple[Control, ...], stability: Stability | None, sentence: str, failed: Result
) -> None:
    result = replace(failed, controls=controls, stability=stability)
    assert steadiness.sides_sentence(result) == sentence


def test_who_moved_is_guilty_and_else_the_candidate(
    failed: Result, moved: Result, unsteady: Result
) -> None:
    both = replace(moved, stability=unsteady.stability)
    found = [steadiness.guilty(result) for result in (failed, moved, unsteady, both)]
    assert found == ["cuda", "reference cpu", "cuda", "reference cpu and cuda"]
    assert [result.unstable for result in (failed, moved, unsteady)] == [False, True, True]


@pytest.mark.parametrize("others", [(), ("passed",), ("known", "skipped"), ("broken", "failed")])
@pytest.mark.parametrize("name", ["unsteady", "moved"])
def test_a_side_that_moves_is_red_whatever_stands_beside_it(
    name: str, others: tuple[str, ...], request: pytest.FixtureRequest, build_run: BuildRun
) -> None:
    result = request.getfixturevalue(name)
    run = build_run(result, *map(request.getfixturevalue, others), missing=("cuda: no driver",))
    assert run.exit_code is ExitCode.FAIL
    assert run.verdict.startswith("FAIL: ")
    assert "1 NONDETERMINISTIC, " in run.verdict
    drawn = fuzz.without_agreed_refusals(run)
    assert (drawn.results[0], drawn.exit_code) == (result, ExitCode.FAIL)
    red = rerun.of_run(run)[0]
    assert (red.id, red.red) == (result.cell.id, True)
    assert red in rerun.of_junit(junit.render(run).encode()).cells


def test_only_an_error_becomes_a_skip_because_both_sides_refuse(
    build_run: BuildRun, broken: Result
) -> None:
    refused = replace(broken, reason=f"{BOTH_REFUSE}: why")
    run = fuzz.without_agreed_refusals(build_run(refused, broken))
    assert [result.status for result in run.results] == [Status.SKIP, Status.ERROR]


def test_scores_that_differ_from_a_moved_reference_are_counted_apart(
    build_run: BuildRun, failed: Result, moved: Result
) -> None:
    run = build_run(failed, moved)
    assert run.verdict.endswith(", 8 different (4 where the reference moved)")
    sums = "| float_adm on cuda | 2 of 2 | 168 | 8 (4 where the reference moved) | 0 | 0 |"
    assert sums in markdown.render(run)
    assert "where the reference moved" not in build_run(failed).verdict
    assert "where the reference moved" not in markdown.render(build_run(failed))


def test_what_moves_now_and_then_is_told_in_every_report(
    build_run: BuildRun, unsteady: Result
) -> None:
    run, cell, reason = build_run(unsteady), unsteady.cell.id, unsteady.reason
    repeat = f"parity-gate run matrices/pr.yaml --cell {cell}"
    assert reason.endswith("30 runs see a fault as frequent with probability 0.96")
    text = _console(run)
    assert "stripes_33x33_420p8  ~ 1" in text
    assert f"\nNONDETERMINISTIC {cell} {reason}\n     {repeat}\n\nAll red cells again:\n" in text
    text = markdown.render(run)
    assert "| rcpss-double | egl_1.2 | 🎲 |" in text
    assert f"<summary>🎲 <code>{cell}</code> {reason}</summary>\n\n1 of 84 scores differs" in text
    (failure,) = _junit(run).iter("failure")
    assert failure.attrib == {"type": "NONDETERMINISTIC", "message": reason}
    assert (failure.text or "").splitlines()[:2] == [f"NONDETERMINISTIC {cell}", reason]
    (command,) = github.annotation_commands(run)
    assert ",title=NONDETERMINISTIC float_adm on cuda::" in command
    assert f"::{cell} {reason}%0Arepeat: {repeat}" in command


def test_red_cell_says_which_side_moved(build_run: BuildRun, failed: Result) -> None:
    result = replace(failed, controls=(AGAIN, ONE_THREAD, OWN))
    told = f"{SAME}; the candidate gives the same bits again"
    run, bare = build_run(result), build_run(failed)
    decimals = "0.9340471029281616 expected 0.9340471625328064"
    assert f"     {decimals}\n     {told}\n     parity-gate run " in _console(run)
    assert f"by at most 6.0e-08.\n\nAsked once more, {told}.\n\n| frame |" in markdown.render(run)
    (failure,) = _junit(run).iter("failure")
    assert told in (failure.text or "").splitlines()
    assert f"%0A{told}%0Arepeat: " in github.annotation_commands(run)[0]
    reports = (_console(bare), markdown.render(bare), junit.render(bare))
    assert not any("once more, " in text or "the same bits" in text for text in reports)


def test_a_moved_reference_does_not_look_like_the_candidates_fault(
    build_run: BuildRun, moved: Result
) -> None:
    run = build_run(moved)
    lines = _console(run).splitlines()
    start = lines.index(f"NONDETERMINISTIC {moved.cell.id} {moved.reason}")
    assert moved.reason.startswith(ODD)
    assert lines[start + 1 : -3] == [f"     {MOVED}", f"     {run.repeat_command(moved.cell)}"]
    text = markdown.render(run)
    assert f"<code>{moved.cell.id}</code> {ODD}" in text
    assert f"\nAsked once more, {MOVED}.\n" in text
    (failure,) = _junit(run).iter("failure")
    assert failure.attrib["message"].startswith(ODD)
    assert MOVED in (failure.text or "").splitlines()
    (command,) = github.annotation_commands(run)
    assert ",title=NONDETERMINISTIC float_adm on reference cpu::" in command


def test_groups_of_failures_hold_one_status_and_one_side_that_moved(
    build_run: BuildRun, build_cell: BuildCell, failed: Result, unsteady: Result, moved: Result
) -> None:
    results = [
        replace(result, cell=build_cell(f"f{number}"))
        for number, result in enumerate((failed, failed, moved, unsteady, failed, moved))
    ]
    run = build_run(*results)
    found = [[r.cell.fixture for r in group] for group in wording.by_guilty_axes(run)]
    assert found == [["f0", "f1", "f4"], ["f2", "f5"], ["f3"]]
    cells = "float_adm/rcpss-double/egl_1.2"
    lines = _console(run).splitlines()
    assert [line for line in lines if line.startswith(("FAIL", "NOND")) and " cell" in line] == [
        f"FAIL 3 cells {cells}/*/cuda",
        f"NONDETERMINISTIC 2 cells {cells}/*/cuda: reference cpu moved",
        f"NONDETERMINISTIC 1 cell {cells}/f3/cuda: cuda moved",
    ]


CONTROL = "control of the reference"


def test_control_of_a_reference_is_counted_once_for_all_its_candidates(
    build_run: BuildRun, passed: Result, moved: Result
) -> None:
    controls = (AGAIN, ONE_THREAD, OWN)
    cells = [replace(passed.cell, candidate=name) for name in ("cuda", "opencl:pocl")]
    both = [replace(passed, cell=cell, controls=controls) for cell in cells]
    other = replace(passed, cell=replace(passed.cell, dialect="ieee-double"), controls=(AGAIN,))
    run = build_run(*both, other, moved, passed)
    told = (
        "that of 4 of 5 cells was computed again (252 scores, 0 different), "
        "on one thread (168 scores, 3 different), in dirty memory (84 scores, 0 different)"
    )
    assert steadiness.facts(run) == {CONTROL: told}
    assert f"\nControl of the reference: {told}\n" in _console(run)
    assert f"\n- {CONTROL} <code>{told}</code>\n" in markdown.render(run)
    assert _properties(run)[CONTROL] == told
    counts = json.loads(json_report.render(run))["counts"]
    assert [counts[f"control{key}"] for key in ("led", "_scores", "_different")] == [4, 504, 3]


def test_a_run_without_control_says_so_where_it_has_references(
    build_run: BuildRun, passed: Result
) -> None:
    run = build_run(replace(passed, controls=(OWN,)))
    assert steadiness.facts(run) == {CONTROL: "no reference was computed once more"}
    assert steadiness.facts(replace(run, references=())) == {}


@pytest.mark.parametrize(
    ("repeat", "percent"), [(2, "77.7"), (29, "9.9"), (30, "9.6"), (299, "1.0"), (300, "1.0")]
)
def test_repeats_say_how_rare_a_fault_would_have_shown(
    repeat: int, percent: str, build_run: BuildRun, passed: Result, skipped: Result
) -> None:
    repeated = [replace(passed, stability=Stability(n, 1, 0)) for n in (repeat - 1, repeat)]
    run = build_run(*repeated, skipped, repeat=repeat, references=())
    told = (
        f"the candidate of 1 of 3 cells was computed {repeat} times: in each of these cells "
        f"a fault in {percent} % of runs or more would have shown with probability 0.95"
    )
    assert steadiness.facts(run) == {"repeats": told}
    assert f"\nRepeats: {told}\n" in _console(run)
    assert f"\n- repeats <code>{told}</code>\n" in markdown.render(run)
    assert _properties(run)["repeats"] == told
    assert json.loads(json_report.render(run))["counts"]["repeated"] == 1
    assert (1 - float(percent) / 100) ** repeat <= 0.05 < (1.001 - float(percent) / 100) ** repeat


def test_a_candidate_that_is_computed_once_is_not_told_as_repeated(
    build_run: BuildRun, passed: Result
) -> None:
    assert "repeats" not in steadiness.facts(build_run(passed))


def test_references_of_an_earlier_run_are_counted_in_every_report(
    build_run: BuildRun, passed: Result
) -> None:
    run = build_run(passed)
    (fresh,) = run.references
    old = replace(fresh, fixture="old", cached=True)
    assert "cache" not in steadiness.facts(run) | _properties(run)
    assert "cache" not in run.verdict
    run = replace(run, references=(fresh, old, replace(old, fixture="older")), notes=("note",))
    told = "2 of 3 reference results came from the cache"
    assert run.verdict.endswith(", 0 different, 2 of 3 reference results from the cache, note")
    assert f"\nCache: {told}\n" in _console(run)
    assert f"\n- cache <code>{told}</code>\n" in markdown.render(run)
    assert _properties(run)["cache"] == told
    counts = json.loads(json_report.render(run))["counts"]
    assert (counts["references"], counts["cached"]) == (3, 2)


def test_a_report_reads_back_as_it_was_written(run: Run, moved: Result, tmp_path: Path) -> None:
    steady = Stability(30, 1, 0)
    own = {"controls": (AGAIN, ONE_THREAD, OWN), "stability": steady}
    results = tuple(result if result.unstable else replace(result, **own) for result in run.results)  # type: ignore[arg-type]  # fields by name
    moved = replace(moved, stability=steady)
    cached = tuple(replace(scores, cached=True) for scores in run.references)
    written = replace(
        run, results=(*results, moved), references=(*run.references, *cached), repeat=30
    )
    path = tmp_path / record.NAME
    path.write_text(json_report.render(written), "utf-8")
    read = record.load(path)
    assert repr(read) == repr(written)
    assert any(math.isnan(value) for value in read.references[1].frames[1] if value is not None)


@pytest.mark.parametrize("status", [status for status in Status if status != "NONDETERMINISTIC"])
def test_a_status_that_hides_a_side_that_moved_is_refused(
    status: Status, build_run: BuildRun, moved: Result, unsteady: Result, tmp_path: Path
) -> None:
    path = tmp_path / record.NAME
    assert unsteady.comparison is not None
    equal = replace(unsteady, comparison=replace(unsteady.comparison, different=0, mismatches=()))
    for result in (moved, unsteady, equal):
        path.write_text(json_report.render(build_run(replace(result, status=status))), "utf-8")
        with pytest.raises(record.Unreadable, match=f"is {status.value}, which its comparison"):
            record.load(path)
