"""Cells that are drawn at random, and a small matrix for each that differs."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

from pydantic import Field, TypeAdapter, ValidationError

from backends import registry
from backends.base import Arithmetic
from gate import asking, plan, runner
from gate.document import unknown
from gate.draw import draw
from gate.matrix import Expect, Matrix
from gate.model import BOTH_REFUSE, Cell, Result, Run, Status
from gate.plan import Product
from gate.shrink import shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from backends.base import Backend, Clip, Feature, Options, Scores
    from gate.asking import Ask, Pending
    from gate.draw import Draw

REFERENCE = "cpu"
CANDIDATES = ("opencl:pocl", "libvmaf")
"""What every desk can have."""
MOST_CELLS = 100_000  # of one seed

# One fault fails many cells.
REPRODUCERS = tuple(f"reproducer-{number}.yaml" for number in (1, 2, 3))
TRIES = 150  # to simplify one cell; the slowest candidate needs a fifth of a second for each


@dataclass(frozen=True)
class Drawing:
    """Cells that are drawn at random, by what draws them again.

    Attributes:
        seed: any integer.
        cells: how many are drawn, before candidates.
        candidates: backends, each of which runs the cells whose arithmetic it has.
    """

    seed: int
    cells: Annotated[int, Field(ge=1, le=MOST_CELLS)]
    candidates: Annotated[tuple[str, ...], Field(min_length=1)]

    @classmethod
    def told(cls, facts: Mapping[str, str]) -> Self:
        """Return what a report says that its cells were drawn by.

        Args:
            facts: of the report's matrix, by name; they may come from anybody.

        Raises:
            ValueError: they draw nothing, or other cells than the report's; one sentence.
        """
        names = facts.get("candidates", "").split()
        allowed = [name for name in registry.backend_names() if name != REFERENCE]
        for name in names:
            if name not in allowed:
                raise ValueError(unknown("candidate", name, allowed))
        try:
            drawing: Self = TypeAdapter(cls).validate_python({**facts, "candidates": names})
        except ValidationError as error:
            first = error.errors()[0]
            message = f"{first['loc'][0]}: {first['msg']}; it is no report of parity-gate"
            raise ValueError(message) from error
        if drawing.matrix.sha256 != facts.get("sha256"):
            broken = "".join(f"; {module}: {error}" for module, error in registry.broken().items())
            message = (
                f"seed {drawing.seed} draws cells of sha256 {drawing.matrix.sha256} here, which "
                f"are not the report's; repeat them with the version that drew them{broken}"
            )
            raise ValueError(message)
        return drawing

    @cached_property
    def matrix(self) -> Matrix:
        """The cells as a matrix without a file."""
        return matrix_of(self.seed, self.cells, self.candidates)

    @cached_property
    def planned(self) -> tuple[Cell, ...]:
        """Every cell, in the order in which the runner wants them."""
        return plan.plan(self.matrix)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command line that draws them."""
        named = () if self.candidates == CANDIDATES else self.candidates
        words = (word for name in named for word in ("--candidate", name))
        return ("fuzz", f"--cells={self.cells}", f"--seed={self.seed}", *words)


def matrix_of(seed: int, cells: int, candidates: tuple[str, ...]) -> Matrix:
    """Return the first `cells` cells of a seed, on each candidate that has their arithmetic."""
    draws = (draw(seed, index) for index in range(cells))
    drawn = {"seed": str(seed), "cells": str(cells), "candidates": " ".join(candidates)}
    return replace(_matrix(f"fuzz --seed {seed}", draws, candidates), drawn=drawn)


class Kept:
    """Opens backends that stay open from one run to the next."""

    def __init__(self, open_backend: Callable[[str], Backend]) -> None:
        """Open nothing yet."""
        self._open_backend = open_backend
        self._stack = ExitStack()
        self._opened: dict[str, Backend] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close every backend."""
        self._stack.close()

    def __call__(self, name: str) -> Backend:
        """Return the backend, to be closed by this object only.

        Raises:
            Unavailable: it is not on this machine.
        """
        if name not in self._opened:
            self._opened[name] = self._stack.enter_context(closing(self._open_backend(name)))
        return _Lent(self._opened[name])


class _Lent:
    """A backend that stays open when it is closed."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def name(self) -> str:
        return self._backend.name

    def facts(self) -> Mapping[str, str]:
        return self._backend.facts()

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        return self._backend.compute(feature, arithmetic, options, clip)

    def begin(self, ask: Ask) -> Pending:
        return asking.beginning(self._backend)(ask)

    def forget(self) -> None:
        asking.forget(self._backend)

    def close(self) -> None:
        pass


class Reproducer(NamedTuple):
    """A matrix file of one small cell that differs as a drawn one does."""

    name: str
    text: str
    failed: str  # id of the drawn cell
    command: str

    def render(self, _: Run) -> str:
        """Return the file's text."""
        return self.text


def without_agreed_refusals(run: Run) -> Run:
    """Return the run with a SKIP for each drawn cell whose scores both sides have and refuse.

    A matrix declares such a cell; who draws cannot know it beforehand.
    """
    results = (
        replace(result, status=Status.SKIP) if result.reason.startswith(BOTH_REFUSE) else result
        for result in run.results
    )
    return replace(run, results=tuple(results))


def reproduce(
    run: Run, seed: int, backends: Kept, command: Callable[[str], str]
) -> tuple[Run, list[Reproducer]]:
    """Find small reproducers for some of the cells that differ, those of small pictures first.

    Args:
        run: of a matrix that `matrix_of` made; an interrupted one gets no reproducers.
        seed: the matrix's.
        backends: those of the run.
        command: tells how to run a reproducer, from its name.

    Returns:
        The run, in which results name their reproducers, and these. Ctrl-C ends the search: the
        run is then an interrupted one, and has what was found so far.
    """
    differing = [] if run.interrupted else [r for r in run.results if r.status is Status.FAIL]
    differing.sort(key=lambda result: _samples(result.cell))
    found: list[Reproducer] = []
    try:
        for name, result in zip(REPRODUCERS, differing, strict=False):
            text = _small(result.cell, seed, backends)
            found.append(Reproducer(name, text, result.cell.id, command(name)))
    except KeyboardInterrupt:
        run = replace(run, interrupted=True)
    commands = {reproducer.failed: reproducer.command for reproducer in found}
    results = (_explained(result, commands.get(result.cell.id)) for result in run.results)
    return replace(run, results=tuple(results)), found


def _samples(cell: Cell) -> int:
    return cell.width * cell.height * cell.frames


def _explained(result: Result, command: str | None) -> Result:
    return replace(result, detail=f"small reproducer: {command}") if command else result


def _small(cell: Cell, seed: int, backends: Kept) -> str:
    """Return a matrix file of one cell, as small as can be, that differs as `cell` does."""

    def differs(drawn: Draw) -> bool:
        return _differs(_matrix("simplified", [drawn], (cell.candidate,)), backends)

    small = shrink(draw(seed, cell.line - 1), differs, TRIES)
    about = f"Differs as {cell.id} of seed {seed}, and is as small as was found."
    return as_file(small, cell.reference, cell.candidate, about)


def as_file(drawn: Draw, reference: str, candidate: str, about: str) -> str:
    """Return a matrix file of one cell; `about` becomes its comment, one line."""
    entry = {
        "feature": drawn.feature,
        "reference": reference,
        "candidate": candidate,
        "dialect": drawn.dialect,
        "conclusion": drawn.conclusion,
        "fixture": drawn.fixture_name,
        "options": drawn.options,
    }
    return f"""\
# {about}
version: 1
fixtures:
  {drawn.fixture_name}: {json.dumps(drawn.fixture)}
include:
  - {json.dumps(entry)}
"""


def _matrix(title: str, draws: Iterable[Draw], candidates: tuple[str, ...]) -> Matrix:
    """Return a matrix without a file."""
    listed = tuple(draws)
    products = (_product(drawn, candidates) for drawn in listed)
    spelled = repr((listed, candidates))
    return Matrix(
        path=Path(title),
        sha256=hashlib.sha256(spelled.encode()).hexdigest(),
        version=1,
        fixtures={drawn.fixture_name: drawn.declared() for drawn in listed},
        products=(),
        include=tuple(product for product in products if product.candidates),
        expect=Expect(),
    )


def _product(drawn: Draw, candidates: tuple[str, ...]) -> Product:
    feature, options = registry.features()[drawn.feature], drawn.chosen()
    arithmetic = Arithmetic(drawn.dialect, drawn.conclusion)
    return Product(
        loc=("include", drawn.index),
        line=drawn.index + 1,  # there is no file; `_small` draws the cell again by it
        feature=drawn.feature,
        reference=REFERENCE,
        candidates=tuple(
            name
            for name in candidates
            if not registry.refusal(name, feature, arithmetic, options)
            and not registry.deviates(name, feature, arithmetic, options)
        ),
        dialects=(drawn.dialect,),
        conclusions=(drawn.conclusion,),
        options=(options,),
        fixtures=(drawn.fixture_name,),
    )


def _differs(matrix: Matrix, backends: Kept) -> bool:
    cells = plan.plan(matrix)
    blank = runner.begun(matrix, cells, planned=len(cells), command="")
    run = runner.run(matrix, blank, open_backend=backends, progress=runner.Progress())
    if run.interrupted:
        raise KeyboardInterrupt
    return run.count(Status.FAIL) > 0
