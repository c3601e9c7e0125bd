"""What a run takes from the reference cache, and what it never believes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from runner_desk import Desk, make_cell, scores

from backends.base import Refused, Scores
from gate import control, runner
from gate.cache import REPLAYED, ReferenceCache
from gate.model import Cell, Run, Status
from gate.opening import Facts


@dataclass
class Shelf:
    """A cache in memory; `asked` has the facts of each key."""

    held: dict[str, Scores] = field(default_factory=dict)
    asked: list[Mapping[str, Facts]] = field(default_factory=list)
    known: bool = True

    def key(self, cell: Cell, clip_sha256: object, facts: Mapping[str, Facts]) -> str | None:
        self.asked.append(facts)
        return f"{control.named(cell)} {clip_sha256}" if self.known else None

    def load(self, key: str) -> Scores | None:
        return self.held.get(key)

    def store(self, key: str, found: Scores) -> None:
        assert key not in self.held
        self.held[key] = found

    def forget(self, key: str) -> None:
        self.held.pop(key, None)


def run(desk: Desk, shelf: Shelf, *cells: Cell, sample: tuple[str, ...] = ()) -> Run:
    desk.log.clear()
    desk.cache = cast("ReferenceCache", shelf)
    return desk.run(*cells, sample=sample)


def flipped() -> Scores:
    found = scores()
    found.values.view(np.uint64).flat[0] ^= np.uint64(1)
    return found


def test_a_reference_is_computed_once_and_then_taken_from_the_cache(desk: Desk) -> None:
    shelf, cells = Shelf(), (make_cell(), make_cell("other"), make_cell(gain=2))
    first = run(desk, shelf, *cells)
    assert desk.logged("compute").count("compute cpu") == len(shelf.held) == 2
    assert [reference.cached for reference in first.references] == [False] * 2
    second = run(desk, shelf, *cells)
    assert "compute cpu" not in desk.logged("compute")
    assert [reference.cached for reference in second.references] == [True] * 2
    assert [replace(one, cached=False) for one in second.references] == [*first.references]
    assert [result.status for result in second.results] == [Status.PASS] * 3
    assert [result.reference_seconds for result in second.results] == [0] * 3


def test_a_candidate_that_differs_fails_against_a_cached_reference(desk: Desk) -> None:
    shelf = Shelf()
    run(desk, shelf, make_cell())
    desk.backends["good"].work = lambda _: flipped()
    (result,) = run(desk, shelf, make_cell()).results
    assert result.status is Status.FAIL


def test_what_the_cache_has_is_controlled_like_a_reference(desk: Desk) -> None:
    cell = make_cell()
    shelf = Shelf()
    run(desk, shelf, cell)
    shelf.held = {key: flipped() for key in shelf.held}
    desk.backends["good"].work = lambda _: flipped()
    (result,) = run(desk, shelf, cell, sample=(control.named(cell),)).results
    assert result.status is Status.NONDETERMINISTIC
    assert result.reason.startswith("reference cpu ")
    assert result.reason.endswith(runner.CACHED)
    assert shelf.held == {}


def test_the_scores_of_a_reference_that_moves_are_not_kept(desk: Desk) -> None:
    shelf, found = Shelf(), iter((scores(), flipped(), scores(), scores()))
    desk.backends["cpu"].work = lambda _: next(found)
    (result,) = run(desk, shelf, make_cell(), sample=(control.named(make_cell()),)).results
    assert result.status is Status.NONDETERMINISTIC
    assert not result.reason.endswith(runner.CACHED)
    assert shelf.held == {}


def test_a_candidate_is_red_where_the_cache_is_wrong_and_the_reference_is_blamed(
    desk: Desk,
) -> None:
    shelf = Shelf()
    run(desk, shelf, make_cell())
    shelf.held = {key: flipped() for key in shelf.held}
    (result,) = run(desk, shelf, make_cell()).results
    assert result.status is Status.NONDETERMINISTIC
    assert result.reason.endswith(runner.CACHED)


def test_scores_of_another_structure_are_an_error(desk: Desk) -> None:
    shelf = Shelf()
    run(desk, shelf, make_cell())
    short = Scores(scores().names, scores().values[1:], scores().unset)
    shelf.held = dict.fromkeys(shelf.held, short)
    (result,) = run(desk, shelf, make_cell()).results
    assert result.status is Status.ERROR
    assert result.reason.startswith("reference cpu: reference: the values end before frame 2")


def test_what_cannot_be_named_is_computed_and_not_kept(desk: Desk) -> None:
    shelf = Shelf(known=False)
    assert [reference.cached for reference in run(desk, shelf, make_cell()).references] == [False]
    assert shelf.held == {}


def test_a_refusal_is_not_kept(desk: Desk) -> None:
    shelf = Shelf()
    desk.errors["compute cpu"] = Refused("frame 0 has no result")
    assert run(desk, shelf, make_cell()).results[0].status is Status.ERROR
    assert shelf.held == {}


def test_the_key_is_made_of_the_whole_environment_and_the_replayed_table(desk: Desk) -> None:
    shelf = Shelf()
    found = run(desk, shelf, make_cell())
    expected = {title: facts for title, facts in found.environment.items() if title != "fixtures"}
    assert shelf.asked == [{**expected, REPLAYED: {"sha256": "none"}}]
