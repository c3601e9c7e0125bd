"""Faulty twins, standing in for `opencl:pocl` in cells of matrices/pr.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from backends.base import CONCLUSIONS
from backends.cpu import Cpu
from backends.evidence import Evidence, Nonce, Proving
from gate import matrix, plan, runner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pytest

    from backends.base import Arithmetic, Backend, Clip, Feature, Options, Scores
    from gate.matrix import Matrix
    from gate.model import Cell, Run

PR = Path(__file__).parents[2] / "matrices" / "pr.yaml"
CANDIDATE = "opencl:pocl"


@dataclass
class Planted:
    """A backend with a fault between the device and the gate: in its source or in its scores."""

    inner: Backend
    cause: str
    kernels: Callable[[str], str] = str
    scores: Callable[[Scores], Scores] | None = None
    name: str = CANDIDATE

    def facts(self) -> Mapping[str, str]:
        return {**self.inner.facts(), "planted": self.cause}

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        computed = self.inner.compute(self.faulty(feature), arithmetic, options, clip)
        return computed if self.scores is None else self.scores(computed)

    def challenge(self, nonce: Nonce) -> None:
        assert isinstance(self.inner, Proving)
        self.inner.challenge(nonce)

    def evidence(self) -> Evidence:
        assert isinstance(self.inner, Proving)
        return self.inner.evidence()

    def faulty(self, feature: Feature) -> Feature:
        """Return the feature with this fault in its kernels, under a name of its own."""
        plant = self

        class Faulty(type(feature)):  # type: ignore[misc] # a class made while running
            name = f"{feature.name} with {plant.cause}"

            def kernel_source(self) -> str:
                return plant.kernels(feature.kernel_source())

        return Faulty()

    def close(self) -> None:
        """Leave the shared inner backend open."""


def run_cells(loaded: Matrix, cells: tuple[Cell, ...], candidate: Backend) -> Run:
    """Run cells for real; every backend but the reference is `candidate`."""
    command = f"parity-gate run {loaded.path}"
    return runner.run(
        loaded,
        runner.begun(loaded, cells, planned=len(cells), command=command),
        open_backend=lambda name: Cpu() if name == "cpu" else candidate,
        progress=runner.Progress(),
    )


def run_gate(candidate: Backend, *globs: str) -> Run:
    """Run cells of pr.yaml for real, with `candidate` in place of opencl:pocl.

    Those with VMAFx's conclusion run only where a glob says so: it refuses the NaN that many faults
    leave, which is an ERROR and not a FAIL.
    """
    loaded = matrix.load(PR)
    planned = plan.plan(loaded)
    chosen = [f"{glob}/{CANDIDATE}" for glob in globs]
    assert all(plan.select(planned, [glob]) for glob in chosen), "a glob that names no cell"
    cells = plan.select(planned, chosen)
    wanted = [c for c in cells if c.conclusion == CONCLUSIONS[0] or any("+" in g for g in globs)]
    return run_cells(loaded, tuple(wanted), candidate)


class Cause(NamedTuple):
    """A wrong construct and cells of pr.yaml (globs without candidate) that must turn red.

    Where the cause allows it these are ieee cells, whose bits no processor decides.

    `swaps` are texts of the kernels and what stands there instead; `patch` spoils the host's part.
    """

    name: str
    cells: tuple[str, ...]
    swaps: tuple[tuple[str, str], ...] = ()
    patch: Callable[[pytest.MonkeyPatch], None] | None = None

    @property
    def feature(self) -> str:
        """Return the feature whose twin is spoiled."""
        return self.cells[0].partition("/")[0]

    def kernels(self, source: str) -> str:
        """Put the wrong construct in; a source without the right one is no plant."""
        for right, wrong in self.swaps:
            assert source.count(right) == 1, f"{self.name}: the kernels have changed"
            source = source.replace(right, wrong)
        return source

    def planted(self, inner: Backend) -> Planted:
        """Return a backend that computes with this cause."""
        return Planted(inner, self.name, kernels=self.kernels)
