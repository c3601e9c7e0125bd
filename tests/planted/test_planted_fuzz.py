"""A fault in the twin is found by some dozens of random cells and comes out as a small matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from causes import CAUSES
from planting import CANDIDATE, Planted, run_cells
from program import started

from backends.cpu import Cpu
from gate import fuzz, matrix, plan, record, workers
from gate.model import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from backends.base import Backend
    from gate.model import Cell, Comparison

SEED, CELLS = 1, 120
FOUND = (
    "clamp for mirror at the near edge",
    "centre added last",
    "a column left unweighted",
    "mirror for clamp at the far edge of the mask",
    "the limited product rounded to nearest",
)


@pytest.mark.parametrize("name", FOUND)
def test_a_planted_fault_is_found_and_its_reproducer_fails_by_itself(
    name: str, pocl: Backend, tmp_path: Path
) -> None:
    (cause,) = (cause for cause in CAUSES if cause.name == name)
    faulty = cause.planted(pocl)
    drawn = fuzz.matrix_of(SEED, CELLS, (CANDIDATE,))
    own = [cell for cell in plan.plan(drawn) if cell.feature == cause.feature]
    run = run_cells(drawn, tuple(own), faulty)
    assert run.count(Status.FAIL) > 0
    with fuzz.Kept(lambda opened: Cpu() if opened == "cpu" else faulty) as backends:
        _, reproducers = fuzz.reproduce(run, SEED, backends, str)
    path = tmp_path / reproducers[0].name
    path.write_text(reproducers[0].text, "utf-8")
    loaded = matrix.load(path)
    (cell,) = plan.plan(loaded)
    assert cell.width * cell.height * cell.frames < 50 * 50
    assert len(cell.options) <= 2
    assert run_cells(loaded, (cell,), faulty).count(Status.FAIL) == 1
    assert run_cells(loaded, (cell,), Planted(pocl, "nothing")).count(Status.PASS) == 1


def test_a_rerun_of_the_report_finds_a_planted_fault_in_the_same_cells(
    pocl: Backend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (cause,) = (cause for cause in CAUSES if cause.name == FOUND[0])
    backends: dict[str, Callable[[], Backend]] = {
        "cpu": Cpu,
        CANDIDATE: lambda: cause.planted(pocl),
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "open_worker", lambda name: backends[name]())
    monkeypatch.setattr(fuzz, "TRIES", 1)

    def red(folder: Path) -> list[tuple[Cell, Comparison | None]]:
        run = record.load(folder / record.NAME)
        return [(r.cell, r.comparison) for r in run.results if r.status is Status.FAIL]

    drawn = ("fuzz", "--cells", "8", "--seed", str(SEED), "--candidate", CANDIDATE)
    assert started(capsys, *drawn, "--cell", f"{cause.feature}/*").code == 1
    assert started(capsys, "rerun", "out", "--failed").code == 1
    found = red(tmp_path / "out")
    assert 0 < len(found) < 8
    assert red(tmp_path / "out" / "rerun") == found
    backends[CANDIDATE] = lambda: Planted(pocl, "nothing")
    mended = started(capsys, "rerun", "out", "--failed")
    assert mended.code == 0
    assert mended.verdict.startswith(f"PASS: {len(found)} of 8 cells (repeated of run ")
