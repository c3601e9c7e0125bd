"""The one-degree angle flag: corpora of operands, and who decides it on them."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from backends import reference
from backends.features.integer_adm.spec import IntegerAdmOptions
from backends.predicate import Block, Corpus, Predicate, Survey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from backends.base import Arithmetic, Clip, Device, Luma, Options, Scores
    from backends.predicate import Flags

    Computed = Callable[[Arithmetic, Options, Clip, str], Scores]

SEEDS = range(1, 6)
WIDTHS = (2, 4, 8, 12, 16, 20, 24, 28, 30, 31)  # bits of a component
NEAR_PARALLEL = "near_parallel"
GAINS = (1.0, 1.2, 100.0)  # the least, one at which the flag decides most, the default
FLAG = np.dtype(np.uint8)


class AngleFlag(Predicate):
    """Whether the vectors of ref and dist point the same way. Source: angle_flag.md."""

    name: ClassVar[str] = "angle_flag"
    outputs: ClassVar[tuple[str, ...]] = ("flag",)
    # Source: angle_flag.md, section 4.
    wrong: ClassVar[Mapping[str, str]] = {
        "a": "products of operands that were not narrowed, exact in int64 and compared in binary64",
        "b": "narrowed operands, but every later operation in binary32",
        "c": "products of operands that were not narrowed, narrowed to binary32 and compared there",
        "d": "the golden layout without the narrowing",
        "e": "dot products formed in binary32",
    }
    historic: ClassVar[tuple[str, ...]] = ("a", "b", "c")
    telling: ClassVar[str] = NEAR_PARALLEL
    surveyed: ClassVar[Mapping[str, Options]] = {
        f"gain limit {gain:g}": IntegerAdmOptions(debug=True, adm_enhn_gain_limit=gain)
        for gain in GAINS
    }

    def __init__(self, computed: Computed) -> None:
        """Take what computes a clip's scores with a spelling of the flag at scale 0."""
        self._computed = computed

    def corpora(self, *, full: bool) -> tuple[Corpus, ...]:
        """Return every corpus; unless `full`, the first samples of the large ones.

        The near-parallel ones are those of angle_flag.md, section 4; the others follow the research
        note, section 4. Their sources are members of the compiled `Source`.

        Raises:
            Refused: the reference was never compiled.
        """
        edges = reference.load(__package__).EDGE_SAMPLES
        return (
            *(Corpus(f"near_{seed}", NEAR_PARALLEL, seed, 3_000_000) for seed in SEEDS),
            Corpus("band", "band", 0, 200_000_000 if full else 2_000_000),
            Corpus("walk", "walk", 0, 103_813_779 if full else 1_000_000),
            *(
                Corpus(f"width_{bits:02}", "width", bits, 2_000_000 if full else 100_000)
                for bits in WIDTHS
            ),
            Corpus("edges", "edges", 0, edges),
        )

    def blocks(self, corpus: Corpus) -> range:
        """Return the index of each block of a corpus.

        Raises:
            Refused: the reference was never compiled.
        """
        return range(-(-corpus.samples // reference.load(__package__).BLOCK_SAMPLES))

    def block(self, corpus: Corpus, index: int) -> Block:
        """Return a block of a corpus; safe and useful on several threads.

        Returns:
            samples int64 (n, 4), vectors (oh, ov, th, tv), or int64 (n, 3), operands; operands
            int64 (n, 3): the dot product, the squared lengths of ref and of dist.

        Raises:
            Refused: the reference was never compiled.
            AttributeError: there is no such source.
            ValueError: the source has no such parameter or not so many samples.
        """
        compiled = reference.load(__package__)
        source = getattr(compiled.Source, corpus.source)
        first = index * compiled.BLOCK_SAMPLES
        count = min(compiled.BLOCK_SAMPLES, corpus.samples - first)
        samples = np.empty((count, compiled.columns(source)), np.int64)
        compiled.angle_samples(source, corpus.parameter, index, samples)
        if samples.shape[1] == 3:  # noqa: PLR2004 - a triple of operands
            return Block(first, samples, samples)
        operands = np.empty((count, 3), np.int64)
        compiled.angle_operands(samples, operands)
        return Block(first, samples, operands)

    def spelled(self, name: str) -> Spelled:
        """Return a compiled spelling on the CPU: golden, int64 or a wrong one.

        Raises:
            Refused: the reference was never compiled.
            AttributeError: there is no such spelling.
        """
        return Spelled(name)

    def kernel_source(self) -> str:
        """Return the kernel that decides the flag, as integer_adm's kernels have it."""
        return (resources.files(__package__) / "kernels" / "angle.cl.h").read_text("utf-8")

    def on_device(self, device: Device) -> OnDevice:
        """Return the kernel, compiled for a device.

        Raises:
            CompilationFailed: it does not compile.
        """
        return OnDevice(device, self.kernel_source())

    def survey(self, ref: Luma, dist: Luma, bit_depth: int) -> Survey:
        """Return what scale 0 of one frame shows.

        Args:
            ref: uint8 at 8 bits and uint16 above (height, width), at least 17x17.
            dist: the same.
            bit_depth: of a sample.

        Raises:
            Refused: the reference was never compiled.
            ValueError: a frame of another dtype or shape.
        """
        compiled = reference.load(__package__)
        spellings = [getattr(compiled.Spelling, name) for name in self.historic]
        samples, large, flips = compiled.survey(ref, dist, bit_depth, spellings)
        return Survey(samples, large, tuple(flips))

    def scores(
        self, arithmetic: Arithmetic, options: Options, clip: Clip, spelling: str = "golden"
    ) -> Scores:
        """Compute a clip with the compiled reference, the flag at scale 0 spelled so.

        Raises:
            NoResult: a frame has none in this conclusion.
            Refused: the reference was never compiled.
            AttributeError: there is no such spelling.
        """
        return self._computed(arithmetic, options, clip, spelling)


class Spelled:
    """A compiled spelling on the CPU; safe and useful on several threads."""

    def __init__(self, spelling: str) -> None:
        """Take a member of the compiled `Spelling`; `golden` is the reference.

        Raises:
            Refused: the reference was never compiled.
            AttributeError: there is no such spelling.
        """
        self._compiled = reference.load(__package__)
        self._spelling = getattr(self._compiled.Spelling, spelling)

    def flags(self, block: Block) -> Flags:
        """Return the flag of each sample, uint8 (n,), 0 or 1.

        Raises:
            ValueError: the spelling is for vectors, and the samples are operands.
        """
        flags = np.empty(len(block.samples), FLAG)
        self._compiled.angle_flags(self._spelling, block.samples, flags)
        return flags


class OnDevice:
    """The kernel on one device."""

    def __init__(self, device: Device, source: str) -> None:
        """Compile `source`, normally the predicate's `kernel_source()`.

        Raises:
            CompilationFailed: it does not compile.
        """
        self._device = device
        self._kernels = device.compile(source)

    def flags(self, block: Block) -> Flags:
        """Return the flag of each sample, uint8 (n,); 255 where the kernel wrote none."""
        count = len(block.operands)
        operands = self._device.upload(block.operands)
        flags = self._device.empty(-(-count // 4) * 4)  # poison comes in fours
        self._kernels.launch("angle_flags", (count, 1, 1), operands, flags, np.int32(count))
        return self._device.download(flags, (count,), FLAG)
