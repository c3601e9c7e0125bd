from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from gate.model import Result, Run, Status
from reports import console, github, junit, markdown, wording
from reports.marks import LOOKS, UNKNOWN, Kind, badness, look, of_kind

BuildRun = Callable[..., Run]


def test_every_status_has_a_look_of_its_own() -> None:
    assert set(LOOKS) == set(Status)
    for shown in ([one.mark for one in LOOKS.values()], [one.sign for one in LOOKS.values()]):
        assert len({*shown, UNKNOWN.mark, UNKNOWN.sign} & {*shown}) == len(Status)


def test_only_pass_and_known_count_as_passed() -> None:
    passed = {status for status in Status if look(status).kind is Kind.PASSED}
    assert passed == {Status.PASS, Status.KNOWN}
    assert look(Status.FAIL).kind is look(Status.NONDETERMINISTIC).kind is Kind.FAILURE
    assert look(Status.SKIP).kind is Kind.SKIPPED


def test_worst_status_sorts_first() -> None:
    red = [Status.FAIL, Status.NONDETERMINISTIC, Status.ERROR]
    assert sorted(Status, key=badness) == [*red, Status.SKIP, Status.KNOWN, Status.PASS]


@pytest.mark.parametrize("status", [Status.PASS, Status.FAIL, Status.ERROR])
def test_status_without_a_look_is_red_in_every_report(
    status: Status, build_run: BuildRun, failed: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(LOOKS, status)
    result = replace(failed, status=status, reason="something new")
    run = build_run(result)
    assert of_kind(run, Kind.PASSED) == []
    assert wording.errors(run) == [result]
    assert badness(status) < min(map(badness, LOOKS))

    document = junit.render(run)
    assert document.count(f'<error type="{status.value}"') == 1
    assert "<system-out" not in document

    text = markdown.render(run)
    assert f"| {UNKNOWN.mark} |" in text
    assert f"<summary>{UNKNOWN.mark} <code>{result.cell.id}</code>: something new" in text

    target = io.StringIO()
    Console(file=target, width=100).print(console.table(run), soft_wrap=True)
    assert f" {UNKNOWN.sign} 1 " in target.getvalue()
    assert f"{status.value} {result.cell.id}: something new\n" in target.getvalue()

    *_, command = github.annotation_commands(run)
    assert command.startswith("::error ")
    assert f"::{result.cell.id} something new%0A" in command
