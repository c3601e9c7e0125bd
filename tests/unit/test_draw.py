"""Tests of what is drawn at random: repeatable, allowed, and everything that can be drawn is."""

from __future__ import annotations

import random
from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import BaseModel, Field

from backends import registry
from backends.base import CONCLUSIONS, Arithmetic
from gate import fuzz, plan
from gate.draw import Draw, draw, values_of
from gate.fixtures import generators

FEATURES = registry.features()
FIELDS = {
    (feature.name, name): field
    for feature in FEATURES.values()
    for name, field in feature.options.model_fields.items()
}
NUMBERS = [key for key, field in FIELDS.items() if field.annotation in (int, float)]
# libvmaf refuses an eye too near, so the low ends cannot be had together, and one not at all.
NEAR_THE_EYE = {
    ("integer_adm", "adm_ref_display_height"): 200,
    ("integer_adm", "adm_norm_view_dist"): 1,
}
FLAGS = [key for key, field in FIELDS.items() if field.annotation is bool and key[1] != "debug"]


@pytest.fixture(scope="module")
def draws() -> list[Draw]:
    return [draw(1, index) for index in range(4000)]


def test_a_seed_draws_the_same_cells_each_time(draws: list[Draw]) -> None:
    assert [draw(1, index) for index in range(50)] == draws[:50]


def test_another_seed_draws_other_cells(draws: list[Draw]) -> None:
    others = [draw(2, index) for index in range(50)]
    assert all(one.fixture != other.fixture for one, other in zip(others, draws, strict=False))


def test_a_longer_run_begins_with_the_shorter_one() -> None:
    candidates = ("opencl:pocl", "libvmaf")
    short, long = (fuzz.matrix_of(7, cells, candidates) for cells in (10, 40))
    assert long.include[:10] == short.include
    assert plan.plan(long)[: len(plan.plan(short))] == plan.plan(short)


def test_a_drawn_matrix_has_no_mistake() -> None:
    matrix = fuzz.matrix_of(3, 300, ("opencl:pocl", "libvmaf"))
    cells, problems = plan.expand(matrix.include, matrix.fixtures)
    assert problems == []
    assert plan.unused(matrix.include, cells, matrix.fixtures) == []
    assert len({cell.id for cell in cells}) == len(cells)
    assert {cell.candidate for cell in cells} == {"opencl:pocl", "libvmaf"}


def test_a_candidate_runs_the_arithmetic_that_it_has_only() -> None:
    matrix = fuzz.matrix_of(3, 300, ("opencl:pocl", "libvmaf"))
    both, has = (
        {(c.dialect, c.conclusion) for c in plan.plan(matrix) if c.candidate == candidate}
        for candidate in ("opencl:pocl", "libvmaf")
    )
    dialects = [dialect for feature in FEATURES.values() for dialect in feature.dialects]
    assert both == {(dialect, rules) for dialect in dialects for rules in CONCLUSIONS}
    assert has == {("rcpss-single", "netflix")}


def test_a_candidate_that_deviates_by_itself_draws_nothing() -> None:
    cells = plan.plan(fuzz.matrix_of(3, 300, ("opencl:pocl", "libvmaf")))
    features = {cell.feature for cell in cells if cell.candidate == "libvmaf"}
    assert features == {"float_adm"}
    own = Arithmetic("netflix")
    feature = FEATURES["integer_adm"]
    assert registry.refusal("libvmaf", feature, own, feature.options()) == ""
    assert registry.deviates("libvmaf", feature, own, feature.options())
    assert not registry.deviates("opencl:pocl", feature, own, feature.options())


def test_a_cell_without_a_candidate_is_none() -> None:
    matrix = fuzz.matrix_of(3, 300, ("libvmaf",))
    assert 0 < len(matrix.include) < 150
    assert len(plan.plan(matrix)) == len(matrix.include)


def test_the_name_of_a_fixture_tells_its_place_and_its_format() -> None:
    fixture = {"generator": "noise", "width": 63, "height": 65, "bit_depth": 10}
    drawn = Draw(17, fixture, "float_adm", "ieee-double", "netflix", {})
    assert drawn.fixture_name == "f0017_noise_63x65_10"


def test_everything_that_has_a_name_is_drawn(draws: list[Draw]) -> None:
    assert {drawn.fixture["generator"] for drawn in draws} == set(generators())
    assert {drawn.fixture["bit_depth"] for drawn in draws} == {8, 10, 12, 16}
    assert {drawn.fixture["frames"] for drawn in draws} == {1, 2, 3}
    assert {(drawn.feature, drawn.dialect) for drawn in draws} == {
        (feature.name, dialect) for feature in FEATURES.values() for dialect in feature.dialects
    }
    assert {drawn.conclusion for drawn in draws} == set(CONCLUSIONS)
    assert {(drawn.feature, name) for drawn in draws for name in drawn.options} == set(FIELDS)


def test_every_field_of_a_generator_is_drawn_and_left_out(draws: list[Draw]) -> None:
    for generator, model in generators().items():
        found = [drawn.fixture for drawn in draws if drawn.fixture["generator"] == generator]
        for name in model.model_fields.keys() - {"sha256"}:
            assert any(name in fixture for fixture in found), f"{generator}.{name}"
        for name, field in model.model_fields.items():
            if name != "frames" and not field.is_required():
                assert any(name not in fixture for fixture in found), f"{generator}.{name}"


def test_all_outputs_are_asked_for_in_every_cell(draws: list[Draw]) -> None:
    assert all(drawn.options["debug"] is True for drawn in draws)


@pytest.mark.parametrize("side", ["width", "height"])
def test_sizes_reach_their_ends_and_both_sides_of_every_power_of_two(
    draws: list[Draw], side: str
) -> None:
    sizes = {drawn.fixture[side] for drawn in draws}
    telling = {17, 18, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513}
    assert telling <= sizes
    assert (min(sizes), max(sizes) <= 700) == (17, True)
    assert max(sizes) > 600
    small = [drawn for drawn in draws if drawn.fixture[side] <= 100]
    assert len(small) > len(draws) / 2


def drawn_values(draws: list[Draw], key: tuple[str, str]) -> list[Any]:
    feature, name = key
    return [d.options[name] for d in draws if d.feature == feature and name in d.options]


@pytest.mark.parametrize("key", NUMBERS, ids="/".join)
def test_a_number_reaches_both_ends_of_its_range_and_its_middle(
    draws: list[Draw], key: tuple[str, str]
) -> None:
    values = drawn_values(draws, key)
    (low,) = (item.ge for item in FIELDS[key].metadata if hasattr(item, "ge"))
    (high,) = (item.le for item in FIELDS[key].metadata if hasattr(item, "le"))
    if key in NEAR_THE_EYE:
        assert min(values) < NEAR_THE_EYE[key]
        values.append(low)
    assert (min(values), max(values)) == (low, high)
    assert len(set(values)) > 100 or set(values) == set(range(low, high + 1))


@pytest.mark.parametrize("key", FLAGS, ids="/".join)
def test_a_flag_is_drawn_both_ways(draws: list[Draw], key: tuple[str, str]) -> None:
    assert set(drawn_values(draws, key)) == {True, False}


def test_numbers_are_those_that_libvmaf_computes_with(draws: list[Draw]) -> None:
    for drawn in draws[:300]:
        assert drawn.chosen().model_dump(exclude_unset=True) == drawn.options


def test_some_cells_have_hardly_any_option_and_some_have_most(draws: list[Draw]) -> None:
    numbers = sorted(len(drawn.options) - 1 for drawn in draws)
    assert numbers[len(draws) // 10] <= 1
    assert numbers[-len(draws) // 10] >= len(FIELDS) / len(FEATURES) / 3


class Kinds(BaseModel):
    given: str
    flag: bool
    word: Literal["a", "b"]
    label: Annotated[str, Field(min_length=1)] | None = None
    even: Annotated[int, Field(ge=-4, le=4, multiple_of=2)]
    inner: Annotated[float, Field(gt=0, lt=1)]
    free: int
    other: dict[str, int] | None = None


def test_values_of_every_kind_are_drawn_and_other_kinds_are_left_alone() -> None:
    chance = random.Random(1)  # noqa: S311 - repeatable, not secret
    drawn = [values_of(chance, Kinds, {"given": "x"}, 0.5) for _ in range(200)]
    assert {values["given"] for values in drawn} == {"x"}
    assert {values["word"] for values in drawn} == set(get_args(Literal["a", "b"]))
    assert {values["even"] for values in drawn} == {-4, -2, 0, 2, 4}
    assert all(0 < values["inner"] < 1 for values in drawn)
    assert min(values["free"] for values in drawn) < 0 < max(values["free"] for values in drawn)
    assert {"label" in values for values in drawn} == {True, False}
    assert not any("other" in values for values in drawn)


class Impossible(BaseModel):
    odd: Annotated[int, Field(ge=2, le=2, multiple_of=3)]


def test_a_model_that_takes_nothing_is_told_by_name() -> None:
    chance = random.Random(1)  # noqa: S311 - repeatable, not secret
    with pytest.raises(RuntimeError, match=r"Impossible refuses every value .* for odd"):
        values_of(chance, Impossible, {}, 0.5)
