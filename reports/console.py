"""Terminal: marks, known deviations, skips, errors, failures: the worst next to the verdict."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from gate.model import Status, counted, decimal
from reports import evidence
from reports.marks import LOOKS, Kind, badness, look, of_kind
from reports.steadiness import facts, moving, sides_sentence
from reports.wording import (
    REPORT,
    by_candidate,
    by_guilty_axes,
    by_reason,
    cut,
    differing,
    errors,
    one_line,
    printable,
    problems,
    rerun_command,
    shared_id,
    spread,
    tally,
    unfinished,
    unset_scores,
    with_status,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from gate.model import Result, Run

SHOWN = 20  # groups of failures, errors and skips; the rest is in report.json
ROWS = 60  # fixtures of a table; with more, those that only passed share a row
EXAMPLES = 5  # failures in full
LINES = 3  # of a compiler log or traceback, whose end says most; the reports keep more
DETAIL = 1_500  # characters of these lines
NARROWEST = 60  # columns; below, a table folds its names into letters or loses its columns
INDENT = "     "


class _Grid(Table):
    """A table that is never narrower than it can be read."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(options.max_width, NARROWEST)
        return super().__rich_console__(console, options.update(max_width=width))


def table(
    run: Run, report: str = REPORT, program: Iterable[str] = ("parity-gate",)
) -> RenderableType:
    """Return what a person reads above the verdict line.

    Print it with `soft_wrap=True`, so that commands stay whole in narrow terminals and logs.

    Args:
        run: the run.
        report: path of its report.json.
        program: the words that start the program.
    """
    return Group(
        *_grids(run),
        *_known(run),
        *_reasons(run, of_kind(run, Kind.SKIPPED)),
        *_reasons(run, unfinished(run)),
        *_reasons(run, errors(run)),
        *_failures(run),
        *_again(rerun_command(run, report, program)),
        *(Text(one_line(problem.sentence), style="bold red") for problem in problems(run)),
        *(Text(f"Note: {one_line(note)}", style="bold yellow") for note in run.notes),
    )


def _grids(run: Run) -> Iterator[RenderableType]:
    for (feature, candidate), results in by_candidate(run).items():
        if all(look(result.status).kind is Kind.SKIPPED for result in results):
            continue  # the list of skips says it in one line
        for conclusion in dict.fromkeys(result.cell.conclusion for result in results):
            some = [result for result in results if result.cell.conclusion == conclusion]
            is_default = some[0].cell.arithmetic == some[0].cell.dialect
            told = "" if is_default else f", conclusion {conclusion}"
            yield _grid(f"{feature} on {candidate}{told}", some)
            yield ""
    if run.results:
        legend = "  ".join(f"{one.sign} {status.value}" for status, one in LOOKS.items())
        yield Text(f"{legend}  (with the number of option sets)", style="dim")
    sums = tally(list(run.results))
    if sums.nans or sums.unsets:
        yield Text(f"In the reference: {sums.nans} NaN, {counted(sums.unsets, 'UNSET score')}")
    unset = unset_scores(run)
    for one in unset[:SHOWN]:
        where = f"{', '.join(one.fixtures)} ({', '.join(one.arithmetics)})"
        line = f"UNSET {one.feature} {one.options_name}: {one.sentence} of {where}"
        yield Text(one_line(line))
    yield from _more(len(unset) - SHOWN, "more line of UNSET scores")
    sides = facts(run) | evidence.facts(run)
    yield from (Text(one_line(f"{name.capitalize()}: {told}")) for name, told in sides.items())


def _grid(title: str, results: list[Result]) -> Table:
    """One row a fixture, one column a dialect; an entry counts the option sets by status."""
    grid = _Grid(
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
    shown = list(rows) if len(rows) <= ROWS else _not_passed(rows)[:ROWS]
    for fixture in shown:
        grid.add_row(Text(printable(fixture)), *map(_entry, rows[fixture].values()))
    others = [entries for fixture, entries in rows.items() if fixture not in shown]
    if others:
        sums = (sum((entries[name] for entries in others), Counter()) for name in dialects)
        grid.add_row(
            counted(len(others), "other fixture" if shown else "fixture"), *map(_entry, sums)
        )
    return grid


def _not_passed(rows: Mapping[str, Mapping[str, Counter[Status]]]) -> list[str]:
    """Return the fixtures with anything but passed cells."""
    passed = {Status.PASS}
    return [name for name, row in rows.items() if any(set(c) - passed for c in row.values())]


def _entry(counts: Counter[Status]) -> Text:
    shown = [
        (look(status), counts[status]) for status in sorted(counts, key=badness) if counts[status]
    ]
    pieces = (Text(f"{one.sign} {number}", style=one.style) for one, number in shown)
    return Text("  ").join(pieces)


def _known(run: Run) -> Iterator[Text]:
    """Say every reason once and every cell that has it, however many: deviations are reviewed."""
    for results in by_reason(with_status(run, Status.KNOWN)):
        yield _headline(Status.KNOWN, f"{_names(results)}: {one_line(results[0].reason)}")
        yield _indented(f"{result.cell.id}: {differing(result)}" for result in results)


def _reasons(run: Run, results: list[Result]) -> Iterator[Text]:
    """Say every reason once, with the cells that share it."""
    groups = by_reason(results)
    for alike in groups[:SHOWN]:
        first = alike[0]
        yield _headline(first.status, f"{_names(alike)}: {one_line(first.reason)}")
        if first.detail:
            yield _indented(_end(first.detail))
        if look(first.status).kind is Kind.ERROR:
            yield _indented([run.repeat_command(first.cell)])
    if results:
        yield from _more(len(groups) - SHOWN, f"more {results[0].status.value} reason")


def _end(detail: str) -> list[str]:
    lines = printable(detail.strip()).splitlines()
    above = len(lines) - LINES
    told = [f"[... {counted(above, 'line')} above, in report.json ...]"] if above > 0 else []
    return [*told, *cut("\n".join(lines[-LINES:]), DETAIL).splitlines()]


def _names(results: list[Result]) -> str:
    number = f"{counted(len(results), 'cell')} " if len(results) > 1 else ""
    return number + printable(shared_id(results))


def _failures(run: Run) -> Iterator[Text]:
    """Say where the failures are, then show some: of each group one, then of each another."""
    groups = by_guilty_axes(run)
    failures = spread(groups)
    if len(failures) > 1:
        yield Text()
        for results in groups[:SHOWN]:
            names = f"{counted(len(results), 'cell')} {printable(shared_id(results))}"
            yield _line(results[0].status, f"{names}{printable(moving(results))}")
        yield from _more(len(groups) - SHOWN, "more failing group")
    for result in failures[:EXAMPLES]:
        sentence = one_line(result.reason)
        yield _headline(result.status, f"{printable(result.cell.id)} {sentence}")
        sides = filter(None, [one_line(sides_sentence(result))])
        yield _indented([*_decimals(result), *sides, run.repeat_command(result.cell)])
    yield from _more(len(failures) - EXAMPLES, "more failing cell")


def _again(command: str) -> Iterator[Text]:
    if command:
        yield Text(f"\nAll red cells again:\n{INDENT}{printable(command)}")


def _decimals(result: Result) -> Iterator[str]:
    if result.comparison is None or not result.comparison.mismatches:
        return
    first = result.comparison.mismatches[0]
    if first.operands or result.unstable:
        return  # integers, which the sentence above tells whole; or the reason is another
    candidate, reference = decimal(first.candidate), decimal(first.reference)
    yield f"{candidate} expected {reference}"


def _line(status: Status, text: str) -> Text:
    return Text.assemble((status.value, look(status).style), f" {text}")


def _headline(status: Status, text: str) -> Text:
    return Text.assemble("\n", _line(status, text))


def _indented(lines: Iterable[str]) -> Text:
    return Text("\n".join(INDENT + printable(line) for line in lines))


def _more(number: int, word: str) -> Iterator[Text]:
    if number > 0:
        yield Text(f"and {counted(number, word)}, in report.json")
