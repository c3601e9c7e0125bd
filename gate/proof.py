"""Holds what a backend tells of a computation against what was asked for."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import numpy as np

from backends.evidence import WITNESS, Nonce
from gate.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from backends.base import Clip
    from backends.evidence import Evidence, Owed

    Sums = Callable[[int, int], int]

WORD = 8  # bytes
CHUNK = 1 << 15  # words, which stay in a processor's cache
MODULUS = 1 << 64


class Pictures:
    """The sums of the pictures of one fixture after the other, and nonces to witness them with."""

    def __init__(self) -> None:
        """Draw a run's number."""
        self._run = secrets.randbits(64)
        self._clip: Clip | None = None
        self._sums: dict[tuple[int, int], int] = {}

    def nonce(self) -> Nonce:
        """Return numbers for one more computation of the run."""
        return Nonce(self._run, secrets.randbits(64) | 1)

    def of(self, clip: Clip) -> Sums:
        """Return what gives a batch's sum: of ref and dist, once for each first frame and count."""
        if clip is not self._clip:
            self._clip, self._sums = clip, {}

        def sums(first: int, count: int) -> int:
            if (first, count) not in self._sums:
                pictures = np.concatenate(clip.read(first, count))
                self._sums[first, count] = mixed_sum(pictures, self._run)
            return self._sums[first, count]

        return sums


def mixed_sum(array: NDArray[np.generic], run: int) -> int:
    """Return the sum of an array's words, each mixed with its place and a run's number.

    Args:
        array: of any shape and dtype, in C order, whose bytes are taken as little endian words of
            64 bits, with zeros behind the last.
        run: 0 .. 2**64 - 1.

    Returns:
        What `backends/dialect/witness.cl.h` has for a computation whose number is 1.

    Source: splitmix64, as that file says.
    """
    data = array.reshape(-1).view(np.uint8)
    whole = data.size // WORD
    words = data[: whole * WORD].view("<u8")
    sums = [_mixed(words[at : at + CHUNK], at, run) for at in range(0, whole, CHUNK)]
    rest = data[whole * WORD :].tobytes()
    if rest:
        last = np.frombuffer(rest.ljust(WORD, b"\0"), "<u8")
        sums.append(_mixed(last, whole, run))
    return sum(sums) % MODULUS


def _mixed(words: NDArray[np.uint64], first: int, run: int) -> int:
    x = np.arange(first + 1, first + 1 + words.size, dtype=np.uint64)
    x *= np.uint64(0x9E3779B97F4A7C15)
    x += np.uint64(run)
    x ^= words
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return int(x.sum())


def witness(total: int, nonce: Nonce) -> int:
    """Return what a device has for pictures of this sum."""
    return total * nonce.computation % MODULUS


def flaw(
    name: str,
    evidence: Evidence | None,
    *,
    owed: Owed,
    opened: Mapping[str, str],
    frames: int,
    nonce: Nonce,
    sums: Sums,
) -> str:
    """Return what is wrong with evidence, one sentence; empty if it shows what is owed.

    Args:
        name: the backend's.
        evidence: that came with its scores.
        owed: what has to come with them.
        opened: the facts that the backend told when it was opened.
        frames: how many the clip has.
        nonce: of the computation.
        sums: see `Pictures.of`.
    """
    if evidence is None:
        return f"no evidence that {name} ran: its scores came alone"
    checks = (
        _absent(name, evidence, owed),
        _elsewhere(name, evidence, owed, opened),
        _unread(name, evidence, frames),
        _untimed(name, evidence) if owed.launches else (),
        _unlaunched(name, evidence) if owed.launches else (),
        _others(name, evidence, nonce, sums) if owed.launches else (),
        _unended(name, evidence) if owed.endings else (),
    )
    return next((sentence for check in checks for sentence in check), "")


def flaw_without_pictures(
    name: str, evidence: Evidence, *, owed: Owed, opened: Mapping[str, str]
) -> str:
    """Return what is wrong with the evidence of what needs no pictures, as `flaw` does."""
    checks = (
        _absent(name, evidence, owed),
        _elsewhere(name, evidence, owed, opened),
        _untimed(name, evidence) if owed.launches else (),
    )
    return next((sentence for check in checks for sentence in check), "")


def _absent(name: str, evidence: Evidence, owed: Owed) -> Iterator[str]:
    if owed.launches and not evidence.launches:
        yield f"no evidence that {name} ran: nothing was launched on a device"
    if owed.endings and not evidence.endings:
        yield f"no evidence that {name} ran: no program was started"


def _elsewhere(
    name: str, evidence: Evidence, owed: Owed, opened: Mapping[str, str]
) -> Iterator[str]:
    for fact, beginning in owed.facts.items():
        told, named = evidence.facts.get(fact, ""), opened.get(fact, "")
        if not told or told != named:
            yield f"{name} was opened with {fact} {named!r}, and ran on {told!r}"
        elif not told.startswith(beginning):
            yield f"{name} ran on {fact} {told!r}; required: one that begins with {beginning!r}"


def _unread(name: str, evidence: Evidence, frames: int) -> Iterator[str]:
    expected = 0
    for first, count in sorted(evidence.reads):
        if first != expected or count < 1:
            break
        expected += count
    else:
        if expected == frames:
            return
    reads = ", ".join(f"{count} from frame {first}" for first, count in evidence.reads) or "none"
    yield f"{name} read of {counted(frames, 'frame')} {reads}; required: each of them once"


def _untimed(name: str, evidence: Evidence) -> Iterator[str]:
    for number, (kernel, start, end) in enumerate(evidence.launches):
        if start >= end:
            yield (
                f"launch {number} of {name}, kernel {kernel}, began at {start} ns and ended at "
                f"{end} ns; a kernel that ran ends later than it began"
            )


def _unlaunched(name: str, evidence: Evidence) -> Iterator[str]:
    batches, witnesses = len(evidence.reads), len(evidence.witnesses)
    if batches != witnesses:
        uploads = counted(witnesses, "upload")
        yield f"{name} witnessed {uploads} of pictures; required: {batches}, one a batch of frames"
    kernels = [launch.kernel for launch in evidence.launches]
    followed = [a == WITNESS != b for a, b in zip(kernels, [*kernels[1:], WITNESS], strict=True)]
    if sum(followed) != batches:
        yield (
            f"{name} launched kernels on {counted(sum(followed), 'upload')} of pictures; "
            f"required: {batches}, one a batch of frames"
        )


def _others(name: str, evidence: Evidence, nonce: Nonce, sums: Sums) -> Iterator[str]:
    for (first, count), told in zip(evidence.reads, evidence.witnesses, strict=True):
        expected = witness(sums(first, count), nonce)
        if told != expected:
            yield (
                f"{name} witnessed frames {first} to {first + count - 1} as {told:016x}; those "
                f"that it was given are {expected:016x} in this computation, so its scores are of "
                "other pictures or of another computation"
            )


def _unended(name: str, evidence: Evidence) -> Iterator[str]:
    for code, _ in evidence.endings:
        if code:
            yield f"a program of {name} ended with exit code {code}; required: 0"
    logged = [frames for _, frames in evidence.endings]
    batches = [count for _, count in evidence.reads]
    if logged != batches:
        yield f"programs of {name} logged {logged} frames; required: {batches}, as were read"
