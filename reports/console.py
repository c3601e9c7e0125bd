"""Terminal: a table of marks, then skips, errors and failures, the worst next to the verdict."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from gate.model import Status, decimal, failure_sentence
from reports.wording import (
    by_candidate,
    by_reason,
    count,
    cut,
    one_line,
    printable,
    problems,
    shared_id,
    tally,
    with_status,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from gate.model import Result, Run

SHOWN = 20  # failures, and groups of errors and skips; the rest is in report.json
DETAIL = 1_500  # characters of a compiler log or traceback
INDENT = "     "

# Worst first, as within a cell of the table.
MARKS = {
    Status.FAIL: ("✗", "bold red"),
    Status.ERROR: ("!", "bold magenta"),
    Status.SKIP: ("-", "yellow"),
    Status.PASS: ("✓", "green"),
}


def table(run: Run) -> RenderableType:
    """Return what a person reads above the verdict line.

    Print it with `soft_wrap=True`, so that commands stay whole in narrow terminals and logs.
    """
    return Group(
        *_grids(run),
        *_reasons(run, Status.SKIP),
        *_reasons(run, Status.ERROR),
        *_failures(run),
        *(Text(one_line(problem.sentence), style="bold red") for problem in problems(run)),
    )


def _grids(run: Run) -> Iterator[RenderableType]:
    for (feature, candidate), results in by_candidate(run).items():
        if all(result.status is Status.SKIP for result in results):
            continue  # the list of skips says it in one line
        yield _grid(f"{feature} on {candidate}", results)
        yield ""
    if run.results:
        legend = "  ".join(f"{mark} {status.value}" for status, (mark, _) in MARKS.items())
        yield Text(f"{legend}  (with the number of option sets)", style="dim")
    sums = tally(list(run.results))
    if sums.nans or sums.unsets:
        yield Text(f"In the reference: {sums.nans} NaN, {sums.unsets} UNSET scores")


def _grid(title: str, results: list[Result]) -> Table:
    """One row a fixture, one column a dialect; an entry counts the option sets by status."""
    grid = Table(
        title=Text(printable(title), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,  # a long fixture and four dialects fit 80 columns
    )
    dialects = dict.fromkeys(result.cell.dialect for result in results)
    grid.add_column("fixture", overflow="fold")
    for dialect in dialects:
        grid.add_column(Text(printable(dialect)), overflow="fold")
    rows: dict[str, dict[str, Counter[Status]]] = {}
    for result in results:
        entries = rows.setdefault(result.cell.fixture, {name: Counter() for name in dialects})
        entries[result.cell.dialect][result.status] += 1
    for fixture, entries in rows.items():
        grid.add_row(Text(printable(fixture)), *map(_entry, entries.values()))
    return grid


def _entry(counts: Counter[Status]) -> Text:
    pieces = [
        (f"{mark} {counts[status]}", style)
        for status, (mark, style) in MARKS.items()
        if counts[status]
    ]
    return Text("  ").join(Text(text, style=style) for text, style in pieces)


def _reasons(run: Run, status: Status) -> Iterator[Text]:
    """Say every reason once, with the cells that share it."""
    groups = by_reason(with_status(run, status))
    for results in groups[:SHOWN]:
        first = results[0]
        yield _headline(status, f"{_names(results)}: {one_line(first.reason)}")
        if first.detail:
            yield _indented(cut(printable(first.detail.strip()), DETAIL).splitlines())
        if status is Status.ERROR:
            yield _indented([run.repeat_command(first.cell)])
    yield from _more(len(groups) - SHOWN, f"more {status.value} reason")


def _names(results: list[Result]) -> str:
    number = f"{count(len(results), 'cell')} " if len(results) > 1 else ""
    return number + printable(shared_id(results))


def _failures(run: Run) -> Iterator[Text]:
    failures = with_status(run, Status.FAIL)
    for result in failures[:SHOWN]:
        sentence = one_line(failure_sentence(result))
        yield _headline(Status.FAIL, f"{printable(result.cell.id)} {sentence}")
        yield _indented([*_decimals(result), run.repeat_command(result.cell)])
    yield from _more(len(failures) - SHOWN, "more failing cell")


def _decimals(result: Result) -> Iterator[str]:
    if result.comparison is None or not result.comparison.mismatches:
        return
    first = result.comparison.mismatches[0]
    candidate, reference = decimal(first.candidate), decimal(first.reference)
    yield f"{candidate} expected {reference}"


def _headline(status: Status, text: str) -> Text:
    return Text.assemble("\n", (status.value, MARKS[status][1]), f" {text}")


def _indented(lines: Iterable[str]) -> Text:
    return Text("\n".join(INDENT + printable(line) for line in lines))


def _more(number: int, word: str) -> Iterator[Text]:
    if number > 0:
        yield Text(f"and {count(number, word)}, in report.json")
