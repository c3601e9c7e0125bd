"""The command line; the one place where the engine and the report writers meet."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM
from typing import Annotated, NoReturn

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from backends import registry
from backends.base import Unavailable
from gate import environment, plan, runner
from gate import matrix as matrices
from gate.document import unknown
from gate.errors import MatrixError
from gate.model import Cell, ExitCode, Result, Run, counted
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
    epilog="Exit codes: 0 every score is equal; 1 a score differs; 2 bad usage or matrix; "
    "3 nothing was proved; 4 a cell could not run; 130 interrupted.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

MatrixArgument = Annotated[Path, typer.Argument(metavar="MATRIX", help="the matrix file (YAML)")]
CellOption = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="only cells whose id matches; may be repeated"),
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


def main() -> None:
    """Run the program; a crash shows its traceback and is no verdict about any score."""
    _make_streams_safe()
    try:
        app(prog_name="parity-gate")
    except Exception:  # noqa: BLE001 - Python's own exit code 1 would read as FAIL
        _say(traceback.format_exc(), err=True)
        sys.exit(ExitCode.ERROR)


def _make_streams_safe() -> None:
    """Let no closed stream and no narrow encoding decide about the exit code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller, `2>&-`
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - lives as long as the program
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _one_interrupt() -> Iterator[Callable[[], None]]:
    """Let the first SIGINT, SIGTERM or SIGHUP end the run, and ignore those after it.

    Yields:
        A function that ignores even the first one, for the time when reports are written.
    """

    def ignore() -> None:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)

    def interrupt(*_: object) -> NoReturn:
        ignore()
        raise KeyboardInterrupt

    signals = {n: signal.signal(n, interrupt) for n in (SIGINT, SIGTERM, SIGHUP)}
    try:
        yield ignore
    finally:
        for number, before in signals.items():
            signal.signal(number, before)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer passes the flag so
    if wanted:
        _say(f"parity-gate {environment.version()}")
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
) -> None:
    """Run the cells of MATRIX; write junit.xml, report.md and report.json into DIR."""
    with _one_interrupt() as ignore_interrupts:
        _prepare(out)
        required = tuple(require or ())
        _require_known(required)
        declared, cells, selected = _load(matrix, cell)
        with _progress(len(selected)) as progress:
            finished = runner.run(
                declared,
                selected,
                selection=tuple(cell or ()),
                planned=len(cells),
                required=required,
                command=_command(matrix, out),
                open_backend=registry.open_backend,
                progress=progress,
            )
        ignore_interrupts()
        raise typer.Exit(_publish(finished, out))


def _require_known(names: tuple[str, ...]) -> None:
    for name in names:
        if name not in registry.backend_names():
            sentence = unknown("backend", name, registry.backend_names())
            _stop(ExitCode.USAGE, f"--require: {sentence}")


@app.command("list", epilog="Example: parity-gate list matrices/pr.yaml --cell '*/cuda'")
def list_cells(matrix: MatrixArgument, cell: CellOption = None) -> None:
    """Print the cells of MATRIX without running them; plain ids where the output is no terminal."""
    _, cells, selected = _load(matrix, cell)
    if not selected:
        raise typer.Exit(ExitCode.NOTHING)
    piped = not sys.stdout.isatty()
    _say("\n".join(cell.id for cell in selected) if piped else _table(selected))
    if not piped or sys.stderr.isatty():
        _say(_totals(cells, selected), err=piped)


@app.command(epilog="Example: parity-gate doctor")
def doctor() -> None:
    """Print which backends are here, which are not and why, and the facts that decide bits."""
    _section("gate", environment.gate())
    _section("host", environment.host())
    sound = [_examine_features(), *map(_examine_backend, registry.backend_names())]
    for module, error in registry.broken().items():
        _say(printable(f"{module}: cannot be imported: {error}"))
    raise typer.Exit(ExitCode.OK if all(sound) and not registry.broken() else ExitCode.ERROR)


@app.command(epilog="Example: parity-gate schema > matrices/schema.json")
def schema() -> None:
    """Print the JSON schema of a matrix file, for editors."""
    _say(json.dumps(matrices.schema(), indent=2))


def _command(matrix: Path, out: Path) -> str:
    """Return how this run was started, with a folder of its own for the reports of a repeat."""
    started = Path(sys.argv[0])
    program = "python -m gate" if started.name == "__main__.py" else sys.argv[0]
    if shutil.which(started.name) == str(started):
        program = started.name
    return shlex.join([*program.split(), "run", str(matrix), "--out", str(out / "repeat")])


def _say(text: str, *, err: bool = False) -> None:
    """Print a text; a reader who has had enough (`| head`) or a full disk changes no exit code."""
    stream = sys.stderr if err else sys.stdout
    try:
        typer.echo(text, err=err)
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _stop(code: ExitCode, sentence: str) -> NoReturn:
    _say(printable(sentence), err=True)
    raise typer.Exit(code)


def _rendered(renderable: RenderableType) -> str:
    """Return what rich would print, so that all output leaves through `_say`."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=sys.stdout.isatty(), width=Console().width or 80)
    console.print(renderable, soft_wrap=True)
    return text.getvalue().rstrip("\n")


def _load(
    path: Path, globs: list[str] | None
) -> tuple[matrices.Matrix, tuple[Cell, ...], tuple[Cell, ...]]:
    """Return the matrix, its cells and the selected ones; a wrong matrix ends the program."""
    for module, error in registry.broken().items():
        _say(printable(f"{module}: cannot be imported: {error}"), err=True)
    try:
        matrix = matrices.load(path)
        cells = plan.plan(matrix)
    except MatrixError as error:
        _stop(ExitCode.USAGE, "\n".join(error.problems))
    globs = globs or []
    idle = [glob for glob in globs if not plan.select(cells, (glob,))]
    for glob in idle:
        sentence = f"--cell {glob!r} matches none of the {len(cells)} cells of {path}"
        _say(printable(f"{sentence}; `parity-gate list` prints their ids"), err=True)
    # A glob that has lost its cells must not let the others pass for all.
    return matrix, cells, () if idle else plan.select(cells, tuple(globs))


def _prepare(out: Path) -> None:
    """Make the folder of the reports and remove old ones, so that no stale report survives."""
    try:
        if out == Path():
            raise NotADirectoryError(None, "it names no folder")
        out.mkdir(parents=True, exist_ok=True)
        for name in REPORTS:
            (out / name).unlink(missing_ok=True)
        if not os.access(out, os.W_OK | os.X_OK):
            raise PermissionError(None, "Permission denied")
    except OSError as error:
        sentence = f"--out {str(out)!r} cannot take reports: {error.strerror}"
        _stop(ExitCode.USAGE, f"{sentence}; name a folder that can be written")


def _publish(run: Run, out: Path) -> ExitCode:
    """Write the reports, print the result, return the exit code."""
    problems = {out / name: _write(out / name, render, run) for name, render in REPORTS.items()}
    _say(_rendered(console_report.table(run)))
    for path, problem in problems.items():
        if problem:
            _say(printable(f"{path} cannot be written: {problem}"), err=True)
        else:
            _say(printable(f"wrote {path}"))
    _say(printable(run.verdict))
    complete = not any(problems.values())
    return run.exit_code if complete or run.exit_code is not ExitCode.OK else ExitCode.ERROR


def _write(path: Path, render: Callable[[Run], str], run: Run) -> str:
    """Write one report, whole or not at all; return why not, else an empty text."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)  # it may have gone during the run
        part.write_text(render(run), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):  # the folder itself may be gone; the first error is the one told
            part.unlink(missing_ok=True)
        return f"{error.strerror}; mend that or give another --out"
    except Exception as error:  # noqa: BLE001 - the other reports and the verdict still count
        traceback.print_exc()
        return f"{type(error).__name__}: {error}; this is a mistake of the program"
    return ""


class _Bar:
    """Draws the runner's progress."""

    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars = bars
        self._task = task
        self._done: set[str] = set()

    def starts(self, cell: Cell) -> None:
        """Show which cell runs."""
        self._bars.update(self._task, description=cell.id)

    def done(self, result: Result) -> None:
        """Count the cell, once."""
        self._done.add(result.cell.id)
        self._bars.update(self._task, completed=len(self._done))


@contextmanager
def _progress(total: int) -> Iterator[_Bar]:
    """Show a bar on a terminal; a log gets none."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    # FORCE_COLOR makes rich take a log for a terminal; the stream itself knows.
    idle = not sys.stderr.isatty()
    with Bars(*columns, console=Console(stderr=True), transient=True, disable=idle) as bars:
        yield _Bar(bars, bars.add_task("", total=total))


def _table(cells: tuple[Cell, ...]) -> str:
    """Return one line per cell, never cut, for ids are there to be copied."""
    width = max(len(cell.id) for cell in cells)
    lines = [f"{'cell':{width}}  scores  skipped because"]
    lines += [f"{cell.id:{width}}  {cell.scores:6}  {printable(cell.skip)}" for cell in cells]
    return "\n".join(line.rstrip() for line in lines)


def _totals(cells: tuple[Cell, ...], selected: tuple[Cell, ...]) -> str:
    scores = counted(sum(cell.scores for cell in selected), "score")
    parts = [f"{len(selected)} of {counted(len(cells), 'cell')}", scores]
    if seconds := plan.estimate(selected):
        parts.append(f"about {round(seconds)} s on two cores with PoCL")
    return ", ".join(parts)


def _section(title: str, facts: Mapping[str, str]) -> None:
    _say(printable(title))
    for name, value in facts.items():
        _say(printable(f"  {name}: {value}"))


def _examine_backend(name: str) -> bool:
    """Print what is known about a backend; return whether nothing is broken."""
    try:
        with closing(registry.open_backend(name)) as backend:
            _section(f"{name}: here", backend.facts())
    except Unavailable as error:
        _say(printable(f"{name}: not here: {error}"))
    except Exception as error:  # noqa: BLE001 - doctor says what is wrong with each backend
        _say(printable(f"{name}: broken: {type(error).__name__}: {error}"))
        return False
    return True


def _examine_features() -> bool:
    """Print what decides the bits of each feature's reference; return whether all are there."""
    try:
        for name, feature in registry.features().items():
            _section(f"feature {name}", feature.reference_facts())
    except Exception as error:  # noqa: BLE001 - doctor says what is wrong with the installation
        _say(printable(f"features: broken: {type(error).__name__}: {error}"))
        return False
    return True
