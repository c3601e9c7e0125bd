"""The program as a person starts it, with the real reference and the real kernels on PoCL."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from planting import CANDIDATE, Planted

from backends import registry
from gate import cli, workers

if TYPE_CHECKING:
    from backends.base import Backend, Scores

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "matrices" / "smoke.yaml"
TIMES = {"seconds", "reference_seconds", "nanoseconds", "started"}
TIMES |= {"id", "command"}  # which name the run


def without_times(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def smoke(out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gate", "run", str(SMOKE), "--cell", f"*/{CANDIDATE}"]
    command += ["--require", CANDIDATE, "--out", str(out)]
    return subprocess.run(command, cwd=out.parent, capture_output=True, text=True, check=False)


def test_two_runs_pass_and_differ_only_in_times(tmp_path: Path) -> None:
    outs = [tmp_path / "first", tmp_path / "second"]
    for out in outs:
        finished = smoke(out)
        assert finished.returncode == 0, finished.stderr
        verdict = finished.stdout.splitlines()[-1]
        assert verdict == ("PASS: 117 of 351 cells, 117 PASS, 3779 scores compared, 0 different")
    first, second = (json.loads((out / "report.json").read_text("utf-8")) for out in outs)
    assert first != second
    assert without_times(first) == without_times(second)


def test_the_junit_report_has_one_green_testcase_a_cell(tmp_path: Path) -> None:
    assert smoke(tmp_path / "out").returncode == 0
    root = ET.fromstring((tmp_path / "out" / "junit.xml").read_text("utf-8"))  # noqa: S314 - our own document
    cases = root.findall(".//testcase")
    assert len(cases) == 117
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == 117
    assert not any(case.findall(kind) for case in cases for kind in ("failure", "error", "skipped"))


def test_a_planted_fault_exits_1_and_turns_its_testcases_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def last_bit(scores: Scores) -> Scores:
        scores.values.view("u8")[0, 0] ^= 1
        return scores

    opened = registry.open_backend

    def open_planted(name: str) -> Backend:
        backend = opened(name)
        return Planted(backend, "last bit", scores=last_bit) if name == CANDIDATE else backend

    monkeypatch.setattr(workers, "open_worker", open_planted)
    cell = f"float_adm/ieee-single/default/noise_17x17_8/{CANDIDATE}"
    arguments = ["run", str(SMOKE), "--cell", cell, "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["parity-gate", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    (case,) = ET.fromstring((tmp_path / "junit.xml").read_text("utf-8")).findall(".//testcase")  # noqa: S314 - our own document
    assert case.get("name") == cell
    assert case.find("failure") is not None
    assert f"/repeat --cell {cell}" in capsys.readouterr().out  # the command that repeats it
