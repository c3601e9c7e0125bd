"""A run of 50 000 cells, 2 000 of which fail in all scores, in what GitHub and GitLab take."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.model import Cell, Comparison, Control, Mismatch, Result, Run, Stability, Status
from reports import github, junit, markdown

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]

CELLS, FAILURES, UNSTEADY, ERRORS, KNOWN = 50_000, 2_000, 200, 300, 700
HOSTILE = (
    "k.cl: `x` | y </error> ]]> <script>\x00\x1b[31m\U0001fffe😀\n```\n## loud %0A ::error::\n"
)
DIALECTS = ("rcpss-double", "rcpss-single", "ieee-double", "ieee-single")


def _status(number: int) -> Status:
    """Spread the statuses over the run, so that every table has some of each."""
    place = number * 7_919 % CELLS  # a prime, and so every place once
    counts = {Status.FAIL: FAILURES, Status.NONDETERMINISTIC: UNSTEADY}
    for status, count in {**counts, Status.ERROR: ERRORS, Status.KNOWN: KNOWN}.items():
        if place < count:
            return status
        place -= count
    return Status.PASS


@pytest.fixture(scope="module")
def huge(build_run: BuildRun, build_cell: BuildCell) -> Run:
    first = build_cell()
    mismatches = tuple(
        Mismatch(frame, score, 0.9340471625328064, 0.9340471029281616, -1, "ulp32")
        for frame in range(first.frames)
        for score in first.outputs
    )
    all_differ, equal = (Comparison(84, 0, 0, len(found), found) for found in (mismatches, ()))
    moved = (Control("reference", HOSTILE * 20, 84, 3), Control("candidate", HOSTILE, 84, 0))
    steady = tuple(replace(control, different=0) for control in moved)
    results = []
    for number in range(CELLS):
        cell = build_cell(
            f"fixture_{number // 160}",
            ("cuda", "opencl:pocl", "opencl:nvidia", "libvmaf")[number % 4],
            dialect=DIALECTS[number // 4 % 4],
            options_name=f"o{number // 16 % 10}",
        )
        status = _status(number)
        if status is Status.PASS:
            results.append(Result(cell, status, comparison=equal, seconds=1.0))
        else:
            comparison = None if status is Status.ERROR else all_differ
            text = HOSTILE * 300
            result = Result(cell, status, f"{number} {text[:2_000]}", text, comparison)
            controls = {Status.FAIL: steady, Status.NONDETERMINISTIC: moved}.get(status, ())
            results.append(replace(result, controls=controls, stability=Stability(30, 1, 0)))
    notes, missing = ((f"{n} {HOSTILE * 20}" for n in range(300)) for _ in range(2))
    facts = {f"fact {n} {HOSTILE}": HOSTILE * 20 for n in range(2_000)}
    run = build_run(*results, notes=(*notes,), missing=(*missing,), environment={"host": facts})
    cached = tuple(replace(scores, cached=True) for scores in run.references)
    return replace(run, repeat=30, references=cached)


def _counted(text: str, word: str) -> int:
    match = re.search(rf"^(\d+) {word}s?, in report\.json$", text, re.MULTILINE)
    return int(match[1]) if match else 0


@pytest.mark.parametrize(
    ("render", "limit", "least"),
    [(github.summary, 1_048_576, 150), (github.check_summary, 65_535, 10)],
)
def test_markdown_of_a_huge_run_fits_and_counts_what_is_cut(
    render: Callable[[Run], str], limit: int, least: int, huge: Run
) -> None:
    text = render(huge)
    assert limit // 2 < len(text.encode()) <= limit
    failures = text.count("<summary>❌ ") + text.count("<summary>🎲 ")
    assert failures >= least
    assert failures + _counted(text, "more failing cell") == FAILURES + UNSTEADY
    assert text.count("<summary>💥 ") + _counted(text, "more reason") == ERRORS
    known = text.split("### Known deviations\n")[1].split("### ")[0]
    assert known.count("\n| <code>") + _counted(known, "more known deviation") == KNOWN
    notes = text.split("### Matrix\n")[0]
    assert notes.count("\n- ") + _counted(notes, "more note") == 600 + len(
        ("run", "started", "control of the reference", "repeats", "cache")
    )
    facts = text.split("### Environment\n")[1]
    assert facts.count("\n| fact ") + _counted(facts, "more fact") == 2_000
    tables = text.split("### Matrix\n")[1].split("### ")[0]
    rows = tables.count("\n| rcpss-") + tables.count("\n| ieee-")
    gone = sum(int(number) for number in re.findall(r"^(\d+) more rows?,", tables, re.MULTILINE))
    assert rows + gone == 313 * len(DIALECTS) * 4  # fixtures, dialects, candidates
    red = sum(tables.count(f"{mark} ") for mark in "💥❌🎲")
    assert red > rows // 2  # those that passed come last


def test_junit_of_a_huge_run_fits_and_keeps_every_testcase(huge: Run) -> None:
    document = junit.render(huge)
    assert 15_000_000 < len(document.encode()) < 30_000_000
    assert document.count('<testcase name="float_adm/') == CELLS
    assert document.count('<failure type="FAIL" message="') == FAILURES
    assert document.count('<failure type="NONDETERMINISTIC" message="') == UNSTEADY
    assert document.count('<error type="ERROR" message="') == ERRORS + len(huge.missing)
    assert "<system-out>" not in document
    cut = re.search(r'<property name="cut" value="(.*?)" />', document)
    assert cut is not None
    assert cut[1].startswith("no texts of passed cells, reasons and logs of at most ")
    assert re.search(r'<property name="more" value="\d+ facts, in report.json" />', document)
    assert document.count("repeat: parity-gate run") == FAILURES + UNSTEADY + ERRORS


def test_annotations_of_a_huge_run_are_few_and_short(huge: Run) -> None:
    commands = github.annotation_commands(huge)
    assert [command.partition(" ")[0] for command in commands] == [
        *["::error"] * 10,
        *["::warning"] * 10,
    ]
    assert all(len(command.encode()) < 65_536 for command in commands)
    assert "::2791 more annotations left out: " in commands[9]  # of 2 000 + 200 + 300 + 300
    assert "::991 more annotations left out: " in commands[19]  # of 700 + 300


@pytest.fixture(scope="module")
def part(huge: Run) -> Run:
    """Return a few cells of each status, with fewer notes and facts."""
    chosen = [r for status in Status for r in [r for r in huge.results if r.status is status][:8]]
    facts = {"host": dict(list(huge.environment["host"].items())[:10])}
    few = replace(huge, results=tuple(chosen), missing=huge.missing[:2], notes=huge.notes[:2])
    return replace(few, environment=facts)


@settings(max_examples=60, deadline=None)
@given(limit=st.integers(-10, 60_000))
def test_markdown_keeps_any_limit_and_begins_with_the_verdict(limit: int, part: Run) -> None:
    text = markdown.render(part, limit)
    assert len(text.encode()) <= max(0, limit)
    assert text == "" or text.startswith("## ❌ FAIL: ")
    assert text or limit < 20_000


@settings(max_examples=40, deadline=None)
@given(limit=st.integers(10_000, 200_000))
def test_junit_keeps_any_limit_from_10_kilobytes_on(limit: int, part: Run) -> None:
    document = junit.render(part, limit)
    assert len(document.encode()) <= limit
    assert document.count("<failure ") == 16 or "testcases of 42 found no room" in document
