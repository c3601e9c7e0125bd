"""Faults between the device and the gate: one step, a sign, a NaN, something missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from planting import Planted, run_gate

from backends.base import Scores
from gate.model import ExitCode, Result, Status

if TYPE_CHECKING:
    from backends.base import Backend

CELL = "float_adm/rcpss-double/debug/seq3_322x182_8"
FLAT = "float_adm/ieee-double/debug_nw_0/flat_576x324_8"  # its sums are zeros


def one_step(scores: Scores) -> Scores:
    values = scores.values.copy()
    values[-1, -1] = np.nextafter(values[-1, -1], np.inf)
    return Scores(scores.names, values, scores.unset)


def negative_zero(scores: Scores) -> Scores:
    return Scores(scores.names, np.where(scores.values == 0, -0.0, scores.values), scores.unset)


def a_nan(scores: Scores) -> Scores:
    values = scores.values.copy()
    values[1, 0] = np.nan
    return Scores(scores.names, values, scores.unset)


def without_last_frame(scores: Scores) -> Scores:
    return Scores(scores.names, scores.values[:-1], scores.unset[:-1])


def without_a_score(scores: Scores) -> Scores:
    return Scores(scores.names[:-1], scores.values[:, :-1], scores.unset[:, :-1])


def the_one_result(faulty: Planted, cell: str, code: ExitCode) -> Result:
    run = run_gate(faulty, cell)
    assert run.exit_code is code
    (result,) = run.results
    assert result.cell.id == f"{cell}/opencl:pocl"
    return result


def test_one_step_in_one_score_fails_the_cell(pocl: Backend) -> None:
    result = the_one_result(Planted(pocl, "one step", scores=one_step), CELL, ExitCode.FAIL)
    assert result.comparison is not None
    (mismatch,) = result.comparison.mismatches
    assert (mismatch.frame, mismatch.score) == (2, "adm_den_scale3")
    assert (mismatch.steps, mismatch.unit) == (1, "ulp64")


def test_negative_zero_fails_the_cell(pocl: Backend) -> None:
    result = the_one_result(Planted(pocl, "-0", scores=negative_zero), FLAT, ExitCode.FAIL)
    assert result.comparison is not None
    assert {m.steps for m in result.comparison.mismatches} == {-1}


def test_a_nan_fails_the_cell(pocl: Backend) -> None:
    result = the_one_result(Planted(pocl, "NaN", scores=a_nan), CELL, ExitCode.FAIL)
    assert result.comparison is not None
    (mismatch,) = result.comparison.mismatches
    assert (mismatch.frame, mismatch.steps) == (1, None)


def test_a_missing_last_frame_is_an_error(pocl: Backend) -> None:
    faulty = Planted(pocl, "missing frame", scores=without_last_frame)
    result = the_one_result(faulty, CELL, ExitCode.ERROR)
    assert result.status is Status.ERROR
    assert "end before frame 2; required: 3 frames" in result.reason


def test_a_missing_score_is_an_error(pocl: Backend) -> None:
    faulty = Planted(pocl, "missing score", scores=without_a_score)
    result = the_one_result(faulty, CELL, ExitCode.ERROR)
    assert result.status is Status.ERROR
    assert "adm_den_scale3" in result.reason


def test_a_swapped_suffix_is_an_error(pocl: Backend) -> None:
    """Scores of one instance under the names of another would be compared with the wrong ones."""

    def swapped(scores: Scores) -> Scores:
        names = tuple(name.replace("_egl_1.2", "_egl_1") for name in scores.names)
        return Scores(names, scores.values, scores.unset)

    cell = "float_adm/ieee-double/debug_egl_1.2/bbb_63x65_420p8"
    result = the_one_result(Planted(pocl, "suffix", scores=swapped), cell, ExitCode.ERROR)
    assert result.status is Status.ERROR
    assert "score adm2_egl_1.2, aim_egl_1.2" in result.reason


def test_scores_left_from_the_cell_before_are_red(pocl: Backend) -> None:
    """A stale buffer has the right shape; its bits give it away, and others when asked again."""
    kept: list[Scores] = []

    def stale(scores: Scores) -> Scores:
        kept.append(scores)
        return kept[-2] if len(kept) > 1 else scores

    cells = [f"float_adm/{dialect}/debug/seq3_322x182_8" for dialect in ("ieee-*", "rcpss-*")]
    run = run_gate(Planted(pocl, "stale scores", scores=stale), *cells)
    assert [r.status for r in run.results] == [Status.PASS] + [Status.NONDETERMINISTIC] * 3
