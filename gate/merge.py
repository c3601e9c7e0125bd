"""Puts the shards of one run together again, or says why they are not that."""

from __future__ import annotations

import hashlib
import reprlib
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from gate import compare, control, sections, shards
from gate.model import Status, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from gate.model import Cell, ReferenceScores, Result, Run, Shard

_KIND = attrgetter("feature", "dialect", "conclusion")

# What the program itself is: its facts, and how they are told.
_GATE = {"parity-gate": "version of parity-gate", "sources": "sources of parity-gate"}

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = 100
_SHOWN.maxlist = _SHOWN.maxtuple = 20


class NotMergeable(Exception):  # noqa: N818 - reads as what happened
    """Reports are not the shards of one run; `problems` holds every sentence about them."""

    def __init__(self, problems: Iterable[str]) -> None:
        """Keep all problems; the message is one per line."""
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class _Part(NamedTuple):
    file: str
    run: Run
    shard: Shard

    @property
    def name(self) -> str:
        return f"shard {self.shard.index}/{self.shard.count}"

    @property
    def cells(self) -> list[Cell]:
        return [result.cell for result in self.run.results]


def merge(reports: Sequence[tuple[str, Run]]) -> Run:
    """Return the run that its shards were divided from.

    Times apart it is the same as that run, where the shards' machines are the same; facts of
    machines that differ are listed once a shard.

    Args:
        reports: of every shard, each with the name of its file, in any order.

    Raises:
        NotMergeable: a shard is missing, there twice, or of another run.
    """
    parts = _parts(reports)
    for check in (_foreign, _incomplete, _misplaced, _contradictory):
        if problems := list(check(parts)):
            raise NotMergeable(problems)
    first = parts[0].run
    placed = chain.from_iterable(
        zip(part.shard.positions, part.run.results, strict=True) for part in parts
    )
    results = tuple(result for _, result in sorted(placed, key=lambda pair: pair[0]))
    sample = {name for part in parts for name in part.run.sample}
    named = (control.named(result.cell) for result in results)
    return replace(
        first,
        id=hashlib.sha256("\n".join(part.run.id for part in parts).encode()).hexdigest()[:16],
        results=results,
        references=_references(parts, results),
        missing=_missing(parts),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.run.notes)),
        environment=sections.united(
            {part.name: part.run.environment for part in parts},
            [result.cell for result in results],
        ),
        started=min(part.run.started for part in parts),
        seconds=sum(part.run.seconds for part in parts),
        interrupted=any(part.run.interrupted for part in parts),
        sample=tuple(dict.fromkeys(name for name in named if name in sample)),
        shard=None,
    )


def _parts(reports: Sequence[tuple[str, Run]]) -> list[_Part]:
    """Return the shards by their index.

    Raises:
        NotMergeable: there is none, or a report is of no shard that can be.
    """
    parts, problems = [], []
    for file, run in reports:
        if run.shard is None:
            problems.append(f"{file}: it is no shard; name reports of runs with --shard only")
            continue
        parts.append(_Part(file, run, run.shard))
        try:
            shards.parse(f"{run.shard.index}/{run.shard.count}")
        except ValueError as error:
            problems.append(f"{file}: {error}")
    if not reports:
        problems.append("no report was named; name the report of every shard")
    if problems:
        raise NotMergeable(problems)
    return sorted(parts, key=lambda part: part.shard.index)


def _foreign(parts: list[_Part]) -> Iterator[str]:
    """Yield in what shards differ that shards of one run have in common."""
    known: dict[str, tuple[object, str]] = {}
    for part in parts:
        for name, value in _common(part).items():
            other, file = known.setdefault(name, (value, part.file))
            if value != other:
                told = f"{name} is {_SHOWN.repr(value)}, and {_SHOWN.repr(other)} in {file}"
                yield f"{part.file}: {told}; name shards of one run only"
        if part.run.unfinished < len(part.run.results):
            for title, key in (("matrix", "sha256"), *(("gate", key) for key in _GATE)):
                if key not in part.run.environment.get(title, {}):
                    yield f"{part.file}: {title} {key} is missing; it is no whole report"
    yield from _unequal_notes(parts)


def _common(part: _Part) -> dict[str, object]:
    """Return what no two shards may have otherwise; what only some have is no difference."""
    run, environment = part.run, part.run.environment
    found: dict[str, object] = {
        "number of shards": part.shard.count,
        "number of selected cells": part.shard.selected,
        "number of planned cells": run.planned,
        "matrix": run.matrix,
        "selection": run.selection,
        "--require": run.required,
        "--rcp-table": run.rcp_table,
        "repeated run": run.rerun_of,
        "--repeat": run.repeat,
    }
    for title, facts in environment.items():
        if title.partition(" ")[0] in ("matrix", "feature", *sections.BY_NAME):
            deciding = filter(sections.decides, facts)
            found |= {f"{title}: {key}": facts[key] for key in deciding}
        if title.startswith("feature "):
            found[f"{title}: list of facts"] = sorted(facts)
    gate = environment.get("gate", {})
    return found | {_GATE[key]: gate[key] for key in _GATE if key in gate}


def _unequal_notes(parts: list[_Part]) -> Iterator[str]:
    """Yield notes that shards of the same arithmetic do not share, as that of a replayed table."""
    for note in dict.fromkeys(note for part in parts for note in part.run.notes):
        silent = [part for part in parts if note not in part.run.notes]
        explained = {_KIND(cell) for part in silent for cell in part.cells}
        for part in parts:
            if note in part.run.notes and silent and explained.issuperset(map(_KIND, part.cells)):
                others = ", ".join(other.file for other in silent if other.cells)
                yield f"{part.file}: note {note!r} is missing in {others}; run all of them alike"


def _incomplete(parts: list[_Part]) -> Iterator[str]:
    """Yield the shards that are missing or there twice."""
    files: dict[int, list[str]] = {}
    for part in parts:
        files.setdefault(part.shard.index, []).append(part.file)
    count = parts[0].shard.count
    for index in range(1, count + 1):
        found = files.get(index, [])
        if not found:
            yield f"shard {index}/{count} is missing; name its report too"
        if found[1:]:
            yield f"shard {index}/{count} is in {' and '.join(found)}; name one of them"


def _misplaced(parts: list[_Part]) -> Iterator[str]:
    """Yield what is wrong with the shards' places in the selection, and cells that are repeated."""
    selected = parts[0].shard.selected
    for part in parts:
        positions = part.shard.positions
        if len(positions) != len(part.run.results):
            cells = counted(len(part.run.results), "cell")
            yield f"{part.file}: {cells} at {counted(len(positions), 'position')}; run it again"
        if list(positions) != sorted(positions):
            yield f"{part.file}: its positions are not in ascending order; run it again"
        outside = [position for position in positions if not 0 <= position < selected]
        if outside:
            told = f"position {outside[0]} is outside of {counted(selected, 'selected cell')}"
            yield f"{part.file}: {told}; run it again"
    yield from _twice(parts, "position", lambda part: part.shard.positions)
    yield from _twice(parts, "cell", lambda part: [cell.id for cell in part.cells])
    named = chain.from_iterable(part.shard.positions for part in parts)
    taken = {position for position in named if 0 <= position < selected}
    if len(taken) < selected:
        free = next(position for position in range(selected) if position not in taken)
        gone = counted(selected - len(taken), "selected cell")
        yield f"no shard has {gone}, the first at position {free}; run all shards again"


def _twice(
    parts: list[_Part], word: str, keys: Callable[[_Part], Iterable[Hashable]]
) -> Iterator[str]:
    owners: dict[Hashable, str] = {}
    for part in parts:
        again: dict[str, list[Hashable]] = {}
        for key in keys(part):
            if key in owners:
                again.setdefault(owners[key], []).append(key)
            owners.setdefault(key, part.file)
        for file, repeated in again.items():
            more = f" and {len(repeated) - 1} more" if repeated[1:] else ""
            yield f"{part.file}: {word} {repeated[0]}{more} is in {file} too; run them again"


def _contradictory(parts: list[_Part]) -> Iterator[str]:
    """Yield reference scores that have no cell, or other bits than another shard's."""
    known: dict[tuple[str, ...], tuple[ReferenceScores, str]] = {}
    for part in parts:
        own = {cell.of for cell in part.cells}
        for scores in part.run.references:
            name = "/".join(scores.of)
            if scores.of not in own:
                yield f"{part.file}: reference scores of {name} without a cell; run it again"
            other, file = known.setdefault(scores.of, (scores, part.file))
            if not compare.same(other, scores):
                told = f"reference scores of {name} have other bits in {file}"
                yield f"{part.file}: {told}; run both on one kind of machine"


def _references(parts: list[_Part], results: Sequence[Result]) -> tuple[ReferenceScores, ...]:
    """Return the scores of every reference once, in the order in which one run computes them."""
    found: dict[tuple[str, ...], ReferenceScores] = {}
    for scores in (scores for part in parts for scores in part.run.references):
        if scores.cached or scores.of not in found:  # a run that took any from a cache says so
            found[scores.of] = scores
    order = dict.fromkeys(result.cell.of for result in results)
    return tuple(found[of] for of in order if of in found)


def _missing(parts: list[_Part]) -> tuple[str, ...]:
    """Return the required backends that are missing.

    One that is broken counts as missing only where no cell shows it, as for shards without its
    cells.
    """
    shown: set[str] = set()
    for part in parts:
        errors = [result for result in part.run.results if result.status is Status.ERROR]
        told = {f"{result.cell.candidate}: {result.reason}" for result in errors}
        told |= {result.reason.removeprefix("reference ") for result in errors}
        shown |= told.difference(part.run.missing)
    listed = dict.fromkeys(text for part in parts for text in part.run.missing)
    return tuple(text for text in listed if text not in shown)
