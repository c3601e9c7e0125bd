"""Tests of the plan: which cells there are, in which order, and how they are selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from option_sets import ALL_OPTIONS

from backends import registry
from gate.matrix import load
from gate.model import Cell
from gate.plan import CELL, COST, KERNELS, SPOOL, START, estimate, plan, select, shared_names

MATRICES = Path(__file__).parents[2] / "matrices"
MATRIX = """\
version: 1
fixtures:
  b: {generator: noise, width: 17, height: 18, bit_depth: 8, frames: 2}
  a: {generator: scaled, width: 19, height: 17, bit_depth: 10}
matrix:
  - feature: float_adm
    candidates: [cuda]
    dialects: [rcpss-single, ieee-double]
    options: [{adm_bypass_cm: 1}, {}]
    fixtures: [a, b, "*"]
  - feature: float_adm
    candidates: ["opencl:pocl"]
    fixtures: [a]
    dialects: [rcpss-single]
    skip: [{cells: "*/a/*", reason: first}, {cells: "*", reason: second}]
include:
  - {feature: float_adm, dialect: rcpss-single, candidate: "opencl:intel", fixture: b}
  - {feature: float_adm, reference: cuda, candidate: "opencl:pocl", fixture: b,
     options: {debug: true, adm_p_norm: 3}}
"""


@pytest.fixture
def cells(tmp_path: Path) -> tuple[Cell, ...]:
    path = tmp_path / "m.yaml"
    path.write_text(MATRIX, "utf-8")
    return plan(load(path))


def test_cells_go_by_fixture_then_by_reference_then_by_candidate(cells: tuple[Cell, ...]) -> None:
    assert [cell.id for cell in cells] == [
        "float_adm/rcpss-single/bcm_1/b/cuda",
        "float_adm/rcpss-single/default/b/cuda",
        "float_adm/rcpss-single/default/b/opencl:intel",
        "float_adm/ieee-double/bcm_1/b/cuda",
        "float_adm/ieee-double/default/b/cuda",
        "float_adm/rcpss-double/debug/b/opencl:pocl",
        "float_adm/rcpss-single/bcm_1/a/cuda",
        "float_adm/rcpss-single/default/a/cuda",
        "float_adm/rcpss-single/default/a/opencl:pocl",
        "float_adm/ieee-double/bcm_1/a/cuda",
        "float_adm/ieee-double/default/a/cuda",
    ]


CONCLUSIONS = """\
version: 1
fixtures:
  a: {generator: noise, width: 17, height: 18, bit_depth: 8}
matrix:
  - feature: float_adm
    candidates: [cuda]
    dialects: [ieee-single, rcpss-single]
    conclusions: [vmafx, netflix]
    options: [{}, {adm_bypass_cm: 1}]
    fixtures: [a]
include:
  - {feature: float_adm, candidate: cuda, fixture: a, conclusion: vmafx}
"""


def test_a_conclusion_other_than_the_default_is_named_and_lies_within_its_dialect(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(CONCLUSIONS, "utf-8")
    assert [cell.id for cell in plan(load(path))] == [
        "float_adm/ieee-single+vmafx/default/a/cuda",
        "float_adm/ieee-single+vmafx/bcm_1/a/cuda",
        "float_adm/ieee-single/default/a/cuda",
        "float_adm/ieee-single/bcm_1/a/cuda",
        "float_adm/rcpss-single+vmafx/default/a/cuda",
        "float_adm/rcpss-single+vmafx/bcm_1/a/cuda",
        "float_adm/rcpss-single/default/a/cuda",
        "float_adm/rcpss-single/bcm_1/a/cuda",
        "float_adm/rcpss-double+vmafx/default/a/cuda",
    ]


def test_the_conclusion_is_netflix_unless_told(cells: tuple[Cell, ...]) -> None:
    assert {cell.conclusion for cell in cells} == {"netflix"}


def test_a_cell_carries_what_its_result_needs(cells: tuple[Cell, ...]) -> None:
    (cell,) = select(cells, ["*/debug/*"])
    assert cell.reference == "cuda"
    assert cell.options == {"debug": True, "adm_p_norm": 3.0}
    assert (cell.width, cell.height, cell.bit_depth, cell.frames) == (17, 18, 8, 2)
    assert len(cell.outputs) == 18
    assert cell.scores == 36
    assert cell.line == 18
    assert cell.skip == ""


def test_a_cell_has_the_line_of_its_product(cells: tuple[Cell, ...]) -> None:
    assert {cell.line for cell in select(cells, ["*/cuda"])} == {6}
    assert [cell.line for cell in select(cells, ["*/a/opencl:pocl"])] == [11]


def test_a_declared_skip_carries_its_first_reason(cells: tuple[Cell, ...]) -> None:
    skipped = {cell.id: cell.skip for cell in cells if cell.skip}
    assert skipped == {"float_adm/rcpss-single/default/a/opencl:pocl": "first"}


def test_two_globs_that_match_one_fixture_give_its_cells_once(cells: tuple[Cell, ...]) -> None:
    assert len({cell.id for cell in cells}) == len(cells)


def test_no_glob_selects_every_cell(cells: tuple[Cell, ...]) -> None:
    assert select(cells, []) == cells


def test_a_selection_keeps_the_order_of_the_plan(cells: tuple[Cell, ...]) -> None:
    chosen = select(cells, ["*/a/*", "*/debug/*", "*/a/cuda"])
    assert chosen == (cells[5], *cells[6:])


def test_a_glob_that_matches_nothing_selects_nothing(cells: tuple[Cell, ...]) -> None:
    assert select(cells, ["*/CUDA"]) == ()


def test_a_glob_is_a_whole_id_not_a_part(cells: tuple[Cell, ...]) -> None:
    assert select(cells, ["cuda"]) == ()


# Names that option sets share

# Suffix of 244 bytes; the longest output adds 14.
SKIPS = ("adm_skip_aim_scale", "adm_skip_scale0")
LONG = {"debug": True} | {k: v for k, v in ALL_OPTIONS.items() if k not in SKIPS}


def emitting(*option_sets: Mapping[str, object]) -> list[Cell]:
    feature = registry.features()["float_adm"]
    given = [feature.options.model_validate(values) for values in option_sets]
    base = Cell(
        *("float_adm", "ieee-single", "netflix", "", "a", "cuda", "cpu"),
        options={},
        outputs=(),
        width=17,
        height=17,
        bit_depth=8,
        frames=1,
        line=1,
    )
    return [
        replace(base, options_name=feature.options_name(one), outputs=feature.outputs(one))
        for one in given
    ]


COLLISION = "emitted by {} option sets; each runs apart; in one libvmaf context the second fails"


def test_the_debug_score_that_libvmaf_never_suffixes_is_told() -> None:
    sets: list[dict[str, object]] = [{"debug": True, "adm_csf_mode": mode} for mode in range(4)]
    assert shared_names(emitting(*sets, {"adm_bypass_cm": 1})) == {
        "adm of float_adm": COLLISION.format(4)
    }


def test_an_option_set_on_several_fixtures_shares_no_name_with_itself() -> None:
    (cell,) = emitting({"debug": True})
    assert shared_names([cell, replace(cell, fixture="b"), replace(cell, conclusion="vmafx")]) == {}


def test_two_features_share_no_name() -> None:
    (cell,) = emitting({"debug": True})
    assert shared_names([cell, replace(cell, feature="other", options_name="other")]) == {}


def test_option_sets_that_differ_in_debug_only_are_one_to_libvmaf() -> None:
    plain: dict[str, object] = {"adm_csf_mode": 1}
    both = emitting(plain, {**plain, "debug": True}, {}, {"debug": True})
    assert shared_names(both) == {"adm of float_adm": COLLISION.format(2)}


@pytest.mark.parametrize(
    ("shorter", "length", "shared"),
    [
        (4, 254, []),
        (3, 255, []),
        (2, 256, [f"adm_{part}_scale{scale}" for scale in range(4) for part in ("num", "den")]),
    ],
)
def test_names_that_are_cut_to_the_same_255_bytes_are_told(
    shorter: int, length: int, shared: list[str]
) -> None:
    base = LONG | {"adm_dlm_weight": float(f"{0.123457:.{6 - shorter}f}")}
    sets = [base | {"adm_skip_aim_scale": scale} for scale in (1, 2)]
    cells = emitting(*sets)
    assert len(f"adm_num_scale0_{cells[0].options_name.removeprefix('debug_')}") == length
    told = list(shared_names(cells))
    assert told[0] == "adm of float_adm"
    assert [name.partition("_aah_")[0] for name in told[1:]] == shared
    assert {len(name.removesuffix(" of float_adm")) for name in told[1:]} <= {255}


# Measured on two cores of an Intel Xeon (family 6, model 167), seconds.
MEASURED = [
    ("smoke", "*/opencl:pocl", 4.4),
    ("smoke", "float_adm/*/opencl:pocl", 3.2),
    ("smoke", "integer_adm/*/opencl:pocl", 3.0),
    ("pr", "*/opencl:pocl", 27.8),
    ("pr", "integer_adm/*/opencl:pocl", 9.5),
    ("nightly", "float_adm/ieee-*/*/*_17x17_*/opencl:pocl", 5.7),
    ("nightly", "float_adm/rcpss-double/debug/*/opencl:pocl", 12.9),
    ("nightly", "float_adm/rcpss-double/debug*/life*/opencl:pocl", 13.7),
    ("nightly", "float_adm/*/debug/seeding*/opencl:pocl", 19.7),
]


@pytest.mark.parametrize(("matrix", "glob", "seconds"), MEASURED)
def test_the_estimate_meets_what_was_measured_within_a_fifth(
    matrix: str, glob: str, seconds: float
) -> None:
    cells = select(plan(load(MATRICES / f"{matrix}.yaml")), [glob])
    assert 0.8 * seconds < estimate(cells) < 1.2 * seconds


def test_the_estimate_counts_a_fixture_once_and_every_cell(cells: tuple[Cell, ...]) -> None:
    (cell,) = (c for c in select(cells, ["*/b/opencl:pocl"]))
    samples = 17 * 18 * 2
    seconds = START + KERNELS + SPOOL * samples + 2 * (CELL + COST * samples)
    assert f"{estimate([cell, replace(cell, dialect='ieee-double')]):.9f}" == f"{seconds:.9f}"


def test_a_declared_skip_takes_no_time(cells: tuple[Cell, ...]) -> None:
    (skipped,) = select(cells, ["*/a/opencl:pocl"])
    assert estimate([skipped]) == 0
    assert estimate([replace(skipped, skip="")]) > START + KERNELS


def test_there_is_no_estimate_for_other_backends_and_for_nothing(cells: tuple[Cell, ...]) -> None:
    others = select(cells, ["*/cuda", "*/opencl:intel"])
    assert len(others) == 9
    assert estimate(others) == estimate([]) == 0
