from __future__ import annotations

import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from gate.model import Cell, Result, Run, Status
from reports import github, markdown
from reports.github import CHECK, JOB, STEP, Annotation, commands_stopped, publish

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]

ACTIONS = {"GITHUB_ACTIONS": "true"}


class Command(NamedTuple):
    """A workflow command as GitHub's runner reads it."""

    name: str
    properties: dict[str, str]
    message: str


def parsed(line: str) -> Command:
    """Read a command by the rules of GitHub's documentation."""
    head, _, message = line.removeprefix("::").partition("::")
    name, _, told = head.partition(" ")
    properties = dict(entry.split("=", 1) for entry in told.split(",")) if told else {}
    return Command(name, {k: _plain(v) for k, v in properties.items()}, _plain(message))


def _plain(text: str) -> str:
    for escaped, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ",")):
        text = text.replace(escaped, character)
    return text.replace("%25", "%")


def processed(output: str) -> list[str]:
    """Return the lines of a step's output that GitHub's runner obeys, except for annotations."""
    obeyed: list[str] = []
    token: str | None = None
    for line in output.splitlines():
        match = re.match(r"\s*::([^:\s]+)[^:]*::(.*)", line) or re.search(
            r"##\[(\S+)[^]]*\](.*)", line
        )
        if match is None:
            continue
        name, data = match.groups()
        if token is None and name == "stop-commands":
            token = data
        elif token is None:
            obeyed.append(line)
        elif name == token:
            token = None
    return obeyed


def _names(commands: list[str]) -> list[str]:
    return [parsed(command).name for command in commands]


def test_summaries_say_how_to_repeat_all_red_cells(run: Run) -> None:
    for text in (github.summary(run), github.check_summary(run)):
        assert text.count("\nparity-gate rerun report.json --failed\n") == 1


def test_failure_points_into_the_matrix_and_says_how_to_repeat_it(
    build_run: BuildRun, failed: Result
) -> None:
    (command,) = github.annotation_commands(build_run(failed))
    title = "title=FAIL float_adm on cuda"
    assert command.startswith(f"::error file=matrices/pr.yaml,line=14,{title}::")
    assert parsed(command).message.splitlines() == [
        f"{failed.cell.id} {failed.reason}",
        f"repeat: parity-gate run matrices/pr.yaml --cell {failed.cell.id}",
    ]


def test_red_is_an_error_and_known_deviations_and_notes_are_warnings(
    build_run: BuildRun,
    passed: Result,
    failed: Result,
    broken: Result,
    known: Result,
    skipped: Result,
    unfinished: Result,
) -> None:
    results = (passed, known, broken, unfinished, skipped, failed)
    run = build_run(*results, notes=("a table is replayed",), missing=("cuda: no driver",))
    commands = [parsed(line) for line in github.annotation_commands(run)]
    told = [(command.name, command.properties["title"]) for command in commands]
    assert told == [
        ("error", "parity-gate"),
        ("error", "FAIL float_adm on cuda"),
        ("error", "ERROR float_adm on cuda"),
        ("error", "ERROR float_adm on cuda"),
        ("warning", "KNOWN float_adm on libvmaf"),
        ("warning", "parity-gate"),
    ]
    assert commands[0].message == "required backend missing: cuda: no driver"
    assert commands[3].message.startswith(f"{unfinished.cell.id} not finished\n")
    assert commands[4].message.splitlines()[:2] == [
        f"{known.cell.id} {known.reason}",
        f"{known.cell.id}: 2 of 84 scores differ, in 1 of 12 frames, by at most 6.0e-08",
    ]
    assert commands[5].message == "a table is replayed"
    assert github.annotation_commands(build_run(passed, skipped)) == []


def test_errors_with_one_reason_are_one_annotation(
    build_run: BuildRun, build_cell: BuildCell
) -> None:
    cells = [build_cell(f"f{number}") for number in range(12)]
    run = build_run(*(Result(cell, Status.ERROR, "no kernel") for cell in cells))
    (command,) = github.annotation_commands(run)
    first = "12 cells float_adm/rcpss-double/egl_1.2/*/cuda: no kernel"
    assert parsed(command).message.splitlines()[0] == first


@pytest.mark.parametrize(
    ("number", "told"), [(9, ""), (10, ""), (11, "2 more"), (2_000, "1991 more")]
)
def test_a_step_has_at_most_ten_annotations_a_level_and_the_last_counts_the_others(
    number: int, told: str, build_run: BuildRun, failed: Result
) -> None:
    cells = [replace(failed.cell, fixture=f"f{n}") for n in range(number)]
    notes = tuple(f"note {n}" for n in range(number))
    run = build_run(*(replace(failed, cell=cell) for cell in cells), notes=notes)
    commands = github.annotation_commands(run)
    assert _names(commands) == ["error"] * min(number, STEP) + ["warning"] * min(number, STEP)
    last = [parsed(command).message for command in (commands[min(number, STEP) - 1], commands[-1])]
    end = f" annotations left out: {github.REST}"
    assert [message == f"{told}{end}" for message in last] == [bool(told)] * 2


def test_annotation_is_escaped() -> None:
    file = "a%0A:b,c\n.yaml"
    command = Annotation("t: 50%,\r", "100% ::set-output::\n%0A", (file, 3)).command("error")
    assert command == (
        "::error file=a%250A%3Ab%2Cc%0A.yaml,line=3,title=t%3A 50%25%2C\\r::"
        "100%25 ::set-output::%0A%250A"
    )
    assert parsed(command).properties["file"] == file


@pytest.mark.parametrize(("length", "told"), [(4_000, 0), (4_001, 1)])
def test_long_annotation_is_cut_with_a_number(length: int, told: int) -> None:
    command = Annotation("title", "%" * length).command("warning")
    assert command.count("%25") == 4_000
    assert command.count("[... 1 character cut ...]") == told


def test_summaries_are_the_markdown_report(run: Run) -> None:
    assert github.summary(run) == github.check_summary(run) == markdown.render(run)


def test_nothing_is_published_where_github_is_not(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines: list[str] = []
    for environ in ({}, {"GITHUB_ACTIONS": "false", "GITHUB_STEP_SUMMARY": "", "RUNNER_TEMP": "."}):
        assert publish(run, environ, lines.append) == ""
    assert lines == []
    assert list(tmp_path.iterdir()) == []


def test_summary_alone_is_written_without_annotations(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "summary"
    lines: list[str] = []
    assert publish(run, {"GITHUB_STEP_SUMMARY": str(path)}, lines.append) == ""
    assert lines == []
    assert path.read_text("utf-8") == f"\n{markdown.render(run)}"


def test_annotations_alone_are_printed_without_a_summary(run: Run) -> None:
    lines: list[str] = []
    assert publish(run, ACTIONS, lines.append) == ""
    assert lines == github.annotation_commands(run)


def test_commands_of_one_step_share_its_summary(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("above, without a line end")
    for _ in range(2):
        assert publish(run, {"GITHUB_STEP_SUMMARY": str(path)}, print) == ""
    text = markdown.render(run)
    assert path.read_text("utf-8") == f"above, without a line end\n{text}\n{text}"


@pytest.mark.parametrize("left", [2_000, 10_000, 100_000])
def test_summary_takes_what_earlier_commands_have_left(
    left: int, build_run: BuildRun, failed: Result, tmp_path: Path
) -> None:
    path = tmp_path / "summary"
    path.write_bytes(b"x" * (markdown.LIMIT - left))
    cells = [replace(failed.cell, fixture=f"f{n}") for n in range(500)]
    run = build_run(*(replace(failed, cell=cell) for cell in cells))
    assert publish(run, {"GITHUB_STEP_SUMMARY": str(path)}, print) == ""
    added = path.read_bytes()[markdown.LIMIT - left :].decode()
    assert left // 4 < len(added.encode()) <= left
    assert added.startswith(f"\n## ❌ {run.verdict}\n")
    assert "in report.json\n" in added


@pytest.mark.parametrize("left", [-1_000, -1, 0, 1, 60])
def test_full_summary_is_told_and_left_as_it_is(left: int, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_bytes(b"x" * (markdown.LIMIT - left))
    trouble = publish(run, {"GITHUB_STEP_SUMMARY": str(path)}, print)
    assert trouble == (
        f"GITHUB_STEP_SUMMARY: earlier commands of the step have left {left - 1} of 1048576 bytes, "
        "too few for a summary; it is in report.md"
    )
    assert path.stat().st_size == markdown.LIMIT - left


def test_summary_that_cannot_be_written_costs_no_annotation(run: Run, tmp_path: Path) -> None:
    for name, why in ((tmp_path, "Is a directory"), ("/dev/full", "No space left on device")):
        lines: list[str] = []
        trouble = publish(run, {**ACTIONS, "GITHUB_STEP_SUMMARY": str(name)}, lines.append)
        assert trouble == f"GITHUB_STEP_SUMMARY: {name}: {why}; the summary is in report.md"
        assert lines == github.annotation_commands(run)


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_disk_that_fills_up_leaves_no_half_summary(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("above\n")
    with _files_of_at_most(1_000):
        trouble = publish(run, {"GITHUB_STEP_SUMMARY": str(path)}, print)
    assert trouble == f"GITHUB_STEP_SUMMARY: {path}: File too large; the summary is in report.md"
    assert path.read_text() == "above\n"


def _red_run(build_run: BuildRun, failed: Result, number: int) -> Run:
    cells = [replace(failed.cell, fixture=f"f{n}") for n in range(number)]
    notes = tuple(f"note {n}" for n in range(number))
    return build_run(*(replace(failed, cell=cell) for cell in cells), notes=notes)


def test_commands_of_one_step_share_its_annotations(
    build_run: BuildRun, failed: Result, tmp_path: Path
) -> None:
    environ = {**ACTIONS, "RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "s")}
    printed: list[list[str]] = []
    for _ in range(3):
        lines: list[str] = []
        assert publish(_red_run(build_run, failed, 7), environ, lines.append) == ""
        printed.append(lines)
    assert _names(printed[0]) == ["error"] * 7 + ["warning"] * 7
    assert _names(printed[1]) == ["error"] * 3 + ["warning"] * 3
    assert "5 more annotations left out: " in parsed(printed[1][2]).message
    assert [line.partition(":")[0] for line in printed[2]] == [
        "7 annotations (error) left out",
        "7 annotations (warning) left out",
    ]


def test_a_job_has_at_most_fifty_annotations(
    build_run: BuildRun, failed: Result, tmp_path: Path
) -> None:
    run = _red_run(build_run, failed, 12)
    counts = []
    for step in range(4):
        lines: list[str] = []
        names = {"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / f"s{step}")}
        assert publish(run, {**ACTIONS, **names}, lines.append) == ""
        counts.append(sum(line.startswith("::") for line in lines))
    assert counts == [20, 20, 10, 0]
    assert sum(counts) == JOB


def test_ledger_that_cannot_be_kept_is_told_and_costs_no_annotation(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "folder" / github.LEDGER).mkdir(parents=True)
    for folder, why in (("gone", "No such file or directory"), ("folder", "Is a directory")):
        lines: list[str] = []
        trouble = publish(run, {**ACTIONS, "RUNNER_TEMP": str(tmp_path / folder)}, lines.append)
        place = tmp_path / folder / github.LEDGER
        end = "earlier annotations of the job do not count"
        assert trouble == f"RUNNER_TEMP: {place}: {why}; {end}"
        assert lines == github.annotation_commands(run)


def test_nothing_printed_between_the_tokens_is_a_command() -> None:
    output: list[str] = []
    hostile = ["::error::x", "  ::set-output name=a::b", "log ##[add-path]x", "::stop-commands::y"]
    with commands_stopped(ACTIONS, output.append):
        output.extend([*hostile, "::y::", "half a line"])
    output.append("::notice::ours")
    assert processed("\n".join(hostile)) == hostile[:3]
    assert processed("\n".join(output)) == ["::notice::ours"]


def test_half_a_line_does_not_swallow_the_token() -> None:
    output: list[str] = []
    with commands_stopped(ACTIONS, lambda line: output.append(f"{line}\n")):
        output.append("a driver's half line")
    output.append("::notice::ours")
    assert processed("".join(output)) == ["::notice::ours"]


def test_commands_work_again_after_an_exception() -> None:
    output: list[str] = []
    with pytest.raises(KeyboardInterrupt), commands_stopped(ACTIONS, output.append):
        raise KeyboardInterrupt
    assert processed("\n".join([*output, "::notice::ours"])) == ["::notice::ours"]


def test_token_is_another_each_time() -> None:
    output: list[str] = []
    for _ in range(2):
        with commands_stopped(ACTIONS, output.append):
            pass
    first, second = output[0], output[2]
    assert first != second
    assert re.fullmatch("::stop-commands::[0-9a-f]{64}", first)


def test_no_token_is_printed_where_github_is_not() -> None:
    output: list[str] = []
    with commands_stopped({}, output.append):
        output.append("text")
    assert output == ["text"]


def test_check_summary_is_shorter_than_the_steps(build_run: BuildRun, failed: Result) -> None:
    run = _red_run(build_run, failed, 500)
    assert CHECK == 65_535
    assert github.check_summary(run) == markdown.render(run, CHECK)
    assert len(github.check_summary(run).encode()) <= CHECK < len(github.summary(run).encode())
