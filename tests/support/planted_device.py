"""A worker whose device fails at a block of one size, and where powers are wanted of it.

Run as the program of a `gate.workers.Worker`; the backend's name says on which device, PLANTED how
that fails.
"""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from fake_device import Buffers, FakeDevice, opened
from planted_worker import FAULTS

from backends import c_library
from gate import worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from backends.base import Buffer, Number
    from backends.device import DeviceBackend

SOUND = "opencl:intel"


def interrupting() -> None:
    """Press Ctrl-C at the gate, which is waiting for this."""
    os.kill(os.getppid(), signal.SIGINT)
    threading.Event().wait()


@dataclass
class Fragile(FakeDevice):
    """Fails at a block of `fatal` samples, and at powers, which a device without one has."""

    fatal: int = 0

    def compile(self, source: str) -> FakeDevice:
        return self if "KERNEL powers" in source else super().compile(source)

    def launch(
        self, kernel: str, size: tuple[int, int, int], *arguments: Buffer | np.generic
    ) -> None:
        if self.fatal and (kernel == "powers" or size[0] == self.fatal):
            {**FAULTS, "interrupting": interrupting}[os.environ["PLANTED"]]()
        if kernel == "powers":
            values, exponents, output = (cast("Buffers", one).array for one in arguments[:3])
            floats = c_library.powf(values.view(np.float32), exponents.view(np.float32))
            output[:] = floats.view(np.uint8)
        else:
            super().launch(kernel, size, *arguments)

    def download(
        self, buffer: Buffer, shape: Sequence[int], dtype: np.dtype[Number]
    ) -> NDArray[Number]:
        assert isinstance(buffer, Buffers)
        return buffer.array.view(dtype)[: shape[0]]


DEVICES = {
    "opencl:pocl": Fragile(fatal=1000),
    "cuda": Fragile("a", fatal=50_000),
    "opencl:nvidia": Fragile("uncompiled"),
    SOUND: Fragile(),
}


def open_planted(name: str) -> DeviceBackend:
    return opened(name, DEVICES[name], lambda: None)


if __name__ == "__main__":
    worker.main(open_planted)
