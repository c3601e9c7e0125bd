"""A picture without a result: both sides refuse it in the same words, or the cell is an ERROR."""

from __future__ import annotations

import pytest
from runner_desk import Desk, grid, make_cell

from backends import registry
from backends.base import Arithmetic, CompilationFailed, Refused
from gate import runner
from gate.model import BOTH_REFUSE, ExitCode, Status

SENTENCE = "frame 0 one is nan; the conclusion vmafx refuses that"
FEATURE = registry.features()["float_adm"]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk()
    desk.errors["compute cpu"] = Refused(SENTENCE)
    monkeypatch.setattr(runner, "open_fixture", desk.open_fixture)
    monkeypatch.setattr(registry, "features", lambda: {"fake": desk})
    return desk


def test_what_both_sides_refuse_alike_is_an_error_that_says_so(desk: Desk) -> None:
    desk.errors["compute good"] = Refused(SENTENCE)
    run = desk.run(make_cell())
    (result,) = run.results
    assert result.status is Status.ERROR
    assert result.reason == f"nothing to compare, both sides refuse: {SENTENCE}"
    assert result.comparison is None
    assert run.exit_code is ExitCode.ERROR
    assert run.references == ()


def test_a_candidate_that_gives_scores_where_the_reference_refuses_is_an_error(desk: Desk) -> None:
    run = desk.run(make_cell())
    (result,) = run.results
    assert result.status is Status.ERROR
    assert result.reason == f"reference cpu: {SENTENCE}; the candidate gives scores"
    assert run.exit_code is ExitCode.ERROR


def test_another_refusal_is_an_error_that_tells_both(desk: Desk) -> None:
    desk.errors["compute good"] = Refused("frame 1 one is nan")
    (result,) = desk.run(make_cell()).results
    assert result.status is Status.ERROR
    assert result.reason == f"reference cpu: {SENTENCE}; the candidate: frame 1 one is nan"


def test_the_same_words_without_a_refusal_are_an_error(desk: Desk) -> None:
    desk.errors["compute good"] = CompilationFailed(SENTENCE, "line 4")
    (result,) = desk.run(make_cell()).results
    assert (result.status, result.detail) == (Status.ERROR, "line 4")


def test_a_reference_that_fails_in_the_same_words_is_an_error(desk: Desk) -> None:
    desk.errors["compute cpu"] = RuntimeError(SENTENCE)
    desk.errors["compute good"] = RuntimeError(SENTENCE)
    (result,) = desk.run(make_cell()).results
    assert result.status is Status.ERROR
    assert result.reason == f"reference cpu: RuntimeError: {SENTENCE}"
    assert desk.logged("compute") == ["compute cpu"]


def test_each_candidate_is_held_against_the_refusal(desk: Desk) -> None:
    desk.errors["compute other"] = Refused(SENTENCE)
    run = desk.run(*grid())
    both = [result.reason.startswith(BOTH_REFUSE) for result in run.results]
    assert both == [False, True] * 4
    assert {result.status for result in run.results} == {Status.ERROR}


def test_a_refusal_of_the_candidate_alone_is_an_error(desk: Desk) -> None:
    del desk.errors["compute cpu"]
    desk.errors["compute good"] = Refused(SENTENCE)
    (result,) = desk.run(make_cell()).results
    assert (result.status, result.reason) == (Status.ERROR, SENTENCE)


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
