"""What a device is asked for without pictures: flags of a predicate, powers of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from backends import registry
from backends.base import Refused
from backends.device import DeviceBackend
from backends.evidence import Evidence
from backends.predicate import Block
from backends.witness import Watched

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from backends.base import Backend, Runtime
    from backends.predicate import Candidate, Flags, Rows

    Message = tuple[dict[str, Any], list[NDArray[Any]]]
    Progress = Callable[[int], None]

WORKING = 300.0  # seconds of a task, whose kernel may have to be built first
INPUT = 1e-4  # seconds more for each of its inputs; a simulator is the slowest device
REPORTED = 1 << 24  # inputs that may pass before a comparison of powers tells how many there were


class Flagged(NamedTuple):
    """What a device says of operands.

    Attributes:
        flags: uint8 (n,).
        evidence: of what was launched for them, and where.
    """

    flags: Flags
    evidence: Evidence


class Compared(NamedTuple):
    """What came of holding a device's powers against the C library's.

    Attributes:
        inputs: how many were compared.
        different: how many of them differ.
        told: a sentence about each of the first ones.
    """

    inputs: int
    different: int
    told: Sequence[str]


class Tasks(Protocol):
    """A device that can be asked, wherever it is."""

    def flags(self, predicate: str, operands: Rows) -> Flagged:
        """Return the flags of a registered predicate for operands int64 (n, k)."""
        ...

    def powers(self, exponent: float, progress: Progress, *, exhaustive: bool) -> Compared:
        """Hold x^exponent against the C library's powf; `progress` is told inputs so far."""
        ...


class Here:
    """Asks the device of a backend of this process; what fails is raised."""

    def __init__(self, backend: Backend) -> None:
        """Compile nothing yet."""
        self._backend = backend
        self._compiled: dict[str, tuple[Watched, Candidate]] = {}

    def flags(self, predicate: str, operands: Rows) -> Flagged:
        """Return flags as `Tasks` says.

        Raises:
            Refused: the backend is no device.
            CompilationFailed: the predicate's kernel does not compile.
        """
        if predicate not in self._compiled:
            _, asked = registry.predicates()[predicate]
            watched = Watched(self._device())
            self._compiled[predicate] = watched, asked.on_device(watched)
        watched, candidate = self._compiled[predicate]
        watched.begin()
        flags = candidate.flags(Block(0, operands, operands))
        return Flagged(flags, watched.evidence())

    def powers(self, exponent: float, progress: Progress, *, exhaustive: bool) -> Compared:
        """Compare as `Tasks` says.

        Raises:
            Refused: the backend is no device, or the C library's powf is not glibc's.
            CompilationFailed: the kernel does not compile.
        """
        # Imported late, lest a feature that does not import ends every other command.
        from backends.features.float_adm import powers  # noqa: PLC0415 - see above

        compare = powers.exhaustive if exhaustive else powers.sampled
        found = compare(self._device(), exponent, progress)
        return Compared(found.compared, found.different, [str(one) for one in found.first])

    def _device(self) -> Runtime:
        if not isinstance(self._backend, DeviceBackend):
            message = f"{self._backend.name} is no device, so it has no kernels; name another one"
            raise Refused(message)
        return self._backend.device


@runtime_checkable
class Remote(Protocol):
    """A backend in another process, which does what `do` of this module does."""

    def put(self, array: NDArray[Any]) -> str:
        """Write an array to the file that is returned; the next one replaces it."""
        ...

    def do(self, task: Mapping[str, Any], seconds: float, progress: Progress) -> Message:
        """Let the process do a task; what fails, its own end included, is Reported."""
        ...


class There:
    """Asks the device of a backend in another process, whatever may happen to that."""

    def __init__(self, remote: Remote) -> None:
        """Ask nothing yet."""
        self._remote = remote

    def flags(self, predicate: str, operands: Rows) -> Flagged:
        """Return flags as `Tasks` says.

        Raises:
            Reported: why there are none.
        """
        file = self._remote.put(operands)  # a pipe takes ten times as long
        task = {"task": "flags", "predicate": predicate, "file": file, "shape": operands.shape}
        seconds = WORKING + INPUT * len(operands)
        answer, (flags,) = self._remote.do(task, seconds, lambda _: None)
        return Flagged(flags, Evidence.from_json(answer["evidence"]))

    def powers(self, exponent: float, progress: Progress, *, exhaustive: bool) -> Compared:
        """Compare as `Tasks` says.

        Raises:
            Reported: why nothing was compared.
        """
        task = {"task": "powers", "exponent": exponent, "exhaustive": exhaustive}
        answer, _ = self._remote.do(task, WORKING + INPUT * REPORTED, progress)
        return Compared(*answer["compared"])


def asking(backend: Backend) -> Tasks:
    """Return how to ask the device of a backend, which may be in another process."""
    return There(backend) if isinstance(backend, Remote) else Here(backend)


def do(tasks: Here, task: Mapping[str, Any], progress: Progress) -> Message:
    """Do what a `There` asks for, in the backend's process."""
    if task["task"] == "flags":
        operands = np.memmap(task["file"], np.int64, "r", shape=tuple(task["shape"]))
        flags, evidence = tasks.flags(task["predicate"], operands)
        return {"evidence": evidence.as_json()}, [flags]
    found = tasks.powers(task["exponent"], progress, exhaustive=task["exhaustive"])
    return {"compared": found}, []
