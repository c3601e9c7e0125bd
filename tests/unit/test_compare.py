from __future__ import annotations

import dataclasses
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base import Scores
from gate.compare import Incomparable, compare
from gate.model import Comparison, Mismatch

NAMES = ("adm2", "aim", "adm3")
FRAMES = 4
SIGNALLING = 0x7FF0_0000_0000_0001
any_bits = st.integers(0, 2**64 - 1)


def from_bits(bits: int) -> float:
    return float(np.uint64(bits).view(np.float64))


def scores(fill: float = 0.5, *, names: tuple[str, ...] = NAMES, frames: int = FRAMES) -> Scores:
    shape = (frames, len(names))
    return Scores(names, np.full(shape, fill), np.zeros(shape, np.bool_))


def unset(side: Scores, frame: int, column: int) -> Scores:
    side.unset[frame, column] = True
    return side


def compared(reference: Scores, candidate: Scores) -> Comparison:
    return compare(reference, candidate, FRAMES, NAMES)


def one(left: float, right: float) -> Mismatch | None:
    """Compare two numbers; return how they differ."""
    sides = scores(left, names=("adm2",), frames=1), scores(right, names=("adm2",), frames=1)
    found = compare(*sides, 1, ("adm2",)).mismatches
    return found[0] if found else None


def steps(left: float, right: float) -> tuple[int | None, str]:
    mismatch = one(left, right)
    assert mismatch is not None
    return mismatch.steps, mismatch.unit


def test_equal_scores_give_no_mismatch_and_full_counts() -> None:
    assert compared(scores(), scores()) == Comparison(
        12, nans=0, unsets=0, different=0, mismatches=()
    )


def test_one_step_in_the_last_score_of_the_last_frame_is_a_mismatch() -> None:
    candidate = scores()
    candidate.values[-1, -1] = math.nextafter(0.5, 0)
    found = compared(scores(), candidate).mismatches
    assert found == (Mismatch(3, "adm3", 0.5, math.nextafter(0.5, 0), -1, "ulp64"),)


def test_mismatches_come_by_frame_then_in_output_order() -> None:
    found = compared(scores(1.0), scores(2.0)).mismatches
    assert [(m.frame, m.score) for m in found] == [(f, n) for f in range(FRAMES) for n in NAMES]


def test_negative_zero_is_a_mismatch_of_one_step() -> None:
    assert steps(-0.0, 0.0) == (1, "ulp32")
    assert steps(0.0, -0.0) == (-1, "ulp32")


def test_infinities_of_one_sign_are_equal_and_of_two_signs_are_not() -> None:
    assert one(math.inf, math.inf) is None
    assert one(math.inf, -math.inf) is not None


def test_infinity_is_one_step_above_the_largest_number_of_each_format() -> None:
    assert steps(float(np.finfo(np.float32).max), math.inf) == (1, "ulp32")
    assert steps(float(np.finfo(np.float64).max), math.inf) == (1, "ulp64")


def test_nan_against_a_number_is_a_mismatch_without_distance() -> None:
    for pair in ((math.nan, 0.5), (0.5, math.nan)):
        assert steps(*pair) == (None, "")


@pytest.mark.parametrize("bits", [0x7FF8 << 48, 0xFFF8 << 48, 0x7FF8_0000_0000_0001, 2**64 - 1])
def test_quiet_nans_are_equal_whatever_sign_and_payload(bits: int) -> None:
    assert one(math.nan, from_bits(bits)) is None


def test_a_signalling_nan_equals_nothing_not_even_itself() -> None:
    for other in (math.nan, 0.5, from_bits(SIGNALLING)):
        assert steps(from_bits(SIGNALLING), other) == (None, "")
        assert steps(other, from_bits(SIGNALLING)) == (None, "")


def test_unset_equals_unset_whatever_the_value_underneath() -> None:
    result = compared(unset(scores(0.0), 2, 1), unset(scores(), 2, 1))
    assert [(m.frame, m.score) for m in result.mismatches].count((2, "aim")) == 0
    assert result.unsets == 1


@pytest.mark.parametrize("value", [0.0, 0.5, math.nan, math.inf])
def test_unset_equals_no_value_even_where_the_bits_underneath_agree(value: float) -> None:
    for pair in (
        (unset(scores(value), 2, 1), scores(value)),
        (scores(value), unset(scores(value), 2, 1)),
    ):
        (found,) = compared(*pair).mismatches
        assert (found.frame, found.score, found.steps) == (2, "aim", None)
        assert [found.reference, found.candidate].count(None) == 1


def test_unsets_are_counted_where_every_bit_agrees() -> None:
    result = compared(unset(scores(), 2, 1), unset(scores(), 2, 1))
    assert result == Comparison(12, nans=0, unsets=1, different=0, mismatches=())


def test_nans_and_unsets_of_the_reference_are_counted() -> None:
    reference = unset(unset(scores(math.nan), 0, 0), 1, 0)
    result = compared(reference, reference)
    assert (result.nans, result.unsets, result.mismatches) == (10, 2, ())


def test_nans_and_unsets_of_the_candidate_alone_are_mismatches_and_not_counted() -> None:
    result = compared(scores(), unset(scores(math.nan), 0, 0))
    assert (result.nans, result.unsets, len(result.mismatches)) == (0, 0, 12)
    assert result.different == 12


def test_distance_of_two_single_values_is_in_single_steps() -> None:
    assert steps(0.5, float(np.nextafter(np.float32(0.5), np.float32(1)))) == (1, "ulp32")


def test_distance_is_in_double_steps_when_one_side_is_no_single_value() -> None:
    assert steps(0.5, math.nextafter(0.5, 1)) == (1, "ulp64")
    assert steps(1e300, math.nextafter(1e300, 0)) == (-1, "ulp64")
    assert steps(5e-324, 0.0) == (-1, "ulp64")


def test_distance_between_the_ends_of_the_line_does_not_overflow() -> None:
    top = float(np.finfo(np.float64).max)
    assert steps(-top, top) == (2 * 0x7FEF_FFFF_FFFF_FFFF + 1, "ulp64")


@given(any_bits, any_bits)
def test_two_finite_numbers_differ_exactly_when_their_bits_do(left: int, right: int) -> None:
    pair = from_bits(left), from_bits(right)
    if all(np.isfinite(pair)):
        assert (one(*pair) is None) == (left == right)
        assert one(pair[0], pair[0]) is None


@given(st.floats(0, 2.0**100, width=32), st.integers(1, 100))
def test_single_distance_is_the_number_of_single_neighbours(start: float, count: int) -> None:
    end = np.float32(start)
    for _ in range(count):
        end = np.nextafter(end, np.float32(math.inf))
    assert steps(start, float(end)) == (count, "ulp32")
    assert steps(-start, -float(end)) == (-count, "ulp32")


@given(st.floats(1, 1e300))
def test_double_neighbours_are_one_step_apart(start: float) -> None:
    end = math.nextafter(start, math.inf)
    for sign in (1, -1):
        assert steps(sign * start, sign * end) == (sign, "ulp64")
        assert steps(sign * end, sign * start) == (-sign, "ulp64")


def test_a_missing_score_is_named() -> None:
    for side, pair in (
        ("candidate", (scores(), scores(names=("adm2", "adm3")))),
        ("reference", (scores(names=("adm2", "adm3")), scores())),
    ):
        with pytest.raises(Incomparable, match=rf"^{side}: score aim is missing; required"):
            compared(*pair)


def test_a_score_missing_on_both_sides_is_still_missing() -> None:
    side = scores(names=("adm2", "adm3"))
    with pytest.raises(Incomparable, match="score aim is missing"):
        compared(side, side)


def test_an_extra_score_is_named() -> None:
    with pytest.raises(Incomparable, match="candidate: score adm is not a score of this cell"):
        compared(scores(), scores(names=(*NAMES, "adm")))


@pytest.mark.parametrize("names", [("aim", "adm2", "adm3"), ("adm2", "adm2", "aim", "adm3")])
def test_scores_in_another_order_or_twice_are_incomparable(names: tuple[str, ...]) -> None:
    with pytest.raises(Incomparable, match="candidate: the scores come as"):
        compared(scores(), scores(names=names))


def test_a_missing_last_frame_is_named() -> None:
    for side, pair in (
        ("candidate", (scores(), scores(frames=FRAMES - 1))),
        ("reference", (scores(frames=FRAMES - 1), scores())),
    ):
        with pytest.raises(Incomparable, match=f"^{side}: the values end before frame 3; requir"):
            compared(*pair)


def test_a_frame_missing_on_both_sides_is_still_missing() -> None:
    side = scores(frames=FRAMES - 1)
    with pytest.raises(Incomparable, match="reference: the values end before frame 3"):
        compared(side, side)


def test_an_extra_frame_is_incomparable() -> None:
    with pytest.raises(Incomparable, match=r"candidate: the values have shape \(5, 3\)"):
        compared(scores(), scores(frames=FRAMES + 1))


@pytest.mark.parametrize("shape", [(4, 2), (4, 4), (12,), (4, 3, 1), (0, 3), (1, 3)])
def test_another_shape_of_the_values_is_incomparable(shape: tuple[int, ...]) -> None:
    candidate = dataclasses.replace(scores(), values=np.full(shape, 0.5))
    with pytest.raises(Incomparable, match=r"candidate: the values .* 4 frames of 3 scores"):
        compared(scores(), candidate)


@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (1, 3), ()])
def test_another_shape_of_the_unset_flags_is_incomparable(shape: tuple[int, ...]) -> None:
    candidate = dataclasses.replace(scores(), unset=np.zeros(shape, np.bool_))
    with pytest.raises(Incomparable, match="candidate: the unset flags"):
        compared(scores(), candidate)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "object", ">f8"])
def test_another_dtype_of_the_values_is_incomparable(dtype: str) -> None:
    for side in ("reference", "candidate"):
        sides = {"reference": scores(), "candidate": scores()}
        wrong = sides[side].values.astype(dtype)
        sides[side] = dataclasses.replace(sides[side], values=wrong)
        with pytest.raises(Incomparable, match=f"{side}: the values have dtype .*; required: fl"):
            compared(**sides)


def test_unset_flags_that_are_numbers_are_incomparable() -> None:
    candidate = scores()
    numbers = dataclasses.replace(candidate, unset=candidate.unset.view(np.uint8))
    with pytest.raises(Incomparable, match="the unset flags have dtype uint8; required: bool"):
        compared(scores(), numbers)


@pytest.mark.parametrize("frames", [0, -1])
def test_zero_frames_are_incomparable(frames: int) -> None:
    side = scores(frames=0)
    with pytest.raises(Incomparable, match="nothing to compare"):
        compare(side, side, frames, NAMES)


def test_zero_scores_are_incomparable() -> None:
    side = scores(names=())
    with pytest.raises(Incomparable, match="nothing to compare: the cell has 4 frames of 0"):
        compare(side, side, FRAMES, ())


def test_strided_arrays_are_compared_by_all_their_numbers() -> None:
    strided = np.full((FRAMES, 6), 0.5)[:, ::2]
    strided[0, 0] = 0.25
    candidate = dataclasses.replace(scores(), values=strided)
    assert len(compared(scores(), candidate).mismatches) == 1


def test_a_masked_array_that_could_hide_scores_is_incomparable() -> None:
    plain = scores()
    for masked in (
        dataclasses.replace(plain, values=np.ma.masked_array(plain.values, mask=True)),
        dataclasses.replace(plain, unset=np.ma.masked_array(plain.unset, mask=True)),
    ):
        with pytest.raises(Incomparable, match="are a MaskedArray; required: a numpy array"):
            compared(plain, masked)


def test_a_double_that_packs_to_the_same_single_is_still_a_mismatch() -> None:
    value = 1 + 2**-40
    assert struct.pack("<f", value) == struct.pack("<f", 1)
    assert steps(1.0, value) == (2**12, "ulp64")
