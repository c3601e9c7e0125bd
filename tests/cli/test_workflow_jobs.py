"""Jobs of the workflows, run as bash scripts without GitHub, make the artifacts that they upload.

Their step `install` is left out: what is installed here is used. `make install` in a clean clone is
tried by hand, as ci/README.md says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import workflow_steps
from requirements import absent

from backends import registry
from backends.base import Unavailable

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
REPORTS = {"junit.xml", "report.md", "report.json"}


class Desk(NamedTuple):
    """A folder that stands for the checkout, and one for what GitHub keeps."""

    checkout: Path
    runner: Path

    def artifact(self, name: str) -> set[str]:
        return {path.name for path in (self.runner / "artifacts" / name).iterdir()}

    def with_gate(self, text: str) -> None:
        """Take a shell script for parity-gate."""
        programs = self.checkout / ".venv" / "bin"
        programs.unlink()
        programs.mkdir()
        (programs / "parity-gate").write_text(f"#!/bin/sh\n{text}\n", "utf-8")
        (programs / "parity-gate").chmod(0o755)

    def run(
        self, workflow: str, job: str, values: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = {"install": {"bin": str(self.checkout / ".venv" / "bin")}}
        script = workflow_steps.script(WORKFLOWS / workflow, job, values, done)
        command = ["bash", "-c", script.replace("matrices/pr.yaml", "matrices/smoke.yaml")]
        return subprocess.run(
            command,
            cwd=self.checkout,
            env=os.environ | {"RUNNER_TEMP": str(self.runner)},
            capture_output=True,
            text=True,
            check=False,
        )

    def sweep(self, job: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        values = {
            "inputs.lane": "lane",
            "inputs.switch": "on",
            "inputs.matrix": "matrices/smoke.yaml",
            "inputs.cells": "*/noise_17x17_8/opencl:pocl",
            "inputs.require": "opencl:pocl",
            "matrix.shard": "1",
            "strategy.job-total": "1",
        }
        return self.run("sweep.yml", job, values | {f"inputs.{k}": v for k, v in inputs.items()})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path / "checkout", tmp_path / "runner")
    for folder in (made.runner, made.checkout, made.checkout / ".venv"):
        folder.mkdir()
    (made.checkout / "matrices").symlink_to(ROOT / "matrices")
    (made.checkout / "ci").symlink_to(ROOT / "ci")
    (made.checkout / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    return made


def need(*backends: str) -> None:
    for name in backends:
        try:
            registry.open_backend(name).close()
        except Unavailable as absence:
            absent(name, absence)


def test_the_gate_of_a_pull_request_makes_what_it_uploads(desk: Desk) -> None:
    need("opencl:pocl", "libvmaf")
    finished = desk.run("pull-request.yml", "gate")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert desk.artifact("gate") >= REPORTS
    report = json.loads((desk.runner / "artifacts" / "gate" / "report.json").read_text("utf-8"))
    assert report["verdict"].startswith("PASS: 351 cells")
    assert "PASS" in (desk.runner / "summary.md").read_text("utf-8")


def test_a_sweep_makes_the_artifacts_of_its_shard_and_of_the_merge(desk: Desk) -> None:
    need("opencl:pocl")
    assert desk.sweep("merge").returncode != 0  # there is no shard yet
    finished = desk.sweep("shard")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert desk.artifact("lane-shard-1") >= REPORTS
    finished = desk.sweep("merge")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert desk.artifact("lane") >= REPORTS


def test_a_red_gate_uploads_its_reports_and_the_job_is_red(desk: Desk) -> None:
    desk.with_gate("mkdir out; echo red >out/report.md; exit 1")
    assert desk.run("pull-request.yml", "gate").returncode == 1
    assert desk.artifact("gate") == {"report.md"}


def test_a_gate_that_leaves_no_reports_is_red(desk: Desk) -> None:
    desk.with_gate("true")
    finished = desk.run("pull-request.yml", "gate")
    assert finished.returncode == 1
    assert "artifact gate: there is no out" in finished.stderr


def test_the_switch_of_a_lane_is_told_to_its_jobs(desk: Desk) -> None:
    assert desk.sweep("switch", switch="of").returncode == 2
    assert desk.sweep("switch", switch="on").returncode == 0
    assert (desk.runner / "outputs" / "switch").read_text("utf-8") == "lane=on\n"


def test_a_gpu_lane_starts_the_gate_with_its_own_words_on_a_device_of_its_own(desk: Desk) -> None:
    desk.with_gate('echo "$CUDA_VISIBLE_DEVICES: $*"; mkdir -p out')
    smi = desk.checkout / ".venv" / "bin" / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho GPU-1\n", "utf-8")
    smi.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{smi.parent}{os.pathsep}{os.environ['PATH']}")
        patch.setenv("PARITY_GATE_LOCKS", str(desk.runner))
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        cells, require = "*/cuda */opencl:nvidia", "cuda opencl:nvidia"
        finished = desk.sweep("shard", cells=cells, require=require)
    assert finished.returncode == 0, finished.stderr
    arguments = "--require cuda --require opencl:nvidia --cell */cuda --cell */opencl:nvidia"
    assert finished.stdout.splitlines()[-2:] == [
        "GPU-1: doctor",
        f"GPU-1: run matrices/smoke.yaml {arguments} --shard 1/1 --out out",
    ]


def test_a_gpu_lane_without_a_gpu_stops_before_it_installs_anything(desk: Desk) -> None:
    desk.with_gate("echo ran; mkdir -p out")
    smi = desk.checkout / ".venv" / "bin" / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho no driver\nexit 9\n", "utf-8")
    smi.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{smi.parent}{os.pathsep}{os.environ['PATH']}")
        finished = desk.sweep("shard", require="cuda")
    assert finished.returncode == 1  # of the upload, the last red step
    assert "cuda is required, but this runner shows no NVIDIA GPU" in finished.stderr
    assert finished.stdout == ""
    assert not (desk.runner / "outputs" / "3-install").exists()
