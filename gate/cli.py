"""The command line; the one place where the engine and the report writers meet."""

from __future__ import annotations

import json
import secrets
import sys
import traceback
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from backends import registry
from backends.base import Unavailable
from gate import (
    again,
    angle,
    control,
    environment,
    fuzz,
    plan,
    probe,
    runner,
    survey,
    workers,
)
from gate import matrix as matrices
from gate.arguments import (
    CacheOption,
    CandidateOption,
    CellOption,
    CountOption,
    MatrixArgument,
    OutOption,
    RepeatOption,
    RequireOption,
    ResumeOption,
    SeedOption,
    ShardOption,
    TableOption,
    UnlessResumed,
    described_cache,
    load_matrix,
    reference_cache,
    replayed,
    require_alone,
    require_known,
    run_command,
    selected_cells,
    shared,
)
from gate.bless import bless
from gate.matrixless import Part, finish_angle, finish_drawn
from gate.model import Cell, ExitCode, counted
from gate.publish import FILES, finish, prepare
from gate.terminal import (
    make_streams_safe,
    one_interrupt,
    require_candidates,
    say,
    section,
    stop,
)
from reports import schema as report_schema
from reports.wording import printable

app = typer.Typer(
    help="Compare kernels of VMAF features bit for bit with a trusted reference.",
    epilog="Exit codes: 0 every score is equal or a known deviation; 1 a score differs; "
    "2 bad usage or matrix; 3 nothing was proved; 4 a cell could not run; 130 interrupted.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(probe.app, name="probe")
app.command("report", epilog="Example: parity-gate report out")(again.render_report)
app.command("merge", epilog="Example: parity-gate merge out/1 out/2 out/3 --out out/all")(
    again.merge_shards
)
app.command("rerun", epilog="Example: parity-gate rerun out/report.json --failed")(
    again.rerun_cells
)
app.command(
    epilog="Example: parity-gate bless out --reason TEXT --owner NAME --expires 2027-06-30"
)(bless)


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
def run(  # noqa: PLR0913 - one option each
    *,
    matrix: UnlessResumed = None,
    cell: CellOption = None,
    require: RequireOption = None,
    out: OutOption = Path("out"),
    rcp_table: TableOption = None,
    shard: ShardOption = None,
    repeat: RepeatOption = None,
    cache: CacheOption = None,
    resume: ResumeOption = None,
) -> None:
    """Run the cells of MATRIX; write junit.xml, report.md and report.json into DIR.

    From the first moment on the reports are whole; what has not run yet is an error in them.
    """
    with one_interrupt() as ignore_interrupts:
        if resume is not None:
            require_alone(matrix, cell, require, rcp_table, shard, repeat)
            raise typer.Exit(again.resume(resume, reference_cache(wanted=cache), ignore_interrupts))
        if matrix is None:
            stop(ExitCode.USAGE, "name a MATRIX, or with --resume the folder of a stopped run")
        prepare(out, *FILES)
        required = tuple(require or ())
        require_known("--require", required)
        table = replayed(rcp_table)
        declared, cells, selected = load_matrix(matrix, cell)
        part, mine = shared(selected, shard)
        blank = runner.begun(
            declared,
            mine,
            planned=len(cells),
            command=run_command(matrix, out, rcp_table, repeat or 1),
            selection=tuple(cell or ()),
            required=required,
            rcp_table=rcp_table or "",
            shard=part,
            repeat=repeat or 1,
            sample=control.sample(selected),
        )
        kept = reference_cache(wanted=cache)
        raise typer.Exit(finish(declared, blank, out, table, kept, ignore_interrupts))


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
    with one_interrupt() as ignore_interrupts:
        prepare(out, *FILES, *fuzz.REPRODUCERS)
        required = tuple(require or ())
        candidates = tuple(dict.fromkeys(candidate or fuzz.CANDIDATES))
        require_known("--require", required, without=fuzz.REFERENCE)
        require_known("--candidate", candidates, without=fuzz.REFERENCE)
        require_candidates(required, candidates)
        seed = secrets.randbits(32) if seed is None else seed
        drawing = fuzz.Drawing(seed, cells, candidates)
        of = f"{drawing.matrix.path}; report.json lists all without --cell"
        selected = selected_cells(drawing.planned, cell, of)
        part = Part(selected, tuple(cell or ()), required)
        raise typer.Exit(finish_drawn(drawing, part, out, ignore_interrupts))


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
        prepare(out, *FILES)
        asked = angle.asked(candidate, require, full=full)
        selected = selected_cells(asked.cells, cell, f"{asked.title}; {asked.names}")
        for name in candidate or () if selected else ():
            if asked.kept_off(name, selected):
                sentence = f"--candidate {name} has no cell that --cell selects: {angle.NEAR_ONLY}"
                say(sentence, err=True)
        part = Part(selected, tuple(cell or ()), asked.required)
        raise typer.Exit(finish_angle(asked, part, out, ignore_interrupts))


@app.command("survey", epilog="Example: parity-gate survey matrices/nightly.yaml")
def survey_fixtures(
    matrix: MatrixArgument, fixture: survey.FixtureOption = None, out: OutOption = Path("out")
) -> None:
    """Count on the fixtures of MATRIX how often wrong spellings of the angle flag differ.

    Tells which scores that moves, at three gain limits; DIR/survey.md holds the same.
    """
    with one_interrupt() as ignore_interrupts:
        prepare(out, survey.REPORT)
        declared, *_ = load_matrix(matrix, None)
        found = survey.run(declared, fixture)
        ignore_interrupts()
        raise typer.Exit(survey.publish(found, out))


@app.command("list", epilog="Example: parity-gate list matrices/pr.yaml --cell '*/cuda'")
def list_cells(matrix: MatrixArgument, cell: CellOption = None) -> None:
    """Print the cells of MATRIX without running them; plain ids where the output is no terminal."""
    _, cells, selected = load_matrix(matrix, cell)
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
    section("reference cache", described_cache())
    sound = [_examine_features(), *map(_examine_backend, registry.backend_names())]
    for module, error in registry.broken().items():
        say(printable(f"{module}: cannot be imported: {error}"))
    raise typer.Exit(ExitCode.OK if all(sound) and not registry.broken() else ExitCode.ERROR)


@app.command(epilog="Example: parity-gate schema > matrices/schema.json")
def schema(
    *, report: Annotated[bool, typer.Option("--report", help="that of report.json instead")] = False
) -> None:
    """Print the JSON schema of matrix files, for editors, or of report.json."""
    say(json.dumps(report_schema.schema() if report else matrices.schema(), indent=2))


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
        with closing(workers.open_worker(name)) as backend:
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
