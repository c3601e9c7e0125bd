"""Runs cells that no matrix file has, drawn ones and those of corpora, and publishes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gate import angle, angle_runner, fuzz, runner, workers
from gate.arguments import as_started, run_command
from gate.publish import publish, publishing
from gate.terminal import cell_progress, counting, say, uncut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gate.angle import Asked
    from gate.fuzz import Drawing
    from gate.model import Cell, ExitCode


@dataclass(frozen=True, slots=True)
class Part:
    """What runs of a plan.

    Attributes:
        cells: in plan order.
        selection: the globs that chose them, for the record.
        required: backends that must be there.
        rerun_of: id of the run whose cells they repeat, if they do.
        fixtures: what that run's report says of their pictures or operands, by name.
    """

    cells: tuple[Cell, ...]
    selection: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    rerun_of: str = ""
    fixtures: Mapping[str, str] = field(default_factory=dict)


def finish_drawn(
    drawing: Drawing, part: Part, out: Path, ignore_interrupts: Callable[[], None]
) -> ExitCode:
    """Run drawn cells, make some of those that differ small, and publish all of it."""
    blank = runner.begun(
        drawing.matrix,
        part.cells,
        planned=len(drawing.planned),
        command=as_started(out, *drawing.arguments),
        selection=part.selection,
        required=part.required,
        notes=(f"drawn with seed {drawing.seed}",),
        rerun_of=part.rerun_of,
        fixtures=part.fixtures,
    )
    with fuzz.Kept(workers.open_worker) as backends:
        with cell_progress(len(part.cells)) as bar, publishing(out, blank, bar) as publisher:
            ran = runner.run(drawing.matrix, blank, open_backend=backends, progress=publisher)
        finished, reproducers = fuzz.reproduce(
            fuzz.without_agreed_refusals(ran),
            drawing.seed,
            backends,
            lambda name: run_command(out / name, out),
        )
        ignore_interrupts()
        small = {one.name: one.render for one in reproducers}
        told = "\n".join(f"small reproducer of {o.failed}:\n     {o.command}" for o in reproducers)
        return publish(finished, out, small, told, publisher.problem)


def finish_angle(
    asked: Asked, part: Part, out: Path, ignore_interrupts: Callable[[], None]
) -> ExitCode:
    """Run cells of operand corpora, tell how often each candidate differs, and publish it."""
    with counting("of the samples", asked.samples(part.cells)) as progress:
        finished = angle_runner.run(
            replace(asked, required=part.required, rerun_of=part.rerun_of, fixtures=part.fixtures),
            part.cells,
            selection=part.selection,
            command=as_started(out, *asked.arguments),
            open_backend=workers.open_worker,
            progress=progress,
        )
    ignore_interrupts()
    if (table := angle.table(asked, finished)).row_count:
        say(f"samples whose flag differs from the golden one:\n\n{uncut(table)}\n")
    return publish(finished, out)
