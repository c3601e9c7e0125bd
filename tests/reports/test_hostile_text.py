"""Text of fixtures, options, compilers and devices breaks no report, whatever it holds."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_schema import faults
from rich.console import Console

from gate.model import Cell, Comparison, Control, Mismatch, Result, Run, Stability, Status
from reports import console, github, junit, markdown
from reports import json as json_report
from reports.github import Annotation, commands_stopped
from reports.wording import printable

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]

PIECES = (
    *(
        "]]>",
        "<![CDATA[",
        "</testcase>",
        "<script>",
        "</details>",
        "<!--",
        "&lt;",
        "&#0;",
        '"',
        "'",
    ),
    *("%0A", "%", "::set-output name=a::b", "::error::", "##[error]", "::stop-commands::x", ","),
    *("`", "```", "~~~", "|", "\\|", "\\", "*", "**", "_", "# ", "- ", "> ", "[a](b)", "![a](b)"),
    *("\n", "\r", "\r\n", "\n\n", "\t", "    ", " ", "\x00", "\x1b[2J", "\x85", "\u2028", "\ufffe"),
    *("\u202e", "\u2066", "\u200b", "\ufeff", "\ud800", "\udc80", "\U0001ffff", "😀", "$x$", "1. "),
)
# At most so long that no report cuts it or folds it.
TEXTS = st.lists(st.sampled_from(PIECES) | st.characters(codec=None), min_size=1, max_size=6).map(
    "".join
)
NAMES = (*"abcdefghijklmnopqrst",)
XML_1_0 = re.compile("[\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
MISMATCH = Mismatch(3, "adm2", 0.5, 0.25, -1, "ulp32")
SETTINGS = settings(max_examples=60, deadline=None)


def _runs(build_run: BuildRun, build_cell: BuildCell) -> Callable[[tuple[str, ...]], Run]:
    """Return what builds a run of every status out of 20 different texts."""

    def build(texts: tuple[str, ...]) -> Run:
        one, two, options, backend, matrix, key, value, section, *others = texts
        score, note, missing, command, glob, started, why, log, late, skip = others[:10]
        names = {"options_name": options, "candidate": backend, "line": 7}
        first, second = (build_cell(name, **names) for name in (one, two))
        comparison = Comparison(84, 0, 0, 1, (replace(MISMATCH, score=score),))
        ways = (Control("reference", key, 84, 3), Control(value, section, 84, 0))
        steady = tuple(replace(control, different=0) for control in ways)
        unsteady = Result(replace(first, conclusion="vmafx"), Status.NONDETERMINISTIC, why, log)
        results = (
            Result(first, Status.FAIL, why, log, comparison, controls=steady),
            replace(unsteady, controls=ways, stability=Stability(30, 2, 3)),
            Result(second, Status.KNOWN, why, log, comparison, seconds=1.0),
            Result(replace(first, dialect="ieee-double"), Status.ERROR, why, log),
            Result(replace(second, dialect="ieee-double"), Status.ERROR, late, log),
            Result(replace(first, dialect="ieee-single"), Status.SKIP, skip),
            Result(replace(second, dialect="ieee-single"), Status.PASS, comparison=comparison),
        )
        run = build_run(*results, matrix=matrix, missing=(missing,), notes=(note,))
        run = replace(run, command=command, selection=(glob,), rerun_of=key, id=value, repeat=30)
        (reference,) = run.references
        unset = replace(reference, fixture=one, options_name=options, names=(score, key, value))
        return replace(
            run,
            started=started,
            references=(replace(unset, cached=True),),
            environment={section: {key: value, value: others[10]}, key: {section: others[11]}},
        )

    return build


@pytest.fixture(scope="session")
def build(build_run: BuildRun, build_cell: BuildCell) -> Callable[[tuple[str, ...]], Run]:
    return _runs(build_run, build_cell)


Build = Callable[[tuple[str, ...]], Run]
DIFFERENT = st.lists(TEXTS, min_size=20, max_size=20, unique_by=printable).map(tuple)


def _tags(text: str) -> list[str]:
    """Return what a browser makes of a report, but for line breaks inside a table's cell."""
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return [tag for tag in re.findall(r"<[^>]*>", html) if not tag.startswith("<br")]


@SETTINGS
@given(texts=DIFFERENT)
def test_markdown_has_the_tables_and_tags_of_harmless_text(
    texts: tuple[str, ...], build: Build
) -> None:
    text = markdown.render(build(texts))
    assert _tags(text) == _tags(markdown.render(build(NAMES)))
    assert all(character.isprintable() or character in "\n\t" for character in text)


@SETTINGS
@given(texts=DIFFERENT)
def test_junit_parses_and_has_each_cell_once_in_its_colour(
    texts: tuple[str, ...], build: Build
) -> None:
    run = build(texts)
    document = junit.render(run)
    assert XML_1_0.fullmatch(document)
    root = ET.fromstring(document.encode())  # noqa: S314 - our own document
    cases = [case for case in root.iter("testcase") if case.get("classname") != "gate"]
    assert [case.get("name") for case in cases] == [printable(r.cell.id) for r in run.results]
    told = [[child.tag for child in case] for case in cases]
    words = ["failure", "failure", "system-out", "error", "error", "skipped", "system-out"]
    assert told == [[word] for word in words]


def _joined(text: str) -> str:
    """Return a text with two surrogates side by side as the one character that they spell."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@SETTINGS
@given(texts=DIFFERENT)
def test_json_gives_every_text_back(texts: tuple[str, ...], build: Build) -> None:
    run = build(texts)
    document = json.loads(json_report.render(run))
    assert faults(document) == []
    cells = document["cells"]
    for name, told in (
        ("id", [result.cell.id for result in run.results]),
        ("reason", [result.reason for result in run.results]),
        ("detail", [result.detail for result in run.results]),
    ):
        assert [cell[name] for cell in cells] == list(map(_joined, told))
    controls = [[(c["side"], c["how"]) for c in cell["controls"]] for cell in cells]
    assert controls == [
        [(_joined(c.side), _joined(c.how)) for c in result.controls] for result in run.results
    ]
    for name in ("notes", "missing", "selection"):
        assert document[name] == list(map(_joined, getattr(run, name)))
    for name in ("matrix", "command", "id", "rerun_of", "started"):
        assert document[name] == _joined(getattr(run, name))
    assert document["environment"] == {
        _joined(section): {_joined(key): _joined(value) for key, value in facts.items()}
        for section, facts in run.environment.items()
    }


@SETTINGS
@given(texts=DIFFERENT)
def test_terminal_gets_no_control_characters(texts: tuple[str, ...], build: Build) -> None:
    target = io.StringIO()
    Console(file=target, width=100).print(console.table(build(texts)), soft_wrap=True)
    assert all(character.isprintable() or character in "\n\t" for character in target.getvalue())


def _parsed(command: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as GitHub's runner does."""
    assert len(command.splitlines()) == 1
    assert command.startswith("::")
    head, _, message = command[2:].partition("::")
    level, _, told = head.partition(" ")
    pairs = (entry.partition("=")[::2] for entry in told.split(","))
    return level, {name: _unescaped(value) for name, value in pairs}, _unescaped(message)


def _unescaped(text: str) -> str:
    return re.sub("%(0D|0A|3A|2C|25)", lambda match: chr(int(match[1], 16)), text)


@SETTINGS
@given(title=TEXTS, message=TEXTS, file=TEXTS)
@example("a: b, c", "50%\n%0A", "matrices/a:b,c.yaml")
def test_annotation_is_one_line_and_reads_back(title: str, message: str, file: str) -> None:
    level, properties, told = _parsed(Annotation(title, message, (file, 7)).command("error"))
    words = " ".join(printable(title).split())
    assert (level, told) == ("error", printable(message))
    assert properties == {"file": printable(file), "line": "7", "title": words}


@SETTINGS
@given(texts=DIFFERENT)
def test_annotations_of_a_run_are_in_its_colours(texts: tuple[str, ...], build: Build) -> None:
    run = build(texts)
    commands = [_parsed(command) for command in github.annotation_commands(run)]
    assert [level for level, *_ in commands] == ["error"] * 5 + ["warning"] * 2
    places = [(told.get("file"), told.get("line")) for _, told, _ in commands]
    known = (printable(run.matrix), "7")
    assert places == [(None, None), *[known] * 5, (None, None)]


@SETTINGS
@given(texts=st.lists(TEXTS, max_size=5))
def test_printed_text_cannot_end_the_rule_that_stops_commands(texts: list[str]) -> None:
    output: list[str] = []
    with commands_stopped({"GITHUB_ACTIONS": "true"}, output.append):
        output += texts
    token = output[0].removeprefix("::stop-commands::")
    assert not any(token in text for text in texts)
    assert output[-1] == f"\n::{token}::"
