"""The bit comparator: structure first, then every bit of every score of every frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gate.model import UNSET, Comparison, Mismatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.base import Scores
    from gate.model import ReferenceScores

    Bits = NDArray[np.uint64]
    Mask = NDArray[np.bool_]

# IEEE 754 binary64: eleven exponent bits; the highest fraction bit makes a NaN quiet.
EXPONENT = np.uint64(0x7FF0_0000_0000_0000)
QUIET = np.uint64(0x7FF8_0000_0000_0000)
MAGNITUDE = np.uint64(0x7FFF_FFFF_FFFF_FFFF)


class Incomparable(Exception):  # noqa: N818 - reads as what happened
    """The scores are not those of the cell; the text is one sentence naming what is missing."""


def compare(
    reference: Scores, candidate: Scores, frames: int, names: tuple[str, ...]
) -> Comparison:
    """Compare bits: -0 is not +0, a quiet NaN equals any quiet NaN, UNSET equals only UNSET.

    Args:
        reference: scores of the trusted backend.
        candidate: scores of the backend under test.
        frames: number of frames that both sides must have.
        names: names and order of the scores that both sides must have.

    Raises:
        Incomparable: a side lacks a score or a frame, has others, or another dtype or shape.
    """
    require_structure("reference", reference, frames, names)
    require_structure("candidate", candidate, frames, names)
    if _bytes(reference) == _bytes(candidate) and not np.isnan(reference.values).any():
        unsets = int(np.count_nonzero(reference.unset))
        return Comparison(reference.values.size, 0, unsets, different=0, mismatches=())
    left, right = _bits(reference), _bits(candidate)
    # A signalling NaN is no result of arithmetic, so it equals nothing, not even its own bits.
    same = (left == right) & ~(_nan(left) & ~_quiet_nan(left)) | (
        _quiet_nan(left) & _quiet_nan(right)
    )
    either_unset = reference.unset | candidate.unset
    different = np.where(either_unset, reference.unset != candidate.unset, ~same)
    return Comparison(
        scores=different.size,
        nans=int(np.count_nonzero(_nan(left) & ~reference.unset)),
        unsets=int(np.count_nonzero(reference.unset)),
        different=int(np.count_nonzero(different)),
        mismatches=tuple(
            _mismatch(reference, candidate, frame, column)
            for frame, column in np.argwhere(different).tolist()
        ),
    )


def fingerprint(scores: Scores) -> bytes:
    """Return what two results have in common where `compare` finds no difference.

    Signalling NaNs, which equal nothing there, are told apart by their bits here.
    """
    bits = np.where(_quiet_nan(_bits(scores)), QUIET, _bits(scores))
    return np.where(scores.unset, 0, bits).tobytes() + scores.unset.tobytes()


def same(one: ReferenceScores, other: ReferenceScores) -> bool:
    """Return whether two references agree: -0 is not +0, no NaN is told from another."""
    return repr((one.names, one.frames)) == repr((other.names, other.frames))


def require_structure(side: str, scores: Scores, frames: int, names: tuple[str, ...]) -> None:
    """Check that `side` has exactly the scores `names` of exactly `frames` frames.

    Raises:
        Incomparable: it has not, or there is nothing to compare at all.
    """
    if frames < 1 or not names:
        message = f"nothing to compare: the cell has {frames} frames of {len(names)} scores"
        raise Incomparable(message)
    _require_names(side, scores.names, names)
    for part, array, dtype in (
        ("values", scores.values, np.dtype(np.float64)),
        ("unset flags", scores.unset, np.dtype(np.bool_)),
    ):
        if type(array) is not np.ndarray:  # a masked array would hide what it masks
            message = f"{side}: the {part} are a {type(array).__name__}; required: a numpy array"
            raise Incomparable(message)
        if array.dtype != dtype:
            message = f"{side}: the {part} have dtype {array.dtype}; required: {dtype}"
            raise Incomparable(message)
        _require_shape(f"{side}: the {part}", array.shape, (frames, len(names)))


def _require_names(side: str, found: tuple[str, ...], names: tuple[str, ...]) -> None:
    if tuple(found) == names:
        return
    missing = [name for name in names if name not in found]
    extra = [name for name in found if name not in names]
    if missing:
        problem = f"score {', '.join(missing)} is missing"
    elif extra:
        problem = f"score {', '.join(extra)} is not a score of this cell"
    else:
        problem = f"the scores come as {', '.join(found)}"
    message = f"{side}: {problem}; required, in this order: {', '.join(names)}"
    raise Incomparable(message)


def _require_shape(part: str, found: tuple[int, ...], shape: tuple[int, int]) -> None:
    if found == shape:
        return
    frames, columns = shape
    if len(found) == len(shape) and found[0] < frames and found[1] == columns:
        problem = f"end before frame {found[0]}"
    else:
        problem = f"have shape {found}"
    message = f"{part} {problem}; required: {frames} frames of {columns} scores"
    raise Incomparable(message)


def _bytes(scores: Scores) -> tuple[bytes, bytes]:
    return scores.values.tobytes(), scores.unset.tobytes()


def _bits(scores: Scores) -> Bits:
    return np.ascontiguousarray(scores.values).view(np.uint64)


def _nan(bits: Bits) -> Mask:
    return (bits & MAGNITUDE) > EXPONENT


def _quiet_nan(bits: Bits) -> Mask:
    return (bits & MAGNITUDE) >= QUIET


def _mismatch(reference: Scores, candidate: Scores, frame: int, column: int) -> Mismatch:
    left, right = (
        UNSET if side.unset[frame, column] else side.values[frame, column]
        for side in (reference, candidate)
    )
    steps, unit = _distance(left, right)
    return Mismatch(
        frame=frame,
        score=reference.names[column],
        reference=None if left is None else float(left),
        candidate=None if right is None else float(right),
        steps=steps,
        unit=unit,
    )


def _distance(left: np.float64 | None, right: np.float64 | None) -> tuple[int | None, str]:
    """Return right minus left in representable numbers and their unit, where there is one."""
    if left is None or right is None or np.isnan(left) or np.isnan(right):
        return None, ""
    with np.errstate(over="ignore", under="ignore"):  # out of range: simply not a float32 value
        singles = np.float32(left), np.float32(right)
    if singles[0] == left and singles[1] == right:
        return _rank(singles[1], np.int32) - _rank(singles[0], np.int32), "ulp32"
    return _rank(right, np.int64) - _rank(left, np.int64), "ulp64"


def _rank(value: np.floating, integer: type[np.signedinteger]) -> int:
    """Return the position on the number line of its format: +0 is 0, -0 is -1."""
    bits = int(value.view(integer))
    return bits if bits >= 0 else -(bits - int(np.iinfo(integer).min)) - 1
