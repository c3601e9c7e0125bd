"""Sides that are asked once more: whether they give the same bits again."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gate import compare
from gate.asking import AGAIN, WAYS
from gate.model import Control, Stability, Status, control_sentence
from gate.opening import Reported, Trouble, attempt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backends.base import Scores
    from gate.asking import Ask, Pending
    from gate.model import Cell, Result
    from gate.opening import Backends

    Of = tuple[str, ...]

SHARE = 50  # one reference of so many is a control, and one of each arithmetic at least


def given(pending: Pending) -> Scores:
    """Return what a side gives; scores that its conclusion refuses are bits too.

    Raises:
        Reported: it gives none.
    """
    found = attempt(pending.scores)
    if not isinstance(found, Trouble):
        return found
    if found.refused is None:
        raise Reported(found)
    return found.refused


class Controls:
    """Asks the references of a sample of cells once more, and both sides of red cells."""

    def __init__(self, backends: Backends, chosen: Iterable[str]) -> None:
        """Ask nothing yet.

        Args:
            backends: those of the run.
            chosen: the references of the sample, as `sample` names them.
        """
        self._backends = backends
        self._sample = frozenset(chosen)
        self._of: Of = ()  # what the last controlled reference computes
        self._found: tuple[Control, ...] = ()

    def controlled(self, result: Result, ask: Ask, reference: Scores, candidate: Scores) -> Result:
        """Return the result with how its sides compare with themselves, if it is for control.

        Args:
            result: of a cell whose sides were compared.
            ask: what both sides were asked for.
            reference: what the reference gave.
            candidate: what the candidate gave.
        """
        cell, red = result.cell, result.status in (Status.FAIL, Status.NONDETERMINISTIC)
        known = self._of == cell.of
        if not red and (known or named(cell) not in self._sample):
            return self.late(result)
        # Repeats that differ have shown already that the candidate moves.
        again = candidate if result.status is Status.FAIL else None
        found = attempt(partial(self._controls, cell, ask, reference, again))
        if not isinstance(found, Trouble):
            return _with(result, found)
        if red:
            return replace(result, reason=f"{result.reason}; {found.reason}")
        return found.result(cell)

    def late(self, result: Result) -> Result:
        """Return a result that its reference may not judge, for it moved beside another cell."""
        moved = self._of == result.cell.of and any(control.different for control in self._found)
        counts = result.status in (Status.PASS, Status.KNOWN)
        return _with(result, self._found) if moved and counts else result

    def _controls(
        self, cell: Cell, ask: Ask, reference: Scores, candidate: Scores | None
    ) -> tuple[Control, ...]:
        if self._of != cell.of:
            found = tuple(self._control(cell, "reference", ask, way, reference) for way in WAYS)
            self._of, self._found = cell.of, found
        if candidate is None:
            return self._found
        return (*self._found, self._control(cell, "candidate", ask, AGAIN, candidate))

    def _control(self, cell: Cell, side: str, ask: Ask, way: str, scores: Scores) -> Control:
        name: str = getattr(cell, side)
        patience = cell.timeout * len(os.sched_getaffinity(0))  # one thread has the work of all
        pending = self._backends.begin(name, replace(ask, way=way, timeout=patience))
        compared = attempt(
            lambda: compare.compare(scores, given(pending), cell.frames, cell.outputs)
        )
        if isinstance(compared, Trouble):
            reason = f"{side} {name}, asked once more ({way}): {compared.reason}"
            raise Reported(replace(compared, status=Status.ERROR, reason=reason))
        return Control(side, way, compared.scores, compared.different)


def _with(result: Result, controls: tuple[Control, ...]) -> Result:
    moved = next((control for control in controls if control.different), None)
    if moved is None:
        return replace(result, controls=controls)
    reason = control_sentence(moved, getattr(result.cell, moved.side))
    if moved.side == "candidate":  # a reference that moves judges nobody
        reason = f"{reason}; {result.reason}"
    return replace(result, status=Status.NONDETERMINISTIC, reason=reason, controls=controls)


def named(cell: Cell) -> str:
    """Return the name of what a cell's reference computes."""
    return "/".join(cell.of)


def sample(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return the names of the references that are a selection's controls, in plan order.

    One of SHARE, by their hash, and at least one of each arithmetic: the same in every run, so that
    the shards of a selection have those of the selection.
    """
    drawn: dict[str, bytes] = {}
    first: dict[tuple[str, ...], str] = {}
    for cell in cells:
        name = named(cell)
        if name in drawn or cell.skip:
            continue
        drawn[name] = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
        kind = (cell.feature, cell.dialect, cell.conclusion, cell.reference)
        first[kind] = min(first.get(kind, name), name, key=drawn.__getitem__)
    lowest = {name for name, digest in drawn.items() if not int.from_bytes(digest[:8]) % SHARE}
    return tuple(name for name in drawn if name in lowest or name in first.values())


def kinds(runs: Iterable[Scores]) -> list[Sequence[Scores]]:
    """Return the results of a candidate, those with the same bits together."""
    found: dict[bytes, list[Scores]] = {}
    for scores in runs:
        found.setdefault(compare.fingerprint(scores), []).append(scores)
    return [*found.values()]


def stability(found: Sequence[Sequence[Scores]]) -> Stability:
    """Return how results that `kinds` put together compare with each other."""
    sizes = [len(kind) for kind in found]
    return Stability(sum(sizes), len(sizes), sum(sizes) - max(sizes))
