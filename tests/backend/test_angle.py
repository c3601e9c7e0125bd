"""The angle flag: golden against exact integers, everyone against golden, every wrong one red."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from stills import Clip

from backends.base import Arithmetic
from backends.device import DeviceBackend
from backends.features.integer_adm import FEATURE
from backends.features.integer_adm.angle import OnDevice, Spelled
from backends.features.integer_adm.feature import computed
from backends.features.integer_adm.spec import IntegerAdmOptions
from backends.predicate import Block
from gate import angle_runner
from gate.angle import asked
from gate.fixtures.near import Near
from gate.model import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backends.base import Device
    from backends.predicate import Candidate

(angle,) = FEATURE.predicates
CORPORA = {corpus.name: corpus for corpus in angle.corpora(full=False)}
GOLDEN = Spelled("golden")
NETFLIX = Arithmetic("netflix")

# (oh, ov, th, tv): golden, a, b, c. Source: angle_flag.md, section 4.
QUADRUPLES = {
    (-11037, -15188, -12400, -16452): (1, 0, 1, 0),
    (-14118, -1840, -12911, -1454): (1, 0, 1, 0),
    (13202, -691, 13542, -472): (0, 1, 1, 1),
}
# How often a, b, c, d, e differ, and how many flags are set. Source: angle_flag.md, section 4.
DISAGREEMENTS = {
    "near_1": (122, 126, 165, 122, 210, 2_151_424),
    "near_2": (125, 117, 168, 125, 225, 2_151_771),
    "near_3": (119, 107, 159, 119, 207, 2_152_030),
    "near_4": (118, 118, 157, 118, 199, 2_152_833),
    "near_5": (96, 101, 155, 96, 204, 2_151_147),
}
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
# (dp, om, tm): flag. Source: angle_flag.md, section 3.
CASES = {
    (0, 0, 0): 1,
    (0, 0, 5): 1,
    (0, 5, 0): 1,
    (0, 5, 7): 0,
    (-1, 5, 7): 0,
    (-1, 0, 0): 0,
    (LOWEST, 1, 1): 0,
    (5, LOWEST, 7): 1,
    (5, 7, -1): 1,
    (-5, 7, -1): 0,
    (1, -1, -1): 1,
    (0, -1, -1): 0,
    (HIGHEST, HIGHEST, HIGHEST): 1,
    (HIGHEST, LOWEST, LOWEST): 1,
    (1, 1, 1): 1,
    (1, 1, 2): 0,
    (16772106, 1 << 24, 16772106): 1,  # both sides are equal
    (16772105, 1 << 24, 16772106): 0,
}
# The operands of angle_flag.md's grid.
EDGES = [0, 1, -1, 2, 3, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, (1 << 25) - 1, (1 << 31) - 1]
EDGES += [1 << 31, (1 << 40) - 1, 1 << 40, (1 << 62) - 1, 1 << 62, (1 << 62) + 1, HIGHEST]
EDGES += [HIGHEST - 1, HIGHEST - (1 << 38), HIGHEST - (1 << 39), LOWEST, LOWEST + 1]
EDGES += [-(1 << 62), -(1 << 24) - 1]


def rounded(value: int, bits: int) -> int:
    """Return what a binary format with so many bits keeps of an integer, ties to even."""
    dropped = max(0, abs(value).bit_length() - bits)
    kept, rest = divmod(abs(value), 1 << dropped)
    kept += 2 * rest + kept % 2 > 1 << dropped
    return (kept << dropped) * (1 if value >= 0 else -1)


def exact_flag(dp: int, om: int, tm: int) -> int:
    """Return the flag by section 1 of angle_flag.md, in integers of any size."""
    p, o, t = (rounded(operand, 24) for operand in (dp, om, tm))
    return int(p >= 0 and (p * p << 24) >= rounded(16772106 * o * t, 53))


def of_operands(triples: Iterable[tuple[int, int, int]]) -> Block:
    rows = np.array(list(triples), np.int64)
    return Block(0, rows, rows)


def of_vectors(quadruples: Iterable[tuple[int, int, int, int]]) -> Block:
    rows = np.array(list(quadruples), np.int64)
    oh, ov, th, tv = rows.T
    operands = np.stack((oh * th + ov * tv, oh * oh + ov * ov, th * th + tv * tv), axis=1)
    return Block(0, rows, np.ascontiguousarray(operands))


def difference(candidate: Candidate, name: str) -> int:
    """Return for how many samples of a corpus a candidate has not the golden flag."""
    blocks = (angle.block(CORPORA[name], index) for index in angle.blocks(CORPORA[name]))
    return sum(int((candidate.flags(b) != GOLDEN.flags(b)).sum()) for b in blocks)


@pytest.fixture
def on_device(device: Device) -> OnDevice:
    return OnDevice(device, angle.kernel_source())


@pytest.fixture
def int64() -> Spelled:
    return Spelled("int64")


def test_the_corpus_of_edges_has_the_grid_of_the_specification() -> None:
    triples = set(map(tuple, angle.block(CORPORA["edges"], 0).operands.tolist()))
    assert len(set(EDGES)) == 24
    assert triples.issuperset(itertools.product(EDGES, repeat=3))


def test_the_golden_flag_is_that_of_exact_integers_on_every_edge_operand() -> None:
    block = angle.block(CORPORA["edges"], 0)
    assert GOLDEN.flags(block).tolist() == [exact_flag(*row) for row in block.operands.tolist()]


@pytest.mark.parametrize("name", ["near_1", "walk", "width_16", "width_31"])
def test_the_golden_flag_is_that_of_exact_integers_on_samples_of_a_corpus(name: str) -> None:
    block = angle.block(CORPORA[name], 0)
    some = slice(0, None, len(block.samples) // 5000)
    expected = [exact_flag(*row) for row in block.operands[some].tolist()]
    assert GOLDEN.flags(block)[some].tolist() == expected
    assert 0 < sum(expected) < len(expected)


@pytest.mark.parametrize("spelling", ["golden", "int64", "a", "b", "c"])
def test_the_quadruples_of_the_research_note_tell_the_spellings_apart(spelling: str) -> None:
    column = {"golden": 0, "int64": 0, "a": 1, "b": 2, "c": 3}[spelling]
    flags = Spelled(spelling).flags(of_vectors(QUADRUPLES))
    assert flags.tolist() == [row[column] for row in QUADRUPLES.values()]


def test_a_device_has_the_golden_flags_of_the_quadruples(on_device: OnDevice) -> None:
    assert on_device.flags(of_vectors(QUADRUPLES)).tolist() == [1, 1, 0]


def test_every_edge_case_has_the_specified_flag(int64: Spelled) -> None:
    assert GOLDEN.flags(of_operands(CASES)).tolist() == list(CASES.values())
    assert int64.flags(of_operands(CASES)).tolist() == list(CASES.values())


def test_every_edge_case_has_the_specified_flag_on_a_device(on_device: OnDevice) -> None:
    assert on_device.flags(of_operands(CASES)).tolist() == list(CASES.values())


@pytest.mark.parametrize("name", CORPORA)
def test_the_form_in_integers_has_golden_flags_on_every_corpus(int64: Spelled, name: str) -> None:
    assert difference(int64, name) == 0


@pytest.mark.parametrize("name", CORPORA)
def test_a_device_has_golden_flags_on_every_corpus(on_device: OnDevice, name: str) -> None:
    assert difference(on_device, name) == 0


@pytest.mark.parametrize("name", DISAGREEMENTS)
def test_wrong_spellings_differ_as_often_as_the_specification_says(name: str) -> None:
    blocks = [angle.block(CORPORA[name], index) for index in angle.blocks(CORPORA[name])]
    golden = [GOLDEN.flags(block) for block in blocks]
    different = [
        sum(int((Spelled(s).flags(b) != g).sum()) for b, g in zip(blocks, golden, strict=True))
        for s in angle.wrong
    ]
    assert (*different, sum(int(flags.sum()) for flags in golden)) == DISAGREEMENTS[name]


def near(width: int, height: int) -> Clip:
    """Return `near` as a matrix has it, at 8 bits."""
    ref, dist = Near(generator="near", width=width, height=height, bit_depth=8).pictures(0)
    return Clip(ref[np.newaxis].astype(np.uint8), dist[np.newaxis].astype(np.uint8), 8)


@pytest.mark.parametrize("spelling", angle.historic)
def test_a_wrong_spelling_moves_scale_0_at_a_gain_limit_of_1_2(spelling: str) -> None:
    options = IntegerAdmOptions(debug=True, adm_enhn_gain_limit=1.2)
    wrong = computed(NETFLIX, options, near(96, 95), spelling)
    right = FEATURE.reference(NETFLIX, options, near(96, 95))
    moved = {wrong.names[column] for column in np.flatnonzero(wrong.values[0] != right.values[0])}
    assert "integer_adm_scale0_egl_1.2" in moved
    assert not {name for name in moved if "scale" in name and "scale0" not in name}


def test_a_survey_counts_samples_large_operands_and_flips() -> None:
    clip = near(96, 95)
    assert angle.survey(clip.ref[0], clip.dist[0], 8) == (48 * 48, 1673, (1, 1, 1))


def test_a_picture_beside_itself_has_no_flips() -> None:
    clip = near(96, 95)
    samples, large, flips = angle.survey(clip.ref[0], clip.ref[0], 8)
    assert (samples, flips) == (48 * 48, (0, 0, 0))
    assert large > 0


class Plant(NamedTuple):
    """A wrong kernel: texts and what stands there instead, and a corpus that shows it."""

    name: str
    corpus: str
    swaps: tuple[tuple[str, str], ...]

    def source(self) -> str:
        source = angle.kernel_source()
        for right, wrong in self.swaps:
            assert right in source, f"{self.name}: the kernel has changed"
            source = source.replace(right, wrong)
        return source


ROUNDS = "rest > middle || (rest == middle && (bound & 1))"
PLANTS = (
    Plant("a shortened cosine", "near_1", (("16772106", "16772107"),)),
    Plant("the product cut to 53 bits", "edges", ((ROUNDS, "0"),)),
    Plant("the product not rounded", "edges", ((ROUNDS, "rest > 0"),)),
    Plant("half bits up when narrowing", "walk", (("- 1 + odd) >> drop", ") >> drop"),)),
    Plant("half bits down when narrowing", "walk", (("- 1 + odd) >> drop", "- 1) >> drop"),)),
    Plant("no narrowing", "band", (("if (drop <= 0)", "if (1)"),)),
    Plant("the sign of the dot product ignored", "edges", (("if (dp < 0)", "if (0)"),)),
    Plant("zero vectors not told", "edges", (("om == 0 || tm == 0 || ", ""),)),
    Plant("signs not told", "edges", ((" || (om < 0) != (tm < 0)", ""),)),
    Plant("the last sample left out", "width_02", (("i < count &&", "i < count - 1 &&"),)),
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_kernel_is_found(device: Device, plant: Plant) -> None:
    assert difference(OnDevice(device, plant.source()), plant.corpus) > 0


def test_a_shortened_cosine_fails_its_cell_and_its_first_operand_is_named(
    device_backend: DeviceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, planted = device_backend.name, PLANTS[0].source()
    device, facts = device_backend.device, device_backend.facts()
    shared = DeviceBackend(name, device, facts, lambda: None, floatless="shared")
    monkeypatch.setattr(angle, "kernel_source", lambda: planted)
    what = asked([name], None, full=False)
    run = angle_runner.run(
        what,
        what.cells[:1],
        selection=(),
        command="parity-gate angle",
        open_backend=lambda _: shared,
        progress=lambda _: None,
    )
    (result,) = run.results
    block = angle.block(CORPORA["near_1"], 0)
    first = next(i for i, flag in enumerate(GOLDEN.flags(block)) if flag != too_strict(block, i))
    operands = ", ".join(map(str, block.samples[first].tolist()))
    assert result.status is Status.FAIL
    assert result.reason.startswith(f"operand {first} ({operands}) flag: 0 expected 1, ")


def too_strict(block: Block, index: int) -> int:
    """Return the flag with the shortened cosine, in integers of any size."""
    p, o, t = (rounded(operand, 24) for operand in block.operands[index].tolist())
    return int(p >= 0 and (p * p << 24) >= rounded(16772107 * o * t, 53))
