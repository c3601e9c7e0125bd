"""A candidate whose process crashes or hangs costs the cells that it was on, and no others."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import planted_worker
import pytest
from planted_worker import FATAL
from program import started

from gate import workers
from gate.workers import Worker

MATRIX = f"""\
version: 1
fixtures:
  before: {{generator: noise, width: 17, height: 17, bit_depth: 8}}
  fatal: {{generator: noise, width: {FATAL}, height: 17, bit_depth: 8}}
  after: {{generator: noise, width: 20, height: 17, bit_depth: 8}}
matrix:
  - feature: float_adm
    candidates: [opencl:pocl]
    dialects: [ieee-single]
    timeout: 5
    fixtures: ["*"]
"""


def plant(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the candidate have a fault, and go where the matrix is."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PLANTED", fault)
    program = (planted_worker.__file__,)
    monkeypatch.setattr(workers, "open_worker", partial(Worker, program=program))
    Path("m.yaml").write_text(MATRIX, "utf-8")


@pytest.mark.parametrize(
    ("fault", "reason", "words"),
    [
        ("killed", "the process of opencl:pocl was ended by signal 9 (SIGKILL)", ""),
        ("crashed", "the process of opencl:pocl was ended by signal 11 (SIGSEGV)", "address 0"),
        ("aborted", "the process of opencl:pocl was ended by signal 6 (SIGABRT)", "Aborted"),
        ("left", "the process of opencl:pocl ended with exit code 7", "the driver gives up"),
        ("out of memory", "MemoryError: Unable to allocate 2.00 GiB", "planted_worker.py"),
        ("lost", "RuntimeError: CL_DEVICE_NOT_AVAILABLE", "planted_worker.py"),
        ("hung", "opencl:pocl was computing for more than 5 s", "waiting for the device"),
    ],
)
def test_a_crash_is_the_error_of_one_cell(
    fault: str,
    reason: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plant(fault, tmp_path, monkeypatch)
    ended = started(capsys, "run", "m.yaml", "--require", "opencl:pocl")
    assert (ended.code, ended.err) == (4, "")
    assert ended.verdict == "ERROR: 3 cells, 2 PASS, 1 ERROR, 14 scores compared, 0 different"
    cells = json.loads(Path("out/report.json").read_text("utf-8"))["cells"]
    assert [cell["status"] for cell in cells] == ["PASS", "ERROR", "PASS"]
    assert cells[1]["reason"].startswith(reason)
    assert words in cells[1]["detail"]
    root = ET.fromstring(Path("out/junit.xml").read_text("utf-8"))  # noqa: S314 - our own document
    errors = [case.find("error") for case in root.iter("testcase")]
    assert [error is not None for error in errors] == [False, True, False]
    assert errors[1] is not None
    assert reason in (errors[1].text or "")


def test_a_device_that_flips_a_bit_now_and_then_is_red_in_every_report_with_its_probability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant("flipping", tmp_path, monkeypatch)
    ended = started(capsys, "run", "m.yaml", "--repeat", "60")
    assert ended.code == 1
    assert ended.verdict.startswith("FAIL: 3 cells, 2 PASS, 1 NONDETERMINISTIC, ")
    cells = json.loads(Path("out/report.json").read_text("utf-8"))["cells"]
    assert [cell["status"] for cell in cells] == ["PASS", "NONDETERMINISTIC", "PASS"]
    assert [cell["stability"]["results"] for cell in cells] == [1, 2, 1]
    rare = cells[1]["stability"]["rare"]
    assert 0 < rare < 15
    told = f"opencl:pocl gave 2 different results in 60 runs, {rare} runs unlike"
    assert cells[1]["reason"].startswith(told)
    chance = min(0.99, round(1 - (1 - rare / 60) ** 60, 2))
    assert f"with probability {chance:g}" in cells[1]["reason"]
    for report in ("junit.xml", "report.md"):
        assert told in Path("out", report).read_text("utf-8")
    resumed = started(capsys, "rerun", "out/report.json", "--failed", "--matrix", "m.yaml")
    assert resumed.code == 1  # the same draws again: nothing was retried to green
