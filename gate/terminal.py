"""What the commands share of a terminal: output that breaks nothing, one interrupt, a bar."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM
from typing import NoReturn

import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bars
from rich.table import Table

from gate.model import Cell, ExitCode, Result
from gate.runner import Progress
from reports.wording import printable

WIDE = 10_000  # columns


def make_streams_safe() -> None:
    """Let no closed stream and no narrow encoding decide about the exit code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller, `2>&-`
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - lives as long as the program
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def one_interrupt() -> Iterator[Callable[[], None]]:
    """Let the first SIGINT, SIGTERM or SIGHUP end the run, and ignore those after it.

    Yields:
        A function that ignores even the first one, for the time when reports are written.
    """

    def ignore() -> None:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)

    def interrupt(number: int, _: object) -> None:
        # Another thread (a library's) took a signal that this one holds back: it has to wait here.
        if number in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
            signal.pthread_kill(threading.get_ident(), number)
            return
        ignore()
        raise KeyboardInterrupt

    signals = {n: signal.signal(n, interrupt) for n in (SIGINT, SIGTERM, SIGHUP)}
    try:
        yield ignore
    finally:
        for number, before in signals.items():
            signal.signal(number, before)


def say(text: str, *, err: bool = False) -> None:
    """Print a text; a reader who has had enough (`| head`) or a full disk changes no exit code."""
    stream = sys.stderr if err else sys.stdout
    try:
        typer.echo(text, err=err)
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def stop(code: ExitCode, sentence: str) -> NoReturn:
    """Print a sentence to stderr and end the program."""
    say(printable(sentence), err=True)
    raise typer.Exit(code)


def rendered(renderable: RenderableType) -> str:
    """Return what rich would print, so that all output leaves through `say`."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=sys.stdout.isatty(), width=Console().width or 80)
    console.print(renderable, soft_wrap=True)
    return text.getvalue().rstrip("\n")


def uncut(table: Table) -> str:
    """Return a table as text whose rows are never cut or folded."""
    text = io.StringIO()
    Console(file=text, width=WIDE).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip("\n")


def write_whole(path: Path, text: str) -> None:
    """Put a file in place as a whole; what was there stays where that fails.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # a power cut after the renaming would leave an empty file
        part.replace(path)
    except OSError:
        with suppress(OSError):  # the folder itself may be gone; the first error is the one told
            part.unlink(missing_ok=True)
        raise


def section(title: str, facts: Mapping[str, str]) -> None:
    """Print a title and its facts, one a line."""
    say(printable(title))
    for name, value in facts.items():
        say(printable(f"  {name}: {value}"))


class _Bar(Progress):
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


def _bars(*columns: ProgressColumn) -> Bars:
    # FORCE_COLOR makes rich take a log for a terminal; the stream itself knows.
    idle = not sys.stderr.isatty()
    return Bars(*columns, console=Console(stderr=True), transient=True, disable=idle)


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal while something is counted up to `total`; a log gets none.

    Yields:
        A function that takes how much has been counted so far.
    """
    columns = (BarColumn(), TextColumn("{task.percentage:.0f}%"), TextColumn(title, markup=False))
    with _bars(*columns) as bars:
        task = bars.add_task("", total=total)
        yield lambda done: bars.update(task, completed=done)


@contextmanager
def cell_progress(total: int) -> Iterator[_Bar]:
    """Show a bar on a terminal; a log gets none."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with _bars(*columns) as bars:
        yield _Bar(bars, bars.add_task("", total=total))


def matching(option: str, globs: list[str] | None, names: list[str]) -> list[str]:
    """Return the names that the globs match, all without globs; an idle glob ends the program."""
    for glob in globs or ():
        if not any(fnmatchcase(name, glob) for name in names):
            stop(ExitCode.USAGE, f"{option} {glob!r} matches none of {', '.join(names)}")
    return [name for name in names if any(fnmatchcase(name, glob) for glob in globs or ["*"])]


def require_candidates(required: Iterable[str], candidates: Collection[str]) -> None:
    """End the program where a required backend is none of the candidates."""
    for name in required:
        if name not in candidates:
            stop(ExitCode.USAGE, f"--require {name}: it is no candidate; add --candidate {name}")
