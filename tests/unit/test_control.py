"""Sides that are asked once more: which are, what that shows, and how a red cell tells it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from runner_desk import FRAMES, NAMES, Compute, Desk, grid, make_cell, scores

from backends.base import Clip, Failed, NoResult, Scores
from gate import control
from gate.asking import WAYS
from gate.model import Control, ExitCode, Run, Stability, Status

ALL = FRAMES * len(NAMES)
RATE = 0.077  # how often the flipping device flips a bit


def flipped(clip: Clip, number: int = 1) -> Scores:
    """Return the scores with the lowest bit of so many of them flipped."""
    result = scores(clip)
    result.values.view(np.uint64).flat[:number] ^= np.uint64(1)
    return result


def sometimes(flips: Callable[[int], bool]) -> Compute:
    """Return what flips a bit in the calls that `flips` names, from 0."""
    calls = iter(range(1_000_000))
    return lambda clip: flipped(clip) if flips(next(calls)) else scores(clip)


def same(side: str = "reference", *ways: str) -> tuple[Control, ...]:
    return tuple(Control(side, way, ALL, 0) for way in ways or WAYS)


def statuses(run: Run) -> list[Status]:
    return [result.status for result in run.results]


def test_the_sample_has_one_of_each_arithmetic_and_the_same_in_every_run() -> None:
    cells = [
        make_cell(gain=gain, dialect=dialect)
        for gain in range(200)
        for dialect in ("plain", "other")
    ]
    sample = control.sample(cells)
    kinds = Counter(name.split("/")[1] for name in sample)
    assert set(kinds) == {"plain", "other"}
    assert 3 <= len(sample) <= 20
    assert control.sample(cells) == sample
    assert list(sample) == [name for name in map(control.named, cells) if name in sample]
    assert len(control.sample(cells[:1])) == 1
    assert control.sample([replace(cells[0], skip="no result")]) == ()


def test_a_controlled_reference_is_asked_three_times_more_and_once_a_group(desk: Desk) -> None:
    cells = grid()
    run = desk.run(*cells, sample=(control.named(cells[0]),))
    assert statuses(run) == [Status.PASS] * 8
    assert run.sample == (control.named(cells[0]),)
    assert [result.controls for result in run.results] == [same(), *[()] * 7]
    computed = Counter(backend for _, backend in map(str.split, desk.logged("compute")))
    assert computed == {"cpu": 4 + len(WAYS), "good": 4, "other": 4}


def test_a_run_has_controls_unless_it_is_told_otherwise(desk: Desk) -> None:
    run = desk.run(*grid(), sample=None)
    assert run.sample == control.sample(grid())
    assert sum(bool(result.controls) for result in run.results) == len(run.sample) > 0


def test_a_reference_that_moves_is_red_and_is_blamed(desk: Desk) -> None:
    desk.backends["cpu"].work = sometimes(lambda call: call == 2)
    (result,) = desk.run(make_cell(), sample=None).results
    assert result.status is Status.NONDETERMINISTIC
    assert [one.different for one in result.controls] == [0, 1, 0]
    assert result.reason.startswith("reference cpu ")
    assert "on one thread" in result.reason
    assert "good" not in result.reason


def test_a_red_cell_shows_that_both_sides_stay_as_they_are(desk: Desk) -> None:
    desk.backends["good"].work = flipped
    run = desk.run(make_cell(), make_cell("other"))
    assert statuses(run) == [Status.FAIL, Status.PASS]
    assert run.results[0].controls == (*same(), *same("candidate", "again"))
    assert run.results[1].controls == ()
    assert run.exit_code is ExitCode.FAIL


def test_every_red_cell_of_a_group_has_the_controls_of_its_reference(desk: Desk) -> None:
    desk.backends["good"].work = desk.backends["other"].work = flipped
    run = desk.run(make_cell(), make_cell("other"))
    assert [result.controls for result in run.results] == [
        (*same(), *same("candidate", "again"))
    ] * 2
    assert desk.logged("compute").count("compute cpu") == 1 + len(WAYS)


def test_a_candidate_that_differs_and_then_agrees_is_not_retried_to_green(desk: Desk) -> None:
    desk.backends["good"].work = sometimes(lambda call: call == 0)
    run = desk.run(make_cell())
    (result,) = run.results
    assert result.status is Status.NONDETERMINISTIC
    assert result.comparison is not None
    assert result.comparison.different == 1
    assert result.controls[-1] == Control("candidate", "again", ALL, 1)
    assert "good" in result.reason
    assert run.exit_code is ExitCode.FAIL


def test_a_side_that_fails_when_it_is_asked_again_is_an_error(desk: Desk) -> None:
    def fails(clip: Clip) -> Scores:
        if len(desk.backends["cpu"].computed) > 1:
            message = "the second run has no memory"
            raise Failed(message)
        return scores(clip)

    desk.backends["cpu"].work = fails
    (result,) = desk.run(make_cell(), sample=None).results
    assert result.status is Status.ERROR
    expected = "reference cpu, asked once more (again): the second run has no memory"
    assert result.reason == expected


def test_a_red_cell_stays_red_when_a_side_fails_when_it_is_asked_again(desk: Desk) -> None:
    def fails(clip: Clip) -> Scores:
        if len(desk.backends["good"].computed) > 1:
            message = "the device is lost"
            raise Failed(message)
        return flipped(clip)

    desk.backends["good"].work = fails
    (result,) = desk.run(make_cell()).results
    assert (result.status, result.controls) == (Status.FAIL, ())
    assert result.reason.endswith("candidate good, asked once more (again): the device is lost")


def test_a_reference_that_moves_judges_no_candidate_whichever_finds_it_out(desk: Desk) -> None:
    """Both directions: the red cell before the green one, and after it."""
    for first, second in (("good", "other"), ("other", "good")):
        desk.backends["cpu"].work = sometimes(lambda call: call == 2)
        desk.backends["good"].work, desk.backends["other"].work = flipped, scores
        run = desk.run(make_cell(first), make_cell(second))
        assert statuses(run) == [Status.NONDETERMINISTIC] * 2
        assert all("so it judges no candidate" in result.reason for result in run.results)
        assert [result.cell.candidate for result in desk.amendments] == ["other"] * (
            second == "good"
        )


def refusing(change: Compute) -> Compute:
    """Return what refuses the scores that `change` gives."""

    def work(clip: Clip) -> Scores:
        message = "frame 0 one is nan; the conclusion vmafx refuses that"
        raise NoResult(message, change(clip))

    return work


def test_repeats_of_refused_scores_count_too(desk: Desk) -> None:
    desk.backends["cpu"].work = refusing(scores)
    desk.backends["good"].work = refusing(sometimes(lambda call: call == 2))
    (result,) = desk.run(make_cell(), repeat=5).results
    assert (result.status, result.stability) == (Status.NONDETERMINISTIC, Stability(5, 2, 1))


def test_a_run_of_many_that_fails_beside_refusals_is_an_error_that_tells_it(desk: Desk) -> None:
    def fails(clip: Clip) -> Scores:
        if len(desk.backends["good"].computed) == 2:
            message = "the device is lost"
            raise Failed(message)
        return refusing(scores)(clip)

    desk.backends["cpu"].work, desk.backends["good"].work = refusing(scores), fails
    (result,) = desk.run(make_cell(), repeat=3).results
    assert result.status is Status.ERROR
    assert result.reason.endswith("; the candidate: the device is lost")


def test_refused_scores_that_differ_are_asked_for_once_more(desk: Desk) -> None:
    desk.backends["cpu"].work = refusing(scores)
    desk.backends["good"].work = refusing(sometimes(lambda call: call == 0))
    (result,) = desk.run(make_cell()).results
    assert result.status is Status.NONDETERMINISTIC
    assert result.controls[-1] == Control("candidate", "again", ALL, 1)


def test_quiet_nans_are_one_kind_and_unset_scores_another() -> None:
    found = [scores() for _ in range(4)]
    for number, one in enumerate(found[:2]):
        one.values.view(np.uint64)[0, 0] = 0x7FF8_0000_0000_0000 + number
    found[3].unset[0, 0] = True
    sizes = [len(kind) for kind in control.kinds(found)]
    assert sizes == [2, 1, 1]


def test_repeats_that_agree_pass_and_say_how_many_they_were(desk: Desk) -> None:
    run = desk.run(make_cell(), repeat=5)
    assert statuses(run) == [Status.PASS]
    assert run.results[0].stability == Stability(5, 1, 0)
    assert run.repeat == 5
    assert desk.logged("compute") == ["compute cpu", *["compute good"] * 5]


def test_repeats_that_agree_on_other_bits_fail(desk: Desk) -> None:
    desk.backends["good"].work = flipped
    (result,) = desk.run(make_cell(), repeat=3).results
    assert (result.status, result.stability) == (Status.FAIL, Stability(3, 1, 0))


def test_repeats_that_differ_are_red_whatever_the_first_one_gave(desk: Desk) -> None:
    kinds = {2: 1, 4: 2, 5: 2}  # call: number of flipped scores
    calls = iter(range(6))
    desk.backends["good"].work = lambda clip: flipped(clip, kinds.get(next(calls), 0))
    (result,) = desk.run(make_cell(), repeat=6).results
    assert (result.status, result.stability) == (Status.NONDETERMINISTIC, Stability(6, 3, 3))
    assert result.comparison is not None
    assert result.comparison.different == 1  # of the first run that differs


def test_a_device_that_flips_a_bit_in_some_runs_is_red_with_its_probability(desk: Desk) -> None:
    drawn = random.Random(7)  # noqa: S311 - no secret
    desk.backends["good"].work = sometimes(lambda _: drawn.random() < RATE)
    run = desk.run(make_cell(), repeat=60)
    (result,) = run.results
    found = result.stability
    assert result.status is Status.NONDETERMINISTIC
    assert run.exit_code is ExitCode.FAIL
    assert found is not None
    assert (found.runs, found.results) == (60, 2)
    assert 0 < found.rare < 15
    assert found.detection == 1 - (1 - found.rare / 60) ** 60 > 0.6
    assert f"{found.rare} " in result.reason


def test_one_run_of_many_that_fails_is_an_error(desk: Desk) -> None:
    def fails(clip: Clip) -> Scores:
        if len(desk.backends["good"].computed) == 3:
            message = "the device is lost"
            raise Failed(message)
        return scores(clip)

    desk.backends["good"].work = fails
    (result,) = desk.run(make_cell(), repeat=4).results
    assert (result.status, result.reason) == (Status.ERROR, "the device is lost")
    assert len(desk.backends["good"].computed) == 4
