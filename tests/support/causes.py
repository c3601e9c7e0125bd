"""All wrong constructs.

Run as a program, it plants every cause in all cells of its feature in pr.yaml and prints the table
of tests/planted/README.md.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import float_adm_causes
import integer_adm_causes
import pytest
from planting import CANDIDATE, Cause, run_gate

from backends import registry
from gate.model import Status

if TYPE_CHECKING:
    from backends.base import Backend

CAUSES = [*float_adm_causes.CAUSES, *integer_adm_causes.CAUSES]


def _row(cause: Cause, inner: Backend) -> str:
    """Plant a cause in all of its feature's cells and return its row of the table."""
    with pytest.MonkeyPatch.context() as patch:
        if cause.patch is not None:
            cause.patch(patch)
        run = run_gate(cause.planted(inner), f"{cause.feature}/*")
    red = [result for result in run.results if result.status is not Status.PASS]
    fixtures = Counter(result.cell.fixture for result in red)
    named = ", ".join(f"`{glob}`" for glob in cause.cells)
    return (
        f"| {cause.name} | {len(red)} of {len(run.results)} | {run.different} of {run.scores} "
        f"| {len(fixtures)} | {named} |"
    )


def main() -> None:
    """Print the table."""
    inner = registry.open_backend(CANDIDATE)
    print("| cause | red cells | scores that differ | fixtures | cells that a test names |")  # noqa: T201
    print("|---|--:|--:|--:|---|")  # noqa: T201
    for cause in CAUSES:
        print(_row(cause, inner), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
