"""What reports say of the runtimes behind candidates: what ran, and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gate.model import counted

if TYPE_CHECKING:
    from gate.model import Run

Tally = tuple[int, int, int]  # cells, launches, nanoseconds


def facts(run: Run) -> dict[str, str]:
    """Return a sentence about the evidence of all candidates; nothing where there is none."""
    groups: dict[tuple[str, str], Tally] = {}
    for result in run.results:
        if (proof := result.proof) is not None:
            of = result.cell.candidate, proof.runtime
            cells, launches, time = groups.get(of, (0, 0, 0))
            groups[of] = cells + 1, launches + proof.launches, time + proof.nanoseconds
    told = (_sentence(*of, *tally) for of, tally in groups.items())
    return {"evidence": "; ".join(told)} if groups else {}


def _sentence(candidate: str, runtime: str, cells: int, launches: int, time: int) -> str:
    of = counted(cells, "cell")
    if not runtime:
        return f"{candidate} read every frame of {of}"
    if not launches:
        return f"{candidate} ran in {of}: {runtime}"
    return (
        f"{candidate} ran {counted(launches, 'kernel')} in {of}, {time / 1e9:.2f} s, on {runtime}"
    )
