"""The files of a run: reports that are whole at any moment, and the journal behind them."""

from __future__ import annotations

import fcntl
import gc
import os
import traceback
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING

from backends import interrupts
from gate import journal, record, runner, workers
from gate.arguments import program
from gate.journal import Journal
from gate.model import ExitCode
from gate.runner import Progress
from gate.terminal import cell_progress, rendered, say, stop, write_whole
from reports import console as console_report
from reports import github, junit, markdown
from reports import json as json_report
from reports.wording import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from backends.reciprocal import RcpTable
    from gate.cache import ReferenceCache
    from gate.matrix import Matrix
    from gate.model import Cell, ReferenceScores, Result, Run

    Render = Callable[[Run], str]

REPORTS: Mapping[str, Render] = {
    "junit.xml": junit.render,
    "report.md": markdown.render,
    "report.json": json_report.render,
}
FILES = (*REPORTS, journal.NAME)
PERIOD = 10.0  # seconds from one writing of the reports to the next
SHARE = 0.1  # of the time, at most, that goes into it
KEPT = 10_000  # new objects until Python looks for cycles; a run makes few, and keeps what it makes

_claimed: list[int] = []  # the folder that this process writes reports into


def claim(out: Path) -> None:
    """Keep other commands out of a folder until this one has published its reports.

    The folder itself is locked, for a file would be in the way of those who take the reports along.

    Raises:
        OSError: it cannot be opened.
    """
    _let_go()
    _claimed.append(os.open(out, os.O_DIRECTORY))
    try:
        fcntl.flock(_claimed[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sentence = f"{str(out)!r} is where another command writes its reports"
        stop(ExitCode.USAGE, f"{sentence}; wait for its end or name another folder")


def _let_go() -> None:
    while _claimed:
        os.close(_claimed.pop())


def prepare(out: Path, *names: str) -> None:
    """Claim the folder of the reports and remove old ones, so that no stale report survives.

    Args:
        out: the folder.
        names: the files that this command may write; those of other commands stay.
    """
    try:
        if not out.name:
            raise NotADirectoryError(None, "it names no folder")
        out.mkdir(parents=True, exist_ok=True)
        claim(out)
        for name in names:
            (out / name).unlink(missing_ok=True)
        if not os.access(out, os.W_OK | os.X_OK):
            raise PermissionError(None, "Permission denied")
    except OSError as error:
        sentence = f"--out {str(out)!r} cannot take reports: {error.strerror}"
        stop(ExitCode.USAGE, f"{sentence}; name a folder that can be written")


def write(out: Path, run: Run, files: Mapping[str, Render]) -> dict[Path, str]:
    """Write reports, each whole or not at all; return why not, empty for those that are there."""
    return {out / name: _write(out / name, render, run) for name, render in files.items()}


def publish(
    run: Run,
    out: Path,
    further: Mapping[str, Render] | None = None,
    note: str = "",
    journal_problem: str = "",
) -> ExitCode:
    """Write the reports, print the result, return the exit code.

    Args:
        run: the finished run.
        out: folder of the reports.
        further: renders more files, by name.
        note: what else to print, above the verdict.
        journal_problem: why the journal lacks something, if it does.
    """
    problems = write(out, run, {**REPORTS, **(further or {})})
    if journal_problem:
        problems[out / journal.NAME] = journal_problem
    with github.commands_stopped(os.environ, say):
        say(rendered(console_report.table(run, str(out / record.NAME), program())))
        for path, problem in problems.items():
            if problem:
                say(printable(f"{path} cannot be written: {problem}"), err=True)
            else:
                say(printable(f"wrote {path}"))
        if note:
            say(printable(note))
        say(printable(run.verdict))
    unpublished = github.publish(run, os.environ, say)
    if unpublished:
        say(printable(unpublished), err=True)
    _let_go()
    sound = not any(problems.values()) and not unpublished
    return run.exit_code if sound or run.exit_code is not ExitCode.OK else ExitCode.ERROR


class Publisher(Progress):
    """Keeps reports and journal while a run goes on, and shows its progress.

    Attributes:
        problem: why the journal lacks something, empty where it is whole.
    """

    def __init__(self, out: Path, run: Run, shown: Progress) -> None:
        """Write reports in which nothing is finished yet, and begin or go on with the journal.

        Args:
            out: folder of the reports.
            run: as it begins.
            shown: draws the progress.
        """
        self._out, self._shown = out, shown
        self._state: Callable[[], Run] = lambda: run
        self._computed: list[dict[str, object]] = []  # what no cell is done by yet
        self._over = Event()
        with interrupts.held():  # who interrupts from now on finds reports
            problems = write(out, run, REPORTS)
        for path, problem in problems.items():
            if problem:
                say(printable(f"{path} cannot be written yet: {problem}"), err=True)
        try:
            self._journal = Journal(out / journal.NAME, run.id)
        except OSError as error:
            stop(ExitCode.USAGE, f"{out / journal.NAME} cannot be written: {error.strerror}")
        self._writes = Thread(target=self._write_now_and_then, daemon=True)
        self._writes.start()

    @property
    def problem(self) -> str:
        """Why the journal lacks something, empty where it is whole."""
        return self._journal.problem or self._journal.unsynced

    def begins(self, state: Callable[[], Run]) -> None:
        """From now on the reports show the run as it is."""
        self._state = state

    def knows(self, section: str, facts: Mapping[str, str]) -> None:
        """Note a part of the environment."""
        self._journal.append({"environment": {section: dict(facts)}})

    def computed(self, scores: ReferenceScores) -> None:
        """Note a reference's scores, with the first cell that is done by them."""
        self._computed.append({"reference": json_report.reference_entry(scores)})

    def starts(self, cell: Cell) -> None:
        """Show the cell."""
        self._shown.starts(cell)

    def done(self, result: Result) -> None:
        """Note a result."""
        self._journal.append(*self._computed, {"cell": json_report.result_entry(result)})
        self._computed.clear()
        self._shown.done(result)

    def amended(self, result: Result) -> None:
        """Note another result of a cell; the last one counts."""
        self._journal.append({"cell": json_report.result_entry(result)})

    def close(self) -> None:
        """Leave the reports to `publish`."""
        self._over.set()
        self._writes.join()
        self._journal.close()

    def _write_now_and_then(self) -> None:
        pause = PERIOD
        while not self._over.wait(pause):
            began = perf_counter()
            write(self._out, self._state(), REPORTS)  # `publish` tells what fails
            took = perf_counter() - began
            pause = max(PERIOD - took, took / SHARE - took)


def finish(
    matrix: Matrix,
    unfinished: Run,
    out: Path,
    rcp_table: RcpTable | None,
    cache: ReferenceCache | None,
    ignore_interrupts: Callable[[], None],
) -> ExitCode:
    """Run what is not finished of a run, each backend in a process of its own, and publish it."""
    gc.set_threshold(KEPT)
    with (
        cell_progress(len(unfinished.results)) as bar,
        publishing(out, unfinished, bar) as publisher,
    ):
        finished = runner.run(
            matrix,
            unfinished,
            open_backend=workers.open_worker,
            progress=publisher,
            rcp_table=rcp_table,
            cache=cache,
        )
        ignore_interrupts()
    if cache is not None:
        cache.trim()
    note = cache.told() if cache is not None else ""
    return publish(finished, out, note=note, journal_problem=publisher.problem)


@contextmanager
def publishing(out: Path, run: Run, shown: Progress) -> Iterator[Publisher]:
    """Keep reports and journal of a run up to date."""
    with github.commands_stopped(os.environ, say):
        publisher = Publisher(out, run, shown)
        try:
            yield publisher
        finally:
            publisher.close()


def _write(path: Path, render: Render, run: Run) -> str:
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
