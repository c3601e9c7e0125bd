"""`probe` shows what belongs to this machine; `run --rcp-table` replays another's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from backends import _reciprocal, reciprocal
from gate import cli, runner

SMOKE = str(Path(__file__).parents[2] / "matrices" / "smoke.yaml")
CELL = "float_adm/rcpss-single/debug_egl_1.2/bbb_63x65_420p8/opencl:pocl"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Program:
    """The program in this process, in an empty folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str) -> Outcome:
        self._monkeypatch.setattr(sys, "argv", ["parity-gate", *arguments])
        with pytest.raises(SystemExit) as exit_info:
            cli.main()
        out, err = self._capsys.readouterr()
        return Outcome(int(exit_info.value.code or 0), out, err)


@pytest.fixture
def program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Program:
    monkeypatch.chdir(tmp_path)
    reciprocal.host_table.cache_clear()
    return Program(capsys, monkeypatch)


def test_the_table_is_named_checked_and_written(program: Program) -> None:
    outcome = program("probe", "rcp", "--out", "host.json")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"table: {reciprocal.host_table()}" in outcome.out
    assert "0 of 9437184 inputs differ" in outcome.out
    assert outcome.out.endswith("wrote host.json\n")
    assert reciprocal.load("host.json").sha256 == reciprocal.host_table().sha256


def test_a_processor_without_the_instruction_exits_3(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_reciprocal, "HAS_RCPSS", False)
    outcome = program("probe", "rcp", "--out", "host.json")
    assert outcome == (
        3,
        "",
        "no reciprocal estimate: this processor lacks the x86 instruction RCPSS\n",
    )
    assert not Path("host.json").exists()


def test_an_instruction_that_is_no_table_exits_4_and_writes_none(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_reciprocal, "check_table", lambda _: (9437184, 3))
    outcome = program("probe", "rcp", "--out", "host.json")
    assert outcome.code == 4
    assert "not a table of 4096 entries: 3 of 9437184 inputs differ" in outcome.err
    assert not Path("host.json").exists()


def test_a_table_that_cannot_be_written_exits_2(program: Program) -> None:
    outcome = program("probe", "rcp", "--out", "absent/host.json")
    assert outcome.code == 2
    assert outcome.err == "--out 'absent/host.json' cannot be written: No such file or directory\n"


@pytest.mark.parametrize("by_file", [True, False])
def test_a_replayed_table_reaches_both_sides_and_every_report(
    program: Program,
    by_file: bool,  # noqa: FBT001 - a column
) -> None:
    table = reciprocal.shipped()["amd-zen-4"]
    wanted = "t.json" if by_file else table.name
    Path("t.json").write_text(reciprocal.as_file(table, "elsewhere"))
    outcome = program("run", SMOKE, "--cell", CELL, "--rcp-table", wanted)
    assert outcome.code == 0, outcome.out
    note = f"reciprocal table replayed: {table}"
    assert outcome.out.splitlines()[-1].endswith(f"108 scores compared, 0 different, {note}")
    report = json.loads(Path("out/report.json").read_text())
    assert report["notes"] == [note]
    assert note in Path("out/junit.xml").read_text()
    assert table.sha256 in Path("out/report.md").read_text()


def test_a_replayed_run_is_repeated_with_its_table(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def run(*_: object, command: str, **__: object) -> None:
        told.append(command)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run", run)
    program("run", SMOKE, "--rcp-table", "amd-zen-4")
    assert "--rcp-table amd-zen-4" in told[0]


def test_an_unknown_table_exits_2_before_anything_runs(program: Program) -> None:
    outcome = program("run", SMOKE, "--rcp-table", "amd")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "--rcp-table: 'amd' is neither a file nor a known table; "
        "known: amd-zen-4, intel-emerald-rapids\n"
    )
