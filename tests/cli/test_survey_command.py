"""`parity-gate survey`: what fixtures show of the angle flag, on the console and as markdown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from program import Outcome, started

from backends.base import Refused
from backends.features.integer_adm import FEATURE
from gate import survey
from gate.survey import Surveyed

if TYPE_CHECKING:
    from backends.base import Arithmetic, Clip, Feature, Options, Scores
    from backends.predicate import Predicate
    from gate.matrix import Matrix

(angle,) = FEATURE.predicates
MATRIX = """\
version: 1
fixtures:
  flipping: {generator: near, width: 96, height: 95, bit_depth: 8}
  same: {generator: flat, width: 33, height: 33, bit_depth: 10, ref_level: 9, dist_level: 9}
  small: {generator: near, width: 32, height: 40, bit_depth: 16, frames: 2}
matrix:
  - feature: float_adm
    candidates: [opencl:pocl]
    fixtures: ["*"]
"""
HEADER = ["fixture", "dialect", "samples", "> 2^24", "a", "b", "c"]
HEADER += ["gain limit 1", "gain limit 1.2", "gain limit 100"]
ROWS = [
    ["flipping", "netflix", "2304", "1673", "1", "1", "1", "-", "a b c", "a b c"],
    ["same", "netflix", "289", "0", "0", "0", "0", "-", "-", "-"],
]


@dataclass
class Desk:
    """A folder with a matrix."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Outcome:
        return started(self.capsys, "survey", *arguments)


@pytest.fixture
def desk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Desk:
    monkeypatch.chdir(tmp_path)
    Path("m.yaml").write_text(MATRIX, "utf-8")
    return Desk(capsys)


def rows(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_a_row_tells_samples_large_operands_flips_and_moves(desk: Desk) -> None:
    outcome = desk("m.yaml")
    header, *found = rows(Path("out/survey.md").read_text("utf-8"))
    assert (outcome.code, outcome.err) == (0, "")
    assert header == HEADER
    assert found[:2] == ROWS
    assert "\n".join(survey.legend(angle)) in outcome.out
    assert f"a: samples whose flag a wrong spelling flips: {angle.wrong['a']}\n" in outcome.out
    assert outcome.verdict == "3 fixtures surveyed"


def test_a_frame_that_netflix_does_not_take_is_surveyed_in_vmafx(desk: Desk) -> None:
    desk("m.yaml", "--fixture", "small")
    (row,) = rows(Path("out/survey.md").read_text("utf-8"))[1:]
    assert row[:3] == ["small", "vmafx", str(2 * 16 * 20)]


def test_the_console_tells_the_furthest_output_of_what_the_file_says(desk: Desk) -> None:
    outcome = desk("m.yaml")
    shown = outcome.out.splitlines()
    assert [line.split() for line in shown if "flipping  " in line] == [
        [word for cell in ROWS[0] for word in cell.split()]
    ]
    told = [line.removeprefix("- ") for line in Path("out/survey.md").read_text().splitlines()]
    moves = [line for line in shown if line.startswith("flipping, gain limit")]
    whole = [line for line in told if line.startswith("flipping, gain limit")]
    assert len(moves) == 2
    for short, full in zip(moves, whole, strict=True):
        first, *others = full.split("; ")
        assert short == f"{first}; and {len(others)} more outputs: survey.md"


def test_a_moved_score_is_told_with_both_values(desk: Desk) -> None:
    outcome = desk("m.yaml", "--fixture", "flip*")
    assert outcome.code == 0
    items = Path("out/survey.md").read_text("utf-8").splitlines()
    moves = [line.removeprefix("- ") for line in items if line.startswith("- flipping, ")]
    assert len(moves) == 2
    (at_1_2,) = (line for line in moves if "gain limit 1.2" in line)
    assert at_1_2.startswith("flipping, gain limit 1.2, spelling a b c: ")
    expected = "integer_adm_scale0_egl_1.2 0.9980931037587666 -> 0.9980941412834402"
    assert expected in at_1_2.split(": ")[1].split("; ")
    assert not any("_scale1" in line or "_scale2" in line or "_scale3" in line for line in moves)


def test_of_several_frames_the_one_that_moves_most_is_told(desk: Desk) -> None:
    text = MATRIX.replace(
        "width: 96, height: 95, bit_depth: 8", "width: 96, height: 95, bit_depth: 8, frames: 2"
    )
    Path("m.yaml").write_text(text, "utf-8")
    assert " (frame 0; 1 of 2 moved)" in desk("m.yaml", "--fixture", "flipping").out


def test_without_a_flip_no_score_is_computed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(angle, "scores", None)
    outcome = desk("m.yaml", "--fixture", "same")
    assert outcome.code == 0
    assert outcome.out.endswith("no score moves\nwrote out/survey.md\n1 fixture surveyed\n")


def test_a_fixture_that_cannot_be_read_costs_its_row_only(desk: Desk) -> None:
    pin = f"{{ref: {'0' * 64}, dist: {'0' * 64}}}"
    text = MATRIX.replace("dist_level: 9}", f"dist_level: 9, sha256: {pin}}}")
    Path("m.yaml").write_text(text, "utf-8")
    outcome = desk("m.yaml")
    assert outcome.code == 4
    assert outcome.verdict == "ERROR: 2 of 3 fixtures surveyed"
    assert "ERROR same: fixture 'same' ref: generator 'flat' makes luma with sha256 " in outcome.out
    names = [row[0] for row in rows(Path("out/survey.md").read_text("utf-8"))]
    assert names == ["fixture", "flipping", "small"]


def test_without_the_compiled_reference_each_fixture_is_an_error(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> NoReturn:
        message = "the compiled reference is missing; run make gate"
        raise Refused(message)

    monkeypatch.setattr(angle, "survey", missing)
    outcome = desk("m.yaml", "--fixture", "same")
    assert outcome.code == 4
    assert "ERROR same: the compiled reference is missing; run make gate\n" in outcome.out
    assert outcome.verdict == "ERROR: 0 of 1 fixture surveyed"
    assert "no score moves" not in outcome.out


def test_whatever_fails_costs_its_row_only(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    surveyed = survey.survey

    def failing(feature: Feature, predicate: Predicate, matrix: Matrix, name: str) -> Surveyed:
        if name == "flipping":
            message = "no memory\nmore about it"
            raise MemoryError(message)
        return surveyed(feature, predicate, matrix, name)

    monkeypatch.setattr(survey, "survey", failing)
    outcome = desk("m.yaml", "--fixture", "flipping", "--fixture", "same")
    text = Path("out/survey.md").read_text("utf-8")
    assert (outcome.code, outcome.err) == (4, "")
    assert "ERROR flipping: MemoryError: no memory\n" in outcome.out
    assert [row[0] for row in rows(text)] == ["fixture", "same"]
    assert outcome.verdict == "ERROR: 1 of 2 fixtures surveyed"
    assert "no score moves" not in outcome.out + text


def test_reports_of_other_commands_stay_and_an_old_survey_goes(desk: Desk) -> None:
    Path("out").mkdir()
    for name in ("junit.xml", "report.md", "report.json", "survey.md"):
        Path("out", name).write_text("old", "utf-8")
    desk("m.yaml", "--fixture", "same")
    assert "old" not in Path("out/survey.md").read_text("utf-8")
    kept = [path.name for path in Path("out").iterdir() if path.read_text("utf-8") == "old"]
    assert sorted(kept) == ["junit.xml", "report.json", "report.md"]


def test_a_glob_without_a_fixture_is_bad_usage(desk: Desk) -> None:
    outcome = desk("m.yaml", "--fixture", "big*")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "--fixture 'big*' matches none of flipping, same, small\n"


def test_a_wrong_matrix_is_bad_usage(desk: Desk) -> None:
    Path("m.yaml").write_text("version: 2\n", "utf-8")
    outcome = desk("m.yaml")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("m.yaml:")


def test_an_interrupt_keeps_the_rows_so_far(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    surveyed = survey.survey

    def interrupted(feature: Feature, predicate: Predicate, matrix: Matrix, name: str) -> Surveyed:
        if name == "small":
            raise KeyboardInterrupt
        return surveyed(feature, predicate, matrix, name)

    monkeypatch.setattr(survey, "survey", interrupted)
    outcome = desk("m.yaml")
    text = Path("out/survey.md").read_text("utf-8")
    assert outcome.code == 130
    assert [row[0] for row in rows(text)] == ["fixture", "flipping", "same"]
    assert outcome.verdict == "INTERRUPTED: 2 of 3 fixtures surveyed"
    assert text.endswith("\n\nINTERRUPTED: 2 of 3 fixtures surveyed\n")


def test_an_interrupt_before_the_first_row_claims_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(survey, "survey", interrupted)
    outcome = desk("m.yaml")
    assert outcome.code == 130
    assert outcome.verdict == "INTERRUPTED: 0 of 3 fixtures surveyed"
    assert "no score moves" not in outcome.out + Path("out/survey.md").read_text("utf-8")


def test_a_report_that_cannot_be_written_is_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(survey, "write_whole", full)
    outcome = desk("m.yaml", "--fixture", "same")
    assert outcome.code == 4
    assert outcome.err == "out/survey.md cannot be written: No space left on device\n"


def test_spellings_that_move_other_scores_are_told_apart(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = angle.scores

    def other(
        arithmetic: Arithmetic, options: Options, clip: Clip, spelling: str = "golden"
    ) -> Scores:
        found = scores(arithmetic, options, clip, spelling)
        return replace(found, values=found.values + 1) if spelling == "b" else found

    monkeypatch.setattr(angle, "scores", other)
    lines = desk("m.yaml", "--fixture", "flipping").out.splitlines()
    moves = [line.partition(": ")[0] for line in lines if line.startswith("flipping, ")]
    assert moves == [
        "flipping, gain limit 1, spelling b",
        "flipping, gain limit 1.2, spelling a c",
        "flipping, gain limit 1.2, spelling b",
        "flipping, gain limit 100, spelling a c",
        "flipping, gain limit 100, spelling b",
    ]
