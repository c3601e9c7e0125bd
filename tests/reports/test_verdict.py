from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gate.model import UNFINISHED, Comparison, ExitCode, Result, Run, Status, counted

BuildRun = Callable[..., Run]

MISSING = ("cuda: no driver",)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 cells"), (1, "1 cell"), (2, "2 cells"), (11, "11 cells")]
)
def test_one_of_a_thing_has_no_plural(number: int, text: str) -> None:
    assert counted(number, "cell") == text


def test_one_cell_and_one_score_have_no_plural(build_run: BuildRun, passed: Result) -> None:
    single = replace(passed, comparison=Comparison(1, 0, 0, 0, ()))
    end = "1 PASS, 1 score compared, 0 different"
    assert build_run(single).verdict == f"PASS: 1 cell, {end}"
    part = {"selection": ("*",)}
    assert build_run(single, **part, planned=1).verdict == f"PASS: 1 of 1 cell, {end}"
    assert build_run(single, **part, planned=2).verdict == f"PASS: 1 of 2 cells, {end}"


def test_missing_backend_beside_compared_scores_does_not_read_as_nothing_proved(
    build_run: BuildRun, passed: Result
) -> None:
    assert build_run(passed, missing=MISSING).verdict == (
        "BACKEND MISSING: 1 cell, 1 PASS, 84 scores compared, 0 different, "
        "required backend missing: cuda: no driver"
    )


@pytest.mark.parametrize("missing", [(), MISSING])
def test_nothing_is_proved_without_cells_or_by_skipped_cells(
    missing: tuple[str, ...], build_run: BuildRun, skipped: Result
) -> None:
    for run in (build_run(missing=missing), build_run(skipped, missing=missing)):
        assert run.verdict.startswith("NOTHING PROVED: ")


def test_failure_outranks_a_missing_backend(build_run: BuildRun, failed: Result) -> None:
    assert build_run(failed, missing=MISSING).verdict.startswith("FAIL: 1 cell, 1 FAIL, ")


def test_interrupted_cells_are_told_apart_from_errors(
    build_run: BuildRun, passed: Result, broken: Result, unfinished: Result
) -> None:
    end = "84 scores compared, 0 different"
    run = build_run(passed, unfinished, unfinished, interrupted=True)
    assert run.verdict == f"INTERRUPTED: 3 cells, 1 PASS, 2 did not finish, {end}"
    run = build_run(passed, broken, unfinished, interrupted=True)
    assert run.verdict == f"INTERRUPTED: 3 cells, 1 PASS, 1 ERROR, 1 did not finish, {end}"
    run = build_run(passed, broken, interrupted=True)
    assert run.verdict == f"INTERRUPTED: 2 cells, 1 PASS, 1 ERROR, {end}"


def test_unfinished_cells_stay_errors_in_the_counts(
    build_run: BuildRun, unfinished: Result
) -> None:
    assert build_run(unfinished, interrupted=True).count(Status.ERROR) == 1


def test_skip_with_the_reason_of_an_interrupt_is_a_skip(
    build_run: BuildRun, passed: Result, skipped: Result
) -> None:
    verdict = build_run(passed, replace(skipped, reason=UNFINISHED)).verdict
    assert verdict == "PASS: 2 cells, 1 PASS, 1 SKIP, 84 scores compared, 0 different"


def test_known_deviations_pass_and_are_counted_apart(
    build_run: BuildRun, passed: Result, known: Result, failed: Result, skipped: Result
) -> None:
    run = build_run(passed, known)
    end = "168 scores compared, 2 different (2 known)"
    assert run.verdict == f"PASS: 2 cells, 1 PASS, 1 KNOWN, {end}"
    assert run.exit_code is ExitCode.OK
    run = build_run(known, failed, skipped)
    end = "1 KNOWN, 1 FAIL, 1 SKIP, 168 scores compared, 6 different (2 known)"
    assert run.verdict == f"FAIL: 3 cells, {end}"


def test_known_deviations_alone_prove_something(
    build_run: BuildRun, known: Result, skipped: Result
) -> None:
    for results in ((known,), (known, skipped)):
        assert build_run(*results).exit_code is ExitCode.OK
    assert build_run(known, missing=MISSING).exit_code is ExitCode.NOTHING


def test_scores_that_differ_are_counted_where_only_the_first_are_kept(
    build_run: BuildRun, corpus: Result, failed: Result
) -> None:
    run = build_run(corpus, failed)
    assert run.verdict.endswith("3000084 scores compared, 23004 different")
