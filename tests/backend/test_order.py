"""The order in which cells run decides no bit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from planting import run_cells

from gate import matrix, plan
from gate.model import ExitCode, Run, Status, exact

if TYPE_CHECKING:
    from backends.base import Backend

SMOKE = Path(__file__).parents[2] / "matrices" / "smoke.yaml"


def bits(run: Run) -> set[tuple[str, ...]]:
    """Return every reference's scores as exact text; the candidate's are equal to them."""
    return {
        (
            scores.feature,
            scores.dialect,
            scores.conclusion,
            scores.options_name,
            scores.fixture,
            *map(exact, values),
        )
        for scores in run.references
        for values in scores.frames
    }


def test_no_order_of_cells_changes_a_bit(
    device_backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_backend, "close", lambda: None)  # other tests use it again
    smoke = matrix.load(SMOKE)
    cells = plan.select(plan.plan(smoke), (f"*/{device_backend.name}",))
    shuffled = tuple(random.Random(1420).sample(cells, len(cells)))  # noqa: S311 - any fixed order
    runs = [run_cells(smoke, order, device_backend) for order in (cells, cells[::-1], shuffled)]
    assert [r.exit_code for r in runs] == [ExitCode.OK] * 3
    assert [r.count(Status.PASS) for r in runs] == [len(cells)] * 3
    assert bits(runs[0]) == bits(runs[1]) == bits(runs[2])
    # float: three option sets in four dialects, one more with VMAFx's conclusion; integer: three in
    # two dialects and one more, but netflix has no result for the smallest frame
    assert len(bits(runs[0])) == 13 * (3 * 4 + 1) + 13 * (3 * 2 + 1) - 3
