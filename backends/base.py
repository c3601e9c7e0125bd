"""What a backend, a device and a feature are, in as few members as the gate needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from backends import option_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backends.evidence import Evidence
    from backends.predicate import Predicate
    from backends.reciprocal import RcpTable

Number = TypeVar("Number", bound=np.generic)
Luma: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]

CONCLUSIONS = ("netflix", "vmafx")
"""Rules for the end of a frame (denominator 0, 0/0, NaN); the first is the default."""


class Unavailable(Exception):  # noqa: N818 - a state of this machine, not a mistake
    """A backend is not on this machine; the text says what is missing."""


class Refused(Exception):  # noqa: N818 - a declared limit, not a mistake
    """Something is here but declines: a dialect, options, a clip, an ambiguous name; says why."""


class NoResult(Refused):
    """A frame has no result in this conclusion.

    Attributes:
        scores: what was computed, to be compared although it is refused.
    """

    def __init__(self, message: str, scores: Scores) -> None:
        """Keep the sentence and the scores behind it."""
        super().__init__(message)
        self.scores = scores


class Inexact(Exception):  # noqa: N818 - a state of this device, not a mistake
    """A device does not compute plain arithmetic as IEEE 754 says; the text says where."""


class Failed(Exception):  # noqa: N818 - reads as what happened
    """A program behind a backend gave no usable scores; the text is one sentence."""


class CompilationFailed(Exception):  # noqa: N818 - reads as what happened
    """A kernel did not compile; `log` is the compiler's own text."""

    def __init__(self, message: str, log: str) -> None:
        """Keep the sentence and the compiler's log apart, so reports can show both."""
        super().__init__(message)
        self.log = log


class Format(Protocol):
    """What decides whether a feature takes a picture pair."""

    @property
    def width(self) -> int:
        """Luma samples of a row."""
        ...

    @property
    def height(self) -> int:
        """Luma rows of a frame."""
        ...

    @property
    def bit_depth(self) -> int:
        """Bits of a sample: 8, 10, 12 or 16."""
        ...


class Clip(Format, Protocol):
    """A picture pair: luma of `ref` and `dist`, readable in any batch of frames."""

    @property
    def frames(self) -> int:
        """Number of frames, at least 1."""
        ...

    def read(self, first: int, count: int) -> tuple[Luma, Luma]:
        """Return frames first .. first+count-1 of (ref, dist).

        Each is an array (count, height, width), C order, dtype uint8 at 8 bits and uint16 above,
        values 0 .. 2**bit_depth - 1.
        """
        ...


@dataclass(frozen=True, slots=True)
class Scores:
    """Every score of every frame of one clip.

    Attributes:
        names: output names as libvmaf emits them, one per column.
        values: float64 array (frames, len(names)); an UNSET entry holds 0 and means nothing.
        unset: bool array of the same shape, true where the feature leaves the score unset.
        evidence: how they came about; None where nobody asked.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    unset: NDArray[np.bool_]
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Which of a feature's arithmetics gives the bits; options come on top.

    Attributes:
        dialect: one of the feature's dialects.
        conclusion: one of CONCLUSIONS.
        rcp_table: another processor's reciprocal estimate to replay; None for this processor's.
    """

    dialect: str
    conclusion: str = CONCLUSIONS[0]
    rcp_table: RcpTable | None = None


@dataclass(frozen=True, slots=True)
class Extractor:
    """What to ask real libvmaf for, to get all outputs that a feature has.

    Attributes:
        name: the feature extractor as libvmaf registers it.
        options: text by full option name, as on libvmaf's command line.
        metrics: names under which libvmaf's models know the outputs, in the feature's order.
        logged: names that libvmaf's log must then have: the outputs' own, by its suffix rule.
        exact: whether libvmaf has these bits on every picture.
    """

    name: str
    options: Mapping[str, str]
    metrics: tuple[str, ...]
    logged: tuple[str, ...]
    exact: bool = True


class Options(BaseModel):
    """Options of a feature: one declared field each; parser, schema and help derive from it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _as_libvmaf_takes_it(cls, value: object, info: ValidationInfo) -> object:
        """Ranges hold for the number that libvmaf computes with."""
        kind = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        if kind is int:
            return option_text.taken(value, int)
        return option_text.taken(value, float) if kind is float else value


class Feature(ABC):
    """A metric family; one folder under `backends/features` exports one as `FEATURE`."""

    name: ClassVar[str]
    dialects: ClassVar[tuple[str, ...]]  # the first is the default
    options: ClassVar[type[Options]]
    stages: ClassVar[tuple[str, ...]]
    bit_depths: ClassVar[tuple[int, ...]]
    floats: ClassVar[bool] = True  # whether the kernels use floating point at all
    predicates: ClassVar[tuple[Predicate, ...]] = ()  # held alone against corpora of operands

    @abstractmethod
    def smallest(self, dialect: str) -> int:
        """Return the smallest width and height with a defined result in a dialect."""

    def require(self, arithmetic: Arithmetic, clip: Format) -> None:
        """Refuse what this feature does not have, before any arithmetic.

        Raises:
            Refused: an unknown dialect or conclusion, a bit depth or a size without a defined
                result.
        """
        if arithmetic.dialect not in self.dialects:
            allowed = ", ".join(self.dialects)
            message = f"dialect {arithmetic.dialect!r} is unknown; allowed: {allowed}"
            raise Refused(message)
        if arithmetic.conclusion not in CONCLUSIONS:
            allowed = ", ".join(CONCLUSIONS)
            message = f"conclusion {arithmetic.conclusion!r} is unknown; allowed: {allowed}"
            raise Refused(message)
        if clip.bit_depth not in self.bit_depths:
            allowed = ", ".join(map(str, self.bit_depths))
            message = f"bit_depth {clip.bit_depth} is not supported; allowed: {allowed}"
            raise Refused(message)
        if min(clip.width, clip.height) < self.smallest(arithmetic.dialect):
            raise Refused(self.too_small(arithmetic.dialect, clip.width, clip.height))

    def too_small(self, dialect: str, width: int, height: int) -> str:
        """Return the sentence about a frame below the smallest."""
        least = self.smallest(dialect)
        return (
            f"frame {width}x{height} is below {least}x{least}: "
            f"{self.name} has no defined result there"
        )

    def require_options(self, arithmetic: Arithmetic, options: Options) -> None:  # noqa: B027 - most features have all
        """Refuse options that an arithmetic has not.

        Raises:
            Refused: the text says which option, and which arithmetic has it.
        """

    @abstractmethod
    def outputs(self, options: Options) -> tuple[str, ...]:
        """Return the names of the scores of one frame, in order, as libvmaf emits them."""

    @abstractmethod
    def options_name(self, options: Options) -> str:
        """Return the part of a cell's id that names the options; `default` for defaults."""

    @abstractmethod
    def reference(self, arithmetic: Arithmetic, options: Options, clip: Clip) -> Scores:
        """Compute the clip with the compiled CPU reference.

        Raises:
            Refused: what `require` refuses, or a frame without a result in this conclusion.
        """

    @abstractmethod
    def reference_facts(self) -> Mapping[str, str]:
        """Return what decides the reference's bits: compiler, flags, C library, tables."""

    def notes(self, arithmetic: Arithmetic) -> tuple[str, ...]:  # noqa: ARG002 - for features
        """Return what every verdict over this arithmetic must say about this machine."""
        return ()

    @abstractmethod
    def extractor(self, arithmetic: Arithmetic, options: Options) -> Extractor:
        """Return what to ask real libvmaf for, the same on every machine.

        Raises:
            Refused: libvmaf has not this arithmetic; the text says which it has.
        """

    @abstractmethod
    def extracted(self, options: Options, values: NDArray[np.float64]) -> Scores:
        """Return the scores behind what real libvmaf gave.

        Args:
            options: those given to `extractor`.
            values: float64 (frames, len(metrics)), in the order of the extractor's metrics.
        """

    @abstractmethod
    def kernel_source(self) -> str:
        """Return the one kernel source, in dialect words, without a prelude."""

    @abstractmethod
    def twin(self, device: Device, source: str) -> Twin:
        """Build the device twin from `source` (normally `kernel_source()`) on `device`.

        Raises:
            CompilationFailed: the source does not compile.
        """


class Twin(Protocol):
    """A feature on one device."""

    def compute(self, arithmetic: Arithmetic, options: Options, clip: Clip) -> Scores:
        """Compute the clip in batches of frames; memory is bounded by the batch.

        Raises:
            Refused: the twin declines an option on this machine, or a frame has no result in this
                conclusion.
        """
        ...


class Buffer(Protocol):
    """Device memory owned by one device; opaque to twins."""

    nbytes: int


class Kernels(Protocol):
    """A compiled kernel source."""

    def launch(
        self, kernel: str, size: tuple[int, int, int], *arguments: Buffer | np.generic
    ) -> object:
        """Start `kernel` over at least `size` work items (x, y, z); kernels check their bounds.

        Returns:
            What `Runtime.spans` takes, on a device that has them.
        """
        ...


class Device(Protocol):
    """One OpenCL or CUDA device, as far as a twin needs it."""

    @property
    def memory_budget(self) -> int:
        """Bytes that one batch may take."""
        ...

    def compile(self, source: str) -> Kernels:
        """Compile prelude + source with the backend's exactness flags."""
        ...

    def upload(self, array: NDArray[np.generic]) -> Buffer:
        """Copy an array to the device, in C order whatever its strides."""
        ...

    def empty(self, nbytes: int) -> Buffer:
        """Allocate device memory, poisoned."""
        ...

    def poison(self, buffer: Buffer, nbytes: int) -> None:
        """Set the first `nbytes` to FF (NaN as float), so that what no kernel writes is seen."""
        ...

    def download(
        self, buffer: Buffer, shape: Sequence[int], dtype: np.dtype[Number]
    ) -> NDArray[Number]:
        """Copy a buffer back as an array, after all launches so far have finished."""
        ...


class Runtime(Device, Protocol):
    """A device whose runtime tells what it did."""

    def spans(self, launches: Sequence[object]) -> Sequence[tuple[int, int]]:
        """Wait for launches, and return when each began and ended.

        Returns:
            Nanoseconds of the device's own clock, of each launch in their order.
        """
        ...

    def facts(self) -> Mapping[str, str]:
        """Return which device has run them, as the runtime says now."""
        ...


class Backend(Protocol):
    """One way to compute features; opened by the registry under its name."""

    @property
    def name(self) -> str:
        """Name by which the registry opened it; whoever opens in the background may raise here."""
        ...

    def facts(self) -> Mapping[str, str]:
        """Return device, driver, runtime, compiler and exactness flags, for reports."""
        ...

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        """Compute every score of every frame.

        Raises:
            Refused: the backend declines the arithmetic or an option.
            CompilationFailed: a kernel does not compile.
        """
        ...

    def close(self) -> None:
        """Release the device and its temporary files; the backend is not used afterwards."""
        ...
