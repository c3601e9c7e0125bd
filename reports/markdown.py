"""Markdown: verdict, table of marks, what is red and how to repeat it, environment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gate.model import (
    ExitCode,
    Status,
    counted,
    decimal,
    exact,
    mismatch_sentence,
    steps_apart,
)
from reports import wording
from reports.wording import printable

if TYPE_CHECKING:
    from gate.model import Result, Run

LIMIT = 1_024 * 1_024  # bytes; GitHub drops a larger step summary whole
TEXT = 4_000  # characters of one compiler log or traceback
NAMED = 20  # cells named of a group that shares a reason
SUMMARY = 300  # characters of a reason where it is folded
SLOWEST = 5
COLUMNS = 60  # of a table; random cells would have one a cell, and every row one mark

MARKS = {
    Status.PASS: "✅",
    Status.KNOWN: "🟡",
    Status.FAIL: "❌",
    Status.ERROR: "💥",
    Status.SKIP: "⏭",
}

# A numeric character reference never acts as markup, neither in tables nor in HTML. Inside a word
# an underscore is harmless, and names without references stay readable in the source.
_MARKUP = re.compile(r"[\\`*\[\]|<>&~#\"$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


class Room(NamedTuple):
    """How much a report shows: cells or groups a section, mismatches a cell, tables of marks."""

    items: int
    mismatches: int
    tables: bool


ROOMS = (Room(200, 20, True), Room(50, 5, True), Room(10, 5, True), Room(10, 5, False))  # noqa: FBT003 - columns named above


class Grid(NamedTuple):
    """One feature on one candidate: the shorter of fixtures and options goes across."""

    down: str
    columns: list[str]
    rows: list[tuple[str, str, list[str]]]


def render(run: Run) -> str:
    """Return the run as GitHub-flavoured markdown of less than 1024 KiB."""
    template = _environment().get_template("report.md.j2")
    for room in ROOMS:
        text = template.render(
            run=run,
            room=room,
            mark=_verdict_mark(run),
            failures=wording.with_status(run, Status.FAIL),
            known=wording.with_status(run, Status.KNOWN),
            errors=wording.by_reason(wording.with_status(run, Status.ERROR)),
            skips=wording.by_reason(wording.with_status(run, Status.SKIP)),
            groups=wording.by_candidate(run),
            unset=wording.unset_scores(run),
            slowest=sorted(run.results, key=lambda result: -result.seconds)[:SLOWEST],
        )
        if len(text.encode()) < LIMIT:
            break
    return text


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=_escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        counted=counted, decimal=decimal, exact=exact, fenced=_fenced, narrow=_narrow
    )
    environment.globals.update(
        COLUMNS=COLUMNS,
        MARKS=MARKS,
        NAMED=NAMED,
        SUMMARY=SUMMARY,
        Status=Status,
        differing=wording.differing,
        grid=_grid,
        mismatch_sentence=mismatch_sentence,
        one_line=wording.one_line,
        problems=wording.problems,
        shared_id=wording.shared_id,
        reference_seconds=wording.reference_seconds,
        steps_apart=steps_apart,
        tally=wording.tally,
    )
    return environment


def _escaped(value: object) -> Markup:
    """Make every expression of the template plain text, unless it is markup already."""
    if isinstance(value, Markup):
        return value
    text = _MARKUP.sub(lambda match: f"&#{ord(match[0])};", printable(str(value)))
    return Markup(text.replace("\n", "<br>"))  # noqa: S704 - escaped on the line above


def _narrow(name: str) -> Markup:
    """Let a name break after its underscores, so that a column of marks stays narrow."""
    return _escaped(name).replace("_", Markup("_<br>"))


def _fenced(text: str, language: str = "text") -> Markup:
    """Return a code block whose fence is longer than any run of backticks in the text."""
    shown = wording.cut(printable(text), TEXT)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}{language}\n{shown}\n{fence}")  # noqa: S704 - a fence holds any text


def _verdict_mark(run: Run) -> str:
    marks = {ExitCode.OK: Status.PASS, ExitCode.FAIL: Status.FAIL}
    return MARKS[marks.get(run.exit_code, Status.ERROR)]


def _grid(results: list[Result]) -> Grid:
    """Return the marks of one feature on one candidate; empty where there is no such cell."""
    fixtures = dict.fromkeys(result.cell.fixture for result in results)
    options = dict.fromkeys(result.cell.options_name for result in results)
    across = len(fixtures) <= len(options)
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for result in results:
        cell = result.cell
        names = (cell.options_name, cell.fixture) if across else (cell.fixture, cell.options_name)
        rows.setdefault((cell.arithmetic, names[0]), {})[names[1]] = MARKS[result.status]
    columns = list(fixtures if across else options)
    return Grid(
        "options" if across else "fixture",
        columns,
        [
            (arithmetic, name, [marks.get(column, "") for column in columns])
            for (arithmetic, name), marks in rows.items()
        ],
    )
