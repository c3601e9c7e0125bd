"""Operand corpora are the same in every order and process, and hold what they are said to hold."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from backends.features.integer_adm import FEATURE, _reference
from backends.features.integer_adm._reference import Source
from backends.features.integer_adm.angle import WIDTHS, Spelled
from backends.predicate import Corpus

(angle,) = FEATURE.predicates
CORPORA = {corpus.name: corpus for corpus in angle.corpora(full=False)}
FULL = {corpus.name: corpus for corpus in angle.corpora(full=True)}
BLOCK = _reference.BLOCK_SAMPLES
MASK = (1 << 64) - 1

# Of the whole first block, so that neither a change of the generator nor another build can hide.
SHA256 = {
    "band": "2083f6479bc09c4c3ec29a88bda753ddd7640f13a9e675e35abb26300c25daf8",
    "walk": "0fbf9a3c81ca882a5a9f13d0b355a005acb9944ba3aea0e3ac9d7fc0eb1e73b9",
    "width_02": "ee794be1cd962855bcd3e9ce41069686643fc3fd8c1da3c47f9b30cafe83638d",
    "width_31": "104559273fa05023640135207a8caf2bb0f37dc4153568b2438166c57fa76f56",
    "edges": "45dc286522df824e53c19ea31cbd31cb114ad69f6a6eacda292e37c6b9ce8393",
}


def xorshift(seed: int, count: int) -> list[int]:
    """Return numbers of the generator of angle_flag.md's proof, in Python's integers."""
    older, newer = (seed * 0x9E3779B97F4A7C15 + 1) & MASK, seed ^ 0xD1B54A32D192ED03
    numbers = []
    for _ in range(20 + count):
        mixed, older = older, newer
        mixed ^= (mixed << 23) & MASK
        newer = mixed ^ older ^ (mixed >> 17) ^ (older >> 26)
        numbers.append((newer + older) & MASK)
    return numbers[20:]


@pytest.mark.parametrize("seed", [1, 5])
def test_a_near_parallel_corpus_follows_the_generator_of_the_specification(seed: int) -> None:
    numbers = iter(xorshift(seed, 4000))
    expected = []
    for _ in range(1000):
        oh, ov = (next(numbers) % 65536 - 32768 for _ in range(2))
        th, tv = (
            min(max(component + next(numbers) % 1201 - 600, -32768), 32767)
            for component in (oh, ov)
        )
        expected.append([oh, ov, th, tv])
    assert angle.block(CORPORA[f"near_{seed}"], 0).samples[:1000].tolist() == expected


@pytest.mark.parametrize("name", CORPORA)
def test_a_block_is_the_same_whatever_was_made_before_it(name: str) -> None:
    corpus = FULL[name]
    last = angle.block(corpus, angle.blocks(corpus)[-1])
    angle.block(CORPORA["band"], 1)
    again = angle.block(corpus, angle.blocks(corpus)[-1])
    assert last.first == again.first == angle.blocks(corpus)[-1] * BLOCK
    assert np.array_equal(last.samples, again.samples)
    assert last.first + len(last.samples) == corpus.samples


@pytest.mark.parametrize("name", CORPORA)
def test_the_reduced_corpus_is_the_beginning_of_the_full_one(name: str) -> None:
    few, all_ = angle.block(CORPORA[name], 0), angle.block(FULL[name], 0)
    assert np.array_equal(few.samples, all_.samples[: len(few.samples)])


@pytest.mark.parametrize("name", SHA256)
def test_a_corpus_is_the_one_that_was_frozen(name: str) -> None:
    samples = angle.block(CORPORA[name], 0).samples
    assert hashlib.sha256(samples.tobytes()).hexdigest() == SHA256[name]


def test_no_two_blocks_of_all_corpora_begin_alike() -> None:
    begins = [
        angle.block(corpus._replace(samples=BLOCK * len(angle.blocks(corpus))), index).samples[:64]
        for corpus in (CORPORA["band"], CORPORA["walk"], *(FULL[f"width_{b:02}"] for b in (16, 31)))
        for index in angle.blocks(corpus)
    ]
    assert len({begin.tobytes() for begin in begins}) == len(begins)


def test_the_full_corpora_have_the_sizes_that_were_asked_for() -> None:
    sizes = {name: corpus.samples for name, corpus in FULL.items()}
    assert sizes == {
        **dict.fromkeys((f"near_{seed}" for seed in range(1, 6)), 3_000_000),
        "band": 200_000_000,
        "walk": 103_813_779,
        **dict.fromkeys(
            (f"width_{bits:02}" for bits in (2, 4, 8, 12, 16, 20, 24, 28, 30, 31)), 2_000_000
        ),
        "edges": 33**3 + 8,
    }


@pytest.mark.parametrize("bits", WIDTHS)
def test_components_of_a_width_use_all_of_its_bits_and_no_more(bits: int) -> None:
    samples = angle.block(CORPORA[f"width_{bits:02}"], 0).samples
    high = 1 << (bits - 1)
    assert samples.min() >= -high
    assert samples.max() < high
    assert samples.max() > 0.99 * high - 1
    jitter, beside = (1 << bits >> 6) + 1, abs(samples[:, 2:] - samples[:, :2]).max()
    assert 0.99 * jitter < beside <= jitter


def test_operands_are_the_exact_products() -> None:
    vectors = angle.block(CORPORA["width_31"], 0)
    for (oh, ov, th, tv), operands in zip(
        vectors.samples[:2000].tolist(), vectors.operands[:2000].tolist(), strict=True
    ):
        assert operands == [oh * th + ov * tv, oh * oh + ov * ov, th * th + tv * tv]


def test_the_walk_meets_every_pair_of_magnitude_classes_on_both_sides_of_the_flip() -> None:
    lap = 62 * 62 * 13
    block = angle.block(CORPORA["walk"], 0)
    flags = Spelled("golden").flags(block)
    for first in (0, lap):
        rows = block.operands[first : first + lap].reshape(62 * 62, 13, 3)
        classes = {(int(om).bit_length(), int(tm).bit_length()) for om, tm in rows[:, 0, 1:]}
        assert classes == {(om, tm) for om in range(1, 63) for tm in range(1, 63)}
        assert (rows[:, :, 1:] == rows[:, :1, 1:]).all()
        assert not flags[first : first + lap].reshape(-1, 13)[:, 0].any()
        assert flags[first : first + lap].reshape(-1, 13)[:, 6:].all()
        steps = np.diff(rows[:, :, 0], axis=1)
        assert (steps == steps[:, :1]).all()
        assert (steps[:, 0] == 1).all() == (first == 0)


def test_in_laps_of_one_the_flag_flips_exactly_at_the_centre() -> None:
    block = angle.block(CORPORA["walk"], 0)
    flags = Spelled("golden").flags(block)[: 62 * 62 * 13].reshape(-1, 13)
    assert (flags == np.r_[np.zeros(6), np.ones(7)]).all()


def test_the_edges_hold_every_triple_of_the_named_operands() -> None:
    named = [0, *(2**p + d for p in (23, 24) for d in (-1, 0, 1)), 2**31, 2**52, 2**53 - 1, 2**62]
    named += [2**63 - 1, -1, -(2**24) - 1, -(2**62), 1 - 2**63, -(2**63)]
    block = angle.block(CORPORA["edges"], 0)
    held = {tuple(row) for row in block.samples.tolist()}
    assert {(dp, om, tm) for dp in named for om in named for tm in named} <= held
    assert len(held) == len(block.samples)


@pytest.mark.parametrize(
    ("shape", "dtype", "error"),
    [
        ((5, 3), np.int64, ValueError),
        ((BLOCK + 1, 4), np.int64, ValueError),
        ((5, 4), np.int32, TypeError),
        ((20,), np.int64, TypeError),
    ],
)
def test_samples_that_would_not_fit_are_refused(
    shape: tuple[int, ...], dtype: type[np.integer], error: type[Exception]
) -> None:
    with pytest.raises(error):
        _reference.angle_samples(Source.band, 0, 0, np.empty(shape, dtype))


@pytest.mark.parametrize("bits", [1, 32])
def test_a_width_without_a_corpus_is_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="2 to 31 bits"):
        angle.block(Corpus("wide", "width", bits, 10), 0)


def test_more_edges_than_there_are_are_refused() -> None:
    corpus = CORPORA["edges"]
    with pytest.raises(ValueError, match="a block has not so many samples"):
        angle.block(corpus._replace(samples=corpus.samples + 1), 0)


def test_flags_for_other_samples_are_refused() -> None:
    samples = np.zeros((3, 4), np.int64)
    with pytest.raises(ValueError, match="a flag for each sample"):
        _reference.angle_flags(_reference.Spelling.golden, samples, np.zeros(4, np.uint8))


def test_the_spelling_of_dot_products_in_binary32_is_refused_without_vectors() -> None:
    with pytest.raises(ValueError, match="spelling e is for vectors"):
        Spelled("e").flags(angle.block(CORPORA["edges"], 0))
