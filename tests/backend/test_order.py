"""The order in which cells run decides no bit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from planting import Quiet

from backends import registry
from gate import matrix, plan, runner
from gate.model import ExitCode, Run

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


def test_cells_in_reverse_order_give_the_same_bits(
    device_backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_backend, "close", lambda: None)  # other tests use it again
    chosen = plan.select(plan.plan(matrix.load(SMOKE)), (f"*/{device_backend.name}",))
    forward, backward = run(chosen, device_backend), run(chosen[::-1], device_backend)
    assert forward.exit_code is backward.exit_code is ExitCode.OK
    compared = {result.cell.id: result.comparison for result in forward.results}
    assert compared == {result.cell.id: result.comparison for result in backward.results}
    references = sorted(forward.references, key=repr)
    assert references == sorted(backward.references, key=repr)
    assert len(references) == len(chosen)
