"""Tests of shards: their names, what CI services say, and how cells are shared out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharding import make_cell, make_cells

from gate.matrix import load
from gate.model import Cell
from gate.plan import CELL, COST, SPOOL, computing, estimate, plan
from gate.shards import CHUNKS, from_environment, parse, share

MATRICES = Path(__file__).parents[2] / "matrices"
CELLS = make_cells()


@pytest.fixture(scope="module", params=["pr", "nightly"])
def planned(request: pytest.FixtureRequest) -> tuple[Cell, ...]:
    return plan(load(MATRICES / f"{request.param}.yaml"))


def group(cell: Cell) -> tuple[str, ...]:
    return (cell.fixture, *cell.id.split("/")[:3], cell.reference)


@pytest.mark.parametrize(
    ("text", "shard"), [("1/1", (1, 1)), ("2/8", (2, 8)), ("8/8", (8, 8)), ("256/256", (256, 256))]
)
def test_a_shard_is_named_by_index_and_count(text: str, shard: tuple[int, int]) -> None:
    assert parse(text) == shard


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0/8", "shard '0/8' does not exist; allowed: 1/8 to 8/8"),
        ("9/8", "shard '9/8' does not exist; allowed: 1/8 to 8/8"),
        ("1/0", "shard '1/0' is one of 0; allowed: 1 to 256 shards"),
        ("1/257", "shard '1/257' is one of 257; allowed: 1 to 256 shards"),
        ("", "shard '' does not have the form INDEX/COUNT; write for example 2/8"),
        ("2", "shard '2' does not have the form INDEX/COUNT; write for example 2/8"),
        ("x" * 99, f"shard {'x' * 80!r} does not have the form INDEX/COUNT; write for example 2/8"),
    ],
)
def test_a_shard_that_cannot_be_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^shard ") as caught:
        parse(text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("text", ["01/8", "1/08", "+1/8", "-1/8", " 1/8", "1/8\n", "1 / 8", "٢/8"])
def test_other_spellings_of_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="INDEX/COUNT"):
        parse(text)


@pytest.mark.parametrize(
    ("environ", "shard"),
    [
        ({}, None),
        ({"PARITY_GATE_SHARD": "2/3"}, "2/3"),
        ({"PARITY_GATE_SHARD": "1/1"}, "1/1"),
        ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "3"}, "1/3"),
        ({"CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "3"}, "3/3"),
        ({"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "3"}, "1/3"),
        ({"CIRCLE_NODE_INDEX": "2", "CIRCLE_NODE_TOTAL": "3"}, "3/3"),
        ({"BUILDKITE_PARALLEL_JOB": "0", "BUILDKITE_PARALLEL_JOB_COUNT": "2"}, "1/2"),
        ({"BUILDKITE_PARALLEL_JOB": "1", "BUILDKITE_PARALLEL_JOB_COUNT": "2"}, "2/2"),
        ({"CI_NODE_TOTAL": "1"}, None),
        ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "1"}, None),
        ({"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "1"}, None),
        ({"CI_NODE_TOTAL": "1", "CIRCLE_NODE_INDEX": "1", "CIRCLE_NODE_TOTAL": "2"}, "2/2"),
        ({"PARITY_GATE_SHARD": "2/3", "CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "9"}, "2/3"),
    ],
)
def test_ci_services_name_the_shard_of_a_job(environ: Mapping[str, str], shard: str | None) -> None:
    assert from_environment(environ) == shard


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"PARITY_GATE_SHARD": ""}, "PARITY_GATE_SHARD: shard '' does not have the form"),
        ({"PARITY_GATE_SHARD": "4/3"}, "PARITY_GATE_SHARD: shard '4/3' does not exist"),
        ({"CI_NODE_INDEX": "2"}, "CI_NODE_TOTAL is missing beside CI_NODE_INDEX='2'"),
        ({"CI_NODE_TOTAL": "2"}, "CI_NODE_INDEX is missing beside CI_NODE_TOTAL='2'"),
        ({"CI_NODE_INDEX": "x", "CI_NODE_TOTAL": "2"}, "CI_NODE_INDEX 'x' is no number of jobs"),
        ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "2x"}, "CI_NODE_TOTAL '2x' is no number of jobs"),
        ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": ""}, "CI_NODE_TOTAL '' is no number of jobs"),
        ({"CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "2"}, "CI_NODE_INDEX=0 and CI_NODE_TOTAL=2: "),
        ({"CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "2"}, "CI_NODE_INDEX=3 and CI_NODE_TOTAL=2: "),
        ({"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "1"}, "CI_NODE_INDEX=2 and CI_NODE_TOTAL=1: "),
        ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "0"}, "CI_NODE_INDEX=1 and CI_NODE_TOTAL=0: "),
        ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "257"}, "CI_NODE_INDEX=1 and CI_NODE_TOTAL=257: "),
        (
            {"CIRCLE_NODE_INDEX": "2", "CIRCLE_NODE_TOTAL": "2"},
            "CIRCLE_NODE_INDEX=2 and CIRCLE_NODE_TOTAL=2: shard '3/2' does not exist",
        ),
        (
            {"BUILDKITE_PARALLEL_JOB": "-1", "BUILDKITE_PARALLEL_JOB_COUNT": "2"},
            "BUILDKITE_PARALLEL_JOB '-1' is no number of jobs",
        ),
    ],
)
def test_a_broken_variable_is_refused_by_its_name(
    environ: Mapping[str, str], sentence: str
) -> None:
    with pytest.raises(ValueError, match=r"shard|SHARD|both") as caught:
        from_environment(environ)
    assert str(caught.value).startswith(sentence)


@given(
    st.lists(st.sampled_from(range(len(CELLS))), unique=True).map(sorted),
    st.integers(1, 40),
    st.data(),
)
def test_every_cell_is_in_exactly_one_shard_beside_those_of_its_reference(
    chosen: list[int], count: int, data: st.DataObject
) -> None:
    sizes = data.draw(st.dictionaries(st.sampled_from(["a", "b", "a.x"]), st.integers(17, 4000)))
    cells = [replace(CELLS[i], width=sizes.get(CELLS[i].fixture, 17)) for i in chosen]
    owners: dict[tuple[str, ...], int] = {}
    found: list[int] = []
    for index in range(1, count + 1):
        shard, own = share(cells, index, count)
        assert (shard.index, shard.count, shard.selected) == (index, count, len(cells))
        assert list(shard.positions) == sorted(shard.positions)
        assert own == tuple(cells[position] for position in shard.positions)
        assert all(owners.setdefault(group(cell), index) == index for cell in own)
        found += shard.positions
    assert sorted(found) == list(range(len(cells)))


def test_the_shards_of_a_selection_never_change() -> None:
    cells = [replace(cell, width=3000 if cell.fixture == "b" else 17) for cell in CELLS]
    # Positions 0 to 15 are the large fixture's, two for each reference.
    assert [share(cells, index, 3)[0].positions for index in (1, 2, 3)] == [
        (2, 3, 8, 9, 12, 13, 14, 15, *range(48, 56)),
        (6, 7, *range(16, 24), *range(32, 40), *range(56, 64)),
        (0, 1, 4, 5, 10, 11, *range(24, 32), *range(40, 48)),
    ]


@pytest.mark.parametrize("count", [2, 4, 8])
def test_shards_cost_the_same_and_rarely_open_a_fixture_twice(
    planned: tuple[Cell, ...], count: int
) -> None:
    shared = [share(planned, index, count)[1] for index in range(1, count + 1)]
    assert max(map(computing, shared)) < 1.01 * sum(map(computing, shared)) / count
    # Where PoCL alone is there, too.
    assert max(map(estimate, shared)) < 1.07 * sum(map(estimate, shared)) / count
    opened = sum(len({cell.fixture for cell in cells}) for cells in shared)
    assert opened < len({cell.fixture for cell in planned}) + CHUNKS * count


def test_more_shards_than_references_leave_some_empty() -> None:
    cells = [make_cell("a", "cuda"), make_cell("a", "opencl:pocl"), make_cell("b", "cuda")]
    positions = [share(cells, index, 4)[0].positions for index in range(1, 5)]
    assert positions == [(0, 1), (2,), (), ()]


def test_a_selection_of_declared_skips_is_shared_out_too() -> None:
    cells = [replace(cell, skip="no such device") for cell in CELLS]
    positions = [p for index in (1, 2) for p in share(cells, index, 2)[0].positions]
    assert sorted(positions) == list(range(len(cells)))


def test_a_selection_without_cells_has_empty_shards() -> None:
    assert [share((), index, 2)[1] for index in (1, 2)] == [(), ()]


def test_what_cells_cost_counts_a_fixture_once_and_a_skip_nothing() -> None:
    cells = [make_cell("a", "cuda"), make_cell("a", "opencl:pocl"), make_cell("b", skip="why")]
    samples = 17 * 17 * 2
    expected = SPOOL * samples + 2 * (CELL + COST * samples)
    assert f"{computing(cells):.9f}" == f"{expected:.9f}"
    assert computing(cells[2:]) == 0
