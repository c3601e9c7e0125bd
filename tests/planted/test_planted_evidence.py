"""A candidate that has the reference's scores without having computed them is red, by name.

Each is a real process, and none of its scores differs where it has them.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import lying_worker
import pytest
from lying_worker import FIRST, FOLDER, LIES
from program import Outcome, started

from gate import workers
from gate.workers import Worker

FRAMES = 3
WIDTHS = {lie: FIRST + number for number, lie in enumerate(LIES)}
FIXTURES = "\n".join(
    f"  w{width}: {{generator: sequence, width: {width}, height: 17, bit_depth: 8, "
    f"frames: {FRAMES}}}"
    for width in WIDTHS.values()
)
MATRIX = f"""\
version: 1
fixtures:
{FIXTURES}
matrix:
  - feature: float_adm
    candidates: [opencl:pocl]
    dialects: [ieee-single, ieee-double]
    fixtures: ["*"]
  - feature: float_adm
    candidates: [opencl:nvidia, cuda]
    dialects: [ieee-single]
    fixtures: [w{FIRST}]
"""
OTHERS = "opencl:pocl witnessed frames 0 to [0-9] as [0-9a-f]{16}; those that it was given are "
SENTENCES = {
    "nothing ran": "no evidence that opencl:pocl ran: nothing was launched on a device",
    "another device": "opencl:pocl was opened with device 'forged', and ran on 'the processor'",
    "a launch without an end": (
        "launch [0-9]+ of opencl:pocl, kernel fold, began at 9 ns and ended at 9 ns; a kernel that "
    ),
    "a launch that ends before it begins": (
        "launch [0-9]+ of opencl:pocl, kernel fold, began at 9 ns and ended at 8 ns; a kernel that "
    ),
    "pictures that nobody witnessed": (
        "opencl:pocl witnessed 0 uploads of pictures; required: [1-3], one a batch of frames"
    ),
    "witnesses that were not computed": (
        "opencl:pocl launched kernels on 0 uploads of pictures; required: [1-3], one a batch"
    ),
    "pictures that no kernel read": (
        "opencl:pocl launched kernels on 0 uploads of pictures; required: [1-3], one a batch"
    ),
    "a made up witness": OTHERS,
    "one frame for all": (
        "opencl:pocl read of 3 frames 1 from frame 0; required: each of them once"
    ),
    "a score is missing": "candidate: score VMAF_[a-z0-9_]+ is missing; required",
    "a frame is missing": "candidate: the values end before frame 2; required: 3 frames",
    "no scores": "candidate: score VMAF_",
}
Cells = dict[str, dict[str, Any]]  # by id


class Desk:
    """A folder in which the program runs, with the worker that lies behind every backend."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys
        (folder / "m.yaml").write_text(MATRIX, "utf-8")

    def __call__(self, *arguments: str) -> tuple[Outcome, Cells]:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self._folder)
            patch.setenv(FOLDER, str(self._folder))
            program = (lying_worker.__file__,)
            patch.setattr(workers, "open_worker", partial(Worker, program=program))
            ended = started(self._capsys, "run", "m.yaml", "--no-cache", *arguments)
            report = json.loads(Path("out/report.json").read_text("utf-8"))
        return ended, {cell["id"]: cell for cell in report["cells"]}


def cell(lie: str, dialect: str = "ieee-single", candidate: str = "opencl:pocl") -> str:
    return f"float_adm/{dialect}/default/w{WIDTHS[lie]}/{candidate}"


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


def test_every_lie_is_red_and_told(desk: Desk) -> None:
    ended, cells = desk(*(f"--cell=*/w{WIDTHS[lie]}/*" for lie in SENTENCES))
    assert (ended.code, ended.err) == (4, "")
    for lie, sentence in SENTENCES.items():
        for dialect in ("ieee-single", "ieee-double"):
            told = cells[cell(lie, dialect)]
            assert told["status"] == "ERROR", lie
            assert re.match(sentence, told["reason"]), (lie, told["reason"])
            assert (told["comparison"], told["proof"]) == (None, None)
    assert ended.verdict.startswith(f"ERROR: {2 * len(SENTENCES)} of 34 cells, ")


def test_scores_of_the_computation_before_are_red(desk: Desk) -> None:
    _, cells = desk("--cell", f"*/w{WIDTHS['the computation before']}/*")
    first, second = cells.values()
    assert first["status"] == "PASS"
    assert second["status"] == "ERROR"
    assert re.match(OTHERS, second["reason"])


def test_a_repeat_that_was_not_computed_is_red(desk: Desk) -> None:
    """The bits are the same, as those of a repeat must be."""
    _, cells = desk("--cell", cell("the computation before"), "--repeat", "2")
    (told,) = cells.values()
    assert told["status"] == "ERROR"
    assert re.match(OTHERS, told["reason"])


def test_a_side_that_is_asked_once_more_needs_evidence_too(desk: Desk) -> None:
    """The bits are the same, so that a candidate without it would seem steady, and blessable."""
    name = cell("wrong scores, and the computation before")
    told = desk("--cell", name)[1][name]
    assert (told["status"], told["controls"]) == ("FAIL", [])
    again = told["reason"].partition("; candidate opencl:pocl, asked once more (again): ")[2]
    assert re.match(OTHERS, again)


def test_the_file_of_the_last_run_is_red(desk: Desk) -> None:
    name = cell("the last run's file")
    statuses = [desk("--cell", name)[1][name] for _ in range(2)]
    assert [told["status"] for told in statuses] == ["PASS", "ERROR"]
    assert re.match(OTHERS, statuses[1]["reason"])


def test_a_processor_is_no_device_and_another_platform_not_the_named_one(desk: Desk) -> None:
    _, cells = desk("--cell", f"*/w{FIRST}/*")
    reasons = {told["candidate"]: told["reason"] for told in cells.values() if told["reason"]}
    assert reasons == {
        "cuda": "no evidence that cuda ran: nothing was launched on a device",
        "opencl:nvidia": (
            "opencl:nvidia ran on platform 'Oclgrind 1'; required: one that begins with "
            "'NVIDIA CUDA '"
        ),
    }


def test_who_forges_all_of_it_is_believed_as_the_design_says(desk: Desk) -> None:
    ended, cells = desk("--cell", cell("none"))
    assert ended.code == 0
    assert cells[cell("none")]["proof"]["frames"] == FRAMES


def test_every_lie_has_a_sentence_or_a_test_of_its_own() -> None:
    repeated = {"the computation before", "wrong scores, and the computation before"}
    own = {"none", "the last run's file", *repeated}
    assert set(LIES) == {*SENTENCES, *own}
