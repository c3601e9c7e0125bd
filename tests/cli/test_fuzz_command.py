"""Tests of `parity-gate fuzz`: usage, seeds, selection, exit codes, reproducers on disk."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from forging import Forger
from planting import Planted
from program import Outcome, started

from backends.base import Unavailable
from gate import draw, fuzz, record, workers
from gate.model import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.base import Backend, Scores
    from gate.model import Run

REPORTS = {"journal.jsonl", "junit.xml", "report.json", "report.md"}
FUZZ = ("fuzz", "--cells", "6", "--candidate", "opencl:pocl")


def one_step_off(scores: Scores) -> Scores:
    scores.values[-1, 0] = np.nextafter(scores.values[-1, 0], 9)
    return scores


def off_in_several_frames(scores: Scores) -> Scores:
    return one_step_off(scores) if len(scores.values) > 1 else scores


@dataclass
class Desk:
    """A folder, and backends that are the reference itself, faulty or absent by name."""

    capsys: pytest.CaptureFixture[str]
    faulty: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    fault: Callable[[Scores], Scores] = one_step_off

    def open_backend(self, name: str) -> Backend:
        if name in self.absent:
            message = f"no {name} here"
            raise Unavailable(message)
        scores = self.fault if name in self.faulty else None
        return Planted(Forger(name), "one step", scores=scores, name=name)

    def __call__(self, *arguments: str) -> Outcome:
        return started(self.capsys, *arguments)

    def files(self) -> set[str]:
        return {path.name for path in Path("out").glob("*")}

    def ids(self) -> list[str]:
        return [result.cell.id for result in self.run().results]

    def run(self, out: str = "out") -> Run:
        return record.load(Path(out) / record.NAME)


@pytest.fixture
def desk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Desk:
    desk = Desk(capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "open_worker", desk.open_backend)
    return desk


@pytest.fixture
def _hardly_simplified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave reproducers as large as they are, where nobody looks at their size."""
    monkeypatch.setattr(fuzz, "TRIES", 3)


def test_equal_scores_exit_0_and_the_verdict_tells_the_seed(desk: Desk) -> None:
    outcome = desk(*FUZZ, "--seed", "7")
    assert outcome.code == 0
    assert outcome.verdict.startswith("PASS: 6 cells, 6 PASS, ")
    assert outcome.verdict.endswith(" 0 different, drawn with seed 7")
    assert desk.files() == REPORTS


def test_without_a_seed_each_run_draws_others_and_its_seed_repeats_it(desk: Desk) -> None:
    first = desk(*FUZZ)
    (seed,) = re.findall(r"drawn with seed (\d+)$", first.verdict)
    ids = desk.ids()
    desk(*FUZZ)
    assert desk.ids() != ids
    desk(*FUZZ, "--seed", seed)
    assert desk.ids() == ids


def test_a_longer_run_begins_with_the_shorter_one(desk: Desk) -> None:
    desk(*FUZZ, "--seed", "7")
    ids = desk.ids()
    desk(*FUZZ, "--seed", "7", "--cells", "9")
    assert desk.ids()[:6] == ids


def test_a_negative_seed_is_a_seed(desk: Desk) -> None:
    assert desk(*FUZZ, "--seed", "-3").verdict.endswith("drawn with seed -3")


def test_the_candidates_are_opencl_on_the_cpu_and_libvmaf_unless_others_are_named(
    desk: Desk,
) -> None:
    desk("fuzz", "--cells", "12", "--seed", "7")
    assert {name.rpartition("/")[2] for name in desk.ids()} == {"opencl:pocl", "libvmaf"}
    desk("fuzz", "--cells", "12", "--seed", "7", "--candidate", "cuda", "--candidate", "libvmaf")
    assert {name.rpartition("/")[2] for name in desk.ids()} == {"cuda", "libvmaf"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--cells", "0"), "--cells"),
        (("--cells", "-5"), "--cells"),
        (("--cells", "many"), "--cells"),
        (("--seed", "x"), "--seed"),
        (("--candidate", "opencl:pokl"), "--candidate: unknown backend 'opencl:pokl'; did you"),
        (("--candidate", "cpu"), "--candidate: unknown backend 'cpu'"),
        (("--require", "cuba"), "--require: unknown backend 'cuba'; did you mean 'cuda'?"),
        (("m.yaml",), "m.yaml"),
    ],
)
def test_wrong_usage_exits_2_without_a_report(
    desk: Desk, arguments: tuple[str, ...], told: str
) -> None:
    outcome = desk(*FUZZ, *arguments)
    assert (outcome.code, outcome.out, desk.files()) == (2, "", set())
    assert told in outcome.err
    assert "Traceback" not in outcome.err


def test_a_difference_exits_1_and_its_reproducer_fails_too(desk: Desk) -> None:
    desk.faulty = {"opencl:pocl"}
    outcome = desk(*FUZZ, "--seed", "7")
    assert outcome.code == 1
    assert outcome.verdict.startswith("FAIL: 6 cells, 6 FAIL")
    assert desk.files() - REPORTS == {"reproducer-1.yaml", "reproducer-2.yaml", "reproducer-3.yaml"}
    assert "wrote out/reproducer-1.yaml\n" in outcome.out
    command = "parity-gate run out/reproducer-1.yaml --out out/repeat"
    assert f"     {command}\n" in outcome.out
    assert f"small reproducer: {command}" in Path("out/junit.xml").read_text()
    again = desk(*shlex.split(command)[1:])
    assert again.code == 1
    assert again.verdict.startswith("FAIL: 1 cell, 1 FAIL")


def test_the_command_of_a_red_cell_repeats_it(desk: Desk) -> None:
    desk.faulty = {"opencl:pocl"}
    outcome = desk(*FUZZ, "--seed", "7")
    (first, *_) = re.findall(r"     (parity-gate fuzz .*)", outcome.out)
    again = desk(*shlex.split(first)[1:])
    assert again.code == 1
    assert again.verdict.startswith("FAIL: 1 of 6 cells, 1 FAIL")


def test_old_reproducers_do_not_survive_a_sound_run(desk: Desk) -> None:
    desk.faulty = {"opencl:pocl"}
    desk(*FUZZ, "--seed", "7")
    desk.faulty = set()
    desk(*FUZZ, "--seed", "7")
    assert desk.files() == REPORTS


def test_a_selection_runs_its_cells_only(desk: Desk) -> None:
    outcome = desk(*FUZZ, "--seed", "7", "--cell", "*/f0002_*", "--cell", "*/f0004_*")
    assert outcome.verdict.startswith("PASS: 2 of 6 cells, 2 PASS")
    assert [re.findall(r"/f(\d+)_", name) for name in desk.ids()] == [["0002"], ["0004"]]


def test_a_selection_that_matches_nothing_exits_3(desk: Desk) -> None:
    outcome = desk(*FUZZ, "--seed", "7", "--cell", "*/f0099_*")
    assert outcome.code == 3
    assert "--cell '*/f0099_*' matches none of the 6 cells of fuzz --seed 7" in outcome.err


def test_an_absent_candidate_is_skipped_and_proves_nothing_alone(desk: Desk) -> None:
    desk.absent = {"cuda"}
    outcome = desk(*FUZZ, "--seed", "7", "--candidate", "cuda")
    assert outcome.code == 0
    assert outcome.verdict.startswith("PASS: 12 cells, 6 PASS, 6 SKIP")
    assert "no cuda here" in outcome.out
    assert desk("fuzz", "--cells", "6", "--candidate", "cuda").code == 3
    assert desk(*FUZZ, "--candidate", "cuda", "--require", "cuda").code == 3


def test_a_required_backend_that_is_no_candidate_exits_2(desk: Desk) -> None:
    outcome = desk(*FUZZ, "--require", "cuda")
    assert outcome.code == 2
    assert outcome.err == "--require cuda: it is no candidate; add --candidate cuda\n"


def test_help_has_an_example(desk: Desk) -> None:
    outcome = desk("fuzz", "--help")
    assert outcome.code == 0
    assert "Example: parity-gate fuzz --cells 150 --seed 7" in outcome.out


@pytest.mark.usefixtures("_hardly_simplified")
@pytest.mark.parametrize("report", ["out/report.json", "out/junit.xml"])
def test_the_red_cells_of_a_drawn_run_run_again(report: str, desk: Desk) -> None:
    desk.faulty, desk.fault = {"opencl:pocl"}, off_in_several_frames
    assert desk(*FUZZ, "--seed", "7").code == 1
    first = desk.run()
    red = [result for result in first.results if result.status is Status.FAIL]
    assert 0 < len(red) < len(first.results) == 6
    again = desk("rerun", report, "--failed")
    assert again.code == 1
    origin = f"{len(red)} of 6 cells (repeated of run {first.id})"
    assert again.verdict.startswith(f"FAIL: {origin}, {len(red)} FAIL, ")
    assert again.verdict.endswith(", drawn with seed 7")
    second = desk.run("out/rerun")
    assert second.rerun_of == first.id
    assert [(r.cell, r.comparison) for r in second.results] == [(r.cell, r.comparison) for r in red]
    assert "small reproducer of " in again.out
    assert Path("out/rerun/reproducer-1.yaml").is_file()


@pytest.mark.usefixtures("_hardly_simplified")
def test_a_rerun_can_be_repeated_by_its_own_reports(desk: Desk) -> None:
    desk.faulty, desk.fault = {"opencl:pocl"}, off_in_several_frames
    told = desk(*FUZZ, "--seed", "7").out
    for out in ("out", "out/rerun"):
        (command,) = re.findall(r"^     (parity-gate rerun .*)", told, re.MULTILINE)
        assert command == f"parity-gate rerun {out}/report.json --failed"
        told = desk(*shlex.split(command)[1:]).out
        assert told.splitlines()[-1].startswith("FAIL: ")


def test_a_dry_rerun_prints_the_drawn_cells_and_runs_nothing(desk: Desk) -> None:
    desk(*FUZZ, "--seed", "7")
    chosen = [name for name in desk.ids() if "/f0002_" in name]
    again = desk("rerun", "out", "--cell", "*/f0002_*", "--dry-run")
    assert (again.code, again.out.splitlines()) == (0, chosen)
    assert again.err == "1 cell of fuzz --seed 7\n"
    assert not Path("out/rerun").exists()


def test_a_drawn_run_that_is_green_has_nothing_to_repeat(desk: Desk) -> None:
    desk(*FUZZ, "--seed", "7")
    assert "rerun" not in Path("out/report.md").read_text("utf-8")
    assert desk("rerun", "out", "--failed").code == 3
    again = desk("rerun", "out")
    assert (again.code, desk.run("out/rerun").planned) == (0, 6)


def test_a_drawn_cell_that_both_sides_refuse_is_skipped_each_time(desk: Desk) -> None:
    refused = ("--cells", "122", "--seed", "1", "--cell", "*/f012[01]_*")
    first = desk(*FUZZ, *refused)
    again = desk("rerun", "out")
    assert (first.code, again.code) == (0, 0)
    for out in ("out", "out/rerun"):
        assert [r.status for r in desk.run(out).results] == [Status.PASS, Status.SKIP]


@pytest.mark.usefixtures("_hardly_simplified")
def test_a_red_drawn_cell_whose_candidate_has_gone_is_not_green(desk: Desk) -> None:
    desk.faulty = {"opencl:pocl"}
    desk(*FUZZ, "--seed", "7")
    desk.absent = {"opencl:pocl"}
    again = desk("rerun", "out", "--failed")
    assert again.code == 3
    assert "required backend missing: opencl:pocl" in again.verdict


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("seed", "8", "seed 8 draws cells of sha256 "),
        ("seed", "7; rm", "seed: Input should be a valid integer"),
        ("cells", "7", "seed 7 draws cells of sha256 "),
        ("cells", "0", "cells: Input should be greater than or equal to 1"),
        ("cells", "100001", "cells: Input should be less than or equal to 100000"),
        ("candidates", "opencl:pocl cuda", "seed 7 draws cells of sha256 "),
        ("candidates", "opencl:pokl", "unknown candidate 'opencl:pokl'; did you mean "),
        ("candidates", "cpu", "unknown candidate 'cpu'; "),
        ("candidates", " ", "candidates: Tuple should have at least 1 item"),
        ("sha256", "0" * 64, "seed 7 draws cells of sha256 "),
    ],
)
def test_a_tampered_drawing_is_refused(name: str, value: str, told: str, desk: Desk) -> None:
    desk(*FUZZ, "--seed", "7")
    true = desk.run().environment["matrix"][name]
    for file, before, after in (
        ("report.json", f'"{name}": "{true}"', f'"{name}": "{value}"'),
        ("junit.xml", f'"matrix: {name}" value="{true}"', f'"matrix: {name}" value="{value}"'),
    ):
        path = Path("out", file)
        text = path.read_text("utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, after), "utf-8")
        again = desk("rerun", str(path))
        assert (again.code, again.out) == (2, "")
        assert again.err.startswith(f"{path}: {told}")
        assert len(again.err.splitlines()) == 1
    assert not Path("out/rerun").exists()


def test_what_another_version_drew_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk(*FUZZ, "--seed", "7")
    monkeypatch.setattr(fuzz, "draw", lambda seed, index: draw.draw(seed, index + 1))
    again = desk("rerun", "out")
    assert again.code == 2
    assert "which are not the report's; repeat them with the version that drew them" in again.err


@pytest.mark.parametrize("name", ["report.json", "junit.xml"])
def test_drawn_pictures_that_have_become_others_are_an_error(name: str, desk: Desk) -> None:
    desk(*FUZZ, "--seed", "7")
    side, told = next(iter(desk.run().environment["fixtures"].items()))
    path = Path("out", name)
    path.write_text(path.read_text("utf-8").replace(told, "0" * 64), "utf-8")
    again = desk("rerun", str(path))
    assert again.code == 4
    assert f"fixture {side} is {told}, and {'0' * 64} before; start anew" in again.out


def test_a_rerun_of_drawn_cells_takes_no_option_that_fuzz_has_not(desk: Desk) -> None:
    desk(*FUZZ, "--seed", "7")
    for option in (
        ("--matrix", "m.yaml"),
        ("--repeat", "2"),
        ("--rcp-table", "amd-zen-4"),
        ("--no-cache",),
    ):
        again = desk("rerun", "out", *option)
        name = option[0].replace("no-", "")
        told = f"{name}: the report is of `fuzz`, which has no such option\n"
        assert (again.code, again.err) == (2, told)


@pytest.mark.usefixtures("_hardly_simplified")
def test_a_reproducers_report_says_how_to_repeat_it(desk: Desk) -> None:
    desk.faulty = {"opencl:pocl"}
    desk(*FUZZ, "--seed", "7")
    told = desk("run", "out/reproducer-1.yaml", "--out", "out/repeat").out
    (command,) = re.findall(r"^     (parity-gate rerun .*)", told, re.MULTILINE)
    again = desk(*shlex.split(command)[1:])
    assert again.code == 1
    assert again.verdict.startswith("FAIL: 1 of 1 cell (repeated of run ")
