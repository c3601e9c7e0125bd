"""Commands that begin with what a run has written: report, merge, rerun, and `run --resume`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn, TypeVar

import typer

from backends import reciprocal
from gate import angle, journal, merge, record, rerun, runner
from gate.arguments import (
    MOST_REPEATS,
    CacheOption,
    CellOption,
    OutOption,
    RepeatOption,
    RequireOption,
    TableOption,
    load_matrix,
    reference_cache,
    replayed,
    require_known,
    run_command,
)
from gate.cache import ReferenceCache
from gate.fuzz import REPRODUCERS, Drawing
from gate.matrixless import Part, finish_angle, finish_drawn
from gate.model import Cell, ExitCode, Run, counted
from gate.publish import FILES, claim, finish, prepare, publish
from gate.record import Unreadable
from gate.rerun import NotRepeatable, Reported
from gate.terminal import one_interrupt, say, stop
from reports.wording import FOUND, printable

DirArgument = Annotated[Path, typer.Argument(metavar="DIR", help="folder of the run's reports")]
ShardsArgument = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="folder of the reports of every shard")
]
ReportArgument = Annotated[
    Path, typer.Argument(metavar="REPORT", help="report.json or junit.xml of any run")
]
FailedOption = Annotated[bool, typer.Option("--failed", help="only cells that are red in REPORT")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="print the cells and run nothing")]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--matrix",
        metavar="MATRIX",
        help="the report's matrix file; by default the one here that has the same sha256",
    ),
]
T = TypeVar("T")
HERE = tuple(
    str(Path(folder, "*.yaml")) for folder in FOUND
)  # where a report's matrix is looked for


def render_report(out: DirArgument) -> None:
    """Write the reports of a run that was stopped in DIR, with all that its journal has."""
    raise typer.Exit(publish(_claimed(out), out))


def merge_shards(shards: ShardsArgument, out: OutOption = Path("out")) -> None:
    """Write the reports of the whole run that the shards in DIR... are parts of.

    Refuses shards that are missing, there twice, or of another run.
    """
    if out.resolve() in [folder.resolve() for folder in shards]:
        stop(ExitCode.USAGE, f"--out '{out}' holds a shard's own reports; name another folder")
    prepare(out, *FILES)
    runs = [(str(folder), _read(partial(record.recovered, folder))) for folder in shards]
    try:
        whole = merge.merge(runs)
    except merge.NotMergeable as error:
        stop(ExitCode.USAGE, "\n".join(error.problems))
    raise typer.Exit(publish(whole, out))


def rerun_cells(  # noqa: PLR0913 - one option each
    report: ReportArgument,
    *,
    failed: FailedOption = False,
    cell: CellOption = None,
    dry_run: DryOption = False,
    matrix: FileOption = None,
    require: RequireOption = None,
    rcp_table: TableOption = None,
    repeat: RepeatOption = None,
    cache: CacheOption = None,
    out: OutOption = Path("out/rerun"),
) -> None:
    """Run cells of REPORT again, as its run did; the result is marked as a part of the whole.

    REPORT is of `run`, `fuzz` or `angle`. What `fuzz` and `angle` have no option for is refused.
    """
    with one_interrupt() as ignore_interrupts:
        required = tuple(require or ())
        require_known("--require", required)
        read = _read(partial(_reported, report))
        given = {"matrix": matrix, "rcp-table": rcp_table, "repeat": repeat, "cache": cache}
        if "seed" in read.matrix:
            _require_none(given, "fuzz")
            origin = _of_drawing(read, report)
        elif "full" in read.matrix:
            _require_none(given, "angle")
            origin = _of_corpora(read, report)
        else:
            path = matrix or matrix_here(read.matrix.get("sha256", ""), report)
            origin = _of_file(read, path, rcp_table, repeat, wanted=cache)
        try:
            chosen = rerun.selected(
                read.cells, origin.cells, failed=failed, globs=tuple(cell or ())
            )
        except NotRepeatable as error:
            stop(error.exit_code, f"{report}: {error}")
        if dry_run:
            say("\n".join(one.id for one in chosen))
            say(printable(f"{counted(len(chosen), 'cell')} of {origin.title}"), err=True)
            raise typer.Exit
        prepare(out, *origin.files)
        # Who was red must run again; that it is gone would make it green.
        red = {one.id for one in read.cells if one.red}
        needed = [
            one.candidate for one in chosen if one.id in red or one.candidate in read.required
        ]
        needs = tuple(dict.fromkeys((*required, *needed)))
        fixtures = {one.fixture for one in chosen}
        part = Part(
            chosen,
            tuple(cell or ()),
            needs,
            rerun_of=read.id,
            fixtures={
                name: fact
                for name, fact in read.fixtures.items()
                if name in fixtures or name.rpartition(".")[0] in fixtures
            },
        )
        raise typer.Exit(origin.finish(part, out, ignore_interrupts))


class _Origin(NamedTuple):
    """Where the cells of a report come from.

    Attributes:
        title: what has them.
        cells: all that it has.
        finish: runs a part of them and publishes it.
        files: what that may write.
    """

    title: str
    cells: tuple[Cell, ...]
    finish: Callable[[Part, Path, Callable[[], None]], ExitCode]
    files: tuple[str, ...] = FILES


def _of_drawing(read: _Report, report: Path) -> _Origin:
    try:
        drawing = Drawing.told(read.matrix)
    except ValueError as error:
        stop(ExitCode.USAGE, f"{report}: {error}")
    files = (*FILES, *REPRODUCERS)
    title = str(drawing.matrix.path)
    return _Origin(title, drawing.planned, partial(finish_drawn, drawing), files)


def _of_corpora(read: _Report, report: Path) -> _Origin:
    asked = angle.asked_again(str(report), read.matrix)
    return _Origin(asked.title, asked.cells, partial(finish_angle, asked))


def _of_file(
    read: _Report, path: Path, rcp_table: str | None, repeat: int | None, *, wanted: bool | None
) -> _Origin:
    named = rcp_table or _shipped(read.rcp_table)
    table, times = replayed(named), repeat or _repeats(read.repeat)
    declared, cells, _ = load_matrix(path, None)

    changed = read.matrix.get("sha256") != declared.sha256
    notes = (f"the matrix is not as it was in run {read.id}",) if changed else ()

    def finish_file(part: Part, out: Path, ignore_interrupts: Callable[[], None]) -> ExitCode:
        begun = runner.begun(
            declared,
            part.cells,
            planned=len(cells),
            command=run_command(path, out, named, times),
            selection=part.selection,
            required=part.required,
            rcp_table=named or "",
            rerun_of=part.rerun_of,
            repeat=times,
            notes=notes,
        )
        kept = reference_cache(wanted=wanted)
        return finish(declared, begun, out, table, kept, ignore_interrupts)

    return _Origin(str(path), cells, finish_file)


def _require_none(given: Mapping[str, object], command: str) -> None:
    """End the program where an option is given that a command does not have."""
    names = " and ".join(f"--{name}" for name, value in given.items() if value is not None)
    if names:
        stop(ExitCode.USAGE, f"{names}: the report is of `{command}`, which has no such option")


def resume(
    out: Path, cache: ReferenceCache | None, ignore_interrupts: Callable[[], None]
) -> ExitCode:
    """Finish the run whose reports and journal are in a folder."""
    run = _claimed(out)
    if not (out / journal.NAME).is_file():
        stop(ExitCode.USAGE, f"--resume: {out} has no {journal.NAME}; name the folder of a `run`")
    if not Path(run.matrix).is_file():
        stop(ExitCode.USAGE, f"--resume: {run.matrix} of this run is no file here; start anew")
    declared, cells, _ = load_matrix(Path(run.matrix), None)
    known = {cell.id: cell for cell in cells}
    changed = [one.cell.id for one in run.results if known.get(one.cell.id) != one.cell]
    if changed:
        _changed(f"{run.matrix}: cell {changed[0]} changed since the run began; start anew")
    try:
        _repeats(run.repeat)
        table = replayed(run.rcp_table or None)
        return finish(declared, run, out, table, cache, ignore_interrupts)
    except runner.Changed as error:
        _changed(str(error))


def _claimed(out: Path) -> Run:
    """Return the run in a folder, into which no other command writes from now on."""
    try:
        claim(out)
    except OSError as error:
        stop(ExitCode.USAGE, f"{out}: {error.strerror}; name the folder of a run's reports")
    return _read(partial(record.recovered, out))


def _changed(sentence: str) -> NoReturn:
    stop(ExitCode.USAGE, f"--resume: {sentence}")


def _read(read: Callable[[], T]) -> T:
    """Return what `read` returns; what cannot be read ends the program."""
    try:
        return read()
    except Unreadable as error:
        stop(ExitCode.USAGE, str(error))


class _Report(NamedTuple):
    """What a rerun takes from a report: ids and hashes, never a path or a command.

    Attributes:
        id: of the run.
        cells: what it says of each cell.
        matrix: facts of the matrix, or of what takes its place: its sha256, what draws it again.
        fixtures: facts of pictures and operands, by name.
        rcp_table: the replayed table, as the run's command line named it.
        required: backends that had to be there.
        repeat: how often it computed each candidate.
    """

    id: str
    cells: list[Reported]
    matrix: Mapping[str, str]
    fixtures: Mapping[str, str]
    rcp_table: str = ""
    required: tuple[str, ...] = ()
    repeat: int = 1


def _reported(path: Path) -> _Report:
    """Read a report.

    Raises:
        Unreadable: it is none.
    """
    if path.suffix == ".xml":
        try:
            with path.open("rb") as file:
                document = file.read(rerun.LARGEST + 1)
            return _of_junit(document)
        except OSError as error:
            message = f"{path}: {error.strerror}; name a junit.xml of parity-gate"
            raise Unreadable(message) from error
        except ValueError as error:
            message = f"{path}: {error}"
            raise Unreadable(message) from error
    run = record.load(path / record.NAME if path.is_dir() else path)
    sections = run.environment.get("matrix", {}), run.environment.get("fixtures", {})
    return _Report(run.id, rerun.of_run(run), *sections, run.rcp_table, run.required, run.repeat)


def _of_junit(document: bytes) -> _Report:
    cells, facts = rerun.of_junit(document)
    for name in ("run", "replayed table", "runs of each candidate", "required backends"):
        if name not in facts:
            message = f"the file does not tell its {name}; name the report.json beside it"
            raise ValueError(message)
    table = "" if facts["replayed table"] == "none" else facts["replayed table"]
    required = () if facts["required backends"] == "none" else facts["required backends"].split()
    times = int(facts["runs of each candidate"])
    sections = _section(facts, "matrix"), _section(facts, "fixtures")
    return _Report(facts["run"], cells, *sections, table, tuple(required), times)


def _section(facts: Mapping[str, str], title: str) -> dict[str, str]:
    of = f"{title}: "
    return {name.removeprefix(of): fact for name, fact in facts.items() if name.startswith(of)}


def matrix_here(digest: str, report: Path) -> Path:
    """Return the matrix file here with the sha256 that a report names; none ends the program."""
    here = [path for glob in HERE for path in sorted(Path().glob(glob))]
    same = [path for path in here if sha256(path.read_bytes()).hexdigest() == digest]
    if not same:
        told = f"the matrix of sha256 {digest}" if digest else "its matrix"
        sentence = f"{report}: {told} is none of {' and '.join(HERE)} here; name it with --matrix"
        stop(ExitCode.USAGE, sentence)
    return same[0]


def _repeats(told: int) -> int:
    """Return how often a report says that candidates are computed, if a run may do that."""
    if not 1 <= told <= MOST_REPEATS:
        sentence = f"the report tells of --repeat {told}; allowed: 1 to {MOST_REPEATS}; start anew"
        stop(ExitCode.USAGE, sentence)
    return told


def _shipped(table: str) -> str | None:
    """Return the name of a shipped table; a report may name a file, which is not taken from it."""
    if table and table not in reciprocal.shipped():
        sentence = f"the run replayed the table {table!r}; name its file with --rcp-table"
        stop(ExitCode.USAGE, sentence)
    return table or None
