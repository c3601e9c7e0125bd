"""Compares the peak memory of a gate run on 10 and on 100 frames of 3840x2160.

Usage: benchmark_memory.py BACKEND. Prints both peaks of the host, with its workers, and their
ratio (for cuda also of the device, read by nvidia-smi while the run goes on); a run's memory is
bounded by its batch, so the ratio stays near 1.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

MATRIX = """
version: 1
fixtures:
  noise: {{generator: noise, width: 3840, height: 2160, bit_depth: 8, frames: {frames}}}
matrix:
  - {{feature: float_adm, candidates: ["{backend}"], fixtures: [noise]}}
"""
ALLOWED = 1.2
QUERY = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]


def peaks(backend: str, frames: int, folder: Path) -> tuple[float, float]:
    """Run the gate and return the peaks of host and device in MiB; 0 without a device to ask."""
    (folder / "memory.yaml").write_text(MATRIX.format(backend=backend, frames=frames), "utf-8")
    command = [
        sys.executable,
        "-m",
        "gate",
        "run",
        "memory.yaml",
        "--no-cache",
        "--require",
        backend,
    ]
    host = device = 0.0
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            host = max(host, sum(map(_high_water, _with_workers(process.pid))))
            if backend == "cuda":
                used = subprocess.run(QUERY, capture_output=True, text=True, check=True).stdout
                device = max(device, float(used.split()[0]))
            time.sleep(0.05)
        verdict = process.communicate()[0].strip().rpartition("\n")[2]
    if process.returncode:
        sys.exit(verdict)
    print(f"{frames} frames on {backend}: {verdict}; host {host:.0f} MiB, device {device:.0f} MiB")
    return host, device


def _with_workers(pid: int) -> list[int]:
    """Return the process and those that it started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8")
    except OSError:
        return [pid]
    return [pid, *map(int, children.split())]


def _high_water(pid: int) -> float:
    """Return the largest resident memory so far in MiB; 0 once the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return 0.0
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines.get("VmHWM", "0 kB").split()[0]) / 1024


def main(backend: str) -> None:
    """Print the two runs and their ratios."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = (peaks(backend, frames, Path(folder)) for frames in (10, 100))
    ratios = [m / f for m, f in zip(many, few, strict=True) if f]
    print("ratio, host and device:", ", ".join(f"{ratio:.3f}" for ratio in ratios))
    if max(ratios) > ALLOWED:
        sys.exit(f"memory grows with the clip: allowed ratio {ALLOWED}")


if __name__ == "__main__":
    main(*sys.argv[1:])
