"""Devices that compute with compiled code of the reference, or fail in one way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from backends import registry
from backends.base import CompilationFailed
from backends.device import DeviceBackend
from backends.features.integer_adm.angle import Spelled
from backends.predicate import Block

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from backends.base import Buffer, Number


class Buffers:
    """What a fake device calls memory: the array itself."""

    def __init__(self, array: NDArray[np.generic]) -> None:
        self.array = array
        self.nbytes = array.nbytes


@dataclass
class FakeDevice:
    """Computes the kernel `angle_flags` with a compiled spelling, or fails in one way."""

    spelling: str = "golden"
    launches: int | None = None  # after so many it dies
    memory_budget: int = 1 << 20
    told: dict[str, str] = field(default_factory=dict)  # of where it runs
    span: tuple[int, int] = (1, 2)  # of every launch

    def compile(self, source: str) -> FakeDevice:
        if self.spelling == "uncompiled":
            message = "the kernels do not compile"
            raise CompilationFailed(message, "line 1: no")
        assert "KERNEL angle_flags" in source
        return self

    def upload(self, array: NDArray[np.generic]) -> Buffers:
        return Buffers(array.copy())

    def empty(self, nbytes: int) -> Buffers:
        return Buffers(np.full(nbytes, 255, np.uint8))

    def poison(self, buffer: Buffer, nbytes: int) -> None:
        raise NotImplementedError

    def launch(
        self, kernel: str, size: tuple[int, int, int], *arguments: Buffer | np.generic
    ) -> None:
        operands, flags, count = arguments
        assert isinstance(operands, Buffers)
        assert isinstance(flags, Buffers)
        assert isinstance(count, np.int32)
        assert (kernel, size) == ("angle_flags", (int(count), 1, 1))
        if self.launches == 0:
            message = "device lost\nmore about it"
            raise RuntimeError(message)
        self.launches = None if self.launches is None else self.launches - 1
        rows = operands.array.view(np.int64)
        flags.array[: len(rows)] = Spelled(self.spelling).flags(Block(0, rows, rows))

    def download(
        self, buffer: Buffer, shape: Sequence[int], dtype: np.dtype[Number]
    ) -> NDArray[Number]:
        assert isinstance(buffer, Buffers)
        return buffer.array[: shape[0]].astype(dtype)

    def spans(self, launches: Sequence[object]) -> list[tuple[int, int]]:
        return [self.span for _ in launches]

    def facts(self) -> dict[str, str]:
        return self.told


def opened(name: str, device: FakeDevice, release: Callable[[], None]) -> DeviceBackend:
    """Return a device as a backend that owes what its name does; it tells so unless it lies."""
    owed = registry.owed(name).facts
    facts = {fact: f"{beginning}device of {name}" for fact, beginning in owed.items()}
    device.told = device.told or facts
    return DeviceBackend(name, device, facts, release, floatless="it is fake")
