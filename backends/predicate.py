"""What a predicate is: a flag inside a feature, held alone against corpora of its operands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from backends.base import Arithmetic, Clip, Device, Luma, Options, Scores

    Flags = NDArray[np.uint8]
    Rows = NDArray[np.int64]


class Corpus(NamedTuple):
    """A deterministic sequence of samples, which consists of blocks.

    Attributes:
        name: unique.
        source: what kind of samples the predicate makes.
        parameter: the source's.
        samples: how many there are.
    """

    name: str
    source: str
    parameter: int
    samples: int


class Block(NamedTuple):
    """Consecutive samples of a corpus.

    Attributes:
        first: index of the first one in the corpus.
        samples: int64 (n, columns), as the source makes them.
        operands: int64 (n, operands), what the predicate is asked of each sample.
    """

    first: int
    samples: Rows
    operands: Rows


class Survey(NamedTuple):
    """What one or more frames show.

    Attributes:
        samples: how often the predicate is asked.
        large: how often of an operand above 2^24, which binary32 may not keep.
        flips: how often a historic spelling has another flag, in the order of `historic`.
    """

    samples: int
    large: int
    flips: tuple[int, ...]


class Candidate(Protocol):
    """Someone who decides the flag."""

    def flags(self, block: Block) -> Flags:
        """Return the flag of each sample, uint8 (n,), 0 or 1."""
        ...


class Predicate(ABC):
    """A flag that has a golden spelling, right ones and wrong ones.

    Attributes:
        name: unique among the predicates of all features.
        outputs: names of what it decides of one sample.
        wrong: the wrong spellings, and a sentence about each.
        historic: those of them that a survey of pictures counts.
        telling: the source of the corpora on which every wrong spelling is seen to differ.
        surveyed: the options, by what their value is called, at which a survey computes scores.
    """

    name: ClassVar[str]
    outputs: ClassVar[tuple[str, ...]]
    wrong: ClassVar[Mapping[str, str]]
    historic: ClassVar[tuple[str, ...]]
    telling: ClassVar[str]
    surveyed: ClassVar[Mapping[str, Options]]

    @abstractmethod
    def corpora(self, *, full: bool) -> tuple[Corpus, ...]:
        """Return every corpus; unless `full`, the first samples of the large ones.

        Raises:
            Refused: the reference was never compiled.
        """

    @abstractmethod
    def blocks(self, corpus: Corpus) -> range:
        """Return the index of each block of a corpus."""

    @abstractmethod
    def block(self, corpus: Corpus, index: int) -> Block:
        """Return a block of a corpus; safe and useful on several threads."""

    @abstractmethod
    def spelled(self, name: str) -> Candidate:
        """Return a spelling on the CPU, safe on several threads: golden, int64 or a wrong one."""

    @abstractmethod
    def kernel_source(self) -> str:
        """Return the kernel that decides the flag, in dialect words, without a prelude."""

    @abstractmethod
    def on_device(self, device: Device) -> Candidate:
        """Return the kernel, compiled for a device.

        Raises:
            CompilationFailed: it does not compile.
        """

    @abstractmethod
    def survey(self, ref: Luma, dist: Luma, bit_depth: int) -> Survey:
        """Return what one frame shows.

        Args:
            ref: uint8 at 8 bits and uint16 above (height, width), of a size the feature takes.
            dist: the same.
            bit_depth: of a sample.
        """

    @abstractmethod
    def scores(
        self, arithmetic: Arithmetic, options: Options, clip: Clip, spelling: str = "golden"
    ) -> Scores:
        """Compute the feature's scores of a clip with the reference, spelled so.

        Raises:
            Refused: a frame has no result in this conclusion, or the reference was never compiled.
        """
