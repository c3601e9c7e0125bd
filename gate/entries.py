"""Entries for a file of known deviations: which cells one is about, and how a person writes it."""

from __future__ import annotations

import heapq
import json
import math
import re
import textwrap
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from gate.deviations import Entry
from gate.document import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gate.model import Cell, Result

WIDTH = 100  # columns


class Blessing(NamedTuple):
    """An entry for the file, and the ids of the cells that it is about."""

    entry: Entry
    cells: tuple[str, ...]


def grouped(
    failed: Iterable[Result], cells: Iterable[Cell], reason: str, owner: str, expires: str
) -> list[Blessing]:
    """Return an entry for each group of cells whose differences are in the same outputs.

    Args:
        failed: what to bless.
        cells: the whole plan.
        reason: of every entry, as owner and expires are.
        owner: who answers for it.
        expires: the last day, YYYY-MM-DD.
    """
    groups: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for result in failed:
        groups.setdefault((outputs_of(result), _not_finite(result)), []).append(result.cell.id)
    names = [cell.id for cell in cells]
    return [
        Blessing(
            Entry(
                cells=few_globs(own, names),
                outputs=list(outputs),
                reason=reason,
                owner=owner,
                expires=expires,
                not_finite=not_finite,
            ),
            tuple(own),
        )
        for (outputs, not_finite), own in groups.items()
    ]


def outputs_of(result: Result) -> tuple[str, ...]:
    """Return the outputs that differ, in the cell's order."""
    assert result.comparison is not None  # noqa: S101 - a FAIL has one, says record.py
    differing = {mismatch.score for mismatch in result.comparison.mismatches}
    return tuple(name for name in result.cell.outputs if name in differing)


def _not_finite(result: Result) -> bool:
    """Return whether a side is NaN, infinite or UNSET where they differ."""
    assert result.comparison is not None  # noqa: S101 - a FAIL has one, says record.py
    pairs = [(one.reference, one.candidate) for one in result.comparison.mismatches]
    return not all(side is not None and math.isfinite(side) for pair in pairs for side in pair)


def few_globs(wanted: Sequence[str], names: Iterable[str]) -> list[str]:
    """Return few globs that match the wanted cells and no other, as literal as they can be.

    A part of an id is literal or any; each glob is the one that matches most of what is left.

    Args:
        wanted: ids, in plan order.
        names: the ids of the whole plan.
    """
    others = {glob for name in set(names).difference(wanted) for glob in _globs(name)}
    covers: dict[str, set[str]] = {}
    for name in wanted:
        for glob in _globs(name):
            if glob not in others:
                covers.setdefault(glob, set()).add(name)
    queue = [(-len(covered), glob.count("*"), glob) for glob, covered in covers.items()]
    heapq.heapify(queue)
    left, chosen = set(wanted), []
    while left:
        _, stars, glob = heapq.heappop(queue)
        now = (-len(covers[glob] & left), stars, glob)
        if queue and now > queue[0]:  # others have taken some of its cells
            heapq.heappush(queue, now)
            continue
        chosen.append(glob)
        left -= covers[glob]
    order = {name: place for place, name in enumerate(wanted)}
    return sorted(chosen, key=lambda glob: min(order[name] for name in covers[glob]))


def _globs(name: str) -> Iterator[str]:
    return map("/".join, product(*((part, "*") for part in name.split("/"))))


def entry_text(entry: Entry, indent: str) -> str:
    """Return an entry as a person writes it, at the indent of the entries before it."""
    lines = ["- cells:", *(f"    - {_scalar(glob)}" for glob in entry.cells)]
    lines += ["  outputs:", *(f"    - {_scalar(name)}" for name in entry.outputs)]
    lines += ["  not_finite: true"] if entry.not_finite else []
    reason = f"  reason: {_scalar(entry.reason)}"
    if len(indent + reason) > WIDTH:
        room = WIDTH - len(f"{indent}    ")
        folded = textwrap.wrap(entry.reason, room, break_long_words=False, break_on_hyphens=False)
        reason = "\n".join(["  reason: >-", *(f"    {line}" for line in folded)])
    lines += [reason, f"  owner: {_scalar(entry.owner)}", f"  expires: {entry.expires}"]
    return textwrap.indent("\n".join(lines), indent) + "\n"


def _scalar(text: str) -> str:
    """Return a text as YAML has it, in quotes only where it would be something else."""
    bare = re.match(r"\w", text) and not re.search(r": | #|:$", text) and plain(text) == text
    return text if bare else json.dumps(text, ensure_ascii=False)
