"""What becomes of a cell, given what both sides give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gate import compare, deviations
from gate.control import Controls, kinds, stability
from gate.model import BOTH_REFUSE, Status, stability_sentence
from gate.opening import Trouble, attempt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from backends.base import Scores
    from gate.asking import Ask, Pending
    from gate.model import Cell, Comparison, Result


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
        answers = [attempt(run.scores) for run in runs]  # all, so that none is left to compute
        trouble = _without_scores(reference, answers)
        if trouble is not None:
            return trouble.result(cell)
        given = _given(reference), [_given(answer) for answer in answers]
        refusal = answers[0].reason if isinstance(answers[0], Trouble) else ""
        found = attempt(partial(self._compared, cell, ask, *given, refusal))
        if isinstance(found, Trouble):
            return found.result(cell)
        evidence = given[1][0].evidence
        return replace(found, proof=evidence.proof() if evidence else None)

    def _compared(
        self,
        cell: Cell,
        ask: Ask,
        reference: Scores,
        candidates: Sequence[Scores],
        refusal: str,
    ) -> Result | Trouble:
        found = [candidates]
        if len(candidates) > 1:
            for candidate in candidates:
                compare.require_structure("candidate", candidate, cell.frames, cell.outputs)
            found = kinds(candidates)
        comparisons = [_comparison(cell, reference, kind[0]) for kind in found]
        result = deviations.judged(cell, comparisons[0], self.today)
        if len(candidates) > 1:
            result = replace(result, stability=stability(found))
        if len(found) > 1:
            result = replace(
                result,
                status=Status.NONDETERMINISTIC,
                reason=stability_sentence(cell.candidate, stability(found)),
                comparison=next((one for one in comparisons if one.different), comparisons[0]),
            )
        elif refusal and not comparisons[0].different:
            return Trouble(Status.ERROR, f"{BOTH_REFUSE}: {refusal}")
        return self.controls.controlled(result, ask, reference, candidates[0])


def _comparison(cell: Cell, reference: Scores, candidate: Scores) -> Comparison:
    comparison = compare.compare(reference, candidate, cell.frames, cell.outputs)
    if comparison.scores != cell.scores:
        message = f"{comparison.scores} scores were compared; required: {cell.scores}"
        raise compare.Incomparable(message)
    return comparison


def _given(answer: Scores | Trouble) -> Scores:
    """Return the scores of a side, though its conclusion may refuse them."""
    scores = answer.refused if isinstance(answer, Trouble) else answer
    assert scores is not None  # noqa: S101 - `_without_scores` has looked for that
    return scores


def _without_scores(
    reference: Scores | Trouble, answers: Sequence[Scores | Trouble]
) -> Trouble | None:
    """Return why there is nothing to compare, if so.

    Some pictures have no result. There the candidate should have the same bits and refuse them
    too; a matrix that knows it says so with a skip.
    """
    if isinstance(reference, Trouble) and reference.refused is None:
        return reference
    for answer in answers:
        if isinstance(answer, Trouble) and (
            answer.refused is None or not isinstance(reference, Trouble)
        ):
            told = f"{reference.reason}; the candidate: " if isinstance(reference, Trouble) else ""
            return replace(answer, reason=f"{told}{answer.reason}")
        if isinstance(reference, Trouble) and not isinstance(answer, Trouble):
            return replace(reference, reason=f"{reference.reason}; the candidate gives scores")
    return None
