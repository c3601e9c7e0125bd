"""GitHub: a step's summary, a check's summary, annotations, and no commands out of other text."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gate.model import Status, counted
from reports import markdown
from reports.steadiness import guilty, sides_sentence
from reports.wording import (
    by_guilty_axes,
    by_reason,
    cut,
    differing,
    errors,
    one_line,
    printable,
    problems,
    shared_id,
    spread,
    unfinished,
    with_status,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gate.model import Result, Run

CHECK = 65_535  # bytes of a check's summary; GitHub refuses more
STEP = 10  # annotations of one level that GitHub keeps of a step
JOB = 50  # annotations that GitHub keeps of a job
MESSAGE = 4_000  # characters of an annotation
TITLE = 200  # characters
LEDGER = "parity-gate-annotations.txt"
REST = "in the step's summary and, all of it, in report.json of the artifact"


class Annotation(NamedTuple):
    """What GitHub shows beside a commit.

    Attributes:
        title: of one line.
        message: of one or more lines.
        place: file and line, if it has one.
    """

    title: str
    message: str
    place: tuple[str, int] | None = None

    def command(self, level: str) -> str:
        """Return the workflow command, one line, for the level `error` or `warning`."""
        properties = {"title": one_line(self.title, TITLE)}
        if self.place:
            file, line = self.place
            properties = {"file": printable(file), "line": str(line), **properties}
        told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
        return f"::{level} {told}::{_data(cut(printable(self.message), MESSAGE))}"


def summary(run: Run) -> str:
    """Return the run as markdown for a step's summary, at most 1 MiB."""
    return markdown.render(run)


def check_summary(run: Run) -> str:
    """Return the run as markdown for a check's summary, at most 65 535 bytes."""
    return markdown.render(run, CHECK)


def annotation_commands(run: Run) -> list[str]:
    """Return workflow commands, one line each: at most 10 errors and 10 warnings, the worst first.

    Where there are more, the last of a level says how many.
    """
    return [
        annotation.command(level)
        for level, found in _found(run).items()
        for annotation in _first(found, STEP)
    ]


def publish(run: Run, environ: Mapping[str, str], write: Callable[[str], None]) -> str:
    """Give GitHub what it shows of a run; do nothing where its variables are missing.

    The summary is appended to the file that GITHUB_STEP_SUMMARY names, within the bytes that
    earlier commands of the step have left. Annotations are printed where GITHUB_ACTIONS is `true`;
    a file in the folder RUNNER_TEMP counts those that commands of the same job have printed.

    Args:
        run: the finished run.
        environ: the variables of the process.
        write: prints one line to stdout.

    Returns:
        One sentence about what could not be written; empty if nothing.
    """
    troubles = []
    if path := environ.get("GITHUB_STEP_SUMMARY"):
        troubles.append(_append_summary(run, Path(path)))
    if environ.get("GITHUB_ACTIONS") == "true":
        troubles.append(_annotate(run, environ, write))
    return "; ".join(filter(None, troubles))


@contextmanager
def commands_stopped(environ: Mapping[str, str], write: Callable[[str], None]) -> Iterator[None]:
    """Keep GitHub from taking what is printed inside for workflow commands.

    What the program, its workers or a driver prints holds text of others. The token that ends this
    is random, so no text can hold it.

    Args:
        environ: the variables of the process.
        write: prints one line to stdout, at once.
    """
    if environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    token = secrets.token_hex(32)
    write(f"::stop-commands::{token}")
    try:
        yield
    finally:
        write(f"\n::{token}::")  # a driver may have left half a line


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _found(run: Run) -> dict[str, list[Callable[[], Annotation]]]:
    """Return what makes each annotation, by level, the worst first."""
    red: list[Callable[[], Annotation]]
    yellow: list[Callable[[], Annotation]]
    red = [partial(Annotation, "parity-gate", problem.sentence) for problem in problems(run)]
    red += [partial(_of_cells, run, [result]) for result in spread(by_guilty_axes(run))]
    for late in (errors(run), unfinished(run)):
        red += [partial(_of_cells, run, results) for results in by_reason(late)]
    known = by_reason(with_status(run, Status.KNOWN))
    yellow = [partial(_of_cells, run, results) for results in known]
    yellow += [partial(Annotation, "parity-gate", note) for note in run.notes]
    return {"error": red, "warning": yellow}


def _of_cells(run: Run, results: list[Result]) -> Annotation:
    """Return an annotation about cells with one reason."""
    first = results[0]
    cell, status = first.cell, first.status
    named = cell.id if len(results) == 1 else f"{len(results)} cells {shared_id(results)}:"
    lines = [f"{one_line(named)} {one_line(first.reason)}"]
    if status is Status.KNOWN:
        lines.append(f"{one_line(cell.id)}: {differing(first)}")
    if sides := sides_sentence(first):
        lines.append(one_line(sides))
    lines.append(f"repeat: {run.repeat_command(cell)}")
    title = f"{status.value} {cell.feature} on {guilty(first)}"
    return Annotation(title, "\n".join(lines), (run.matrix, cell.line))


def _first(found: Sequence[Callable[[], Annotation]], most: int) -> list[Annotation]:
    """Return the first ones, at most so many, with one that counts the others."""
    if len(found) <= most:
        return [make() for make in found]
    shown = [make() for make in found[: max(0, most - 1)]]
    more = counted(len(found) - len(shown), "more annotation")
    told = Annotation("parity-gate", f"{more} left out: {REST}")
    return [*shown, told][:most]


def _append_summary(run: Run, path: Path) -> str:
    """Append the summary; return why it is not there, else an empty text."""
    try:
        before = path.stat().st_size if path.exists() else 0
        left = markdown.LIMIT - before - 1
        text = markdown.render(run, left)
        if not text:
            sentence = f"earlier commands of the step have left {left} of {markdown.LIMIT} bytes"
            return f"GITHUB_STEP_SUMMARY: {sentence}, too few for a summary; it is in report.md"
        try:
            with path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(f"\n{text}")
        except OSError:
            with suppress(OSError):  # half a summary may break what is above it
                os.truncate(path, before)
            raise
    except OSError as error:
        return f"GITHUB_STEP_SUMMARY: {path}: {error.strerror}; the summary is in report.md"
    return ""


def _annotate(run: Run, environ: Mapping[str, str], write: Callable[[str], None]) -> str:
    """Print annotations and count them; return why they cannot be counted, else an empty text."""
    folder = environ.get("RUNNER_TEMP")
    ledger = Path(folder, LEDGER) if folder else None
    before, trouble = _printed(ledger)
    step = repr(environ.get("GITHUB_STEP_SUMMARY"))  # another path in every step
    new: list[str] = []
    for level, found in _found(run).items():
        entry = f"{level} {step}"
        room = min(STEP - before.count(entry), JOB - len(before) - len(new))
        shown = _first(found, max(0, room))
        for annotation in shown:
            write(annotation.command(level))
        if found and not shown:
            write(f"{counted(len(found), 'annotation')} ({level}) left out: {REST}")
        new += [entry] * len(shown)
    return trouble or _note(ledger, new)


def _printed(ledger: Path | None) -> tuple[list[str], str]:
    """Return an entry for each annotation that this job has printed, and why they are unknown."""
    if ledger is None:
        return [], ""
    try:
        return ledger.read_text("utf-8", "replace").splitlines() if ledger.exists() else [], ""
    except OSError as error:
        return [], _uncounted(ledger, error)


def _note(ledger: Path | None, entries: list[str]) -> str:
    if ledger is None or not entries:
        return ""
    try:
        with ledger.open("a", encoding="utf-8") as file:
            file.writelines(f"{entry}\n" for entry in entries)
    except OSError as error:
        return _uncounted(ledger, error)
    return ""


def _uncounted(ledger: Path, error: OSError) -> str:
    return f"RUNNER_TEMP: {ledger}: {error.strerror}; earlier annotations of the job do not count"
