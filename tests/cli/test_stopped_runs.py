"""A run that is killed, or whose disk is full, has lost nothing that it had finished."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import quick_gate
from junit_structure import require_structure
from program import Gate
from report_schema import require_valid

from backends.base import Backend
from backends.cpu import Cpu
from gate import journal, publish, record, workers
from gate.model import Run, Status

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "matrices" / "smoke.yaml"
CELLS = 117
ARGUMENTS = ("run", str(SMOKE), "--cell", "*/opencl:pocl")


def command(*arguments: str) -> list[str]:
    return [sys.executable, quick_gate.__file__, *arguments]


def timeless(run: Run) -> Run:
    results = tuple(replace(r, seconds=0, reference_seconds=0) for r in run.results)
    return replace(run, id="", started="", seconds=0, command="", results=results)


def lines(out: Path) -> int:
    path = out / journal.NAME
    return path.read_bytes().count(b"\n") if path.exists() else 0


def cells_of(root: ET.Element) -> list[ET.Element]:
    return [case for case in root.iter("testcase") if case.get("classname") != "gate"]


def finished(out: Path) -> set[str]:
    """Return the ids of the cells whose results are whole in the journal."""
    found = (json.loads(line) for line in (out / journal.NAME).read_bytes().split(b"\n")[:-1])
    return {entry["cell"]["id"] for entry in found if "cell" in entry}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    subprocess.run(command(*ARGUMENTS), cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return record.load(folder / "out" / record.NAME)


def killed_after(folder: Path, wanted: int) -> Path:
    """Kill the gate when its journal has so many lines; return the folder of its valid reports."""
    out = folder / "out"
    with subprocess.Popen(
        command(*ARGUMENTS), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as started:
        while lines(out) < wanted and started.poll() is None:
            pass
        started.kill()
    require_valid(out / record.NAME)
    require_structure(out / "junit.xml")
    return out


# The journal has 12 lines about the environment and one for each fixture, reference and cell.
MOMENTS = sorted(random.Random(1).sample(range(1, 240), 20))  # noqa: S311 - no secret


@pytest.mark.parametrize("moment", MOMENTS)
def test_after_a_kill_the_reports_are_whole_and_no_finished_cell_is_lost(
    moment: int, tmp_path: Path, undisturbed: Run, gate: Gate
) -> None:
    out = killed_after(tmp_path, moment)
    root = ET.fromstring((out / "junit.xml").read_text("utf-8"))  # noqa: S314 - our own document
    ids = [result.cell.id for result in undisturbed.results]
    assert [case.get("name") for case in cells_of(root)] == ids
    assert (out / "report.md").read_text("utf-8").endswith("\n")
    assert [result.cell.id for result in record.load(out / record.NAME).results] == ids
    kept = finished(out)
    run = record.recovered(out)
    assert {r.cell.id for r in run.results if r.status is Status.PASS} == kept
    assert run.unfinished == CELLS - len(kept)
    assert gate("report", "out").code == (130 if run.interrupted else 0)
    assert run.interrupted or not run.unfinished
    assert record.load(out / record.NAME) == run
    assert gate("run", "--resume", "out").code == 0
    again = record.load(out / record.NAME)
    assert again.id == run.id
    assert timeless(again) == timeless(undisturbed)
    assert {r.cell.id: r.seconds for r in run.results if r.cell.id in kept}.items() <= {
        r.cell.id: r.seconds for r in again.results
    }.items()  # what was finished did not run again


def test_before_the_first_cell_every_cell_is_an_error_in_every_report(tmp_path: Path) -> None:
    out = killed_after(tmp_path, 1)
    root = ET.fromstring((out / "junit.xml").read_text("utf-8"))  # noqa: S314 - our own document
    assert [case.find("error") is not None for case in cells_of(root)] == [True] * CELLS
    assert f"{CELLS} did not finish" in (out / "report.md").read_text("utf-8")
    assert json.loads((out / record.NAME).read_text("utf-8"))["exit_code"] == 130
    # Who reads the command of the reports can follow it.
    assert "sha256" in record.load(out / record.NAME).environment["matrix"]
    assert 'name="matrix: sha256"' in (out / "junit.xml").read_text("utf-8")


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Return the folder of the reports of a run that was killed in its middle."""
    return killed_after(tmp_path, 120)


def test_a_cut_last_line_counts_as_not_written(stopped: Path, gate: Gate, undisturbed: Run) -> None:
    path = stopped / journal.NAME
    text = path.read_bytes()[: path.read_bytes().rindex(b"\n") + 1]
    last = text.rstrip(b"\n").rindex(b"\n") + 1
    path.write_bytes(text)
    whole = record.recovered(stopped)
    for cut in (last, last + 1, (last + len(text)) // 2, len(text) - 1):
        path.write_bytes(text[:cut])
        assert record.recovered(stopped).unfinished in (whole.unfinished, whole.unfinished + 1)
    path.write_bytes(text[:-1])
    assert record.recovered(stopped) != whole
    assert gate("run", "--resume", "out").code == 0
    assert gate("report", "out").code == 0  # nothing of the cut line is left in the journal
    assert timeless(record.recovered(stopped)) == timeless(undisturbed)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"half a line\n", ":1: this line is no entry of a journal; start a new run"),
        (b'{"run": "other", "environment": {}}\n', ":1: this line is of run other, report.json of"),
    ],
)
@pytest.mark.parametrize("arguments", [("report", "out"), ("run", "--resume", "out")])
def test_a_journal_of_something_else_is_refused_and_nothing_is_changed(
    line: bytes, sentence: str, arguments: tuple[str, ...], stopped: Path, gate: Gate
) -> None:
    path = stopped / journal.NAME
    path.write_bytes(line + path.read_bytes())
    before = (stopped / record.NAME).read_bytes()
    ended = gate(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert f"out/{journal.NAME}{sentence}" in ended.err
    assert (stopped / record.NAME).read_bytes() == before


def test_a_run_does_not_go_on_where_its_cells_have_changed(stopped: Path, gate: Gate) -> None:
    path = stopped / record.NAME
    path.write_text(path.read_text("utf-8").replace('"line": ', '"line": 1'), "utf-8")
    ended = gate("run", "--resume", "out")
    assert ended.code == 2
    assert f"--resume: {SMOKE}: cell " in ended.err
    assert "changed since the run began; start anew" in ended.err


def test_a_killed_run_is_no_success_whatever_its_journal_holds(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reports are as old as the last time they were written; here as the run began."""
    out, kept = tmp_path / "out", []
    write = publish.write

    def first_only(*arguments: Any) -> Any:  # noqa: ANN401 - passed on
        kept.append(arguments)
        return write(*arguments) if len(kept) == 1 else {}

    with monkeypatch.context() as patch:
        patch.setattr(publish, "write", first_only)
        assert gate(*ARGUMENTS, "--cell", "*/cuda", "--require", "cuda").code == 3
    run = record.recovered(out)
    assert (run.unfinished, run.interrupted) == (0, True)
    assert gate("report", "out").code == 130
    assert gate("run", "--resume", "out").code == 3  # cuda is still required


def test_a_run_does_not_go_on_without_its_candidate(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_reference(name: str) -> Backend:
        return quick_gate.open_quickly("cpu" if name == "cpu" else "gone")

    with monkeypatch.context() as patch:
        patch.setattr(Cpu, "facts", lambda _: {"device": "here"})
        assert gate(*ARGUMENTS).code == 0
        patch.setattr(workers, "open_worker", open_reference)
        ended = gate("run", "--resume", "out")
    assert ended.code == 2
    assert "--resume: candidate opencl:pocl: it was here when the run began" in ended.err


def test_only_a_run_with_a_journal_goes_on(stopped: Path, gate: Gate) -> None:
    (stopped / journal.NAME).unlink()
    ended = gate("run", "--resume", "out")
    assert ended.code == 2
    assert "--resume: out has no journal.jsonl; name the folder of a `run`" in ended.err


def test_two_runs_do_not_write_one_journal(tmp_path: Path) -> None:
    kept = journal.Journal(tmp_path / journal.NAME, "r")
    with pytest.raises(BlockingIOError):
        journal.Journal(tmp_path / journal.NAME, "r")
    kept.close()


@pytest.mark.parametrize(
    ("fact", "another", "told"),
    [
        (b"glibc 2", b"glibc 1", "host: C library"),
        (b'"sources": "', b'"sources": "0', "gate: sources"),
    ],
)
def test_a_run_does_not_go_on_on_another_host_or_as_another_program(
    fact: bytes, another: bytes, told: str, stopped: Path, gate: Gate
) -> None:
    path = stopped / journal.NAME
    path.write_bytes(path.read_bytes().replace(fact, another))
    ended = gate("run", "--resume", "out")
    assert ended.code == 2
    assert f"--resume: {told} changed since the run began; start anew" in ended.err


def test_a_new_run_takes_nothing_from_the_one_before(
    stopped: Path, undisturbed: Run, gate: Gate
) -> None:
    assert gate(*ARGUMENTS).code == 0
    run = record.recovered(stopped)
    assert timeless(run) == timeless(undisturbed)
    written = (stopped / journal.NAME).read_bytes().splitlines()
    assert {json.loads(line)["run"] for line in written} == {run.id}


def test_where_no_file_can_grow_the_last_good_reports_stay(
    tmp_path: Path, undisturbed: Run
) -> None:
    """A limit of the process stands for a full disk: a write at the limit is cut short."""
    out = killed_after(tmp_path, 1)
    size = (out / record.NAME).stat().st_size
    ended = subprocess.run(
        command("--largest", str(size + 1000), *ARGUMENTS),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4
    assert "out/report.json cannot be written: File too large" in ended.stderr
    assert f"out/{journal.NAME} cannot be written: " in ended.stderr
    assert ended.stdout.splitlines()[-1] == undisturbed.verdict
    kept = record.load(out / record.NAME)
    assert kept.unfinished == CELLS
    recovered = record.recovered(out)
    assert 0 < recovered.unfinished < CELLS
    require_valid(out / record.NAME)
    require_structure(out / "junit.xml")
    assert {p.name for p in out.iterdir()} == {
        *("junit.xml", "report.md", "report.json", journal.NAME)
    }


def test_a_journal_that_had_no_room_has_every_line_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / journal.NAME, os.write
    kept = journal.Journal(path, "r")
    kept.append({"cell": 1})
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:5]))
    kept.append({"cell": 2})
    assert kept.problem == "no room for the whole line"
    assert journal.entries(path, "r") == [{"cell": 1}]

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    kept.append({"cell": 3})
    assert kept.problem == "No space left on device"
    monkeypatch.setattr(os, "write", write)
    kept.append({"cell": 4})
    assert kept.problem == ""
    kept.close()
    assert journal.entries(path, "r") == [{"cell": number} for number in (1, 2, 3, 4)]
