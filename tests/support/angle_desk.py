"""`parity-gate angle` on small corpora, and devices that compute with compiled spellings."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from program import Outcome, started

from backends import registry
from backends.base import CompilationFailed, Unavailable
from backends.cpu import Cpu
from backends.device import DeviceBackend
from backends.features.integer_adm import FEATURE
from backends.features.integer_adm.angle import NEAR_PARALLEL, Spelled
from backends.predicate import Block, Corpus
from gate import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from backends.base import Backend, Buffer, Number
    from gate.model import Run

(angle,) = FEATURE.predicates


def few(*, full: bool) -> tuple[Corpus, ...]:
    """Return small corpora; the first has two blocks and the first disagreements of each kind."""
    return (
        Corpus("near_1", NEAR_PARALLEL, 1, 600_000 if full else 550_000),
        Corpus("walk", "walk", 0, 1000),
        Corpus("edges", "edges", 0, 2000),
    )


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


@dataclass
class Desk:
    """A folder, and devices by name; what is not there is absent."""

    capsys: pytest.CaptureFixture[str]
    devices: dict[str, FakeDevice | Cpu | Exception] = field(
        default_factory=lambda: {"opencl:pocl": FakeDevice()}
    )
    names: dict[str, str] = field(default_factory=dict)  # under which a device answers instead
    closed: list[str] = field(default_factory=list)

    def open_backend(self, name: str) -> Backend:
        device = self.devices.get(name, Unavailable(f"no {name} here"))
        if isinstance(device, Cpu):
            device.name = name
            return device
        if isinstance(device, Exception):
            raise device
        facts = {"device": f"device of {name}"}
        own = self.names.get(name, name)
        release = lambda: self.closed.append(own)  # noqa: E731 - a line
        return DeviceBackend(own, device, facts, release, floatless="it is fake")

    def __call__(self, *arguments: str) -> Outcome:
        return started(self.capsys, "angle", *arguments)

    def rerun(self, *arguments: str) -> Outcome:
        return started(self.capsys, "rerun", *arguments)

    def run(self, out: str = "out") -> Run:
        return record.load(Path(out) / record.NAME)

    def cells(self) -> dict[str, dict[str, object]]:
        report = json.loads(Path("out/report.json").read_text("utf-8"))
        return {cell["id"]: cell for cell in report["cells"]}


def furnished(monkeypatch: pytest.MonkeyPatch, folder: Path, desk: Desk) -> Desk:
    """Put the small corpora and the devices of a desk in place of the real ones."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(registry, "open_backend", desk.open_backend)
    monkeypatch.setattr(angle, "corpora", few)
    return desk
