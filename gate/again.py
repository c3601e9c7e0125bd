"""Commands that begin with what a run has written: report, merge, rerun, and `run --resume`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn, TypeVar

import typer

from backends import reciprocal
from gate import journal, merge, record, rerun, runner
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
from gate.model import ExitCode, Run, counted
from gate.publish import FILES, claim, finish, prepare, publish
from gate.record import Unreadable
from gate.rerun import NotRepeatable, Reported
from gate.terminal import one_interrupt, say, stop

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
HERE = ("*.yaml", "matrices/*.yaml")  # where a report's matrix is looked for


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
    """Run cells of REPORT again, as its run did; the result is marked as a part of the whole."""
    with one_interrupt() as ignore_interrupts:
        required = tuple(require or ())
        require_known("--require", required)
        read = _read(partial(_reported, report))
        path = matrix or matrix_here(read.matrix, report)
        named = rcp_table or _shipped(read.rcp_table)
        table, times = replayed(named), repeat or _repeats(read.repeat)
        declared, cells, _ = load_matrix(path, None)
        try:
            chosen = rerun.selected(read.cells, cells, failed=failed, globs=tuple(cell or ()))
        except NotRepeatable as error:
            stop(error.exit_code, f"{report}: {error}")
        if dry_run:
            say("\n".join(one.id for one in chosen))
            say(f"{counted(len(chosen), 'cell')} of {path}", err=True)
            raise typer.Exit
        prepare(out, *FILES)
        # Who was red must run again; that it is gone would make it green.
        red = {one.id for one in read.cells if one.red}
        needed = [
            one.candidate for one in chosen if one.id in red or one.candidate in read.required
        ]
        begun = runner.begun(
            declared,
            chosen,
            planned=len(cells),
            command=run_command(path, out, named, times),
            selection=tuple(cell or ()),
            required=tuple(dict.fromkeys((*required, *needed))),
            rcp_table=named or "",
            rerun_of=read.id,
            repeat=times,
        )
        kept = reference_cache(wanted=cache)
        raise typer.Exit(finish(declared, begun, out, table, kept, ignore_interrupts))


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
        matrix: sha256 of the matrix file; empty where it does not tell.
        rcp_table: the replayed table, as the run's command line named it.
        required: backends that had to be there.
        repeat: how often it computed each candidate.
    """

    id: str
    cells: list[Reported]
    matrix: str = ""
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
    digest = run.environment.get("matrix", {}).get("sha256", "")
    return _Report(run.id, rerun.of_run(run), digest, run.rcp_table, run.required, run.repeat)


def _of_junit(document: bytes) -> _Report:
    cells, facts = rerun.of_junit(document)
    for name in ("run", "replayed table", "runs of each candidate"):
        if name not in facts:
            message = f"the file does not tell its {name}; name the report.json beside it"
            raise ValueError(message)
    table = "" if facts["replayed table"] == "none" else facts["replayed table"]
    digest, times = facts.get("matrix: sha256", ""), int(facts["runs of each candidate"])
    return _Report(facts["run"], cells, digest, table, repeat=times)


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
