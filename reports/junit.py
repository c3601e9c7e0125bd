"""JUnit XML: one testcase a cell, red exactly where the exit code is red."""

from __future__ import annotations

from typing import TYPE_CHECKING

from junit_xml import TestCase, TestSuite, to_xml_report_string

from gate.model import (
    Status,
    counted,
    decimal,
    exact,
    mismatch_sentence,
    place_of,
    steps_apart,
)
from reports.wording import (
    cut,
    differing,
    group_of,
    one_line,
    printable,
    problems,
    unset_by_group,
    with_status,
)

if TYPE_CHECKING:
    from gate.model import Mismatch, Result, Run
    from reports.wording import Unset

LIMIT = 30_000_000  # bytes; GitLab drops larger reports
BODIES = (20_000, 2_000, 500)  # characters of one testcase's text, the first that fits LIMIT
MISMATCHES = 50  # listed in one testcase
FACT = 2_000  # characters of one property


def render(run: Run) -> str:
    """Return the run as a JUnit document of less than 30 MB.

    Class names and names hold parts of the cell's id only, so that they stay the same from run to
    run; the name is the whole id.
    """
    for body in BODIES:
        document = _document(run, body)
        if len(document.encode()) < LIMIT:
            break
    return document


def _document(run: Run, body: int) -> str:
    unset = unset_by_group(run)
    cases = _gate_cases(run)
    cases += [_case(run, r, unset.get(group_of(r.cell), []), body) for r in run.results]
    suite = TestSuite(
        "parity-gate", cases, timestamp=printable(run.started), properties=_properties(run)
    )
    document: str = to_xml_report_string([suite], encoding="utf-8")
    return document


def _properties(run: Run) -> dict[str, str]:
    facts = {"verdict": run.verdict, "selection": " ".join(run.selection) or "whole matrix"}
    facts |= {f"note {number}": note for number, note in enumerate(run.notes, 1)}
    known = with_status(run, Status.KNOWN)
    facts |= {f"known {r.cell.id}": f"{differing(r)}: {r.reason}" for r in known}
    for section, entries in run.environment.items():
        facts |= {f"{section}: {key}": value for key, value in entries.items()}
    return {one_line(key): cut(printable(value), FACT) for key, value in facts.items()}


def _gate_cases(run: Run) -> list[TestCase]:
    """Return one error for everything that reddens the exit code without a red cell."""
    cases = []
    for problem in problems(run):
        case = TestCase(one_line(problem.name), "gate", file=printable(run.matrix))
        sentence = one_line(problem.sentence)
        case.add_error_info(sentence, sentence, "ERROR")
        cases.append(case)
    return cases


def _case(run: Run, result: Result, unset: list[Unset], body: int) -> TestCase:
    cell = result.cell
    parts = (cell.feature, cell.arithmetic, cell.options_name, cell.fixture)
    case = TestCase(
        printable(cell.id),
        printable(".".join(parts)),
        elapsed_sec=result.seconds,
        file=printable(run.matrix),
        line=cell.line,
    )
    message, text = one_line(result.reason, min(body, 1000)), cut(_text(run, result, unset), body)
    match result.status:
        case Status.PASS | Status.KNOWN:
            case.stdout = text
        case Status.FAIL:
            case.add_failure_info(message, text, result.status.value)
        case Status.SKIP:
            case.add_skipped_info(message, text)
        case _:  # a status that this writer does not know must not look green
            case.add_error_info(message, text, result.status.value)
    return case


def _text(run: Run, result: Result, unset: list[Unset]) -> str:
    """Return everything essential once more: several consumers show the body only.

    It is never empty, because junit-xml drops an element without message and body, and the cell
    would look passed.
    """
    lines = [f"{result.status.value} {result.cell.id}"]
    if result.reason:
        lines.append(result.reason)
    if result.comparison is not None:
        nans, unsets = result.comparison.nans, result.comparison.unsets
        lines.append(f"{differing(result)}; in the reference: {nans} NaN, {unsets} UNSET")
        lines += [f"UNSET in the reference: {one.sentence}" for one in unset]
    lines.append(f"repeat: {run.repeat_command(result.cell)}")
    lines += _listing(result)
    if result.detail:
        lines += ["", result.detail]
    return printable("\n".join(lines))


def _listing(result: Result) -> list[str]:
    if result.comparison is None:
        return []
    lines = [_line(mismatch) for mismatch in result.comparison.mismatches[:MISMATCHES]]
    more = result.comparison.different - len(lines)
    if more > 0:
        lines.append(f"[... {counted(more, 'more score')} cut ...]")
    return lines


def _line(mismatch: Mismatch) -> str:
    if mismatch.operands:
        return mismatch_sentence(mismatch)
    return (
        f"{place_of(mismatch)}: "
        f"candidate {exact(mismatch.candidate)} = {decimal(mismatch.candidate)}, "
        f"reference {exact(mismatch.reference)} = {decimal(mismatch.reference)}, "
        f"{steps_apart(mismatch)}"
    )
