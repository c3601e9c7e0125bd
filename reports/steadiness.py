"""What reports say of sides that were asked more than once, and of scores of earlier runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gate.model import Status, counted

if TYPE_CHECKING:
    from gate.model import Control, Result, Run, Stability

SURE = 0.95  # probability of having seen a fault


def sides_sentence(result: Result) -> str:
    """Return how each side compares with itself; empty where none was asked for control."""
    if not result.controls:
        return ""
    told = []
    for side in dict.fromkeys(control.side for control in result.controls):
        own = [control for control in result.controls if control.side == side]
        same = ", ".join(control.how for control in own if not control.different)
        other = ", ".join(_way(control) for control in own if control.different)
        parts = [f"the same bits {same}"] if same else []
        parts += [f"other bits when computed {other}"] if other else []
        told.append(f"the {side} gives {', but '.join(parts)}")
    if result.stability is not None:
        told.append(f"the candidate gives {_results(result.stability)}")
    return "; ".join(told)


def _way(control: Control) -> str:
    return f"{control.how} ({control.different} of {counted(control.scores, 'score')})"


def _results(stability: Stability) -> str:
    runs = counted(stability.runs, "run")
    if stability.results == 1:
        return f"the same bits in {runs}"
    return f"{stability.results} different results in {runs}"


def guilty(result: Result) -> str:
    """Return whom a red cell is about: who moved against itself, else the candidate."""
    cell, moved = result.cell, result.moved
    names = [f"reference {cell.reference}"] if "reference" in moved else []
    if not names or "candidate" in moved:
        names.append(cell.candidate)
    return " and ".join(names)


def moving(results: list[Result]) -> str:
    """Return which side of red cells moved, to be put behind their id; empty if none did."""
    first = results[0]
    return f": {guilty(first)} moved" if first.status is Status.NONDETERMINISTIC else ""


def counts(run: Run) -> dict[str, int]:
    """Return how many cells, references and scores were seen more than once, or by others."""
    controls = _controls(run)
    return {
        "controlled": sum(_is_controlled(result) for result in run.results),
        "control_scores": sum(control.scores for control in controls),
        "control_different": sum(control.different for control in controls),
        "repeated": sum(_is_repeated(result, run.repeat) for result in run.results),
        "references": len(run.references),
        "cached": sum(scores.cached for scores in run.references),
    }


def facts(run: Run) -> dict[str, str]:
    """Return a sentence about each of control, repeats and cache, where there is one to say."""
    numbers, found = counts(run), {}
    if run.references or numbers["controlled"]:
        found["control of the reference"] = _control(run, numbers["controlled"])
    if run.repeat > 1:
        found["repeats"] = _repeats(run, numbers["repeated"])
    if numbers["cached"]:
        results = counted(numbers["references"], "reference result")
        found["cache"] = f"{numbers['cached']} of {results} came from the cache"
    return found


def _control(run: Run, cells: int) -> str:
    if not cells:
        return "no reference was computed once more"
    sums: dict[str, tuple[int, int]] = {}
    for control in _controls(run):
        scores, different = sums.get(control.how, (0, 0))
        sums[control.how] = scores + control.scores, different + control.different
    ways = (
        f"{how} ({counted(scores, 'score')}, {different} different)"
        for how, (scores, different) in sums.items()
    )
    of = f"{cells} of {counted(len(run.results), 'cell')}"
    return f"that of {of} was computed {', '.join(ways)}"


def _repeats(run: Run, cells: int) -> str:
    # Rounded up: with less than that it would not have been so sure.
    percent = math.ceil(1_000 * (1 - (1 - SURE) ** (1 / run.repeat))) / 10
    return (
        f"the candidate of {cells} of {counted(len(run.results), 'cell')} was computed "
        f"{run.repeat} times: in each of these cells a fault in {percent} % of runs or more "
        f"would have shown with probability {SURE}"
    )


def _controls(run: Run) -> list[Control]:
    """Return the controls of references, once for all cells that share a reference."""
    of = {(r.cell.of, control): None for r in run.results for control in r.controls}
    return [control for _, control in of if control.side == "reference"]


def _is_controlled(result: Result) -> bool:
    return any(control.side == "reference" for control in result.controls)


def _is_repeated(result: Result, repeat: int) -> bool:
    return result.stability is not None and result.stability.runs >= repeat
