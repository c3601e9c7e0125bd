"""JUnit XML: one testcase a cell, red exactly where the exit code is red."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

from junit_xml import TestCase, TestSuite

from gate.model import (
    Status,
    counted,
    decimal,
    exact,
    mismatch_sentence,
    place_of,
    steps_apart,
)
from reports import evidence, steadiness
from reports.marks import Kind, badness, look
from reports.wording import (
    cut,
    differing,
    group_of,
    one_line,
    origin,
    printable,
    problems,
    rerun_command,
    unset_by_group,
    with_status,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gate.model import Mismatch, Result, Run
    from reports.wording import Unset

LIMIT = 30_000_000  # bytes; GitLab drops larger reports
BODY = 20_000  # characters of one testcase's log, where there is room
MISMATCHES = 50  # listed in one testcase
LINE = 30  # characters of the shortest line about one
FACT = 2_000  # characters of one property
FACTS = 6  # the properties take at most this part of the limit
GATE = 1_000  # bytes for the testcase that says how many others are left out
INDENT = 16  # bytes of the line ends and the indentation of one testcase or property
TOTALS = ("disabled", "errors", "failures", "tests", "time")


class Form(NamedTuple):
    """How much of a run a document shows.

    Attributes:
        text: characters of a testcase's reason and log; without any, it has no text at all.
        passed: whether cells that passed have a text.
        places: whether testcases point into the matrix.
    """

    text: int
    passed: bool
    places: bool


# Each takes less room than the one above it.
FORMS = (
    Form(BODY, passed=True, places=True),
    *(Form(text, passed=False, places=True) for text in (BODY, 5_000, 1_200, 300, 100, 0)),
    Form(0, passed=False, places=False),
)


def render(run: Run, limit: int = LIMIT) -> str:
    """Return the run as a JUnit document.

    Class names and names hold parts of the cell's id only, so that they stay the same from run to
    run; the name is the whole id. What finds no room goes in this order: texts of passed cells,
    middles of reasons and logs, all texts, places. A property says what is gone. Then testcases
    go, the worst last, which is an error of its own.

    Args:
        run: the run.
        limit: bytes that the document has at most; not below 10 kB.
    """
    for form in FORMS:
        if _least(run, form) > limit:
            continue
        cases = [*_gate_cases(run), *_cell_cases(run, run.results, form)]
        document = _document(run, cases, form, limit)
        if len(document) <= limit:
            return document.decode()
    return _document(run, _worst_cases(run, form, limit), form, limit).decode()


def _least(run: Run, form: Form) -> int:
    """Return bytes that a form certainly takes, so that no huge document is made in vain."""
    texts = (
        len(result.detail) + LINE * min(MISMATCHES, len(result.comparison.mismatches))
        if result.comparison
        else len(result.detail)
        for result in run.results
        if look(result.status).kind is not Kind.PASSED
    )
    return sum(min(form.text, text) for text in texts)


def _document(run: Run, cases: list[TestCase], form: Form, limit: int) -> bytes:
    suite = TestSuite(
        "parity-gate",
        cases,
        timestamp=one_line(run.started, 100),
        properties=_properties(run, form, limit // FACTS),
    ).build_xml_doc()
    root = ET.Element("testsuites", {key: suite.attrib[key] for key in TOTALS})
    root.append(suite)
    ET.indent(root, " ")
    # As one text and then as bytes: ElementTree takes twice as long to write bytes itself.
    text: str = ET.tostring(root, encoding="unicode", xml_declaration=True)
    return text.encode("utf-8", "xmlcharrefreplace")


def _properties(run: Run, form: Form, limit: int) -> dict[str, str]:
    """Return facts of at most `limit` bytes, and how many more there are."""
    facts = {"verdict": run.verdict, **_cuts(form), **origin(run)}
    if again := rerun_command(run):
        facts["all red cells again"] = again
    facts["selection"] = " ".join(run.selection) or "whole matrix"
    facts["required backends"] = " ".join(run.required) or "none"
    facts["replayed table"] = run.rcp_table or "none"
    facts["runs of each candidate"] = str(run.repeat)
    facts |= steadiness.facts(run) | evidence.facts(run)
    facts |= {f"note {number}": note for number, note in enumerate(run.notes, 1)}
    known = with_status(run, Status.KNOWN)
    facts |= {f"known {r.cell.id}": f"{differing(r)}: {r.reason}" for r in known}
    for section, entries in run.environment.items():
        facts |= {f"{section}: {key}": value for key, value in entries.items()}
    shown: dict[str, str] = {}
    left = limit
    for key, value in facts.items():
        name, text = one_line(key), cut(printable(value), FACT)
        left -= _bytes(ET.Element("property", name=name, value=text))
        if left < 0:
            return shown | {"more": f"{counted(len(facts) - len(shown), 'fact')}, in report.json"}
        shown[name] = text
    return shown


def _bytes(element: ET.Element) -> int:
    return len(ET.tostring(element, encoding="utf-8")) + INDENT


def _cuts(form: Form) -> dict[str, str]:
    gone = []
    if not form.text:
        gone.append("no texts")
    elif not form.passed:
        gone.append("no texts of passed cells")
    if 0 < form.text < BODY:
        gone.append(f"reasons and logs of at most {form.text} characters")
    if not form.places:
        gone.append("no lines of the matrix")
    told = ", ".join(gone)
    return {"cut": f"{told}; all of it is in report.json"} if told else {}


def _gate_cases(run: Run) -> list[TestCase]:
    """Return one error for everything that reddens the exit code without a red cell."""
    found = problems(run)
    matrix = printable(run.matrix)
    return [_gate_case(one_line(one.name), one_line(one.sentence), matrix) for one in found]


def _gate_case(name: str, sentence: str, file: str | None = None) -> TestCase:
    case = TestCase(name, "gate", file=file)
    case.add_error_info(sentence, sentence, "ERROR")
    return case


def _cell_cases(run: Run, results: Iterable[Result], form: Form) -> Iterator[TestCase]:
    unset = unset_by_group(run)
    for result in results:
        yield _case(run, result, unset.get(group_of(result.cell), []), form)


def _worst_cases(run: Run, form: Form, limit: int) -> list[TestCase]:
    """Return as many testcases as fit, the worst, and one that says how many do not."""
    results = sorted(run.results, key=lambda result: badness(result.status))
    everything = [*_gate_cases(run), *_cell_cases(run, results, form)]
    left = limit - len(_document(run, [], form, limit)) - GATE
    sizes = (_bytes(TestSuite("", [case]).build_xml_doc()[0]) for case in everything)
    kept = sum(total <= left for total in accumulate(sizes))
    sentence = (
        f"{counted(len(everything) - kept, 'testcase')} of {len(everything)} found no room in "
        f"{limit} bytes, the worst stay here; report.json has every cell"
    )
    return [_gate_case("report too large", sentence), *everything[:kept]]


def _case(run: Run, result: Result, unset: list[Unset], form: Form) -> TestCase:
    cell = result.cell
    parts = (cell.feature, cell.arithmetic, cell.options_name, cell.fixture)
    case = TestCase(
        printable(cell.id),
        printable(".".join(parts)),
        elapsed_sec=result.seconds,
        file=printable(run.matrix) if form.places else None,
        line=cell.line if form.places else None,
    )
    kind = look(result.status).kind
    if kind is Kind.PASSED and not form.passed:
        return case
    # junit-xml drops an element without message and text, and the cell would look passed.
    message, text = result.status.value, ""
    if form.text:
        message = one_line(result.reason, min(form.text, 1000))
        text = printable(_text(run, result, unset, form.text))
    match kind:
        case Kind.PASSED:
            case.stdout = text
        case Kind.FAILURE:
            case.add_failure_info(message, text, result.status.value)
        case Kind.SKIPPED:
            case.add_skipped_info(message, text)
        case _:
            case.add_error_info(message, text, result.status.value)
    return case


def _text(run: Run, result: Result, unset: list[Unset], limit: int) -> str:
    """Return everything essential once more: several consumers show the body only.

    Reason and log have `limit` characters each; name, counts and command stay.
    """
    lines = [f"{result.status.value} {result.cell.id}"]
    if result.reason:
        lines.append(cut(result.reason, limit))
    if result.comparison is not None:
        nans, unsets = result.comparison.nans, result.comparison.unsets
        lines.append(f"{differing(result)}; in the reference: {nans} NaN, {unsets} UNSET")
        lines += [f"UNSET in the reference: {one.sentence}" for one in unset]
    if sides := steadiness.sides_sentence(result):
        lines.append(one_line(sides, limit))
    lines.append(f"repeat: {run.repeat_command(result.cell)}")
    listing = _listing(result)
    if result.detail:
        listing += ["", result.detail]
    if listing:
        lines.append(cut("\n".join(listing), limit))
    return "\n".join(lines)


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
