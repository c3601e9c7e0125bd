"""A picture without a result: both sides have its bits and refuse them, or the cell is red."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from runner_desk import Desk, FakeBackend, grid, make_cell, scores

from backends import registry
from backends.base import Arithmetic, CompilationFailed, NoResult, Refused, Scores
from gate import fuzz
from gate.model import BOTH_REFUSE, ExitCode, Run, Status
from gate.opening import Reported, Trouble

SENTENCE = "frame 0 one is nan; the conclusion vmafx refuses that"
FEATURE = registry.features()["float_adm"]


def no_result(refused: Scores | None = None) -> NoResult:
    return NoResult(SENTENCE, scores() if refused is None else refused)


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.errors["compute cpu"] = no_result()
    return desk


def test_equal_scores_that_both_sides_refuse_are_an_error_that_says_so(desk: Desk) -> None:
    desk.errors["compute good"] = no_result()
    run = desk.run(make_cell())
    (result,) = run.results
    assert result.status is Status.ERROR
    assert result.reason == f"{BOTH_REFUSE}: {SENTENCE}"
    assert result.comparison is None
    assert run.exit_code is ExitCode.ERROR
    assert run.references == ()


def test_refused_scores_with_other_bits_fail(desk: Desk) -> None:
    """Another frame of the clip may be finite, and its bits count."""
    other = scores()
    other.values[2, 1] = np.nextafter(other.values[2, 1], np.inf)
    desk.errors["compute good"] = no_result(other)
    (result,) = desk.run(make_cell()).results
    assert result.status is Status.FAIL
    assert result.comparison is not None
    assert [(m.frame, m.score) for m in result.comparison.mismatches] == [(2, "two")]


def test_refused_scores_that_lack_a_frame_are_an_error(desk: Desk) -> None:
    whole = scores()
    short = Scores(whole.names, whole.values[:-1], whole.unset[:-1])
    desk.errors["compute good"] = no_result(short)
    (result,) = desk.run(make_cell()).results
    assert result.status is Status.ERROR
    assert "end before frame 2" in result.reason


def test_a_candidate_that_gives_scores_where_the_reference_refuses_is_an_error(desk: Desk) -> None:
    run = desk.run(make_cell())
    (result,) = run.results
    assert result.status is Status.ERROR
    assert result.reason == f"reference cpu: {SENTENCE}; the candidate gives scores"
    assert run.exit_code is ExitCode.ERROR


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (no_result(), "no evidence that cuda ran: nothing was launched on a device"),
        (
            Reported(Trouble(Status.ERROR, SENTENCE, refused=scores())),
            "no evidence that cuda ran: its scores came alone",
        ),
    ],
    ids=["here", "in another process"],
)
def test_scores_that_are_refused_need_evidence_too(
    error: Exception, sentence: str, desk: Desk
) -> None:
    desk.backends["cuda"] = FakeBackend("cuda", desk.told)
    desk.errors["compute cuda"] = error
    (result,) = desk.run(make_cell("cuda")).results
    assert result.status is Status.ERROR
    assert result.reason == f"reference cpu: {SENTENCE}; the candidate: {sentence}"


@pytest.mark.parametrize(
    "error", [Refused(SENTENCE), RuntimeError(SENTENCE), CompilationFailed(SENTENCE, "line 4")]
)
def test_the_same_words_without_scores_are_an_error_that_tells_both(
    desk: Desk, error: Exception
) -> None:
    desk.errors["compute good"] = error
    (result,) = desk.run(make_cell()).results
    assert result.status is Status.ERROR
    assert result.reason.startswith(f"reference cpu: {SENTENCE}; the candidate: ")
    assert not result.reason.startswith(BOTH_REFUSE)


@pytest.mark.parametrize("error", [Refused(SENTENCE), RuntimeError(SENTENCE)])
def test_a_reference_that_declines_or_fails_is_an_error_whatever_the_candidate_does(
    desk: Desk, error: Exception
) -> None:
    desk.errors["compute cpu"] = desk.errors["compute good"] = error
    (result,) = desk.run(make_cell()).results
    assert result.status is Status.ERROR
    assert result.reason.startswith("reference cpu: ")
    assert desk.logged("compute") == ["compute cpu", "compute good"]


def test_each_candidate_is_held_against_the_refusal(desk: Desk) -> None:
    desk.errors["compute other"] = no_result()
    run = desk.run(*grid())
    both = [result.reason.startswith(BOTH_REFUSE) for result in run.results]
    assert both == [False, True] * 4
    assert {result.status for result in run.results} == {Status.ERROR}


def test_a_refusal_of_the_candidate_alone_is_an_error(desk: Desk) -> None:
    del desk.errors["compute cpu"]
    desk.errors["compute good"] = no_result()
    (result,) = desk.run(make_cell()).results
    assert (result.status, result.reason) == (Status.ERROR, SENTENCE)


def statuses(run: Run) -> list[Status]:
    return [result.status for result in run.results]


def test_of_drawn_cells_only_those_with_agreed_scores_become_skips(desk: Desk) -> None:
    desk.errors["compute good"] = no_result()
    desk.errors["compute other"] = RuntimeError(SENTENCE)
    run = fuzz.without_agreed_refusals(desk.run(*grid()))
    assert statuses(run) == [Status.SKIP, Status.ERROR] * 4
    assert run.exit_code is ExitCode.ERROR


@pytest.mark.parametrize("status", [Status.PASS, Status.FAIL])
def test_a_drawn_cell_that_was_compared_keeps_its_status(desk: Desk, status: Status) -> None:
    desk.errors.clear()
    run = desk.run(make_cell())
    changed = replace(run, results=(replace(run.results[0], status=status),))
    assert statuses(fuzz.without_agreed_refusals(changed)) == [status]


@pytest.mark.parametrize("error", [Refused(SENTENCE), CompilationFailed(SENTENCE, "")])
def test_drawn_cells_that_both_sides_decline_without_scores_stay_errors(
    desk: Desk, error: Exception
) -> None:
    desk.errors["compute cpu"] = desk.errors["compute good"] = error
    run = fuzz.without_agreed_refusals(desk.run(make_cell()))
    assert statuses(run) == [Status.ERROR]


@pytest.mark.parametrize(
    ("backend", "arithmetic", "refusal"),
    [
        ("libvmaf", Arithmetic("rcpss-single"), ""),
        ("libvmaf", Arithmetic("rcpss-double"), "asked for dialect rcpss-double"),
        ("libvmaf", Arithmetic("rcpss-single", "vmafx"), "asked for conclusion vmafx"),
        ("opencl:pocl", Arithmetic("rcpss-double", "vmafx"), ""),
        ("cpu", Arithmetic("ieee-single"), ""),
    ],
)
def test_a_backend_is_asked_for_its_arithmetic_without_being_opened(
    backend: str, arithmetic: Arithmetic, refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "open_backend", lambda _: pytest.fail("opened"))
    told = registry.refusal(backend, FEATURE, arithmetic, FEATURE.options())
    assert told.endswith(refusal)
    assert bool(told) is bool(refusal)
