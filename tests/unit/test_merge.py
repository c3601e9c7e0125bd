"""Tests of merging: shards become the run that they were divided from, or are refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharding import (
    BROKEN,
    FALLBACK,
    STARTED,
    environment_of,
    make_cell,
    make_cells,
    shard_of,
    whole_run,
)

from gate.merge import NotMergeable, merge
from gate.model import Result, Run, Status
from gate.shards import share

CELLS = make_cells()
WHOLE = whole_run(CELLS)
FIRST = "float_adm/rcpss-double/netflix/debug/b/cpu"  # what the first reference scores are of
THIRDS = (range(30), range(30, 50), range(50, 64))

FACTS = ["compiler", "flags"]  # of a feature
EVEN, ODD = range(0, 64, 2), range(1, 64, 2)  # every reference is in both

Change = Callable[[Run], Run]


def reports(
    *shards: Sequence[int], change: Change | None = None, whole: Run = WHOLE
) -> list[tuple[str, Run]]:
    """What the shards' files hold; the second shard's run is changed."""
    runs = [shard_of(whole, i, len(shards), places) for i, places in enumerate(shards, 1)]
    if change is not None:
        runs[1] = change(runs[1])
    return [(f"{index}.json", run) for index, run in enumerate(runs, 1)]


def refusal(found: Sequence[tuple[str, Run]]) -> list[str]:
    with pytest.raises(NotMergeable) as caught:
        merge(found)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def timeless(run: Run) -> str:
    """Everything but id and times, bit for bit and in order."""
    return repr(replace(run, id="", started="", seconds=0.0))


def with_facts(title: str, key: str, text: str) -> Change:
    def change(run: Run) -> Run:
        facts = {**run.environment.get(title, {}), key: text}
        return replace(run, environment={**run.environment, title: facts})

    return change


def without(title: str, key: str) -> Change:
    def change(run: Run) -> Run:
        facts = {name: text for name, text in run.environment[title].items() if name != key}
        return replace(run, environment={**run.environment, title: facts})

    return change


def with_shard(**fields: object) -> Change:
    def change(run: Run) -> Run:
        assert run.shard is not None
        return replace(run, shard=replace(run.shard, **fields))  # type: ignore[arg-type]

    return change


def with_run(**fields: object) -> Change:
    return lambda run: replace(run, **fields)  # type: ignore[arg-type]  # any field, by its name


@settings(max_examples=60)
@given(st.lists(st.integers(1, 5), min_size=64, max_size=64), st.integers(5, 7), st.randoms())
def test_however_cells_are_shared_out_the_shards_make_the_whole_run(
    owners: list[int], count: int, random: Random
) -> None:
    shards = [[p for p in range(64) if owners[p] == index] for index in range(1, count + 1)]
    found = reports(*shards)
    random.shuffle(found)
    assert timeless(merge(found)) == timeless(WHOLE)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 40])
def test_what_share_divides_makes_the_whole_run(count: int) -> None:
    shards = [share(CELLS, index, count)[0].positions for index in range(1, count + 1)]
    assert timeless(merge(reports(*shards))) == timeless(WHOLE)


def test_seconds_are_added_and_the_earliest_start_counts() -> None:
    merged = merge(reports(*THIRDS))
    assert merged.seconds == 3
    assert merged.started == STARTED.replace("05", "56")


def test_the_id_follows_from_the_shards_ids_in_their_order() -> None:
    found = reports(*THIRDS)
    merged = merge(found)
    assert merged.id == merge(found[::-1]).id == "ad0e1ed9f9d0c624"
    assert merge(reports(*THIRDS, change=with_run(id="run 9"))).id != merged.id


def test_an_interrupted_shard_interrupts_the_merged_run() -> None:
    merged = merge(reports(*THIRDS, change=with_run(interrupted=True)))
    assert timeless(merged) == timeless(replace(WHOLE, interrupted=True))


def test_a_shard_that_was_killed_before_it_knew_anything_leaves_its_cells_unfinished() -> None:
    def killed(run: Run) -> Run:
        results = [Result(result.cell, Status.ERROR, "not finished") for result in run.results]
        return replace(
            run, results=tuple(results), references=(), missing=(), notes=(), environment={}
        )

    merged = merge(reports((0, 1, 6), range(2, 3), (3, 4, 5, *range(7, 64)), change=killed))
    assert merged.results[2].reason == "not finished"
    assert merged.count(Status.KNOWN) == WHOLE.count(Status.KNOWN) - 1


def test_no_report_is_refused() -> None:
    assert refusal([]) == ["no report was named; name the report of every shard"]


def test_a_run_that_is_no_shard_is_refused() -> None:
    assert refusal([*reports(*THIRDS), ("whole.json", WHOLE)]) == [
        "whole.json: it is no shard; name reports of runs with --shard only"
    ]


def test_missing_shards_are_named() -> None:
    found = reports(*THIRDS, ())
    assert refusal([found[1], found[3]]) == [
        "shard 1/4 is missing; name its report too",
        "shard 3/4 is missing; name its report too",
    ]


def test_even_an_empty_shard_must_be_there() -> None:
    found = reports(*THIRDS, ())
    assert refusal(found[:3]) == ["shard 4/4 is missing; name its report too"]


def test_a_shard_that_is_there_twice_is_refused() -> None:
    found = reports(*THIRDS)
    again = ("again.json", replace(found[2][1], id="run 9"))
    assert refusal([*found, again]) == ["shard 3/3 is in 3.json and again.json; name one of them"]


def test_a_shard_cannot_stand_for_another() -> None:
    found = reports(*THIRDS, change=with_shard(index=1))
    assert refusal(found) == [
        "shard 1/3 is in 1.json and 2.json; name one of them",
        "shard 2/3 is missing; name its report too",
    ]


@pytest.mark.parametrize("index", [0, 4])
def test_a_shard_that_cannot_be_is_refused(index: int) -> None:
    found = reports(*THIRDS, change=with_shard(index=index))
    sentence = f"2.json: shard '{index}/3' does not exist; allowed: 1/3 to 3/3"
    assert refusal(found) == [sentence]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (with_shard(count=4), "number of shards is 4, and 3"),
        (with_shard(selected=65), "number of selected cells is 65, and 64"),
        (with_run(planned=98), "number of planned cells is 98, and 99"),
        (with_run(matrix="n.yaml"), "matrix is 'n.yaml', and 'm.yaml'"),
        (with_run(selection=()), "selection is (), and ('*adm/*',)"),
        (with_run(required=()), "--require is (), and ('cuda', 'opencl:pocl')"),
        (with_run(rcp_table="amd-zen4"), "--rcp-table is 'amd-zen4', and ''"),
        (with_run(rerun_of="0123"), "repeated run is '0123', and ''"),
        (with_facts("matrix", "sha256", "ac"), "matrix: sha256 is 'ac', and 'ab'"),
        (
            with_facts("matrix", "deviations", "d.yaml sha256 ce"),
            "matrix: deviations is 'd.yaml sha256 ce', and 'd.yaml sha256 cd'",
        ),
        (with_facts("gate", "parity-gate", "0.2"), "version of parity-gate is '0.2', and '0.1.0'"),
        (with_facts("gate", "sources", "eg"), "sources of parity-gate is 'eg', and 'ef'"),
        (
            with_facts("feature float_adm", "flags", "-O3"),
            "feature float_adm: flags is '-O3', and '-O2'",
        ),
        (
            with_facts("feature float_adm", "powf", "another"),
            f"feature float_adm: list of facts is {[*FACTS, 'powf']}, and {FACTS}",
        ),
        (
            with_facts("kernels", "integer_adm", "other"),
            "kernels: integer_adm is 'other', and 'kernels of integer_adm'",
        ),
        (with_facts("fixtures", "a.x.ref", "other"), "fixtures: a.x.ref is 'other', and 'a.x ref'"),
    ],
)
def test_a_shard_of_another_run_is_refused(change: Change, told: str) -> None:
    found = reports(*THIRDS, change=change)
    assert refusal(found) == [f"2.json: {told} in 1.json; name shards of one run only"]


def test_everything_foreign_is_told_at_once() -> None:
    found = reports(*THIRDS, change=with_run(planned=98, matrix="n.yaml"))
    found[2] = ("3.json", replace(found[2][1], planned=97))
    assert [problem.partition(" is ")[0] for problem in refusal(found)] == [
        "2.json: number of planned cells",
        "2.json: matrix",
        "3.json: number of planned cells",
    ]


@pytest.mark.parametrize(
    ("title", "key"), [("matrix", "sha256"), ("gate", "parity-gate"), ("gate", "sources")]
)
def test_a_shard_must_say_what_it_ran(title: str, key: str) -> None:
    found = reports(*THIRDS, change=without(title, key))
    assert refusal(found) == [f"2.json: {title} {key} is missing; it is no whole report"]


def test_a_note_that_shards_of_the_same_arithmetic_do_not_have_is_refused() -> None:
    found = reports(*THIRDS, change=with_run(notes=("replayed: zen",)))
    assert refusal(found) == [
        f"1.json: note {FALLBACK!r} is missing in 2.json; run all of them alike",
        f"3.json: note {FALLBACK!r} is missing in 2.json; run all of them alike",
        "2.json: note 'replayed: zen' is missing in 1.json, 3.json; run all of them alike",
    ]


def test_a_shard_of_another_arithmetic_needs_no_note() -> None:
    rcpss = [place for place, cell in enumerate(CELLS) if cell.dialect == "rcpss-double"]
    found = reports([place for place in range(64) if place not in rcpss], rcpss)
    assert (found[0][1].notes, found[1][1].notes) == ((), (FALLBACK,))
    assert merge(found).notes == (FALLBACK,)


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        (
            with_shard(positions=(29, 30, *range(32, 50))),
            [
                "2.json: position 29 is in 1.json too; run them again",
                "no shard has 1 selected cell, the first at position 31; run all shards again",
            ],
        ),
        (
            with_shard(positions=(*range(28, 48),)),
            [
                "2.json: position 28 and 1 more is in 1.json too; run them again",
                "no shard has 2 selected cells, the first at position 48; run all shards again",
            ],
        ),
        (
            with_shard(positions=(*range(31, 50), 64)),
            [
                "2.json: position 64 is outside of 64 selected cells; run it again",
                "no shard has 1 selected cell, the first at position 30; run all shards again",
            ],
        ),
        (
            with_shard(positions=(-1, *range(31, 50))),
            [
                "2.json: position -1 is outside of 64 selected cells; run it again",
                "no shard has 1 selected cell, the first at position 30; run all shards again",
            ],
        ),
        (
            with_shard(positions=(31, 30, *range(32, 50))),
            ["2.json: its positions are not in ascending order; run it again"],
        ),
        (
            with_shard(positions=(*range(30, 49),)),
            [
                "2.json: 20 cells at 19 positions; run it again",
                "no shard has 1 selected cell, the first at position 49; run all shards again",
            ],
        ),
        (
            lambda run: replace(run, results=(WHOLE.results[0], *run.results[1:])),
            [f"2.json: cell {CELLS[0].id} is in 1.json too; run them again"],
        ),
        (
            lambda run: replace(run, results=(run.results[1], *run.results[1:])),
            [f"2.json: cell {CELLS[31].id} is in 2.json too; run them again"],
        ),
    ],
)
def test_cells_that_are_missing_repeated_or_misplaced_are_refused(
    change: Change, sentences: list[str]
) -> None:
    assert refusal(reports(*THIRDS, change=change)) == sentences


def test_a_selection_larger_than_memory_is_only_counted() -> None:
    found = reports(*THIRDS)
    vast = [(file, with_shard(selected=10**18)(run)) for file, run in found]
    (sentence,) = refusal(vast)
    assert sentence.endswith(" the first at position 64; run all shards again")


def with_frame(*values: float | None) -> Change:
    """Replace the first frame of the run's first reference."""

    def change(run: Run) -> Run:
        first, *rest = run.references
        return replace(run, references=(replace(first, frames=(values, first.frames[1])), *rest))

    return change


@pytest.mark.parametrize("values", [(0.0, math.nan), (None, math.nan), (-0.0, None), (-0.0, 1.0)])
def test_reference_scores_of_two_shards_must_have_the_same_bits(
    values: tuple[float | None, ...],
) -> None:
    told = f"reference scores of {FIRST} have other bits in 1.json"
    found = reports(EVEN, ODD, change=with_frame(*values))
    assert refusal(found) == [f"2.json: {told}; run both on one kind of machine"]


def test_one_nan_equals_another() -> None:
    merged = merge(reports(EVEN, ODD, change=with_frame(-0.0, -float("nan"))))
    assert timeless(merged) == timeless(WHOLE)


def test_a_score_from_the_cache_is_no_other_and_is_told_of_the_whole_run() -> None:
    def cached(run: Run) -> Run:
        first, *rest = run.references
        return replace(run, references=(replace(first, cached=True), *rest))

    merged = merge(reports(EVEN, ODD, change=cached))
    assert merged.verdict.count(", 1 of 26 reference results from the cache") == 1
    assert merge(reports(ODD, EVEN, change=cached)).verdict == merged.verdict
    uncached = tuple(replace(scores, cached=False) for scores in merged.references)
    assert timeless(replace(merged, references=uncached)) == timeless(WHOLE)


def test_candidates_of_all_shards_are_computed_equally_often() -> None:
    whole = replace(WHOLE, repeat=30)
    assert merge(reports(*THIRDS, whole=whole)).repeat == 30
    sentence = "2.json: --repeat is 1, and 30 in 1.json; name shards of one run only"
    assert refusal(reports(*THIRDS, whole=whole, change=with_run(repeat=1))) == [sentence]


def test_reference_scores_without_a_cell_are_refused() -> None:
    own = WHOLE.references[-10]
    found = reports(*THIRDS, change=with_run(references=(own, WHOLE.references[0])))
    sentence = f"2.json: reference scores of {FIRST} without a cell; run it again"
    assert refusal(found) == [sentence]


def test_facts_of_machines_that_differ_are_listed_once_a_shard() -> None:
    merged = merge(reports(*THIRDS, change=with_facts("host", "processor", "Other CPU")))
    assert list(merged.environment)[:5] == [
        *("gate", "shard 1/3 host", "shard 2/3 host", "shard 3/3 host", "matrix")
    ]
    assert merged.environment["shard 2/3 host"] == {"processor": "Other CPU"}
    assert merged.environment["shard 3/3 host"] == {"processor": "Some CPU"}


def test_devices_that_differ_are_listed_once_a_shard_that_used_one() -> None:
    host_only = [place for place, cell in enumerate(CELLS) if cell.candidate == "opencl:pocl"]
    cuda = [place for place in range(64) if place not in host_only]
    change = with_facts("candidate cuda", "device", "another")
    merged = merge(reports(host_only, cuda[:9], cuda[9:], change=change))
    titles = [title for title in merged.environment if "cuda" in title]
    assert titles == ["shard 2/3 candidate cuda", "shard 3/3 candidate cuda"]


def test_a_section_of_one_shard_stays_under_its_name() -> None:
    merged = merge(reports(*THIRDS, change=with_facts("cache", "hits", "3")))
    assert list(merged.environment)[-1] == "cache"
    assert merged.environment["cache"] == {"hits": "3"}


def test_a_required_backend_is_listed_apart_where_it_is_another_device() -> None:
    cuda = [place for place, cell in enumerate(CELLS) if cell.candidate == "cuda"]
    pocl = [place for place in range(64) if place not in cuda]
    assert "required opencl:pocl" in reports(pocl, cuda)[1][1].environment
    change = with_facts("required opencl:pocl", "device", "another")
    merged = merge(reports(pocl, cuda, change=change))
    assert merged.environment["required opencl:pocl"] == {"device": "another"}


def test_trouble_with_the_same_fixture_in_two_shards_is_kept_of_both() -> None:
    def troubled(run: Run) -> Run:
        return with_facts("fixtures", "a.x: closing failed", f"no room for {run.id}")(run)

    found = [(file, troubled(run)) for file, run in reports(*THIRDS)]
    fixtures = merge(found).environment["fixtures"]
    assert list(fixtures)[:9] == [
        *("b.ref", "b.dist", "a.x.ref", "a.x.dist", "a.x: closing failed"),
        *("a.x: closing failed in shard 2/3", "a.x: closing failed in shard 3/3"),
        *("a.ref", "a.dist"),
    ]
    assert fixtures["a.x: closing failed in shard 3/3"] == "no room for run 3"


def broken(whole: Run, role: str) -> Run:
    """The run of a machine where PoCL is broken, which is required and used."""
    results = []
    for result in whole.results:
        reason = BROKEN if role == "reference" else BROKEN.partition(": ")[2]
        used = getattr(result.cell, role) == "opencl:pocl"
        told = f"reference {reason}" if role == "reference" else reason
        results.append(Result(result.cell, Status.ERROR, told) if used else result)
    return replace(whole, results=tuple(results), references=(), missing=())


@pytest.mark.parametrize("role", ["candidate", "reference"])
def test_a_broken_backend_is_not_missing_where_any_cell_shows_it(role: str) -> None:
    cells = [
        make_cell("a", "opencl:pocl")
        if role == "candidate"
        else make_cell(reference="opencl:pocl"),
        make_cell("b", "cuda"),
    ]
    whole = broken(whole_run(cells), role)
    found = reports([0], [1], whole=whole, change=with_run(missing=(BROKEN,)))
    assert merge(found).missing == ()


def test_an_absent_reference_stays_missing_beside_the_errors_that_show_it() -> None:
    whole = broken(whole_run([make_cell(reference="opencl:pocl"), make_cell("b")]), "reference")
    found = reports([0], [1], whole=replace(whole, missing=(BROKEN,)))
    assert merge(found).missing == (BROKEN,)


def test_a_backend_that_one_machine_misses_is_missing() -> None:
    change = with_run(missing=("cuda: no driver", "cuda: no such device"))
    merged = merge(reports(*THIRDS, change=change))
    assert merged.missing == ("cuda: no such device", "cuda: no driver")


def test_the_support_of_these_tests_divides_what_a_shard_knows() -> None:
    assert environment_of(CELLS[:2]) != environment_of(CELLS)
    assert len(WHOLE.references) == 26
    assert {result.status for result in WHOLE.results} == set(Status)
