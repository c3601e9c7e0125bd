"""Markdown: verdict, table of marks, what is red and how to repeat it, environment."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gate.model import ExitCode, Status
from reports import evidence, steadiness, wording
from reports.fitting import Block, Choice, Section
from reports.marks import Kind, look, of_kind
from reports.page import Page

if TYPE_CHECKING:
    from gate.model import Result, Run
    from reports.fitting import Part

LIMIT = 1_024 * 1_024  # bytes; GitHub drops a larger step summary whole
SLOWEST = 5
CLOSED = "\n</details>\n"
COLUMNS = 60  # of a table; random cells would have one a cell, and every row one mark


class Grid(NamedTuple):
    """One feature on one candidate: the shorter of fixtures and options goes across.

    Attributes:
        down: what goes down.
        columns: names across.
        rows: arithmetic, name and marks of each.
    """

    down: str
    columns: list[str]
    rows: list[tuple[str, str, list[str]]]


def render(run: Run, limit: int = LIMIT) -> str:
    """Return the run as GitHub-flavoured markdown.

    Failures get most of the room; what finds none is counted by a sentence that names report.json.

    Args:
        run: the run.
        limit: bytes that the text has at most; empty where not even the verdict fits.
    """
    page = Page(run)
    lead = page.text("verdict", _verdict_mark(run))
    return Section(lead, _sections(run, page), "more section", tail="").fill(limit)[0]


def _sections(run: Run, page: Page) -> list[Part]:
    """Return what the report consists of; failures weigh most."""
    failures = page.detailed("failure", wording.spread(wording.by_guilty_axes(run)))
    again = page.blocks("again", filter(None, [wording.rerun_command(run)]))
    known = page.blocks("deviation", wording.with_status(run, Status.KNOWN))
    tables = [_table(page, *group) for group in wording.by_candidate(run).items()]
    sections: list[Part] = [
        Section("", _remarks(run, page), "more note", weight=2),
        Section(page.text("matrix"), tables, "more table", weight=3),
        *again,
        Section("### Failures\n\n", failures, "more failing cell", weight=8),
        _reasons(page, "Errors", wording.errors(run), weight=4),
        _reasons(page, "Not finished", wording.unfinished(run), weight=2),
        Section(page.text("deviations"), known, "more known deviation", weight=2),
        _reasons(page, "Skips", of_kind(run, Kind.SKIPPED), weight=2),
        *_compared(run, page),
        Section("### Environment\n", _facts(run, page), "more section", weight=2),
    ]
    return [one for one in sections if not isinstance(one, Section) or one.parts]


def _remarks(run: Run, page: Page) -> list[Block]:
    """Return what a reader must know first: troubles, notes, and which cells these are."""
    troubles = [problem.sentence for problem in wording.problems(run)]
    return [
        *page.blocks("trouble", troubles),
        *page.blocks("note", run.notes),
        *page.blocks("part", [run] if run.selection else []),
        *page.blocks("origin", wording.origin(run).items()),
        *page.blocks("start", [run]),
        *page.blocks("origin", (steadiness.facts(run) | evidence.facts(run)).items()),
    ]


def _reasons(page: Page, title: str, results: list[Result], weight: int) -> Section:
    """Return a section that says every reason once."""
    groups = page.detailed("group", wording.by_reason(results))
    return Section(f"### {title}\n\n", groups, "more reason", weight=weight)


def _table(page: Page, name: tuple[str, str], results: list[Result]) -> Part:
    """Return the table of marks of one feature on one candidate."""
    skipped = {look(result.status).kind for result in results} == {Kind.SKIPPED}
    grid = _grid(results)
    if skipped or len(grid.columns) > COLUMNS:
        macro = "all_skipped" if skipped else "too_wide"
        return Block((partial(page.text, macro, name, len(results)),))
    references = dict.fromkeys(result.cell.reference for result in results)
    lead = page.text("marks", name, list(references), grid)
    worst = sorted(grid.rows, key=_passed)
    plan, cut = (Section(lead, page.blocks("row", rows), "more row") for rows in (grid.rows, worst))
    return Choice(plan, cut)


def _passed(row: tuple[str, str, list[str]]) -> bool:
    return set(row[2]) <= {"", look(Status.PASS).mark}


def _compared(run: Run, page: Page) -> list[Section]:
    """Return what was compared, what is UNSET, and what took longest."""
    sums = page.blocks("sum", wording.by_candidate(run).items())
    sums += page.blocks("reference", wording.reference_seconds(run).items())
    unset = page.blocks("unset", wording.unset_scores(run))
    by_time = sorted(run.results, key=lambda result: -result.seconds)
    slowest = page.blocks("slow", [r for r in by_time[:SLOWEST] if r.seconds])
    return [
        Section(page.text("sums"), sums, "more row"),
        Section(page.text("unsets"), unset, "more row"),
        Section(page.text("slowest"), slowest, "more row"),
    ]


def _facts(run: Run, page: Page) -> list[Section]:
    return [
        Section(page.text("section", name), page.blocks("fact", facts.items()), "more fact", CLOSED)
        for name, facts in run.environment.items()
    ]


def _verdict_mark(run: Run) -> str:
    marks = {ExitCode.OK: Status.PASS, ExitCode.FAIL: Status.FAIL}
    return look(marks.get(run.exit_code, Status.ERROR)).mark


def _grid(results: list[Result]) -> Grid:
    """Return the marks of one feature on one candidate; empty where there is no such cell."""
    fixtures = dict.fromkeys(result.cell.fixture for result in results)
    options = dict.fromkeys(result.cell.options_name for result in results)
    across = len(fixtures) <= len(options)
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for result in results:
        cell = result.cell
        names = (cell.options_name, cell.fixture) if across else (cell.fixture, cell.options_name)
        rows.setdefault((cell.arithmetic, names[0]), {})[names[1]] = look(result.status).mark
    columns = list(fixtures if across else options)
    return Grid(
        "options" if across else "fixture",
        columns,
        [
            (arithmetic, name, [marks.get(column, "") for column in columns])
            for (arithmetic, name), marks in rows.items()
        ],
    )
