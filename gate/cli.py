"""The command line; the one place where the engine and the report writers meet."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from backends import reciprocal, registry
from backends.base import Unavailable
from backends.reciprocal import RcpTable
from gate import angle, angle_runner, environment, fuzz, plan, probe, runner, survey
from gate import matrix as matrices
from gate.document import unknown
from gate.errors import MatrixError
from gate.model import Cell, ExitCode, Run, counted
from gate.terminal import (
    cell_progress,
    counting,
    make_streams_safe,
    one_interrupt,
    rendered,
    require_candidates,
    say,
    section,
    stop,
    uncut,
    write_whole,
)
from reports import console as console_report
from reports import json as json_report
from reports import junit, markdown
from reports.wording import printable

REPORTS: Mapping[str, Callable[[Run], str]] = {
    "junit.xml": junit.render,
    "report.md": markdown.render,
    "report.json": json_report.render,
}

app = typer.Typer(
    help="Compare kernels of VMAF features bit for bit with a trusted reference.",
    epilog="Exit codes: 0 every score is equal or a known deviation; 1 a score differs; "
    "2 bad usage or matrix; 3 nothing was proved; 4 a cell could not run; 130 interrupted.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(probe.app, name="probe")

MatrixArgument = Annotated[Path, typer.Argument(metavar="MATRIX", help="the matrix file (YAML)")]
CellOption = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="only cells whose id matches; may be repeated"),
]
CountOption = Annotated[
    int,
    typer.Option(min=1, max=100_000, metavar="N", help="how many cells to draw, before candidates"),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        metavar="S",
        help="any integer; a seed draws the same cells each time, and others behind them with a "
        "larger N; by default a new one, which the verdict tells",
    ),
]
CandidateOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="BACKEND",
        help=f"a backend under test; may be repeated; by default {' and '.join(fuzz.CANDIDATES)}",
    ),
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="BACKEND", help="exit 3 where this backend cannot be opened; may be repeated"
    ),
]
OutOption = Annotated[
    Path, typer.Option(metavar="DIR", help="folder of the reports; old ones are removed first")
]
TableOption = Annotated[
    str | None,
    typer.Option(
        "--rcp-table",
        metavar="FILE|NAME",
        help="replay another processor's reciprocal estimate on both sides; "
        f"known: {', '.join(reciprocal.shipped())}",
    ),
]


def main() -> None:
    """Run the program; a crash shows its traceback and is no verdict about any score."""
    make_streams_safe()
    try:
        app(prog_name="parity-gate")
    except Exception:  # noqa: BLE001 - Python's own exit code 1 would read as FAIL
        say(traceback.format_exc(), err=True)
        sys.exit(ExitCode.ERROR)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer passes the flag so
    if wanted:
        say(f"parity-gate {environment.version()}")
        raise typer.Exit


@app.callback()
def _program(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: parity-gate run matrices/pr.yaml --require opencl:pocl")
def run(
    matrix: MatrixArgument,
    cell: CellOption = None,
    require: RequireOption = None,
    out: OutOption = Path("out"),
    rcp_table: TableOption = None,
) -> None:
    """Run the cells of MATRIX; write junit.xml, report.md and report.json into DIR."""
    with one_interrupt() as ignore_interrupts:
        _prepare(out, *REPORTS)
        required = tuple(require or ())
        _require_known("--require", required)
        table = _table_of(rcp_table)
        declared, cells, selected = _load(matrix, cell)
        with cell_progress(len(selected)) as progress:
            finished = runner.run(
                declared,
                selected,
                selection=tuple(cell or ()),
                planned=len(cells),
                required=required,
                command=_command(matrix, out, rcp_table),
                open_backend=registry.open_backend,
                progress=progress,
                rcp_table=table,
            )
        ignore_interrupts()
        raise typer.Exit(_publish(finished, out))


@app.command("fuzz", epilog="Example: parity-gate fuzz --cells 150 --seed 7 --candidate cuda")
def run_drawn_cells(
    *,
    cells: CountOption = 150,
    seed: SeedOption = None,
    candidate: CandidateOption = None,
    require: RequireOption = None,
    cell: CellOption = None,
    out: OutOption = Path("out"),
) -> None:
    """Run cells drawn at random; write reports and a small matrix for what differs into DIR.

    Each runs on every candidate that has its dialect and conclusion.
    """
    with one_interrupt() as ignore_interrupts, fuzz.Kept(registry.open_backend) as backends:
        _prepare(out, *REPORTS, *fuzz.REPRODUCERS)
        required, candidates = tuple(require or ()), tuple(candidate or fuzz.CANDIDATES)
        _require_known("--require", required, without=fuzz.REFERENCE)
        _require_known("--candidate", candidates, without=fuzz.REFERENCE)
        require_candidates(required, candidates)
        seed = secrets.randbits(32) if seed is None else seed
        drawn = fuzz.matrix_of(seed, cells, candidates)
        planned = plan.plan(drawn)
        selected = _selected(planned, cell, f"{drawn.path}; report.json lists all without --cell")
        named = [word for name in candidate or () for word in ("--candidate", name)]
        with cell_progress(len(selected)) as progress:
            finished = runner.run(
                drawn,
                selected,
                selection=tuple(cell or ()),
                planned=len(planned),
                required=required,
                command=_again(out, "fuzz", f"--cells={cells}", f"--seed={seed}", *named),
                open_backend=backends,
                progress=progress,
            )
        finished = fuzz.without_agreed_refusals(finished)
        finished, reproducers = fuzz.reproduce(
            replace(finished, notes=(*finished.notes, f"drawn with seed {seed}")),
            seed,
            backends,
            lambda name: _command(out / name, out),
        )
        ignore_interrupts()
        raise typer.Exit(_publish(finished, out, reproducers))


@app.command("angle", epilog="Example: parity-gate angle --full --require cuda")
def compare_angle_flags(
    *,
    full: angle.FullOption = False,
    candidate: angle.CandidateOption = None,
    require: RequireOption = None,
    cell: CellOption = None,
    out: OutOption = Path("out"),
) -> None:
    """Hold the angle flag of integer_adm against its golden predicate, on corpora of operands.

    Known wrong spellings run too, on near_1 to near_5, and must be seen to differ: a multiplies
    operands that were not narrowed, in int64; b computes in binary32 after narrowing; c narrows
    the products of a to binary32; d narrows nothing; e forms the dot products in binary32.

    Corpora: near_1 to near_5, band, walk, width_02, width_04, width_08, width_12, width_16,
    width_20, width_24, width_28, width_30, width_31, edges.
    """
    with one_interrupt() as ignore_interrupts:
        _prepare(out, *REPORTS)
        asked = angle.asked(candidate, require, full=full)
        selected = _selected(asked.cells, cell, f"{asked.title}; {asked.names}")
        for name in candidate or () if selected else ():
            if asked.kept_off(name, selected):
                sentence = f"--candidate {name} has no cell that --cell selects: {angle.NEAR_ONLY}"
                say(sentence, err=True)
        with counting("of the samples", asked.samples(selected)) as progress:
            finished = angle_runner.run(
                asked,
                selected,
                selection=tuple(cell or ()),
                command=_again(out, *asked.arguments),
                open_backend=registry.open_backend,
                progress=progress,
            )
        ignore_interrupts()
        if (table := angle.table(asked, finished)).row_count:
            say(f"samples whose flag differs from the golden one:\n\n{uncut(table)}\n")
        raise typer.Exit(_publish(finished, out))


@app.command("survey", epilog="Example: parity-gate survey matrices/nightly.yaml")
def survey_fixtures(
    matrix: MatrixArgument, fixture: survey.FixtureOption = None, out: OutOption = Path("out")
) -> None:
    """Count on the fixtures of MATRIX how often wrong spellings of the angle flag differ.

    Tells which scores that moves, at three gain limits; DIR/survey.md holds the same.
    """
    with one_interrupt() as ignore_interrupts:
        _prepare(out, survey.REPORT)
        declared, *_ = _load(matrix, None)
        found = survey.run(declared, fixture)
        ignore_interrupts()
        raise typer.Exit(survey.publish(found, out))


def _require_known(option: str, names: tuple[str, ...], *, without: str = "") -> None:
    allowed = [name for name in registry.backend_names() if name != without]
    for name in names:
        if name not in allowed:
            stop(ExitCode.USAGE, f"{option}: {unknown('backend', name, allowed)}")


@app.command("list", epilog="Example: parity-gate list matrices/pr.yaml --cell '*/cuda'")
def list_cells(matrix: MatrixArgument, cell: CellOption = None) -> None:
    """Print the cells of MATRIX without running them; plain ids where the output is no terminal."""
    _, cells, selected = _load(matrix, cell)
    if not selected:
        raise typer.Exit(ExitCode.NOTHING)
    piped = not sys.stdout.isatty()
    say("\n".join(cell.id for cell in selected) if piped else _table(selected))
    if not piped or sys.stderr.isatty():
        say(_totals(cells, selected), err=piped)


@app.command(epilog="Example: parity-gate doctor")
def doctor() -> None:
    """Print which backends are here, which are not and why, and the facts that decide bits."""
    section("gate", environment.gate())
    section("host", environment.host())
    sound = [_examine_features(), *map(_examine_backend, registry.backend_names())]
    for module, error in registry.broken().items():
        say(printable(f"{module}: cannot be imported: {error}"))
    raise typer.Exit(ExitCode.OK if all(sound) and not registry.broken() else ExitCode.ERROR)


@app.command(epilog="Example: parity-gate schema > matrices/schema.json")
def schema() -> None:
    """Print the JSON schema of a matrix file, for editors."""
    say(json.dumps(matrices.schema(), indent=2))


def _table_of(wanted: str | None) -> RcpTable | None:
    try:
        return None if wanted is None else reciprocal.load(wanted)
    except ValueError as error:
        stop(ExitCode.USAGE, f"--rcp-table: {error}")


def _command(matrix: Path, out: Path, rcp_table: str | None = None) -> str:
    """Return how a matrix is run like this, with a folder of its own for the reports."""
    replay = ["--rcp-table", rcp_table] if rcp_table else []
    return _again(out, "run", str(matrix), *replay)


def _again(out: Path, *arguments: str) -> str:
    """Return how this program was started, with a folder of its own for the reports."""
    started = Path(sys.argv[0])
    program = "python -m gate" if started.name == "__main__.py" else sys.argv[0]
    if shutil.which(started.name) == str(started):
        program = started.name
    return shlex.join([*program.split(), *arguments, "--out", str(out / "repeat")])


def _load(
    path: Path, globs: list[str] | None
) -> tuple[matrices.Matrix, tuple[Cell, ...], tuple[Cell, ...]]:
    """Return the matrix, its cells and the selected ones; a wrong matrix ends the program."""
    for module, error in registry.broken().items():
        say(printable(f"{module}: cannot be imported: {error}"), err=True)
    try:
        matrix = matrices.load(path)
        cells = plan.plan(matrix)
    except MatrixError as error:
        stop(ExitCode.USAGE, "\n".join(error.problems))
    for place, sentence in matrix.warnings.items():
        say(printable(f"{place}: {sentence}"), err=True)
    return matrix, cells, _selected(cells, globs, f"{path}; `parity-gate list` prints their ids")


def _selected(cells: tuple[Cell, ...], globs: list[str] | None, of: str) -> tuple[Cell, ...]:
    """Return the cells that the globs match; none at all where a glob matches none."""
    idle = [glob for glob in globs or () if not plan.select(cells, (glob,))]
    for glob in idle:
        sentence = f"--cell {glob!r} matches none of the {len(cells)} cells of {of}"
        say(printable(sentence), err=True)
    # A glob that has lost its cells must not let the others pass for all.
    return () if idle else plan.select(cells, tuple(globs or ()))


def _prepare(out: Path, *names: str) -> None:
    """Make the folder of the reports and remove old ones, so that no stale report survives.

    Args:
        out: the folder.
        names: the files that this command may write; those of other commands stay.
    """
    try:
        if out == Path():
            raise NotADirectoryError(None, "it names no folder")
        out.mkdir(parents=True, exist_ok=True)
        for name in names:
            (out / name).unlink(missing_ok=True)
        if not os.access(out, os.W_OK | os.X_OK):
            raise PermissionError(None, "Permission denied")
    except OSError as error:
        sentence = f"--out {str(out)!r} cannot take reports: {error.strerror}"
        stop(ExitCode.USAGE, f"{sentence}; name a folder that can be written")


def _publish(run: Run, out: Path, reproducers: Iterable[fuzz.Reproducer] = ()) -> ExitCode:
    """Write the reports, print the result, return the exit code."""
    files = {**REPORTS, **{reproducer.name: reproducer.render for reproducer in reproducers}}
    problems = {out / name: _write(out / name, render, run) for name, render in files.items()}
    say(rendered(console_report.table(run)))
    for path, problem in problems.items():
        if problem:
            say(printable(f"{path} cannot be written: {problem}"), err=True)
        else:
            say(printable(f"wrote {path}"))
    for reproducer in reproducers:
        say(printable(f"small reproducer of {reproducer.failed}:\n     {reproducer.command}"))
    say(printable(run.verdict))
    complete = not any(problems.values())
    return run.exit_code if complete or run.exit_code is not ExitCode.OK else ExitCode.ERROR


def _write(path: Path, render: Callable[[Run], str], run: Run) -> str:
    """Write one report, whole or not at all; return why not, else an empty text."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)  # it may have gone during the run
        write_whole(path, render(run))
    except OSError as error:
        return f"{error.strerror}; mend that or give another --out"
    except Exception as error:  # noqa: BLE001 - the other reports and the verdict still count
        traceback.print_exc()
        return f"{type(error).__name__}: {error}; this is a mistake of the program"
    return ""


def _table(cells: tuple[Cell, ...]) -> str:
    """Return one line per cell, never cut, for ids are there to be copied."""
    width = max(len(cell.id) for cell in cells)
    lines = [f"{'cell':{width}}  scores  remark"]
    lines += [f"{cell.id:{width}}  {cell.scores:6}  {printable(_remark(cell))}" for cell in cells]
    return "\n".join(line.rstrip() for line in lines)


def _remark(cell: Cell) -> str:
    if cell.skip:
        return f"skipped: {cell.skip}"
    return f"known deviation: {cell.deviation.reason}" if cell.deviation else ""


def _totals(cells: tuple[Cell, ...], selected: tuple[Cell, ...]) -> str:
    scores = counted(sum(cell.scores for cell in selected), "score")
    parts = [f"{len(selected)} of {counted(len(cells), 'cell')}", scores]
    if seconds := plan.estimate(selected):
        parts.append(f"about {round(seconds)} s on two cores with PoCL")
    return ", ".join(parts)


def _examine_backend(name: str) -> bool:
    """Print what is known about a backend; return whether nothing is broken."""
    try:
        with closing(registry.open_backend(name)) as backend:
            section(f"{name}: here", backend.facts())
    except Unavailable as error:
        say(printable(f"{name}: not here: {error}"))
    except Exception as error:  # noqa: BLE001 - doctor says what is wrong with each backend
        say(printable(f"{name}: broken: {type(error).__name__}: {error}"))
        return False
    return True


def _examine_features() -> bool:
    """Print what decides the bits of each feature's reference; return whether all are there."""
    try:
        for name, feature in registry.features().items():
            section(f"feature {name}", feature.reference_facts())
    except Exception as error:  # noqa: BLE001 - doctor says what is wrong with the installation
        say(printable(f"features: broken: {type(error).__name__}: {error}"))
        return False
    return True
