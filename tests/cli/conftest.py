"""The program in this process, in a folder of its own, on backends that need no process."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest
import quick_gate
from program import Gate, started

from gate import workers

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Gate:
    """Return the program, run in this process in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "open_worker", quick_gate.open_quickly)
    return functools.partial(started, capsys)


@pytest.fixture
def matrices(gate: Gate) -> None:
    """Put a copy of the matrices into that folder."""
    del gate  # it has gone there
    Path("matrices").mkdir()
    shutil.copy(ROOT / "matrices/smoke.yaml", "matrices")
    shutil.copytree(ROOT / "matrices/data", "matrices/data")
