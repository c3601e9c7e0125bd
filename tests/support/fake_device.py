"""Devices that compute with compiled code of the reference, or fail in one way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from backends.base import CompilationFailed
from backends.features.integer_adm.angle import Spelled
from backends.predicate import Block

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        raise NotImplementedError

    def facts(self) -> dict[str, str]:
        raise NotImplementedError
