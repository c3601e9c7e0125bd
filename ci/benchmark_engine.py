"""Measures what the gate itself costs: 1 000 and 10 000 cells whose backends compute nothing.

Usage: benchmark_engine.py. Prints seconds and peak memory of both runs, and their ratio a cell.
Workers, journal and reports are those of every run; only the backends are empty.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from backends.base import Scores
from gate import cli, worker, workers

WORK = "--work"
SIZES = (1_000, 10_000)
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
    """Computes nothing and returns the same scores at once."""

    def __init__(self, name: str) -> None:
        """Take the name of the backend that it stands for."""
        self.name = name

    def facts(self) -> dict[str, str]:
        """Say what it is."""
        return {"device": "none"}

    def compute(self, feature, arithmetic, options, clip) -> Scores:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """Return zeros."""
        del arithmetic
        shape = clip.frames, len(feature.outputs(options))
        return Scores(feature.outputs(options), np.zeros(shape), np.zeros(shape, np.bool_))

    def close(self) -> None:
        """Do nothing."""


def run(cells: int) -> None:
    """Run the gate in this process on so many cells, in the present folder."""
    options = ", ".join(f"{{adm_enhn_gain_limit: {1 + n / 10_000:.6g}}}" for n in range(cells // 2))
    Path("m.yaml").write_text(MATRIX.format(options=options), "utf-8")
    workers.open_worker = lambda name: workers.Worker(name, (__file__, WORK))  # no other program
    sys.argv = ["parity-gate", "run", "m.yaml"]
    cli.main()


def measured(cells: int) -> tuple[float, float]:
    """Return the seconds and the peak memory in MiB of a run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(cells)]
        began = perf_counter()
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        seconds = perf_counter() - began
    verdict = ended.stdout.splitlines()[-1]
    peak = float(ended.stderr.splitlines()[-1])
    print(f"{verdict}: {seconds:.2f} s, {peak:.0f} MiB")
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
        try:
            run(int(sys.argv[1]))
        finally:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            os.write(2, f"{peak}\n".encode())
    else:
        main()
