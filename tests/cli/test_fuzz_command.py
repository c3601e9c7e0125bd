"""Tests of `parity-gate fuzz`: usage, seeds, selection, exit codes, reproducers on disk."""

from __future__ import annotations

import json
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
from gate import workers

if TYPE_CHECKING:
    from backends.base import Backend, Scores

REPORTS = {"journal.jsonl", "junit.xml", "report.json", "report.md"}
FUZZ = ("fuzz", "--cells", "6", "--candidate", "opencl:pocl")


def one_step_off(scores: Scores) -> Scores:
    scores.values[-1, 0] = np.nextafter(scores.values[-1, 0], 9)
    return scores


@dataclass
class Desk:
    """A folder, and backends that are the reference itself, faulty or absent by name."""

    capsys: pytest.CaptureFixture[str]
    faulty: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)

    def open_backend(self, name: str) -> Backend:
        if name in self.absent:
            message = f"no {name} here"
            raise Unavailable(message)
        scores = one_step_off if name in self.faulty else None
        return Planted(Forger(name), "one step", scores=scores, name=name)

    def __call__(self, *arguments: str) -> Outcome:
        return started(self.capsys, *arguments)

    def files(self) -> set[str]:
        return {path.name for path in Path("out").glob("*")}

    def ids(self) -> list[str]:
        return [cell["id"] for cell in json.loads(Path("out/report.json").read_text())["cells"]]


@pytest.fixture
def desk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Desk:
    desk = Desk(capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "open_worker", desk.open_backend)
    return desk


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
