"""Measures what the gate itself costs: 1 000 and 10 000 cells whose backends compute nothing.

Usage: benchmark_engine.py. Prints seconds, those of each phase and peak memory of both runs, and
what a cell costs. Workers, journal and reports are those of every run; only the backends are empty.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from functools import wraps
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from backends.base import Scores
from backends.evidence import NO_NONCE, WITNESS, Evidence, Launch, Nonce
from gate import cli, publish, runner, worker, workers
from gate.proof import mixed_sum, witness

if TYPE_CHECKING:
    from collections.abc import Callable

WORK = "--work"
SIZES = (1_000, 10_000)
LAUNCHES = 33  # those of float_adm
PHASES = {
    "planning": (cli, "load_matrix"),
    "running": (runner, "run"),
    "reports": (publish, "write"),
}
MATRIX = """
version: 1
fixtures:
  grey: {{generator: flat, width: 17, height: 17, bit_depth: 8, ref_level: 1, dist_level: 2}}
matrix:
  - feature: float_adm
    candidates: [opencl:pocl]
    dialects: [ieee-single, ieee-double]
    options: [{options}]
    fixtures: [grey]
"""


class Empty:
    """Computes nothing, and returns the same scores and as much evidence as a device has."""

    def __init__(self, name: str) -> None:
        """Take the name of the backend that it stands for."""
        self.name = name
        self._nonce = NO_NONCE
        self._sums: dict[int, int] = {}  # of the one fixture's pictures, by a run's number

    def facts(self) -> dict[str, str]:
        """Say what it is."""
        return {"platform": "Portable Computing Language of none", "device": "none"}

    def challenge(self, nonce: Nonce) -> None:
        """Take the nonce."""
        self._nonce = nonce

    def evidence(self) -> Evidence:
        """Forge it; the reference has none but what it reads."""
        if self.name == "cpu":
            return Evidence()
        launches = [Launch(WITNESS, 1, 2), *[Launch("fold", 2, 3)] * LAUNCHES]
        witnesses = (witness(self._sums[self._nonce.run], self._nonce),)
        return Evidence((), self.facts(), tuple(launches), witnesses)

    def compute(self, feature, arithmetic, options, clip) -> Scores:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """Return zeros."""
        del arithmetic
        pictures = clip.read(0, clip.frames)
        if self._nonce.run not in self._sums:  # a device takes no time of the processor's for it
            self._sums[self._nonce.run] = mixed_sum(np.concatenate(pictures), self._nonce.run)
        names = feature.outputs(options)
        shape = clip.frames, len(names)
        return Scores(names, np.zeros(shape), np.zeros(shape, np.bool_))

    def close(self) -> None:
        """Do nothing."""


def timed(phase: str, work: Callable[..., Any], seconds: dict[str, float]) -> Callable[..., Any]:
    """Return `work`, which adds its time to that of a phase."""

    @wraps(work)
    def call(*arguments: object, **named: object) -> object:
        began = perf_counter()
        try:
            return work(*arguments, **named)
        finally:
            seconds[phase] = seconds.get(phase, 0) + perf_counter() - began

    return call


def run(cells: int, seconds: dict[str, float]) -> None:
    """Run the gate in this process on so many cells, in the present folder; time its phases."""
    options = ", ".join(f"{{adm_enhn_gain_limit: {1 + n / 10_000:.6g}}}" for n in range(cells // 2))
    Path("m.yaml").write_text(MATRIX.format(options=options), "utf-8")
    workers.open_worker = lambda name: workers.Worker(name, (__file__, WORK))  # no other program
    for phase, (module, name) in PHASES.items():
        setattr(module, name, timed(phase, getattr(module, name), seconds))
    sys.argv = ["parity-gate", "run", "m.yaml", "--no-cache"]
    cli.main()


def measured(cells: int) -> tuple[float, float]:
    """Return the seconds and the peak memory in MiB of a run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(cells)]
        began = perf_counter()
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        seconds = perf_counter() - began
    verdict = ended.stdout.splitlines()[-1]
    peak, phases = json.loads(ended.stderr.splitlines()[-1])
    told = ", ".join(f"{phase} {took:.2f}" for phase, took in phases.items())
    print(f"{verdict}: {seconds:.2f} s ({told}), {peak:.0f} MiB")
    return seconds, peak


def main() -> None:
    """Print both runs and what a cell costs."""
    (few, small), (many, large) = map(measured, SIZES)
    each = (many - few) / (SIZES[1] - SIZES[0])
    print(f"a cell: {1e3 * each:.3f} ms, {1024 * (large - small) / (SIZES[1] - SIZES[0]):.1f} KiB")


if __name__ == "__main__":
    if sys.argv[1:2] == [WORK]:
        del sys.argv[1]
        worker.main(Empty)
    elif sys.argv[1:]:
        phases: dict[str, float] = {}
        try:
            run(int(sys.argv[1]), phases)
        finally:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            os.write(2, f"{json.dumps([peak, phases])}\n".encode())
    else:
        main()
