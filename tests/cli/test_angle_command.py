"""`parity-gate angle` on small corpora: selection, verdicts, reports and exit codes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pytest
from angle_desk import Desk, angle, few, furnished
from fake_device import FakeDevice

from backends.base import Inexact, Refused
from backends.features.integer_adm.angle import NEAR_PARALLEL, Spelled
from backends.predicate import Corpus
from gate.model import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from backends.base import Buffer, Number

ABSENT = ["opencl:nvidia", "cuda"]
NEAR = "angle_flag/netflix/default/near_1"
RIGHT = ("--candidate", "cpu:int64", "--candidate", "opencl:pocl")


@pytest.fixture
def desk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Desk:
    return furnished(monkeypatch, tmp_path, Desk(capsys))


def test_right_candidates_pass_wrong_spellings_are_known_and_absent_devices_skip(
    desk: Desk,
) -> None:
    outcome = desk()
    assert outcome.code == 0
    assert outcome.verdict.startswith("PASS: 17 cells, 6 PASS, 5 KNOWN, 6 SKIP, ")
    assert desk.closed == ["opencl:pocl"]
    skipped = {name for name, cell in desk.cells().items() if cell["status"] == "SKIP"}
    assert {name.rpartition("/")[2] for name in skipped} == set(ABSENT)
    assert "no cuda here" in outcome.out
    assert {path.name for path in Path("out").iterdir()} == {
        "junit.xml",
        "report.json",
        "report.md",
    }


def test_the_table_tells_how_often_each_candidate_differs(desk: Desk) -> None:
    lines = desk().out.splitlines()
    assert lines[:2] == ["samples whose flag differs from the golden one:", ""]
    header = lines[2].split()
    assert header[:2] == ["corpus", "samples"]
    names = header[2:]
    assert lines[5] == ""
    counts = next(line.split() for line in lines if "near_1 " in line)
    assert names == ["cpu:int64", "opencl:pocl", *(f"spelling:{letter}" for letter in "abcde")]
    assert counts[:4] == ["near_1", "550000", "0", "0"]
    different = {name: cell["comparison"] for name, cell in desk.cells().items()}
    for name, count in zip(names, counts[2:], strict=True):
        comparison = different[f"{NEAR}/{name}"]
        assert isinstance(comparison, dict)
        assert comparison["different"] == int(count)


def test_wrong_spellings_run_on_near_parallel_corpora_only(desk: Desk) -> None:
    desk()
    wrong = [name for name in desk.cells() if "spelling:" in name]
    assert wrong == [f"{NEAR}/spelling:{letter}" for letter in "abcde"]


def test_a_wrong_device_fails_and_its_first_operand_is_named(desk: Desk) -> None:
    desk.devices["opencl:pocl"] = FakeDevice("a")
    outcome = desk(*RIGHT, "--cell", "*/near_1/*")
    samples = angle.block(few(full=False)[0], 0)
    first = int(np.flatnonzero(Spelled("a").flags(samples) != Spelled("golden").flags(samples))[0])
    operands = ", ".join(map(str, samples.samples[first].tolist()))
    flag = int(Spelled("a").flags(samples)[first])
    assert outcome.code == 1
    sentence = f"operand {first} ({operands}) flag: {flag} expected {1 - flag}"
    assert f"FAIL {NEAR}/opencl:pocl {sentence}, " in outcome.out
    assert outcome.verdict.startswith(
        "FAIL: 2 of 6 cells, 1 PASS, 1 FAIL, 1100000 scores compared, "
    )


def test_a_sample_of_a_later_block_is_counted_from_the_first_of_the_corpus(desk: Desk) -> None:
    desk.devices["opencl:pocl"] = FakeDevice("a")
    desk(*RIGHT, "--cell", "*/near_1/*")
    comparison = desk.cells()[f"{NEAR}/opencl:pocl"]["comparison"]
    assert isinstance(comparison, dict)
    last = comparison["mismatches"][-1]
    assert comparison["different"] == len(comparison["mismatches"])
    assert last["frame"] > 500_000
    assert (
        last["operands"]
        == angle.block(few(full=False)[0], 1).samples[last["frame"] - 500_000].tolist()
    )


def test_of_many_differences_the_first_hundred_are_kept_and_all_are_counted(desk: Desk) -> None:
    class Opposite(FakeDevice):
        def download(
            self, buffer: Buffer, shape: Sequence[int], dtype: np.dtype[Number]
        ) -> NDArray[Number]:
            return (1 - super().download(buffer, shape, dtype)).astype(dtype)

    desk.devices["opencl:pocl"] = Opposite()
    desk(*RIGHT, "--cell", "*/near_1/*")
    comparison = desk.cells()[f"{NEAR}/opencl:pocl"]["comparison"]
    assert isinstance(comparison, dict)
    assert comparison["different"] == 550_000
    assert [m["frame"] for m in comparison["mismatches"]] == list(range(100))


def test_a_wrong_spelling_that_agrees_fails(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ten = Corpus("near_1", NEAR_PARALLEL, 1, 10)
    monkeypatch.setattr(angle, "corpora", lambda *, full: (ten._replace(samples=10 + full),))
    outcome = desk("--candidate", "spelling:c")
    assert outcome.code == 1
    assert f"{NEAR}/spelling:c agrees although it is a known wrong spelling" in outcome.out


def test_full_takes_the_full_corpora(desk: Desk) -> None:
    outcome = desk("--full", "--candidate", "cpu:int64", "--cell", "*/near_*")
    assert "600000 scores compared" in outcome.verdict


def test_the_command_of_a_failure_repeats_its_cell(desk: Desk) -> None:
    desk.devices["opencl:pocl"] = FakeDevice("b")
    outcome = desk("--full", *RIGHT)
    command = next(line for line in outcome.out.splitlines() if f"--cell {NEAR}" in line)
    program, name, *arguments = shlex.split(command)
    assert (program, name) == ("parity-gate", "angle")
    again = desk(*arguments)
    assert again.verdict.startswith("FAIL: 1 of 6 cells, 1 FAIL, 600000 scores compared, ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--candidate", "opencl:pokl"), "--candidate: unknown candidate 'opencl:pokl'; did you"),
        (("--candidate", "cpu"), "--candidate: unknown candidate 'cpu'; "),
        (("--require", "cpu"), "--require: unknown candidate 'cpu'; "),
        (("--require", "nope"), "--require: unknown candidate 'nope'; allowed: cpu:int64, "),
        (("--candidate", "libvmaf"), "--candidate: libvmaf has no kernels; allowed: cpu:int64, "),
        (
            ("--candidate", "cpu:int64", "--require", "cuda"),
            "--require cuda: it is no candidate; add --candidate cuda\n",
        ),
    ],
)
def test_what_names_nothing_is_bad_usage(
    desk: Desk, arguments: tuple[str, ...], sentence: str
) -> None:
    outcome = desk(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(sentence)


def test_a_glob_without_a_cell_proves_nothing(desk: Desk) -> None:
    outcome = desk("--cell", "*/far/*")
    assert outcome.code == 3
    assert (
        "--cell '*/far/*' matches none of the 17 cells of angle; corpora: near_1, walk, edges; "
        "candidates: cpu:int64, opencl:pocl, opencl:nvidia, cuda, spelling:a, "
    ) in outcome.err
    assert Path("out/report.json").exists()


def test_a_candidate_without_a_cell_is_bad_usage(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(angle, "corpora", lambda *, full: few(full=full)[1:])
    outcome = desk("--candidate", "opencl:pocl", "--candidate", "spelling:a")
    assert (outcome.code, outcome.out) == (2, "")
    sentence = "--candidate spelling:a has no cell: wrong spellings run on near-parallel corpora"
    assert outcome.err == f"{sentence} only\n"


def test_a_spelling_is_told_that_has_no_cell_on_the_chosen_corpora(desk: Desk) -> None:
    named = ("--candidate", "opencl:pocl", "--candidate", "spelling:a")
    outcome = desk(*named, "--cell", "*/edges/*")
    assert outcome.code == 0
    assert outcome.err.startswith("--candidate spelling:a has no cell that --cell selects: ")
    assert desk(*named, "--cell", "*/near_1/opencl:pocl").err == ""


def test_the_help_names_every_corpus_and_spelling(desk: Desk) -> None:
    words = " ".join(desk("--help").out.replace("│", " ").split())
    names = [c.name for c in type(angle).corpora(angle, full=False)]
    assert "near_1 to near_5, " in words
    assert [n for n in names if not n.startswith("near_") and f" {n}" not in words] == []
    assert [n for n in names if n.startswith("near_")] == [f"near_{n}" for n in range(1, 6)]
    told = words.partition("seen to differ: ")[2].partition(". Corpora")[0]
    assert [clause.split()[0] for clause in told.split("; ")] == list(angle.wrong)


def test_reports_of_other_commands_stay(desk: Desk) -> None:
    Path("out").mkdir()
    Path("out/survey.md").write_text("surveyed", "utf-8")
    desk(*RIGHT, "--cell", "*/edges/*")
    assert Path("out/survey.md").read_text("utf-8") == "surveyed"


def test_a_required_device_that_is_absent_exits_3(desk: Desk) -> None:
    outcome = desk("--require", "cuda", "--cell", "*/edges/*")
    assert outcome.code == 3
    assert "required backend missing: cuda: no cuda here" in outcome.verdict


def test_a_required_device_counts_where_no_chosen_cell_needs_it(desk: Desk) -> None:
    desk.devices["cuda"] = Inexact("cuda fuses")
    outcome = desk("--require", "cuda", "--cell", "*/edges/cpu:int64")
    assert outcome.code == 3
    assert "required backend missing: cuda: cuda fuses" in outcome.verdict


def test_nothing_but_absent_devices_proves_nothing(desk: Desk) -> None:
    outcome = desk("--candidate", "cuda")
    assert outcome.code == 3
    assert "every cell was skipped" in outcome.out


def test_without_the_compiled_reference_the_program_says_what_to_do(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*, full: bool) -> NoReturn:
        del full
        message = "the compiled reference is missing; run make gate"
        raise Refused(message)

    monkeypatch.setattr(angle, "corpora", missing)
    outcome = desk()
    assert (outcome.code, outcome.err) == (
        4,
        "the compiled reference is missing; run make gate\n",
    )


def test_reports_tell_the_kernel_the_reference_and_the_corpora(desk: Desk) -> None:
    desk(*RIGHT)
    environment = json.loads(Path("out/report.json").read_text("utf-8"))["environment"]
    assert environment["fixtures"]["edges"].startswith("2000 samples, ")
    assert "flags" in environment["feature integer_adm"]
    assert len(environment["kernels"]["angle_flag"]) == 64
    assert environment["candidate opencl:pocl"]["device"] == "device of opencl:pocl"


def test_markdown_and_junit_name_the_operands(desk: Desk) -> None:
    desk.devices["opencl:pocl"] = FakeDevice("c")
    desk(*RIGHT, "--cell", "*/near_1/*")
    sentence = json.loads(Path("out/report.json").read_text("utf-8"))["cells"][1]["reason"]
    assert sentence.startswith("operand ")
    place = sentence.partition(":")[0]
    assert place in Path("out/junit.xml").read_text("utf-8")
    assert place in Path("out/report.md").read_text("utf-8")


def test_the_form_in_integers_can_be_required(desk: Desk) -> None:
    assert desk(*RIGHT, "--require", "cpu:int64", "--cell", "*/pocl").code == 3
    assert desk(*RIGHT, "--require", "cpu:int64", "--cell", "*/edges/opencl:pocl").code == 0


@pytest.mark.parametrize("full", [(), ("--full",)])
@pytest.mark.parametrize("report", ["out/report.json", "out/junit.xml"])
def test_the_red_cells_of_a_report_run_again(
    report: str, full: tuple[str, ...], desk: Desk
) -> None:
    desk.devices["opencl:pocl"] = FakeDevice("b")
    assert desk(*full, *RIGHT).code == 1
    first = desk.run()
    red = [result for result in first.results if result.status is Status.FAIL]
    assert f"{NEAR}/opencl:pocl" in [result.cell.id for result in red]
    again = desk.rerun(report, "--failed")
    assert again.code == 1
    origin = f"{len(red)} of 6 cells (repeated of run {first.id})"
    assert again.verdict.startswith(f"FAIL: {origin}, {len(red)} FAIL, ")
    second = desk.run("out/rerun")
    assert second.rerun_of == first.id
    assert [(r.cell, r.comparison) for r in second.results] == [(r.cell, r.comparison) for r in red]
    (command,) = {r.strip() for r in again.out.splitlines() if " --failed" in r}
    assert command == "parity-gate rerun out/rerun/report.json --failed"


def test_a_dry_rerun_prints_cells_and_runs_nothing(desk: Desk) -> None:
    desk("--full", *RIGHT)
    again = desk.rerun("out", "--cell", "*/edges/*", "--dry-run")
    assert (again.code, again.out.split()) == (0, [n for n in desk.cells() if "/edges/" in n])
    assert again.err == "2 cells of angle --full\n"
    assert not Path("out/rerun").exists()


def test_a_rerun_has_the_candidates_of_its_report(desk: Desk) -> None:
    desk()
    again = desk.rerun("out", "--cell", "*/spelling:*")
    assert again.code == 0
    assert again.verdict.startswith("PASS: 5 of 17 cells (repeated of run ")
    assert desk.run("out/rerun").command == "parity-gate angle --out out/rerun/repeat"


@pytest.mark.parametrize("report", ["out/report.json", "out/junit.xml"])
def test_a_green_cell_whose_required_device_has_gone_is_not_green(report: str, desk: Desk) -> None:
    assert desk(*RIGHT, "--require", "opencl:pocl").code == 0
    del desk.devices["opencl:pocl"]
    again = desk.rerun(report, "--cell", "*/edges/*")
    assert again.code == 3
    assert "required backend missing: opencl:pocl: no opencl:pocl here" in again.verdict


@pytest.mark.parametrize("name", ["report.json", "junit.xml"])
def test_a_corpus_that_has_become_another_is_an_error(name: str, desk: Desk) -> None:
    desk(*RIGHT, "--cell", "*/edges/*")
    told = desk.run().environment["fixtures"]["edges"]
    path = Path("out", name)
    text = path.read_text("utf-8")
    assert text.count(told) == 1
    path.write_text(text.replace(told, "2000 samples, 7 flags"), "utf-8")
    again = desk.rerun(str(path))
    assert again.code == 4
    assert f"edges has {told}, and 2000 samples, 7 flags in the report" in again.out


def test_a_red_cell_whose_device_has_gone_is_not_green(desk: Desk) -> None:
    desk.devices["opencl:pocl"] = FakeDevice("b")
    desk(*RIGHT)
    del desk.devices["opencl:pocl"]
    again = desk.rerun("out", "--failed")
    assert again.code == 3
    assert "required backend missing: opencl:pocl: no opencl:pocl here" in again.verdict


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("full", "yes", ": the corpora of `angle --full` are not the report's here; repeat it"),
        ("full", "No", ": the corpora of `angle` are not the report's here; repeat it with"),
        ("sha256", "0" * 64, ": the corpora of `angle` are not the report's here; repeat it"),
        ("candidates", "cpu:int64", ": the corpora of `angle` are not the report's here; "),
        ("candidates", "opencl:pokl", ": candidate: unknown candidate 'opencl:pokl'; did you"),
    ],
)
def test_what_is_tampered_with_is_refused(name: str, value: str, told: str, desk: Desk) -> None:
    desk(*RIGHT, "--cell", "*/edges/*")
    true = desk.run().environment["matrix"][name]
    for file, before, after in (
        ("report.json", f'"{name}": "{true}"', f'"{name}": "{value}"'),
        ("junit.xml", f'"matrix: {name}" value="{true}"', f'"matrix: {name}" value="{value}"'),
    ):
        path = Path("out", file)
        text = path.read_text("utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, after), "utf-8")
        again = desk.rerun(str(path))
        assert (again.code, again.out) == (2, "")
        assert again.err.startswith(f"{path}{told}")
    assert not Path("out/rerun").exists()


def test_a_rerun_takes_no_option_that_angle_has_not(desk: Desk) -> None:
    desk(*RIGHT, "--cell", "*/edges/*")
    again = desk.rerun("out", "--repeat", "2", "--matrix", "m.yaml")
    told = "--matrix and --repeat: the report is of `angle`, which has no such option\n"
    assert (again.code, again.err) == (2, told)
