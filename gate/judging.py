"""What becomes of a cell, given what both sides give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gate import compare, deviations
from gate.control import Controls, stability
from gate.model import BOTH_REFUSE, Comparison, Result, Status, stability_sentence
from gate.opening import Trouble, attempt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from backends.base import Scores
    from gate.asking import Ask, Pending
    from gate.model import Cell


@dataclass(frozen=True, slots=True)
class Judge:
    """Compares the sides of one cell after the other.

    Attributes:
        controls: ask sides once more.
        today: decides which deviations have expired.
    """

    controls: Controls
    today: date

    def judged(
        self, cell: Cell, ask: Ask, reference: Scores | Trouble, runs: Sequence[Pending]
    ) -> Result:
        """Return what becomes of a cell.

        Args:
            cell: to be judged.
            ask: what both sides were asked for.
            reference: what the reference gave, or why it has no scores.
            runs: of the candidate, at least one.
        """
        found: Comparison | Result | Trouble
        answers = [attempt(run.scores) for run in runs]  # all, so that none is left to compute
        if isinstance(reference, Trouble):
            found = _beside(cell, reference, answers[0])
        else:
            found = attempt(partial(self._compared, cell, ask, reference, answers))
        if isinstance(found, Trouble):
            return found.result(cell)
        if isinstance(found, Comparison):
            return deviations.judged(cell, found, self.today)
        return found

    def _compared(
        self, cell: Cell, ask: Ask, reference: Scores, answers: Sequence[Scores | Trouble]
    ) -> Result | Trouble:
        candidates = []
        for answer in answers:
            if isinstance(answer, Trouble):
                return answer
            candidates.append(answer)
        comparisons = [_comparison(cell, reference, candidate) for candidate in candidates]
        result = deviations.judged(cell, comparisons[0], self.today)
        if len(candidates) > 1:
            result = _repeated(result, candidates, comparisons)
        return self.controls.controlled(result, ask, reference, candidates[0])


def _comparison(cell: Cell, reference: Scores, candidate: Scores) -> Comparison:
    comparison = compare.compare(reference, candidate, cell.frames, cell.outputs)
    if comparison.scores != cell.scores:
        message = f"{comparison.scores} scores were compared; required: {cell.scores}"
        raise compare.Incomparable(message)
    return comparison


def _repeated(
    result: Result, candidates: Sequence[Scores], comparisons: Sequence[Comparison]
) -> Result:
    """Return the result with how the candidate's runs compare with each other."""
    found = stability(candidates, result.cell)
    result = replace(result, stability=found)
    if found.results == 1:
        return result
    return replace(
        result,
        status=Status.NONDETERMINISTIC,
        reason=stability_sentence(result.cell.candidate, found),
        comparison=next((one for one in comparisons if one.different), comparisons[0]),
    )


def _beside(cell: Cell, reference: Trouble, candidate: Scores | Trouble) -> Comparison | Trouble:
    """Return what becomes of a cell whose reference has no scores.

    Some pictures have no result. There the candidate should have the same bits and refuse them
    too; a matrix that knows it says so with a skip.
    """
    if reference.refused is None:
        return reference
    if not isinstance(candidate, Trouble):
        return replace(reference, reason=f"{reference.reason}; the candidate gives scores")
    if candidate.refused is None:
        told = f"{reference.reason}; the candidate: {candidate.reason}"
        return replace(candidate, reason=told)
    comparison = attempt(
        partial(compare.compare, reference.refused, candidate.refused, cell.frames, cell.outputs)
    )
    if isinstance(comparison, Trouble) or comparison.different:
        return comparison
    return Trouble(Status.ERROR, f"{BOTH_REFUSE}: {candidate.reason}")
