"""`parity-gate bless`: adds what differs in a whole run to the reviewed file of deviations."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from gate import matrix as matrices
from gate import plan, record
from gate.again import FileOption, matrix_here
from gate.arguments import load_matrix
from gate.deviations import DAY
from gate.document import Document
from gate.entries import entry_text, grouped, outputs_of
from gate.errors import MatrixError
from gate.model import Deviation, ExitCode, Status, counted
from gate.record import Unreadable
from gate.rerun import GREEN
from gate.terminal import say, stop, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gate.entries import Blessing
    from gate.matrix import Matrix
    from gate.model import Cell, Result, Run

LONGEST = timedelta(days=366)  # a year, so that somebody looks at it again
DASH = re.compile(r"( *)- ")

ReportArgument = Annotated[
    Path, typer.Argument(metavar="REPORT", help="report.json of a whole run, or its folder")
]
ReasonOption = Annotated[
    str, typer.Option(metavar="TEXT", help="why the cells may differ, in one sentence")
]
OwnerOption = Annotated[str, typer.Option(metavar="NAME", help="who answers for it")]
ExpiresOption = Annotated[
    str, typer.Option(metavar="YYYY-MM-DD", help="the last day on which it holds, within a year")
]
GlobsOption = Annotated[
    list[str] | None,
    typer.Option("--cell", metavar="GLOB", help="only cells whose id matches; may be repeated"),
]
DryOption = Annotated[bool, typer.Option("--dry-run", help="print the entries and write nothing")]


class NotBlessable(Exception):  # noqa: N818 - reads as what happened
    """Nothing is blessed; the text is one sentence.

    Attributes:
        exit_code: what the process returns for it.
    """

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.USAGE) -> None:
        """Keep the sentence and the exit code."""
        super().__init__(message)
        self.exit_code = exit_code


def bless(
    report: ReportArgument,
    *,
    reason: ReasonOption,
    owner: OwnerOption,
    expires: ExpiresOption,
    cell: GlobsOption = None,
    dry_run: DryOption = False,
    matrix: FileOption = None,
) -> None:
    """Add the FAIL cells of REPORT to the file of known deviations that its matrix names.

    Cells that differ in the same outputs become one entry. REPORT is of a whole run; what is ERROR
    or NONDETERMINISTIC is never blessed.
    """
    told = text_of("--reason", reason), text_of("--owner", owner)
    last = day_of(expires, datetime.now(UTC).date())
    try:
        run = record.load(report / record.NAME if report.is_dir() else report)
        require_whole(run)
        digest = run.environment.get("matrix", {}).get("sha256", "")
        declared, cells, _ = load_matrix(matrix or matrix_here(digest, report), None)
        _require_same(run, digest, declared, cells)
        failed = blessable(run, cells, tuple(cell or ()))
        blessings = grouped(failed, cells, *told, last)
        change = _appended(declared, blessings)
        if not dry_run:
            _write(change, declared, _expected(cells, blessings))
    except NotBlessable as error:
        stop(error.exit_code, f"{report}: {error}")
    except Unreadable as error:
        stop(ExitCode.USAGE, str(error))
    except OSError as error:
        stop(ExitCode.USAGE, f"{error.filename}: {error.strerror}; mend that and bless again")
    say(change.added)
    entries = "1 entry" if len(blessings) == 1 else f"{len(blessings)} entries"
    done = "would be added to" if dry_run else "added to"
    of = f"{entries} for {counted(len(failed), 'cell')} {done} {change.file}"
    say(f"{of}; a person must review that change")


def text_of(option: str, text: str) -> str:
    """Return a text on one line; one that cannot stand in the file ends the program."""
    line = " ".join(text.split())
    if not line:
        stop(ExitCode.USAGE, f"{option} is empty; write what a reviewer can judge")
    if not line.isprintable():
        stop(ExitCode.USAGE, f"{option} {line!a} holds what cannot be printed; write plain text")
    return line


def day_of(text: str, today: date) -> str:
    """Return the last day of an entry; none, or one too far from today, ends the program."""
    day = None
    with suppress(ValueError):
        day = date.fromisoformat(text) if DAY.fullmatch(text) else None
    if day is None:
        stop(ExitCode.USAGE, f"--expires {text!r} is not a day; write YYYY-MM-DD")
    if not today <= day <= today + LONGEST:
        what = "in the past" if day < today else "over a year ahead"
        allowed = f"allowed: {today} to {today + LONGEST}"
        stop(ExitCode.USAGE, f"--expires {text} is {what}; {allowed}")
    return text


def require_whole(run: Run) -> None:
    """Refuse a run of less than its matrix.

    Raises:
        NotBlessable: what is not whole in it.
    """
    for told in _partial(run):
        message = f"only a whole run is blessed, and this one {told}; run all of its matrix"
        raise NotBlessable(message)


def _partial(run: Run) -> Iterator[str]:
    if run.selection:
        yield "has only what --cell chose"
    if run.shard:
        yield f"is shard {run.shard.index} of {run.shard.count}"
    if run.rerun_of:
        yield f"repeats cells of run {run.rerun_of}"
    if run.rcp_table:
        yield f"replayed the table {run.rcp_table!r}"
    if run.unfinished:
        yield f"has {counted(run.unfinished, 'cell')} that did not finish"
    if run.interrupted:
        yield "was interrupted"
    if run.missing:
        yield f"misses a required backend ({run.missing[0]})"
    if len(run.results) != run.planned:
        yield f"has {len(run.results)} of {counted(run.planned, 'cell')}"


def _require_same(run: Run, digest: str, declared: Matrix, cells: Iterable[Cell]) -> None:
    """Refuse a matrix that is not the run's, and a report whose cells are not the matrix's.

    Raises:
        NotBlessable: they are not.
    """
    # What is listed about a cell may have changed: other cells were blessed.
    now = [replace(cell, deviation=None) for cell in cells]
    before = [replace(result.cell, deviation=None) for result in run.results]
    if declared.sha256 != digest or now != before:
        message = f"it is of another matrix than {declared.path} is now; run that"
        raise NotBlessable(message)


def blessable(run: Run, cells: Iterable[Cell], globs: Sequence[str]) -> list[Result]:
    """Return the results to bless, in plan order.

    Args:
        run: a whole one.
        cells: its plan, with what is listed about the cells now.
        globs: over cell ids; all without globs.

    Raises:
        NotBlessable: there is none, or one among them is never blessed.
    """
    chosen = [result for result in run.results if result.status not in GREEN]
    if not any(result.status is Status.FAIL for result in chosen):
        message = f"none of its {counted(len(run.results), 'cell')} is FAIL; nothing is blessed"
        raise NotBlessable(message, ExitCode.NOTHING)
    for glob in globs:
        if not any(fnmatchcase(result.cell.id, glob) for result in chosen):
            message = f"--cell {glob!r} matches no cell that is FAIL; nothing is blessed"
            raise NotBlessable(message, ExitCode.NOTHING)
    if globs:
        chosen = [result for result in chosen if any(fnmatchcase(result.cell.id, g) for g in globs)]
    listed = {cell.id: cell.deviation for cell in cells}
    for result in chosen:
        if problem := _never(result, listed):
            message = f"cell {result.cell.id} {problem}, or choose others with --cell"
            raise NotBlessable(message)
    return chosen


def _never(result: Result, listed: Mapping[str, Deviation | None]) -> str:
    """Return why a result is never blessed and what to do; empty where it may be."""
    if result.status is not Status.FAIL:
        return f"is {result.status.value}, which is never blessed; mend it"
    if deviation := listed[result.cell.id] or result.cell.deviation:
        return f"is listed already ({deviation.place}); correct that by hand"
    if not any(control.side == "candidate" for control in result.controls):
        return "was not computed once more, so nobody knows that it stays as it is; run it anew"
    return "" if outputs_of(result) else "does not tell what differs; run its matrix anew"


class _Change(NamedTuple):
    """A file of deviations with more entries.

    Attributes:
        file: its path.
        before, after: its text.
        added: the entries, as they stand at its end.
    """

    file: Path
    before: str
    after: str
    added: str


def _appended(declared: Matrix, blessings: Iterable[Blessing]) -> _Change:
    """Return the file that a matrix names, with entries behind those that it has.

    Raises:
        NotBlessable: there is no such file, or no entry can stand behind the last one.
        OSError: it cannot be read.
    """
    if declared.deviations is None:
        message = f"{declared.path} names no file of deviations; give it one with a first entry"
        raise NotBlessable(message)
    file = declared.deviations.path
    before = file.read_bytes().decode()
    line, _ = Document(file).place(("deviations", 0))
    dash = DASH.match(before.splitlines()[line - 1])
    if dash is None:
        message = f"{file}:{line}: no dash begins this line; write entries one below the other"
        raise NotBlessable(message)
    added = "\n".join(entry_text(blessing.entry, dash[1]) for blessing in blessings)
    end = "\r\n" if "\r\n" in before else "\n"
    ends = before[len(before.rstrip()) :].count("\n")
    after = before + end * (2 - min(ends, 2)) + added.replace("\n", end)
    return _Change(file, before, after, added)


def _expected(cells: Iterable[Cell], blessings: Iterable[Blessing]) -> dict[str, Deviation | None]:
    """Return what is to be listed about each cell, but for the place."""
    expected = {cell.id: _placeless(cell.deviation) for cell in cells}
    for entry, names in blessings:
        outputs = tuple(entry.outputs)
        told = (entry.reason, entry.owner, entry.expires, "", entry.not_finite)
        expected |= dict.fromkeys(names, Deviation(outputs, *told))
    return expected


def _placeless(deviation: Deviation | None) -> Deviation | None:
    return deviation and replace(deviation, place="")


def _write(change: _Change, declared: Matrix, expected: Mapping[str, Deviation | None]) -> None:
    """Write the file, and what it was where the matrix does not say what is expected then.

    Raises:
        NotBlessable: it does not.
        OSError: it cannot be written.
    """
    path = Path(os.path.realpath(change.file))  # a link stays one
    mode = path.stat().st_mode
    write_whole(path, change.after)
    try:
        path.chmod(mode)
        _require_listed(declared.path, expected)
    except BaseException:
        write_whole(path, change.before)
        path.chmod(mode)
        raise


def _require_listed(matrix: Path, expected: Mapping[str, Deviation | None]) -> None:
    try:
        cells = plan.plan(matrices.load(matrix))
    except MatrixError as error:
        message = f"no entry can stand at the end: {error.problems[0]}; the file is as it was"
        raise NotBlessable(message) from error
    if {cell.id: _placeless(cell.deviation) for cell in cells} != expected:
        message = "entries at the end would be read as something else; the file is as it was"
        raise NotBlessable(message)
