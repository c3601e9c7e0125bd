"""Shards that become one run again, and cells of a report that run again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import quick_gate
from planting import Planted
from program import Gate

from backends.base import Backend, Scores, Unavailable
from gate import record, workers
from gate.model import Run, Status

POCL = "*/opencl:pocl"
RED = "float_adm/ieee-single/default/noise_17x17_8/opencl:pocl"

pytestmark = pytest.mark.usefixtures("matrices")


@pytest.fixture
def _last_bit(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault in every score of 17x17 pictures at their first output."""
    del gate

    def last_bit(scores: Scores) -> Scores:
        scores.values.view("u8")[0, 0] ^= 1
        return scores

    def open_planted(name: str) -> Backend:
        backend = quick_gate.open_quickly(name)
        return Planted(backend, "last bit", scores=last_bit) if name != "cpu" else backend

    monkeypatch.setattr(workers, "open_worker", open_planted)


def load(out: str) -> Run:
    return record.load(Path(out) / record.NAME)


def timeless(run: Run) -> Run:
    results = tuple(replace(r, seconds=0, reference_seconds=0) for r in run.results)
    return replace(run, id="", started="", seconds=0, command="", results=results)


def shard(gate: Gate, index: int, *more: str) -> str:
    arguments = ("run", "matrices/smoke.yaml", "--cell", POCL, *more)
    assert gate(*arguments, "--shard", f"{index}/3", "--out", f"out/{index}").code == 0
    return f"out/{index}"


def test_three_shards_merged_are_the_unsharded_run(gate: Gate) -> None:
    shards = [shard(gate, index) for index in (3, 1, 2)]
    parts = [load(folder) for folder in shards]
    assert all(part.results for part in parts)
    merged = gate("merge", *shards, "--out", "out/all")
    whole = gate("run", "matrices/smoke.yaml", "--cell", POCL, "--out", "out/whole")
    assert (merged.code, merged.verdict) == (0, whole.verdict)
    assert timeless(load("out/all")) == timeless(load("out/whole"))
    assert load("out/all").seconds == sum(part.seconds for part in sorted(parts, key=_index))


def _index(run: Run) -> int:
    assert run.shard is not None
    return run.shard.index


def test_a_shard_says_so_in_its_verdict(gate: Gate) -> None:
    folder = shard(gate, 2)
    assert " of 351 cells (shard 2 of 3), " in load(folder).verdict


@pytest.mark.parametrize(
    ("folders", "sentence"),
    [
        ((1, 3), "shard 2/3 is missing; name its report too"),
        ((1, 2, 3, 3), "shard 3/3 is in out/3 and out/3; name one of them"),
        ((1, 2, 4), "out/4: "),
    ],
)
def test_what_are_not_the_shards_of_one_run_is_refused(
    folders: tuple[int, ...], sentence: str, gate: Gate
) -> None:
    for index in (1, 2, 3):
        shard(gate, index)
    cells = ("--cell", "*/ieee-single/*/opencl:pocl")
    gate("run", "matrices/smoke.yaml", *cells, "--shard", "3/3", "--out", "out/4")
    ended = gate("merge", *(f"out/{index}" for index in folders), "--out", "out/all")
    assert (ended.code, ended.out) == (2, "")
    assert sentence in ended.err
    assert not list(Path("out/all").iterdir())


def test_a_merged_run_does_not_overwrite_a_shard(gate: Gate) -> None:
    folder = shard(gate, 1)
    ended = gate("merge", folder, "--out", folder)
    assert ended.code == 2
    assert "holds a shard's own reports" in ended.err
    assert load(folder).shard is not None


def test_what_is_no_report_is_refused(gate: Gate) -> None:
    assert "out/1/report.json: No such file or directory" in gate("merge", "out/1").err
    Path("report.json").write_text("[]", "utf-8")
    for arguments in (("merge", "."), ("report", "."), ("rerun", "."), ("run", "--resume", ".")):
        ended = gate(*arguments)
        assert (ended.code, ended.out) == (2, "")
        assert "report.json: it is no report of schema_version 4" in ended.err


@pytest.mark.parametrize("name", ["PARITY_GATE_SHARD", "CI_NODE_TOTAL"])
def test_a_ci_says_which_shard_runs(name: str, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "PARITY_GATE_SHARD":
        monkeypatch.setenv(name, "2/3")
    else:
        monkeypatch.setenv("CI_NODE_INDEX", "2")
        monkeypatch.setenv(name, "3")
    assert gate("run", "matrices/smoke.yaml", "--cell", POCL).code == 0
    found = load("out").shard
    assert found is not None
    assert (found.index, found.count) == (2, 3)


def test_a_wrong_shard_exits_2(gate: Gate) -> None:
    ended = gate("run", "matrices/smoke.yaml", "--shard", "3/2")
    assert ended.code == 2
    assert "--shard: shard '3/2' does not exist; allowed: 1/2 to 2/2" in ended.err


@pytest.mark.usefixtures("_last_bit")
@pytest.mark.parametrize("report", ["out", "out/report.json", "out/junit.xml"])
def test_the_red_cells_of_a_report_run_again(report: str, gate: Gate) -> None:
    globs = ("--cell", RED, "--cell", "*/cuda")
    assert gate("run", "matrices/smoke.yaml", *globs).code == 1
    ended = gate("rerun", report, "--failed")
    assert ended.code == 1
    origin = f"(repeated of run {load('out').id})"
    assert ended.verdict.startswith(f"FAIL: 1 of 351 cells {origin}, 1 FAIL, ")
    run = load("out/rerun")
    assert [(r.cell.id, r.status) for r in run.results] == [(RED, Status.FAIL)]
    (before,) = (r for r in load("out").results if r.cell.id == RED)
    assert run.results[0].comparison == before.comparison


def test_a_dry_run_prints_the_cells_and_runs_nothing(gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", POCL)
    ended = gate("rerun", "out", "--cell", RED, "--dry-run")
    assert (ended.code, ended.out) == (0, f"{RED}\n")
    assert ended.err == "1 cell of matrices/smoke.yaml\n"
    assert not Path("out/rerun").exists()


def test_a_matrix_that_has_changed_is_told(gate: Gate) -> None:
    changed = "the matrix is not as it was in run "
    text = Path("matrices/smoke.yaml").read_text("utf-8")
    matrix = Path("matrices/m.yaml")  # beside the files of its fixtures
    matrix.write_text(text, "utf-8")
    assert gate("run", str(matrix), "--cell", RED).code == 0
    assert changed not in gate("rerun", "out", "--matrix", str(matrix)).verdict
    matrix.write_text(f"{text}\n# changed\n", "utf-8")
    assert f"{changed}{load('out').id}" in gate("rerun", "out", "--matrix", str(matrix)).verdict


def test_nothing_red_exits_3(gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", RED)
    ended = gate("rerun", "out", "--failed")
    assert (ended.code, ended.out) == (3, "")
    assert "none of the report's 1 cell is red" in ended.err


def test_a_matrix_that_is_not_here_is_asked_for(gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", RED)
    Path("matrices/smoke.yaml").rename("other.yml")
    ended = gate("rerun", "out")
    assert (ended.code, ended.out) == (2, "")
    assert "is none of *.yaml and matrices/*.yaml here; name it with --matrix" in ended.err


@pytest.mark.usefixtures("_last_bit")
def test_a_red_cell_whose_candidate_has_gone_is_not_green(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gate("run", "matrices/smoke.yaml", "--cell", RED).code == 1

    def open_reference(name: str) -> Backend:
        if name == "cpu":
            return quick_gate.open_quickly(name)
        message = f"{name} has gone"
        raise Unavailable(message)

    monkeypatch.setattr(workers, "open_worker", open_reference)
    ended = gate("rerun", "out", "--failed")
    assert ended.code == 3
    assert "required backend missing: opencl:pocl: opencl:pocl has gone" in ended.verdict


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"comparison": None}, "PASS"),
        ({"status": "KNOWN"}, "KNOWN"),
        ({"status": "SKIP"}, "SKIP"),
        ({"different": 3}, "PASS"),
        ({"scores": 0}, "PASS"),
        ({"scores": 6}, "PASS"),
    ],
)
def test_a_result_that_contradicts_itself_is_refused(
    wrong: dict[str, object], status: str, gate: Gate
) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", RED)
    document = json.loads(Path("out/report.json").read_text("utf-8"))
    (cell,) = document["cells"]
    cell |= {name: value for name, value in wrong.items() if name in cell}
    if cell["comparison"]:
        cell["comparison"] |= {name: v for name, v in wrong.items() if name in cell["comparison"]}
    Path("out/report.json").write_text(json.dumps(document), "utf-8")
    Path("out/journal.jsonl").unlink()
    ended = gate("report", "out")
    assert ended.code == 2
    assert f"cell {RED!r} is {status}, which its comparison denies" in ended.err


def test_a_refused_merge_leaves_no_old_reports(gate: Gate) -> None:
    shards = [shard(gate, index) for index in (1, 2, 3)]
    assert gate("merge", *shards, "--out", "out/all").code == 0
    assert gate("merge", *shards[:2], "--out", "out/all").code == 2
    assert list(Path("out/all").iterdir()) == []


@pytest.mark.parametrize("report", ["out", "out/junit.xml"])
def test_a_rerun_replays_the_same_table(report: str, gate: Gate) -> None:
    cell = RED.replace("ieee", "rcpss")
    gate("run", "matrices/smoke.yaml", "--cell", cell, "--rcp-table", "amd-zen-4")
    assert gate("rerun", report).code == 0
    first, second = load("out"), load("out/rerun")
    assert second.rcp_table == "amd-zen-4"
    assert second.references == first.references
    assert "amd-zen-4" in " ".join(second.notes)
    for path in (Path("out/report.json"), Path("out/junit.xml")):
        text = path.read_text("utf-8").replace('"amd-zen-4"', '"/etc/passwd"')
        path.write_text(text, "utf-8")
    ended = gate("rerun", report)
    assert ended.code == 2
    assert "the run replayed the table '/etc/passwd'; name its file with --rcp-table" in ended.err


def test_resume_takes_nothing_else(gate: Gate) -> None:
    ended = gate("run", "matrices/smoke.yaml", "--resume", "out")
    assert ended.code == 2
    assert "--resume goes on with what the run was started with" in ended.err
    assert gate("run").code == 2


def test_a_score_too_large_is_refused(gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", RED)
    report = json.loads(Path("out/report.json").read_text("utf-8"))
    report["references"][0]["frames"][0][0] = "0x1p+99999"
    Path("out/report.json").write_text(json.dumps(report), "utf-8")
    ended = gate("rerun", "out")
    assert ended.code == 2
    assert "OverflowError" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_the_report_of_a_tampered_cell_is_refused(gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", RED)
    document = json.loads(Path("out/report.json").read_text("utf-8"))
    document["cells"][0]["id"] = "else"
    Path("out/report.json").write_text(json.dumps(document), "utf-8")
    ended = gate("rerun", "out")
    assert ended.code == 2
    assert "cell 'else' says of itself that it is" in ended.err


@pytest.mark.parametrize(
    "command", [["rerun", "out"], ["report", "out"], ["merge", "out", "--out=m"]]
)
def test_a_report_with_a_number_too_large_is_refused(command: list[str], gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", RED)
    report = Path("out/report.json").read_text("utf-8")
    large = report.replace('"launches": ', f'"launches": 1{"0" * 400}')
    assert large != report
    Path("out/report.json").write_text(large, "utf-8")
    ended = gate(*command)
    assert ended.code == 2
    assert "it is no JSON (a number has 40" in ended.err
