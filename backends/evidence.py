"""What a backend tells of how its scores came about, for a gate that believes none of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from backends.base import Clip, Luma

WITNESS = "witness"
"""The kernel that hashes uploaded pictures; see `dialect/witness.cl.h`."""


class Nonce(NamedTuple):
    """Random numbers, 0 .. 2**64 - 1, that a witness of pictures is mixed with.

    Attributes:
        run: the same for every computation of a run.
        computation: odd, and of one computation only.
    """

    run: int
    computation: int


NO_NONCE = Nonce(0, 1)
"""For computations of which nobody wants evidence."""


class Launch(NamedTuple):
    """A kernel that ran, as the device's runtime tells.

    Attributes:
        start, end: nanoseconds on a clock of the device's own.
    """

    kernel: str
    start: int
    end: int


class Ending(NamedTuple):
    """A program that has ended.

    Attributes:
        code: its exit code.
        frames: how many its log has.
    """

    code: int
    frames: int


@dataclass(frozen=True, slots=True)
class Proof:
    """What is kept of evidence that held.

    Attributes:
        runtime: the device or the program that ran; empty where neither is owed.
        frames: how many were read.
        launches: of a feature's kernels, from the first upload of pictures on.
        nanoseconds: that these took, as the device's runtime tells.
    """

    runtime: str
    frames: int
    launches: int
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What came with the scores of one computation.

    Attributes:
        reads: first frame and number of frames of each batch that was read, in order.
        facts: those that the backend told when it was opened and its runtime tells once more.
        launches: on a device, in order.
        witnesses: of each upload of pictures, 0 .. 2**64 - 1, in order.
        endings: of programs that were run, in order.
    """

    reads: tuple[tuple[int, int], ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    launches: tuple[Launch, ...] = ()
    witnesses: tuple[int, ...] = ()
    endings: tuple[Ending, ...] = ()

    def proof(self) -> Proof:
        """Return what a report keeps of it."""
        named = [launch.kernel for launch in self.launches]
        first = named.index(WITNESS) if WITNESS in named else 0
        # What a twin launches before it has pictures, it launches once for many computations.
        own = [launch for launch in self.launches[first:] if launch.kernel != WITNESS]
        return Proof(
            runtime=", ".join(self.facts.values()),
            frames=sum(count for _, count in self.reads),
            launches=len(own),
            nanoseconds=sum(launch.end - launch.start for launch in own),
        )

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` takes, for another process."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Evidence:
        """Return what another process has sent."""
        return cls(
            reads=tuple((first, count) for first, count in told["reads"]),
            facts=told["facts"],
            launches=tuple(map(Launch._make, told["launches"])),
            witnesses=tuple(told["witnesses"]),
            endings=tuple(Ending(*ending) for ending in told["endings"]),
        )


class Owed(NamedTuple):
    """What the scores of a backend must come with, apart from every frame having been read.

    Attributes:
        launches: whether a device must have run kernels on pictures that it has witnessed.
        endings: whether a program must have ended well for each batch of frames.
        facts: names of facts that its runtime must tell once more, and how their text must begin.
    """

    launches: bool = False
    endings: bool = False
    facts: Mapping[str, str] = {}


@runtime_checkable
class Proving(Protocol):
    """A backend that has more evidence than the frames that it reads."""

    def challenge(self, nonce: Nonce) -> None:
        """Take what the evidence of the next computation has to be mixed with."""
        ...

    def evidence(self) -> Evidence:
        """Return that of the last computation."""
        ...


class Read:
    """A clip that notes what is read of it.

    Attributes:
        clip: behind it.
        reads: first frame and number of frames of each batch, in order.
    """

    def __init__(self, clip: Clip) -> None:
        """Begin with nothing read."""
        self.clip = clip
        self.width, self.height = clip.width, clip.height
        self.bit_depth, self.frames = clip.bit_depth, clip.frames
        self.reads: list[tuple[int, int]] = []

    def read(self, first: int, count: int) -> tuple[Luma, Luma]:
        """Return frames as `Clip.read` promises."""
        pictures = self.clip.read(first, count)
        self.reads.append((first, count))
        return pictures
