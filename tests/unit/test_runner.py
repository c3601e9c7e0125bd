from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from runner_desk import (
    FRAMES,
    KERNEL,
    NAMES,
    ONE_STEP_ABOVE_4,
    Compute,
    Desk,
    FakeBackend,
    FakeOptions,
    grid,
    make_cell,
    scores,
)

from backends.base import Clip, CompilationFailed, Refused, Scores, Unavailable
from gate import asking, compare
from gate.deviations import Deviations
from gate.errors import FixtureError
from gate.model import UNFINISHED, Comparison, Deviation, ExitCode, Run, Status


def statuses(run: Run) -> list[Status]:
    return [result.status for result in run.results]


def test_equal_scores_pass_and_every_score_is_counted(desk: Desk) -> None:
    run = desk.run(make_cell())
    (result,) = run.results
    assert (result.status, result.reason, result.detail) == (Status.PASS, "", "")
    assert result.comparison == Comparison(6, nans=0, unsets=0, different=0, mismatches=())
    assert run.exit_code is ExitCode.OK


def planted(value: float, frame: int = FRAMES - 1) -> Compute:
    def work(clip: Clip) -> Scores:
        result = scores(clip)
        result.values[frame, 0] = value
        return result

    return work


NEVER, ALWAYS = (
    Deviation(("one",), "rounds", "kernels", expires, "d.yaml:3")
    for expires in ("0001-01-01", "9999-12-31")
)


@pytest.mark.parametrize(
    ("deviation", "value", "status"),
    [
        (None, ONE_STEP_ABOVE_4, Status.FAIL),
        (ALWAYS, ONE_STEP_ABOVE_4, Status.KNOWN),
        (replace(ALWAYS, outputs=("two",)), ONE_STEP_ABOVE_4, Status.FAIL),
        (NEVER, ONE_STEP_ABOVE_4, Status.FAIL),
        (ALWAYS, 4.0, Status.FAIL),
    ],
)
def test_what_is_listed_about_a_cell_decides_about_a_difference(
    desk: Desk, deviation: Deviation | None, value: float, status: Status
) -> None:
    desk.backends["good"].work = planted(value)
    (result,) = desk.run(make_cell(deviation=deviation)).results
    assert result.status is status
    assert result.seconds > 0


def test_a_deviation_is_no_excuse_for_a_missing_frame(desk: Desk) -> None:
    desk.backends["good"].work = without_last_frame
    assert statuses(desk.run(make_cell(deviation=ALWAYS))) == [Status.ERROR]


def test_the_list_of_deviations_is_a_fact_of_the_matrix(desk: Desk) -> None:
    assert "deviations" not in desk.run(make_cell()).environment["matrix"]
    desk.deviations = Deviations(Path("folder/d.yaml"), "abc", ())
    facts = desk.run(make_cell()).environment["matrix"]
    assert facts["deviations"] == "folder/d.yaml sha256 abc"


def without_last_frame(clip: Clip) -> Scores:
    whole = scores(clip)
    return replace(whole, values=whole.values[:-1], unset=whole.unset[:-1])


def without_last_score(clip: Clip) -> Scores:
    whole = scores(clip)
    return Scores(NAMES[:1], whole.values[:, :1], whole.unset[:, :1])


@pytest.mark.parametrize(
    ("work", "status", "reason"),
    [
        (planted(ONE_STEP_ABOVE_4), "FAIL", "frame 2 one: 0x1.0000000000001p+2 expected 0x1p+2"),
        (planted(math.nan), "FAIL", "frame 2 one: nan expected 0x1p+2 (no distance), 1 of 6 sc"),
        (planted(-0.0, 0), "FAIL", "frame 0 one: -0x0p+0 expected 0x0p+0 (-1 ulp32), 1 of 6 sc"),
        (without_last_frame, "ERROR", "candidate: the values end before frame 2; required: 3"),
        (without_last_score, "ERROR", "candidate: score two is missing; required, in this"),
    ],
)
def test_a_planted_fault_of_the_candidate_is_caught(
    desk: Desk, work: Compute, status: str, reason: str
) -> None:
    desk.backends["good"].work = work
    run = desk.run(make_cell(), make_cell("other"))
    assert statuses(run) == [Status[status], Status.PASS]
    assert run.results[0].reason.startswith(reason)
    assert (run.results[0].comparison is None) == (status == "ERROR")
    assert run.exit_code is ExitCode[status]


@pytest.mark.parametrize("work", [without_last_frame, without_last_score])
def test_a_fault_of_both_sides_is_an_error_of_the_reference(desk: Desk, work: Compute) -> None:
    desk.backends["cpu"].work = desk.backends["good"].work = work
    run = desk.run(make_cell())
    assert statuses(run) == [Status.ERROR]
    assert run.results[0].reason.startswith("reference cpu: ")
    assert run.references == ()


def test_each_thing_is_opened_once_and_the_reference_runs_once_a_group(desk: Desk) -> None:
    run = desk.run(*grid())
    assert statuses(run) == [Status.PASS] * 8
    backends = ["open cpu", "open good", "open other"]
    assert desk.logged("open", "fixture") == [*backends, "fixture first", "fixture second"]
    groups = [(name, FakeOptions(gain=g)) for name in ("first", "second") for g in (1.0, 2.0)]
    assert [backend.computed for backend in desk.backends.values()] == [groups] * 3


def test_all_backends_are_begun_before_one_is_waited_for(desk: Desk) -> None:
    desk.run(*grid())
    begun = ["open cpu", "open good", "open other"]
    assert desk.logged("open", "facts") == [*begun, "facts cpu", "facts good", "facts other"]


@pytest.mark.parametrize("place", ["open good", "facts cpu"])
def test_an_interrupt_while_backends_open_closes_those_that_are_begun(
    desk: Desk, place: str
) -> None:
    desk.errors[place] = KeyboardInterrupt()
    run = desk.run(*grid())
    assert run.exit_code is ExitCode.INTERRUPTED
    opened = [name.removeprefix("open ") for name in desk.logged("open") if name != place]
    assert [name.removeprefix("close ") for name in desk.logged("close")] == opened


def test_a_reference_that_gives_other_bits_after_the_run_was_stopped_judges_nobody(
    desk: Desk,
) -> None:
    whole = desk.run(make_cell(), make_cell("other"))
    late = replace(whole.results[1], status=Status.ERROR, reason=UNFINISHED, comparison=None)
    stopped = replace(whole, results=(whole.results[0], late))
    assert desk.finish(stopped).results[1].status is Status.PASS
    desk.backends["cpu"].work = desk.backends["other"].work = planted(9.0)
    run = desk.finish(stopped)
    assert statuses(run) == [Status.PASS, Status.ERROR]
    told = "reference cpu: it gave other bits before this run was resumed; start anew"
    assert run.results[1].reason == told
    assert run.references == whole.references


def test_two_references_of_the_same_scores_are_kept_apart(desk: Desk) -> None:
    desk.backends["other"].work = planted(9.0)
    run = desk.run(make_cell(), make_cell("cpu", reference="other"))
    assert statuses(run) == [Status.PASS, Status.FAIL]


def test_results_come_in_the_order_of_the_cells_and_carry_the_run(desk: Desk) -> None:
    cells = grid()
    cells[3] = replace(cells[3], skip="too slow")
    run = desk.run(*cells)
    assert [result.cell for result in run.results] == cells
    assert (run.matrix, run.selection, run.planned) == ("folder/m.yaml", ("fake/*",), 9)
    assert run.started.endswith("+00:00")


def test_progress_hears_of_each_cell_once(desk: Desk) -> None:
    cells = [make_cell("good"), make_cell("other", skip="slow")]
    desk.run(*cells)
    heard = desk.logged("starts", "done")
    assert heard == [f"done {cells[1].id}", f"starts {cells[0].id}", f"done {cells[0].id}"]


def test_reference_scores_are_recorded_once_a_group_with_unset_as_none(desk: Desk) -> None:
    def unset_last(clip: Clip) -> Scores:
        result = scores(clip)
        result.unset[-1, -1] = True
        return result

    desk.backends["cpu"].work = desk.backends["good"].work = unset_last
    run = desk.run(make_cell(), make_cell(gain=2.0))
    assert [record.options_name for record in run.references] == ["gain_1", "gain_2"]
    assert run.references[0].names == NAMES
    assert run.references[0].reference == "cpu"
    assert run.references[0].frames == ((0.0, 1.0), (2.0, 3.0), (4.0, None))
    assert run.results[0].comparison == Comparison(6, nans=0, unsets=1, different=0, mismatches=())


def test_a_fixture_that_cannot_be_opened_is_an_error_of_its_cells_only(desk: Desk) -> None:
    desk.errors["fixture first"] = FixtureError("first: 3 bytes too short")
    run = desk.run(*grid())
    assert statuses(run) == [Status.ERROR] * 4 + [Status.PASS] * 4
    assert {result.reason for result in run.results[:4]} == {"first: 3 bytes too short"}


def test_an_error_in_closing_a_fixture_is_shown_and_changes_no_result(desk: Desk) -> None:
    desk.backends["other"].work = planted(math.nan)
    desk.errors["exit first"] = OSError("no space left")
    run = desk.run(*grid())
    assert statuses(run) == [Status.PASS, Status.FAIL] * 4
    assert run.environment["fixtures"]["first: closing failed"] == "OSError: no space left"


def test_an_unforeseen_error_of_a_fixture_keeps_its_traceback(desk: Desk) -> None:
    desk.errors["fixture first"] = OSError("disk gone\nsecond line")
    (result,) = desk.run(make_cell()).results
    assert (result.status, result.reason) == (Status.ERROR, "OSError: disk gone")
    assert "Traceback" in result.detail
    assert "second line" in result.detail


def test_an_exception_of_the_reference_is_an_error_of_its_group_only(desk: Desk) -> None:
    def fails_once(clip: Clip) -> Scores:
        if len(desk.backends["cpu"].computed) == 1:
            message = "no such instruction"
            raise Refused(message)
        return scores(clip)

    desk.backends["cpu"].work = fails_once
    run = desk.run(*grid())
    assert statuses(run) == [Status.ERROR] * 2 + [Status.PASS] * 6
    reason = "reference cpu: no such instruction"
    assert run.results[0].reason == run.results[1].reason == reason
    assert len(desk.backends["cpu"].computed) == 4
    assert len(run.references) == 3


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (Refused("p_norm is 3 only"), "p_norm is 3 only", ""),
        (CompilationFailed("dwt: does not compile", "line 4: bad"), "dwt: does not", "line 4: bad"),
        (FixtureError("frame 2 is short"), "frame 2 is short", ""),
        (RuntimeError("out of\nmemory"), "RuntimeError: out of", "Traceback"),
        (MemoryError(), "MemoryError: no message", "Traceback"),
        (Unavailable("device went away"), "Unavailable: device went away", "Traceback"),
    ],
)
def test_an_exception_of_a_candidate_is_an_error_of_its_cell_only(
    desk: Desk, error: Exception, reason: str, detail: str
) -> None:
    desk.errors["compute good"] = error
    run = desk.run(*grid())
    assert statuses(run) == [Status.ERROR, Status.PASS] * 4
    assert run.results[0].reason.startswith(reason)
    assert run.results[0].detail.startswith(detail)
    assert bool(run.results[0].detail) == bool(detail)
    assert run.exit_code is ExitCode.ERROR


def test_a_candidate_that_returns_no_scores_is_an_error(desk: Desk) -> None:
    desk.backends["good"].work = lambda _: cast("Scores", None)
    assert statuses(desk.run(make_cell())) == [Status.ERROR]


def test_fewer_scores_compared_than_the_cell_has_is_an_error(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrunk = Comparison(5, nans=0, unsets=0, different=0, mismatches=())
    monkeypatch.setattr(compare, "compare", lambda *_: shrunk)
    (result,) = desk.run(make_cell()).results
    assert result.reason == "5 scores were compared; required: 6"


def test_another_backend_than_named_proves_nothing(desk: Desk) -> None:
    desk.backends["good"] = FakeBackend("cpu", desk.told)
    (result,) = desk.run(make_cell()).results
    assert result.status is Status.ERROR
    assert result.reason == "opening good gave cpu, which proves nothing about good"
    assert desk.logged("close") == ["close cpu", "close cpu"]


def test_an_absent_candidate_is_skipped_with_its_reason(desk: Desk) -> None:
    desk.errors["open good"] = Unavailable("no PoCL")
    run = desk.run(*grid())
    assert statuses(run) == [Status.SKIP, Status.PASS] * 4
    assert run.results[0].reason == "no PoCL"
    assert (run.missing, run.exit_code) == ((), ExitCode.OK)


def test_an_absent_candidate_that_is_required_is_missing(desk: Desk) -> None:
    desk.errors["open good"] = Unavailable("no PoCL")
    run = desk.run(*grid(), required=("good", "good"))
    assert statuses(run) == [Status.SKIP, Status.PASS] * 4
    assert run.missing == ("good: no PoCL",)
    assert run.exit_code is ExitCode.NOTHING


def test_only_absent_candidates_prove_nothing(desk: Desk) -> None:
    desk.errors["open good"] = Unavailable("no PoCL")
    run = desk.run(make_cell())
    assert run.exit_code is ExitCode.NOTHING
    assert desk.backends["cpu"].computed == []
    assert "fixture first" not in desk.log


def test_a_candidate_that_fails_its_probe_is_an_error_not_a_skip(desk: Desk) -> None:
    desk.errors["open good"] = RuntimeError("probe: contraction is on")
    run = desk.run(*grid(), required=("good",))
    assert statuses(run) == [Status.ERROR, Status.PASS] * 4
    assert run.results[0].reason == "RuntimeError: probe: contraction is on"
    assert "Traceback" in run.results[0].detail
    assert run.missing == ()


def test_an_absent_reference_is_an_error_even_where_the_candidate_is_absent(desk: Desk) -> None:
    desk.errors = {"open cpu": Unavailable("not built"), "open other": Unavailable("no GPU")}
    run = desk.run(*grid())
    assert statuses(run) == [Status.ERROR] * 8
    assert {result.reason for result in run.results} == {"reference cpu: not built"}


def test_a_declared_skip_computes_and_opens_nothing(desk: Desk) -> None:
    run = desk.run(make_cell(skip="known to be slow"))
    assert (statuses(run), run.results[0].reason) == ([Status.SKIP], "known to be slow")
    assert desk.logged("open", "fixture", "compute") == []
    assert run.exit_code is ExitCode.NOTHING


def test_a_declared_skip_does_not_hide_that_a_required_backend_is_absent(desk: Desk) -> None:
    desk.errors["open good"] = Unavailable("no PoCL")
    run = desk.run(make_cell(skip="slow"), make_cell("other"), required=("good",))
    assert run.missing == ("good: no PoCL",)


def test_a_required_backend_without_a_cell_is_opened_and_closed(desk: Desk) -> None:
    run = desk.run(make_cell(), required=("other",))
    assert (run.missing, run.exit_code) == ((), ExitCode.OK)
    assert desk.log.count("close other") == 1
    assert run.environment["required other"] == {"device": "device of other"}


@pytest.mark.parametrize(
    ("error", "reason"),
    [(Unavailable("no GPU"), "no GPU"), (ValueError("bad probe"), "ValueError: bad probe")],
)
def test_a_required_backend_without_a_cell_that_does_not_open_is_missing(
    desk: Desk, error: Exception, reason: str
) -> None:
    desk.errors["open other"] = error
    run = desk.run(make_cell(), required=("other",))
    assert (run.missing, run.exit_code) == ((f"other: {reason}",), ExitCode.NOTHING)


def test_an_interrupt_keeps_what_is_computed_and_names_the_rest(desk: Desk) -> None:
    cells = grid()
    cells[-1] = replace(cells[-1], skip="slow")
    desk.errors[f"starts {cells[5].id}"] = KeyboardInterrupt()
    run = desk.run(*cells)
    assert statuses(run) == [Status.PASS] * 5 + [Status.ERROR] * 2 + [Status.SKIP]
    assert {r.reason for r in run.results[5:7]} == {"not finished"}
    assert (run.interrupted, run.exit_code) == (True, ExitCode.INTERRUPTED)
    assert len(run.references) == 3
    assert desk.logged("close") == ["close cpu", "close good", "close other"]


@pytest.mark.parametrize(
    "place", ["open good", "facts good", "fixture first", "compute cpu", "compute good"]
)
def test_an_interrupt_before_the_first_score_leaves_a_run_without_results(
    desk: Desk, place: str
) -> None:
    desk.errors[place] = KeyboardInterrupt()
    run = desk.run(make_cell())
    assert [result.reason for result in run.results] == ["not finished"]
    assert run.exit_code is ExitCode.INTERRUPTED
    assert desk.log.count("close cpu") == 1


def test_an_interrupt_while_closing_keeps_every_result(desk: Desk) -> None:
    desk.errors["close cpu"] = KeyboardInterrupt()
    run = desk.run(make_cell())
    assert (statuses(run), run.interrupted) == ([Status.PASS], True)


def test_backends_are_closed_when_the_process_is_told_to_exit(desk: Desk) -> None:
    desk.errors["compute good"] = SystemExit()
    with pytest.raises(SystemExit):
        desk.run(make_cell())
    assert desk.logged("close") == ["close cpu", "close good"]


def test_a_backend_that_cannot_close_is_shown_and_the_others_are_closed(desk: Desk) -> None:
    desk.errors["close cpu"] = OSError("stuck")
    run = desk.run(make_cell())
    assert statuses(run) == [Status.PASS]
    assert run.environment["reference cpu"]["closing failed"] == "OSError: stuck"
    assert desk.log.count("close good") == 1


def test_a_backend_without_facts_is_closed_and_its_cells_are_errors(desk: Desk) -> None:
    desk.errors["facts good"] = OSError("driver is gone")
    run = desk.run(make_cell(), make_cell("other"))
    assert statuses(run) == [Status.ERROR, Status.PASS]
    assert desk.log.count("close good") == 1


def test_the_environment_says_what_decided_the_bits(desk: Desk) -> None:
    found = desk.run(make_cell(), make_cell("other", skip="slow")).environment
    assert found["matrix"] == {"path": "folder/m.yaml", "sha256": "abc", "version": "1"}
    assert found["reference cpu"] == {"device": "device of cpu"}
    assert found["candidate good"] == {"device": "device of good"}
    assert found["feature fake"] == {"compiler": "cc 1"}
    assert found["kernels"] == {"fake": hashlib.sha256(KERNEL.encode()).hexdigest()}
    assert found["fixtures"] == {"first.ref": "first-r", "first.dist": "first-d"}
    assert {"gate", "host"} < set(found)
    assert "candidate other" not in found


def test_a_backend_that_has_nothing_to_tell_gets_no_empty_section(desk: Desk) -> None:
    desk.backends["cpu"].facts = dict  # type: ignore[method-assign]
    assert "reference cpu" not in desk.run(make_cell()).environment


def test_what_libvmaf_makes_of_options_and_names_is_told_where_there_is_something(
    desk: Desk,
) -> None:
    told = {"warnings", "names shared by option sets"}
    assert not told & desk.run(make_cell()).environment.keys()
    desk.warnings = {"m.yaml:1:2": "gain 1.23456789 becomes 1.23457"}
    found = desk.run(make_cell(), make_cell(gain=2.0)).environment
    assert found["warnings"] == desk.warnings
    assert found["names shared by option sets"].keys() == {"one of fake", "two of fake"}


def test_a_feature_whose_facts_fail_loses_no_result(desk: Desk) -> None:
    desk.errors = {"reference facts": ImportError("not built"), "kernel source": OSError("no file")}
    run = desk.run(make_cell())
    assert statuses(run) == [Status.PASS]
    assert run.environment["feature fake"] == {"unknown": "ImportError: not built"}
    assert run.environment["kernels"] == {"fake": "unknown: OSError: no file"}


def test_two_runs_differ_in_times_only(desk: Desk) -> None:
    def timeless(run: Run) -> Run:
        results = tuple(replace(r, seconds=0, reference_seconds=0) for r in run.results)
        return replace(run, id="", started="", seconds=0, results=results)

    desk.backends["good"].work = planted(math.inf)
    assert timeless(desk.run(*grid())) == timeless(desk.run(*grid()))


def test_the_time_of_the_reference_is_shared_and_is_no_time_of_a_candidate(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(asking, "perf_counter", lambda: next(ticks))
    run = desk.run(make_cell(), make_cell("other"))
    assert [(r.reference_seconds, r.seconds) for r in run.results] == [(1, 1), (1, 1)]


def test_no_cells_prove_nothing(desk: Desk) -> None:
    assert desk.run().exit_code is ExitCode.NOTHING
