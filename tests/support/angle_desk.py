"""`parity-gate angle` on small corpora and fake devices."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fake_device import FakeDevice, opened
from program import Outcome, started

from backends.base import Unavailable
from backends.cpu import Cpu
from backends.features.integer_adm import FEATURE
from backends.features.integer_adm.angle import NEAR_PARALLEL
from backends.predicate import Corpus
from gate import record, workers

if TYPE_CHECKING:
    from backends.base import Backend
    from gate.model import Run

(angle,) = FEATURE.predicates


def few(*, full: bool) -> tuple[Corpus, ...]:
    """Return small corpora; the first has two blocks and the first disagreements of each kind."""
    return (
        Corpus("near_1", NEAR_PARALLEL, 1, 600_000 if full else 550_000),
        Corpus("walk", "walk", 0, 1000),
        Corpus("edges", "edges", 0, 2000),
    )


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
        own = self.names.get(name, name)
        release = lambda: self.closed.append(own)  # noqa: E731 - a line
        return opened(own, device, release)

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
    monkeypatch.setattr(workers, "open_worker", desk.open_backend)
    monkeypatch.setattr(angle, "corpora", few)
    return desk
