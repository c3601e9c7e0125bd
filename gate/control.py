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
    from gate.asking import Ask
    from gate.model import Cell, Result
    from gate.opening import Backends

    Of = tuple[str, ...]

SHARE = 50  # one reference of so many is a control, and one of each arithmetic at least
RED = 20  # references of red cells that are controlled as well; one fault makes many cells red


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
        self._red = RED
        self._controlled: tuple[Of, tuple[Control, ...]] = ((), ())  # of the last reference

    def controlled(self, result: Result, ask: Ask, reference: Scores, candidate: Scores) -> Result:
        """Return the result with how its sides compare with themselves, if it is for control.

        Args:
            result: of a cell whose sides were compared.
            ask: what both sides were asked for.
            reference: what the reference gave.
            candidate: what the candidate gave.
        """
        red = result.status in (Status.FAIL, Status.NONDETERMINISTIC)
        sampled = named(result.cell) in self._sample
        known = self._controlled[0] == result.cell.of
        if not (red and (known or sampled or self._red > 0)) and not (sampled and not known):
            return result
        if red and not (known or sampled):
            self._red -= 1
        # Repeats that differ have shown already that the candidate moves.
        again = candidate if result.status is Status.FAIL else None
        found = attempt(partial(self._controls, result.cell, ask, reference, again))
        if isinstance(found, Trouble):
            if red:
                return replace(result, reason=f"{result.reason}; {found.reason}")
            return found.result(result.cell)
        moved = [control for control in found if control.different]
        if moved:
            reason = control_sentence(moved[0], getattr(result.cell, moved[0].side))
            if moved[0].side == "candidate":  # a reference that moves judges nobody
                reason = f"{reason}; {result.reason}"
            result = replace(result, status=Status.NONDETERMINISTIC, reason=reason)
        return replace(result, controls=found)

    def _controls(
        self, cell: Cell, ask: Ask, reference: Scores, candidate: Scores | None
    ) -> tuple[Control, ...]:
        if self._controlled[0] != cell.of:
            found = tuple(self._control(cell, "reference", ask, way, reference) for way in WAYS)
            self._controlled = cell.of, found
        if candidate is None:
            return self._controlled[1]
        again = self._control(cell, "candidate", ask, AGAIN, candidate)
        return (*self._controlled[1], again)

    def _control(self, cell: Cell, side: str, ask: Ask, way: str, scores: Scores) -> Control:
        name: str = getattr(cell, side)
        patience = cell.timeout * len(os.sched_getaffinity(0))  # one thread has the work of all
        pending = self._backends.begin(name, replace(ask, way=way, timeout=patience))
        compared = attempt(
            lambda: compare.compare(scores, pending.scores(), cell.frames, cell.outputs)
        )
        if isinstance(compared, Trouble):
            reason = f"{side} {name}, asked once more ({way}): {compared.reason}"
            raise Reported(replace(compared, status=Status.ERROR, reason=reason))
        return Control(side, way, compared.scores, compared.different)


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


def stability(runs: Sequence[Scores], cell: Cell) -> Stability:
    """Return how the results of a candidate compare with each other.

    Args:
        runs: what it gave, at least once, each of the cell's structure.
        cell: that it was asked for.
    """
    kinds: list[list[Scores]] = []
    for scores in runs:
        for kind in kinds:
            if not compare.compare(kind[0], scores, cell.frames, cell.outputs).different:
                kind.append(scores)
                break
        else:
            kinds.append([scores])
    return Stability(len(runs), len(kinds), len(runs) - max(map(len, kinds)))
