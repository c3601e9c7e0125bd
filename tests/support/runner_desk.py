"""A desk for the runner: fakes that note what happens and fail where a test wants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from stills import noise

from backends import base
from backends.base import Clip, Scores
from gate import runner
from gate.cache import ReferenceCache
from gate.deviations import Deviations
from gate.model import Cell, Result, Run

NAMES = ("one", "two")
FRAMES = 3
ONE_STEP_ABOVE_4 = math.nextafter(4, 5)
KERNEL = "kernel void f() {}"

Compute = Callable[[Clip], Scores]


class FakeOptions(base.Options):
    gain: float = 1.0


def scores(clip: Clip | None = None) -> Scores:
    """What every sound backend computes."""
    del clip
    values = np.arange(FRAMES * len(NAMES), dtype=np.float64).reshape(FRAMES, -1)
    return Scores(NAMES, values, np.zeros(values.shape, np.bool_))


@dataclass
class FakeBackend:
    name: str
    told: Callable[[str], None]
    work: Compute = scores
    computed: list[tuple[str, base.Options]] = field(default_factory=list)

    def facts(self) -> Mapping[str, str]:
        self.told(f"facts {self.name}")
        return {"device": f"device of {self.name}"}

    def compute(
        self, feature: base.Feature, arithmetic: base.Arithmetic, options: base.Options, clip: Clip
    ) -> Scores:
        assert (feature.name, arithmetic.dialect) == ("fake", "plain")
        clip.read(0, clip.frames)
        self.computed.append((clip.clip.name, options))  # type: ignore[attr-defined]
        self.told(f"compute {self.name}")
        return self.work(clip)

    def close(self) -> None:
        self.told(f"close {self.name}")


class Desk(runner.Progress):
    """A matrix, a feature, two fixtures; what is in `errors` happens at its place."""

    name = "fake"
    options = FakeOptions

    def __init__(self) -> None:
        self.backends = {name: FakeBackend(name, self.told) for name in ("cpu", "good", "other")}
        self.errors: dict[str, BaseException] = {}
        self.log: list[str] = []
        self.amendments: list[Result] = []
        self.warnings: dict[str, str] = {}
        self.deviations: Deviations | None = None
        self.cache: ReferenceCache | None = None

    def told(self, place: str) -> None:
        self.log.append(place)
        if place in self.errors:
            raise self.errors[place]

    def logged(self, *verbs: str) -> list[str]:
        return [place for place in self.log if place.split()[0] in verbs]

    def open_backend(self, name: str) -> base.Backend:
        self.told(f"open {name}")
        return self.backends[name]

    @contextmanager
    def open_fixture(self, name: str, spec: object, root: Path) -> Iterator[SimpleNamespace]:
        assert (spec, root) == (f"spec of {name}", Path("folder"))
        self.told(f"fixture {name}")
        still = noise(17, 17, FRAMES)
        hashes = {"ref": f"{name}-r", "dist": f"{name}-d"}
        yield SimpleNamespace(
            name=name,
            sha256=hashes,
            width=17,
            height=17,
            bit_depth=8,
            frames=FRAMES,
            read=still.read,
        )
        self.told(f"exit {name}")

    def notes(self, _: base.Arithmetic) -> tuple[str, ...]:
        return ()

    def reference_facts(self) -> Mapping[str, str]:
        self.told("reference facts")
        return {"compiler": "cc 1"}

    def kernel_source(self) -> str:
        self.told("kernel source")
        return KERNEL

    def starts(self, cell: Cell) -> None:
        self.told(f"starts {cell.id}")

    def done(self, result: Result) -> None:
        self.told(f"done {result.cell.id}")

    def amended(self, result: Result) -> None:
        self.amendments.append(result)

    def run(
        self,
        *cells: Cell,
        required: tuple[str, ...] = (),
        sample: tuple[str, ...] | None = (),
        repeat: int = 1,
    ) -> Run:
        blank = runner.begun(
            self.matrix(),
            cells,
            selection=("fake/*",),
            planned=9,
            required=required,
            command="parity-gate run m.yaml",
            sample=sample,
            repeat=repeat,
        )
        return self.finish(blank)

    def finish(self, unfinished: Run) -> Run:
        return runner.run(
            self.matrix(),
            unfinished,
            open_backend=self.open_backend,
            progress=self,
            cache=self.cache,
        )

    def matrix(self) -> Any:  # noqa: ANN401 - stands for a Matrix that no file declares
        return SimpleNamespace(
            path=Path("folder/m.yaml"),
            sha256="abc",
            version=1,
            fixtures={name: f"spec of {name}" for name in ("first", "second")},
            warnings=self.warnings,
            drawn={},
            deviations=self.deviations,
        )


def make_cell(
    candidate: str = "good", fixture: str = "first", gain: float = 1.0, **others: object
) -> Cell:
    names = ("fake", "plain", "netflix", f"gain_{gain:g}", fixture, candidate, "cpu")
    cell = Cell(*names, {"gain": gain}, NAMES, 17, 17, bit_depth=8, frames=FRAMES, line=1)
    return replace(cell, **others)  # type: ignore[arg-type]


def grid() -> list[Cell]:
    """Two fixtures x two options x two candidates, in plan order."""
    return [
        make_cell(candidate, fixture, gain)
        for fixture in ("first", "second")
        for gain in (1.0, 2.0)
        for candidate in ("good", "other")
    ]
