"""Puts the facts of several shards together, as an unsharded run lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gate import plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gate.model import Cell

    Facts = Mapping[str, str]
    Environment = Mapping[str, Facts]
    Ranks = Mapping[str, Mapping[str, int]]  # of names by axis

BY_NAME = {"kernels": "feature", "fixtures": "fixture"}
"""Sections with facts by name, of which a shard has those of its cells; and the names' axis."""

NAMES_SHARED = "names shared by option sets"

# An unsharded run's sections by the first words of their titles, in its order.
ORDER = (
    *("gate", "host", "matrix", "warnings", "names", "feature", "kernels"),
    *("reference", "candidate", "required", "fixtures"),
)

_CLOSING = ": closing failed"


def decides(key: str) -> bool:
    """Return whether a fact of a fixture is more than trouble with a temporary file."""
    return not key.endswith(_CLOSING)


def united(environments: Mapping[str, Environment], cells: Sequence[Cell]) -> Environment:
    """Return one environment: what all have alike once, what differs once for each shard.

    Args:
        environments: of every shard, by the shard's name.
        cells: of all shards, in plan order.
    """
    ranks = _ranks(cells)
    titles = {title: None for environment in environments.values() for title in environment}
    sections: dict[str, Facts] = {}
    for title in sorted(titles | {NAMES_SHARED: None}, key=lambda title: _place(title, ranks)):
        found = {name: facts[title] for name, facts in environments.items() if title in facts}
        sections |= _section(title, _beyond_roles(title, found, environments), cells, ranks)
    return sections


def _section(
    title: str, found: Mapping[str, Facts], cells: Sequence[Cell], ranks: Ranks
) -> dict[str, Facts]:
    if title == NAMES_SHARED:  # a shard knows of no other's option sets
        shared = plan.shared_names(cells)
        return {title: shared} if shared else {}
    if title in BY_NAME:
        return {title: _by_name(found, ranks[BY_NAME[title]])}
    first = next(iter(found.values()), None)
    if first is not None and all(facts == first for facts in found.values()):
        return {title: first}
    return {f"{name} {title}": facts for name, facts in found.items()}


def _by_name(found: Mapping[str, Facts], ranks: Mapping[str, int]) -> Facts:
    """Return the facts of all shards, in the order of the cells that need them."""
    facts: dict[str, str] = {}
    for name, own in found.items():
        for key, text in own.items():
            if facts.setdefault(key, text) != text:  # trouble only; `merge` refuses the rest
                facts[f"{key} in {name}"] = text
    return {key: facts[key] for key in sorted(facts, key=lambda key: _rank(key, ranks))}


def _rank(key: str, ranks: Mapping[str, int]) -> int:
    """Return the rank of a fact's feature or fixture: of `a`, `a.ref`, `a: closing failed`."""
    names = (key.partition(":")[0], key.rpartition(".")[0])
    return next((ranks[name] for name in names if name in ranks), len(ranks))


def _beyond_roles(
    title: str, found: Mapping[str, Facts], environments: Mapping[str, Environment]
) -> Mapping[str, Facts]:
    """Return what is found, less a required backend that another shard's cells use alike."""
    kind, _, backend = title.partition(" ")
    if kind != "required":
        return found
    roles = (f"reference {backend}", f"candidate {backend}")
    used = [facts[role] for facts in environments.values() for role in roles if role in facts]
    return {name: facts for name, facts in found.items() if facts not in used}


def _place(title: str, ranks: Ranks) -> tuple[int, int]:
    kind, _, name = title.partition(" ")
    first = ORDER.index(kind) if kind in ORDER else len(ORDER)
    return first, ranks.get(kind, {}).get(name, 0)


def _ranks(cells: Sequence[Cell]) -> Ranks:
    """Return the order in which names appear in the cells, by axis."""
    axes = ("feature", "reference", "candidate", "fixture")
    names = {axis: dict.fromkeys(getattr(cell, axis) for cell in cells) for axis in axes}
    return {axis: {name: rank for rank, name in enumerate(names[axis])} for axis in axes}
