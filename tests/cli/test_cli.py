from __future__ import annotations

import errno
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from forging import Forging
from program import Outcome, started

from backends import base, registry
from backends.base import Clip, Scores, Unavailable
from gate import publish, runner, workers
from gate.terminal import write_whole
from reports import json as json_report
from reports import schema as report_schema

ROOT = Path(__file__).parents[2]
REPORTS = ["journal.jsonl", "junit.xml", "report.json", "report.md"]
MATRIX = """
version: 1
fixtures:
  grey: {generator: flat, width: 17, height: 17, bit_depth: 8, ref_level: 1, dist_level: 2}
matrix:
  - feature: fake
    candidates: [opencl:pocl, cuda]
    fixtures: ["*"]
"""
IDS = ["fake/plain/default/grey/opencl:pocl", "fake/plain/default/grey/cuda"]


def scores(value: float = 0.5) -> Scores:
    return Scores(("one",), np.full((1, 1), value), np.zeros((1, 1), np.bool_))


class FakeFeature:
    name = "fake"
    dialects = ("plain",)
    options = base.Options
    bit_depths = (8,)

    def smallest(self, _: str) -> int:
        return 17

    def require_options(self, _: base.Arithmetic, options: base.Options) -> None:
        pass

    def outputs(self, _: base.Options) -> tuple[str, ...]:
        return ("one",)

    def options_name(self, _: base.Options) -> str:
        return "default"

    def notes(self, _: base.Arithmetic) -> tuple[str, ...]:
        return ()

    def reference_facts(self) -> Mapping[str, str]:
        return {"compiler": "cc 1"}

    def kernel_source(self) -> str:
        return ""


@dataclass
class FakeBackend(Forging):
    name: str
    error: BaseException | None
    value: float

    def compute(
        self, feature: base.Feature, arithmetic: base.Arithmetic, options: base.Options, clip: Clip
    ) -> Scores:
        del feature, arithmetic, options
        self.seen(clip).read(0, clip.frames)
        if self.error:
            raise self.error
        return scores(self.value)

    def close(self) -> None:
        pass


@dataclass
class Desk:
    """A folder with a matrix, and backends by name that a test can break."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    open_errors: dict[str, BaseException] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)

    def open_backend(self, name: str) -> base.Backend:
        self.opened.append(name)
        if name in self.open_errors:
            raise self.open_errors[name]
        return FakeBackend(name, self.errors.get(name), self.values.get(name, 0.5))

    def write(self, text: str) -> None:
        (self.folder / "m.yaml").write_text(text)

    def reports(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "out").glob("*"))

    def __call__(self, *arguments: str) -> Outcome:
        return started(self.capsys, *arguments)


@pytest.fixture
def desk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Desk:
    desk = Desk(tmp_path, capsys)
    desk.write(MATRIX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "features", lambda: {"fake": FakeFeature()})
    monkeypatch.setattr(workers, "open_worker", desk.open_backend)
    return desk


def test_equal_scores_exit_0_with_three_reports_and_the_verdict_last(desk: Desk) -> None:
    outcome = desk("run", "m.yaml")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.verdict == "PASS: 2 cells, 2 PASS, 2 scores compared, 0 different"
    assert desk.reports() == REPORTS
    assert all(f"wrote out/{name}" in outcome.out for name in REPORTS[1:])
    assert all("PASS" in (desk.folder / "out" / name).read_text() for name in REPORTS[2:])


def test_one_different_score_exits_1(desk: Desk) -> None:
    desk.values["cuda"] = 0.75
    outcome = desk("run", "m.yaml")
    assert (outcome.code, outcome.verdict.partition(":")[0]) == (1, "FAIL")
    assert f"{IDS[1]} frame 0 one: 0x1.8p-1 expected 0x1p-1" in outcome.out
    assert "<failure" in (desk.folder / "out/junit.xml").read_text()


def test_a_cell_that_could_not_run_exits_4(desk: Desk) -> None:
    desk.errors["cuda"] = base.CompilationFailed("does not compile", "line 3: no such word")
    outcome = desk("run", "m.yaml")
    assert (outcome.code, outcome.verdict.partition(":")[0]) == (4, "ERROR")
    assert "line 3: no such word" in outcome.out


def test_an_absent_backend_exits_0_unless_it_is_required(desk: Desk) -> None:
    desk.open_errors["cuda"] = Unavailable("no GPU")
    assert desk("run", "m.yaml").code == 0
    outcome = desk("run", "m.yaml", "--require", "opencl:pocl", "--require", "cuda")
    assert outcome.code == 3
    assert outcome.verdict.endswith("required backend missing: cuda: no GPU")
    assert desk.reports() == REPORTS


def test_an_unknown_required_backend_exits_2_before_anything_runs(desk: Desk) -> None:
    outcome = desk("run", "m.yaml", "--require", "opencl:pokl")
    assert (outcome.code, outcome.out, desk.opened) == (2, "", [])
    assert "'opencl:pokl'" in outcome.err
    assert "did you mean 'opencl:pocl'?" in outcome.err


def test_a_wrong_matrix_exits_2_with_all_problems_and_without_reports(desk: Desk) -> None:
    desk("run", "m.yaml")
    desk.write(MATRIX.replace("width: 17", "widht: 17").replace("cuda", "cuba"))
    outcome = desk("run", "m.yaml")
    assert (outcome.code, outcome.out, desk.reports()) == (2, "", [])
    assert "m.yaml:4:" in outcome.err
    assert "m.yaml:7:" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_missing_matrix_exits_2(desk: Desk) -> None:
    for command in ("run", "list"):
        outcome = desk(command, "absent.yaml")
        assert outcome.code == 2
        assert outcome.err.startswith("absent.yaml: ")


def test_control_characters_of_a_path_do_not_reach_the_terminal(desk: Desk) -> None:
    outcome = desk("list", "\x1b[31m.yaml")
    assert outcome.code == 2
    assert outcome.err.startswith(r"\x1b[31m.yaml: ")


def test_a_selection_runs_its_cells_only(desk: Desk) -> None:
    outcome = desk("run", "m.yaml", "--cell", "*/cuda")
    assert outcome.verdict == "PASS: 1 of 2 cells, 1 PASS, 1 score compared, 0 different"
    assert desk.opened == ["cpu", "cuda"]


def test_a_selection_that_matches_nothing_exits_3_with_reports(desk: Desk) -> None:
    outcome = desk("run", "m.yaml", "--cell", "float*")
    assert (outcome.code, desk.reports()) == (3, REPORTS)
    assert "--cell 'float*' matches none of the 2 cells of m.yaml" in outcome.err


def test_a_glob_that_matches_nothing_lets_no_other_pass_for_all(desk: Desk) -> None:
    outcome = desk("run", "m.yaml", "--cell", "*/cuda", "--cell", "*/cuba")
    assert outcome.code == 3
    assert "--cell '*/cuba' matches none of the 2 cells of m.yaml" in outcome.err
    assert desk.opened == []


def test_old_reports_do_not_survive_even_a_wrong_option(desk: Desk) -> None:
    desk("run", "m.yaml")
    (desk.folder / "out/mine.txt").write_text("kept")
    assert desk("run", "m.yaml", "--require", "nobody").code == 2
    assert desk.reports() == ["mine.txt"]


def test_reports_go_where_out_says(desk: Desk) -> None:
    assert desk("run", "m.yaml", "--out", "a/b").code == 0
    assert sorted(path.name for path in Path("a/b").iterdir()) == REPORTS


def test_an_out_that_is_a_file_exits_2_before_anything_runs(desk: Desk) -> None:
    (desk.folder / "file").write_text("mine")
    for out in ("file", "file/below"):
        outcome = desk("run", "m.yaml", "--out", out)
        assert (outcome.code, outcome.out, desk.opened) == (2, "", [])
        assert outcome.err.startswith(f"--out '{out}' cannot take reports: ")
    assert (desk.folder / "file").read_text() == "mine"


def test_an_old_report_that_cannot_be_removed_exits_2(desk: Desk) -> None:
    (desk.folder / "out/junit.xml").mkdir(parents=True)
    assert desk("run", "m.yaml").code == 2
    assert desk.opened == []


def test_an_out_without_permission_exits_2_before_anything_runs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != "out")
    outcome = desk("run", "m.yaml")
    assert (outcome.code, desk.opened) == (2, [])
    assert "--out 'out' cannot take reports: Permission denied" in outcome.err


@pytest.mark.parametrize(("value", "code", "word"), [(0.5, 4, "PASS"), (0.75, 1, "FAIL")])
def test_a_report_on_a_full_disk_is_told_and_the_rest_is_written(
    desk: Desk, value: float, code: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        if path.name == "report.md":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_whole(path, text)

    monkeypatch.setattr("gate.publish.write_whole", full)
    desk.values["cuda"] = value
    outcome = desk("run", "m.yaml")
    assert (outcome.code, outcome.verdict.partition(":")[0]) == (code, word)
    assert "out/report.md cannot be written: No space left on device" in outcome.err
    assert desk.reports() == ["journal.jsonl", "junit.xml", "report.json"]


def test_a_report_that_cannot_even_be_started_is_told(desk: Desk) -> None:
    (desk.folder / "out/.junit.xml.part").mkdir(parents=True)
    outcome = desk("run", "m.yaml")
    assert outcome.code == 4
    assert "out/junit.xml cannot be written: Is a directory" in outcome.err


def test_a_crash_of_a_report_writer_loses_no_other_report(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "REPORTS", {**publish.REPORTS, "junit.xml": lambda _: 1 / 0})
    outcome = desk("run", "m.yaml")
    assert outcome.code == 4
    assert desk.reports() == ["journal.jsonl", "report.json", "report.md"]
    assert outcome.verdict.startswith("PASS")
    assert "Traceback" in outcome.err
    assert "out/junit.xml cannot be written: ZeroDivisionError: division by zero" in outcome.err


def test_ctrl_c_exits_130_with_reports_of_what_is_computed(desk: Desk) -> None:
    desk.errors["cuda"] = KeyboardInterrupt()
    outcome = desk("run", "m.yaml")
    assert (outcome.code, desk.reports()) == (130, REPORTS)
    assert outcome.verdict.startswith("INTERRUPTED: 2 cells, 1 PASS, 1 did not finish")


def test_ctrl_c_outside_of_a_run_exits_130(desk: Desk) -> None:
    desk.open_errors["cpu"] = KeyboardInterrupt()
    assert desk("doctor").code == 130


@pytest.mark.parametrize(
    "arguments", [("run",), ("run", "m.yaml", "--tolerance", "1"), ("walk",), ("list", "a", "b")]
)
def test_wrong_usage_exits_2_without_a_traceback(desk: Desk, arguments: tuple[str, ...]) -> None:
    outcome = desk(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Traceback" not in outcome.err


def test_a_crash_of_the_program_shows_its_traceback_and_exits_4(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run", lambda *_, **__: 1 / 0)
    outcome = desk("run", "m.yaml")
    assert outcome.code == 4
    assert "ZeroDivisionError" in outcome.err


def test_list_prints_plain_ids_where_the_output_is_no_terminal(desk: Desk) -> None:
    outcome = desk("list", "m.yaml")
    assert (outcome.code, outcome.out.splitlines(), outcome.err) == (0, IDS, "")
    assert desk("list", "m.yaml", "--cell", "*cuda").out.splitlines() == IDS[1:]
    assert desk.opened == []


def test_a_module_that_does_not_import_is_told_before_its_names_are_unknown(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "broken", lambda: {"backends.metal": "ImportError: no such"})
    outcome = desk("list", "m.yaml")
    assert outcome.err == "backends.metal: cannot be imported: ImportError: no such\n"


def test_list_of_nothing_exits_3_with_a_sentence(desk: Desk) -> None:
    outcome = desk("list", "m.yaml", "--cell", "x")
    assert (outcome.code, outcome.out) == (3, "")
    assert "--cell 'x' matches none of the 2 cells" in outcome.err


def on_a_terminal(stream: str, action: Callable[[], Outcome]) -> tuple[Outcome, str]:
    """Run `action` with a terminal as its stdout or stderr; return what arrived there too."""
    ours, theirs = pty.openpty()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(theirs, "w") as terminal:
        patch.setattr(sys, stream, terminal)
        outcome = action()
    arrived = b""
    # Linux tells the end of a closed terminal by an error.
    with suppress(OSError):
        while piece := os.read(ours, 1 << 16):
            arrived += piece
    os.close(ours)
    return outcome, arrived.decode()


def test_list_on_a_terminal_shows_scores_skips_and_totals(desk: Desk) -> None:
    desk.write(MATRIX + '    skip: [{cells: "*/cuda", reason: too slow}]\n')
    outcome, shown = on_a_terminal("stdout", lambda: desk("list", "m.yaml"))
    assert outcome.code == 0
    assert "skipped: too slow" in shown
    assert shown.endswith("2 of 2 cells, 2 scores, about 3 s on two cores with PoCL\r\n")


def test_list_on_a_terminal_shows_known_deviations(desk: Desk) -> None:
    desk.write(f"deviations: d.yaml\n{MATRIX}")
    entry = "{cells: ['*/cuda'], outputs: ['*'], reason: rounds, owner: us, expires: 9999-12-31}"
    Path("d.yaml").write_text(f"version: 1\ndeviations: [{entry}]\n", "utf-8")
    outcome, shown = on_a_terminal("stdout", lambda: desk("list", "m.yaml"))
    assert outcome.code == 0
    assert shown.count("known deviation: rounds\r\n") == 1
    assert desk("list", "m.yaml").out.splitlines() == IDS


def test_a_known_deviation_exits_0_and_an_unexpected_agreement_1(desk: Desk) -> None:
    desk.write(f"deviations: d.yaml\n{MATRIX}")
    entry = "{cells: ['*/cuda'], outputs: [one], reason: rounds, owner: us, expires: 9999-12-31}"
    Path("d.yaml").write_text(f"version: 1\ndeviations: [{entry}]\n", "utf-8")
    desk.values["cuda"] = 0.75
    outcome = desk("run", "m.yaml")
    assert outcome.code == 0
    assert f"KNOWN {IDS[1]}: rounds (d.yaml:2, owner us, expires 9999-12-31)\n" in outcome.out
    verdict = "PASS: 2 cells, 1 PASS, 1 KNOWN, 2 scores compared, 1 different (1 known)\n"
    assert outcome.out.endswith(verdict)
    del desk.values["cuda"]
    outcome = desk("run", "m.yaml")
    assert outcome.code == 1
    assert (
        f"FAIL {IDS[1]} agrees although d.yaml:2 lists it; narrow or delete the entry\n"
        in outcome.out
    )


def test_list_estimates_no_time_where_nothing_runs_on_pocl(desk: Desk) -> None:
    _, shown = on_a_terminal("stdout", lambda: desk("list", "m.yaml", "--cell", "*/cuda"))
    assert shown.endswith("1 of 2 cells, 1 score\r\n")


def test_piped_ids_stay_plain_while_a_person_sees_the_totals(desk: Desk) -> None:
    outcome, shown = on_a_terminal("stderr", lambda: desk("list", "m.yaml"))
    assert outcome.out.splitlines() == IDS
    assert shown == "2 of 2 cells, 2 scores, about 3 s on two cores with PoCL\r\n"


def test_a_run_on_a_terminal_shows_how_far_it_is(desk: Desk) -> None:
    outcome, shown = on_a_terminal("stderr", lambda: desk("run", "m.yaml"))
    assert outcome.code == 0
    assert "2/2" in shown


@pytest.mark.parametrize(
    ("arguments", "code"), [(("list", "m.yaml"), 0), (("schema",), 0), (("run", "m.yaml"), 1)]
)
def test_a_reader_that_has_had_enough_changes_no_exit_code(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int
) -> None:
    desk.values["cuda"] = 0.75
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        outcome = desk(*arguments)
    assert (outcome.code, outcome.err) == (code, "")
    assert desk.reports() == (REPORTS if code else [])


def test_doctor_says_what_is_here_and_why_the_rest_is_not(desk: Desk) -> None:
    desk.open_errors["cuda"] = Unavailable("no GPU")
    outcome = desk("doctor")
    assert outcome.code == 0
    assert "opencl:oclgrind: here\n  platform: Oclgrind forged\n  device: forged\n" in outcome.out
    assert "cuda: not here: no GPU\n" in outcome.out
    assert "feature fake\n  compiler: cc 1\n" in outcome.out
    assert "processor: " in outcome.out
    assert sorted(desk.opened) == sorted(registry.backend_names())


def test_doctor_exits_4_where_a_backend_fails_its_probe(desk: Desk) -> None:
    desk.open_errors["cuda"] = RuntimeError("contraction is on")
    outcome = desk("doctor")
    assert outcome.code == 4
    assert "cuda: broken: RuntimeError: contraction is on\n" in outcome.out


def test_doctor_exits_4_where_a_module_is_broken(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "broken", lambda: {"backends.metal": "SyntaxError: x"})
    outcome = desk("doctor")
    assert outcome.code == 4
    assert "backends.metal: cannot be imported: SyntaxError: x\n" in outcome.out


def test_doctor_exits_4_where_the_features_are_not_built(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_built() -> Mapping[str, base.Feature]:
        message = "no compiled module"
        raise ImportError(message)

    monkeypatch.setattr(registry, "features", not_built)
    outcome = desk("doctor")
    assert outcome.code == 4
    assert "features: broken: ImportError: no compiled module\n" in outcome.out
    assert "cpu: here\n" in outcome.out


def test_a_report_off_its_schema_fails_the_test_that_wrote_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_report, "SCHEMA_VERSION", 3)
    with pytest.raises(AssertionError, match=r"out/report.json: .*schema_version: 4 was expected"):
        desk("run", "m.yaml")


def test_schema_is_json_and_version_is_one_line(desk: Desk) -> None:
    assert "fixtures" in json.loads(desk("schema").out)["properties"]
    assert json.loads(desk("schema", "--report").out) == report_schema.schema()
    assert desk("--version").out.startswith("parity-gate ")


@pytest.mark.parametrize("command", ["run", "list", "doctor", "schema"])
def test_help_of_every_command_has_an_example(desk: Desk, command: str) -> None:
    outcome = desk(command, "--help")
    assert outcome.code == 0
    assert f"Example: parity-gate {command}" in outcome.out


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gate", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("parity-gate ")
