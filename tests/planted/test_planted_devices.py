"""A device that takes its process along, without pictures: `angle` and `probe powf` go on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import planted_device
import pytest
from angle_desk import Desk, angle, few
from planted_device import SOUND
from program import started

from gate import tasks, workers
from gate.workers import Worker

if TYPE_CHECKING:
    from pathlib import Path

NEAR, WALK = (f"angle_flag/netflix/default/{name}" for name in ("near_1", "walk"))
KILLED = "was ended by signal 9 (SIGKILL)"


@pytest.fixture
def desk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Desk:
    """Small corpora, and devices in processes of their own, which leave no temporary file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANTED", "killed")
    program = (planted_device.__file__,)
    monkeypatch.setattr(workers, "open_worker", partial(Worker, program=program))
    monkeypatch.setattr(angle, "corpora", few)
    return Desk(capsys)


@pytest.mark.parametrize(
    ("fault", "reason", "words"),
    [
        ("killed", f"the process of opencl:pocl {KILLED}", ""),
        ("aborted", "the process of opencl:pocl was ended by signal 6 (SIGABRT)", "Aborted"),
        ("lost", "RuntimeError: CL_DEVICE_NOT_AVAILABLE", "in lost\n"),
        ("hung", "opencl:pocl was computing for more than 1 s; its process", "waiting for the d"),
    ],
)
def test_a_device_that_fails_at_a_block_costs_the_cell_of_that_corpus(
    fault: str, reason: str, words: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", fault)
    monkeypatch.setattr(tasks, "WORKING", 0.9)  # and 0.1 s for the samples
    outcome = desk("--candidate", "cpu:int64", "--candidate", "opencl:pocl")
    cells = desk.cells()
    assert outcome.code == 4
    assert len(cells) == 6
    assert {name for name in cells if cells[name]["status"] != "PASS"} == {f"{WALK}/opencl:pocl"}
    assert str(cells[f"{WALK}/opencl:pocl"]["reason"]).startswith(reason)
    assert words in str(cells[f"{WALK}/opencl:pocl"]["detail"])


def test_a_device_that_takes_its_process_along_after_a_mismatch_fails(desk: Desk) -> None:
    outcome = desk("--candidate", "cuda", "--cell", "*/near_1/*")
    reason = str(desk.cells()[f"{NEAR}/cuda"]["reason"])
    assert outcome.code == 1
    told = f"; then: the process of cuda {KILLED}, after 500000 of 550000 samples"
    assert reason.startswith("operand ")
    assert reason.endswith(told)


def test_a_kernel_that_does_not_compile_is_told_with_the_compilers_log(desk: Desk) -> None:
    outcome = desk("--candidate", "opencl:nvidia")
    assert outcome.code == 4
    told = {(cell["reason"], cell["detail"]) for cell in desk.cells().values()}
    assert told == {("the kernels do not compile", "line 1: no")}


def test_an_interrupt_ends_a_device_that_decides(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("PLANTED", "interrupting")
    outcome = desk("--candidate", "opencl:pocl")
    assert outcome.code == 130
    assert outcome.verdict.startswith("INTERRUPTED: 3 cells, 1 PASS, 2 did not finish, ")
    assert list(temporary.iterdir()) == []  # which a process keeps until it has ended


def test_a_device_that_ends_its_process_costs_its_own_powers(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "aborted")
    devices = ("--backend", "opencl:pocl", "--backend", SOUND)
    outcome = started(desk.capsys, "probe", "powf", "--exponent", "2", *devices)
    sentence, *words = outcome.err.splitlines()
    assert outcome.code == 4
    assert sentence == "opencl:pocl: the process of opencl:pocl was ended by signal 6 (SIGABRT)"
    assert words[0] == "Fatal Python error: Aborted"
    assert f"{SOUND} p = 2: 102635 inputs, 0 different" in outcome.out


def test_an_interrupt_ends_a_device_that_is_probed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "interrupting")
    devices = ("--backend", "opencl:pocl", "--backend", SOUND)
    outcome = started(desk.capsys, "probe", "powf", "--exponent", "2", *devices)
    assert outcome.code == 130
    assert "p = 2" not in outcome.out
