"""The order in which cells run decides no bit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from planting import Quiet

from backends import registry
from gate import matrix, plan, runner
from gate.model import ExitCode, Run, Status, exact

if TYPE_CHECKING:
    from backends.base import Backend
    from gate.model import Cell

SMOKE = Path(__file__).parents[2] / "matrices" / "smoke.yaml"


def run(cells: tuple[Cell, ...], device: Backend) -> Run:
    cpu = registry.open_backend("cpu")
    return runner.run(
        matrix.load(SMOKE),
        cells,
        selection=(),
        planned=len(cells),
        required=(),
        command="",
        open_backend=lambda name: cpu if name == "cpu" else device,
        progress=Quiet(),
    )


def bits(run: Run) -> set[tuple[str, ...]]:
    """Return every reference's scores as exact text; the candidate's are equal to them."""
    return {
        (scores.dialect, scores.options_name, scores.fixture, *map(exact, values))
        for scores in run.references
        for values in scores.frames
    }


def test_no_order_of_cells_changes_a_bit(
    device_backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_backend, "close", lambda: None)  # other tests use it again
    cells = plan.select(plan.plan(matrix.load(SMOKE)), (f"*/{device_backend.name}",))
    shuffled = tuple(random.Random(1420).sample(cells, len(cells)))  # noqa: S311 - any fixed order
    runs = [run(order, device_backend) for order in (cells, cells[::-1], shuffled)]
    assert [r.exit_code for r in runs] == [ExitCode.OK] * 3
    assert [r.count(Status.PASS) for r in runs] == [len(cells)] * 3
    assert bits(runs[0]) == bits(runs[1]) == bits(runs[2])
    assert len(bits(runs[0])) == 96  # twelve frames, two option sets, four dialects
