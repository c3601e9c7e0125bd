"""`--cache` and `--repeat`: what a run, a rerun and a resumed run do with them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import quick_gate
from forging import Forger
from planting import Planted
from program import Gate, Outcome

from backends.base import Arithmetic, Backend, Clip, Feature, Options, Scores
from backends.cpu import Cpu
from gate import record, workers
from gate.model import Run, Stability, Status

CELL = "float_adm/rcpss-single/default/noise_17x17_8/opencl:pocl"
CELLS = "*/noise_17x17_8/opencl:pocl"
RUN = ("run", "matrices/smoke.yaml", "--cell", CELLS)

pytestmark = pytest.mark.usefixtures("matrices")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be at a desk, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CI")


class Interrupted(Forger):
    """Somebody presses Ctrl-C while it computes the 13th cell."""

    cells = 0

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        self.cells += 1
        if self.cells > 12:
            raise KeyboardInterrupt
        return super().compute(feature, arithmetic, options, clip)


def load(out: str = "out") -> Run:
    return record.load(Path(out) / record.NAME)


def entries() -> list[Path]:
    return [path for path in Path("cache").rglob("*") if path.is_file()]


def told(outcome: Outcome) -> str:
    """Return what a run says of the cache, without the folder."""
    (line,) = (line for line in outcome.out.splitlines() if line.startswith("reference cache "))
    return line.partition("cache/parity-gate/reference: ")[2]


def computed(run: Run) -> set[bool]:
    """Return whether references were taken from an earlier run."""
    return {scores.cached for scores in run.references}


def test_at_a_desk_a_second_run_takes_its_references_from_the_first(gate: Gate) -> None:
    assert told(gate(*RUN)) == "0 results loaded, 17 stored"
    first = load()
    again = gate(*RUN)
    assert (again.code, told(again)) == (0, "17 results loaded, 0 stored")
    assert again.verdict.endswith(", 17 of 17 reference results from the cache")
    assert (computed(first), computed(load())) == ({False}, {True})
    fresh = tuple(replace(scores, cached=False) for scores in load().references)
    assert repr(fresh) == repr(first.references)
    assert len(entries()) == 17


def test_the_command_that_repeats_a_cell_needs_no_flag(gate: Gate) -> None:
    gate(*RUN, "--cache")
    assert "cache" not in load().command


def test_a_ci_keeps_nothing_unless_it_is_told_to(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    assert "reference cache" not in gate(*RUN).out
    assert not Path("cache").exists()
    assert told(gate(*RUN, "--cache")) == "0 results loaded, 17 stored"


def test_no_cache_neither_reads_nor_writes(gate: Gate) -> None:
    gate(*RUN, "--cell", CELL)
    before = {path: path.stat() for path in entries()}
    outcome = gate(*RUN, "--no-cache")
    assert "reference cache" not in outcome.out
    assert "from the cache" not in outcome.verdict
    assert computed(load()) == {False}
    assert {path: path.stat() for path in entries()}.keys() == before.keys()


def test_a_damaged_result_is_computed_again_and_told(gate: Gate) -> None:
    gate(*RUN)
    damaged = entries()[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    outcome = gate(*RUN)
    assert outcome.code == 0
    assert told(outcome) == "16 results loaded, 1 stored, 1 damaged and computed again"
    assert computed(load()) == {True, False}
    assert told(gate(*RUN)) == "17 results loaded, 0 stored"


def test_another_table_has_other_results(gate: Gate) -> None:
    gate(*RUN)
    replayed = gate(*RUN, "--rcp-table", "amd-zen-4")
    assert told(replayed) == "0 results loaded, 17 stored"
    assert told(gate(*RUN, "--rcp-table", "amd-zen-4")) == "17 results loaded, 0 stored"


def test_a_rerun_takes_what_the_run_has_kept(gate: Gate) -> None:
    gate(*RUN)
    assert told(gate("rerun", "out")) == "17 results loaded, 0 stored"
    assert "reference cache" not in gate("rerun", "out", "--no-cache").out


def test_a_resumed_run_takes_what_others_have_kept(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_interrupted(name: str) -> Backend:
        return Interrupted(name) if name != "cpu" else Cpu()

    with monkeypatch.context() as patch:
        patch.setattr(workers, "open_worker", open_interrupted)
        assert gate(*RUN).code == 130
    gate(*RUN, "--out", "other")
    unfinished = load().unfinished
    assert 0 < unfinished < 17
    outcome = gate("run", "--resume", "out")
    assert outcome.code == 0
    assert told(outcome) == f"{unfinished} results loaded, 0 stored"


def test_a_cache_that_cannot_be_written_breaks_no_run(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("matrices/smoke.yaml").absolute()))
    outcome = gate(*RUN)
    assert outcome.code == 0
    assert "0 results loaded, 0 stored; results are not kept: Not a directory" in outcome.out
    assert computed(load()) == {False}


def test_a_user_without_a_home_has_no_cache(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        message = "Could not determine home directory."
        raise RuntimeError(message)

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    outcome = gate(*RUN)
    assert outcome.code == 0
    assert outcome.err.startswith("no reference cache: Could not determine home directory.; set ")
    assert "  folder: none: Could not determine home directory.\n" in gate("doctor").out


def test_doctor_says_where_the_cache_is_and_how_large(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = f"reference cache\n  folder: {tmp_path}/cache/parity-gate/reference\n  holds: "
    assert f"{folder}0 results, 0.0 MiB of at most 256\n  used by default: yes\n" in (
        gate("doctor").out
    )
    gate(*RUN)
    monkeypatch.setenv("CI", "true")
    assert f"{folder}17 results, 0.0 MiB of at most 256\n  used by default: no, CI is set\n" in (
        gate("doctor").out
    )


@pytest.fixture
def computations(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of backends, one for each time that a candidate computed."""
    del gate
    names: list[str] = []

    def open_noting(name: str) -> Backend:
        def note(scores: Scores) -> Scores:
            names.append(name)
            return scores

        backend = quick_gate.open_quickly(name)
        return Planted(backend, "noted", scores=note) if name != "cpu" else backend

    monkeypatch.setattr(workers, "open_worker", open_noting)
    return names


@pytest.mark.parametrize("times", [1, 2, 3])
def test_each_candidate_is_computed_so_often(
    times: int, gate: Gate, computations: list[str]
) -> None:
    outcome = gate("run", "matrices/smoke.yaml", "--cell", CELL, "--repeat", str(times))
    assert outcome.code == 0
    assert computations == ["opencl:pocl"] * times
    assert load().repeat == times
    assert ("--repeat" in load().command) == (times > 1)
    assert load().command.count(f"--repeat {times}") == (times > 1)


def test_without_the_option_it_is_once(gate: Gate, computations: list[str]) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", CELL)
    assert (computations, load().repeat) == (["opencl:pocl"], 1)


@pytest.mark.parametrize(("times", "code"), [(0, 2), (1, 3), (10_000, 3), (10_001, 2)])
def test_a_number_out_of_range_is_refused(times: int, code: int, gate: Gate) -> None:
    outcome = gate("run", "matrices/smoke.yaml", "--cell", "none", "--repeat", str(times))
    assert outcome.code == code


def test_a_candidate_that_moves_is_red(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [0]

    def sometimes(scores: Scores) -> Scores:
        calls[0] += 1
        scores.values.view("u8")[0, 0] ^= calls[0] == 3
        return scores

    def open_planted(name: str) -> Backend:
        backend = quick_gate.open_quickly(name)
        return Planted(backend, "rare bit", scores=sometimes) if name != "cpu" else backend

    monkeypatch.setattr(workers, "open_worker", open_planted)
    outcome = gate("run", "matrices/smoke.yaml", "--cell", CELL, "--repeat", "4")
    assert outcome.code == 1
    assert [result.status for result in load().results] == [Status.NONDETERMINISTIC]
    assert f"run matrices/smoke.yaml --repeat 4 --out out/repeat --cell {CELL}" in outcome.out


def test_resume_repeats_as_often_as_it_began(gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", CELL, "--repeat", "2")
    outcome = gate("run", "--resume", "out", "--repeat", "2")
    assert outcome.code == 2
    assert "--resume goes on with what the run was started with" in outcome.err
    assert gate("run", "--resume", "out").code == 0
    assert load().repeat == 2


@pytest.mark.parametrize(
    ("report", "option", "times"),
    [
        ("out/report.json", (), 3),
        ("out/junit.xml", (), 3),
        ("out/report.json", ("--repeat", "2"), 2),
        ("out/junit.xml", ("--repeat", "2"), 2),
    ],
)
def test_a_rerun_repeats_as_its_report_says_unless_told_otherwise(
    report: str, option: tuple[str, ...], times: int, gate: Gate, computations: list[str]
) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", CELL, "--repeat", "3")
    computations.clear()
    assert gate("rerun", report, *option).code == 0
    assert computations == ["opencl:pocl"] * times
    assert load("out/rerun").repeat == times
    assert load("out/rerun").command.count(f"--repeat {times}") == (times > 1)


def tell_of_repeats(times: int, stability: Stability | None) -> None:
    """Let the report of one cell say how often all were computed, and how often this one was."""
    document = json.loads(Path("out/report.json").read_text("utf-8"))
    document["repeat"] = times
    document["cells"][0]["stability"] = asdict(stability) if stability else None
    Path("out/report.json").write_text(json.dumps(document), "utf-8")
    Path("out/journal.jsonl").write_bytes(b"")


def test_a_report_that_tells_of_too_many_repeats_is_refused(gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", CELL)
    tell_of_repeats(10_001, Stability(10_001, 1, 0))
    for arguments in (("rerun", "out"), ("run", "--resume", "out")):
        outcome = gate(*arguments)
        assert outcome.code == 2
        assert "the report tells of --repeat 10001; allowed: 1 to 10000" in outcome.err
    assert gate("rerun", "out", "--repeat", "1").code == 0


@pytest.mark.parametrize("times", [0, -1])
def test_a_report_of_a_run_that_computed_nothing_is_none(times: int, gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", CELL)
    tell_of_repeats(times, None)
    for arguments in (("report", "out"), ("rerun", "out"), ("run", "--resume", "out")):
        outcome = gate(*arguments)
        assert outcome.code == 2
        assert "report.json: repeat: Input should be greater than 0; it is no" in outcome.err


@pytest.mark.parametrize(
    ("times", "stability", "told"),
    [
        (1, Stability(2, 1, 0), "computed 2 times, in a run with --repeat 1;"),
        (3, Stability(2, 1, 0), "computed 2 times, in a run with --repeat 3;"),
        (3, Stability(4, 1, 0), "computed 4 times, in a run with --repeat 3;"),
        (3, None, "computed 1 time, in a run with --repeat 3;"),
        (3, Stability(3, 1, 0), ""),
    ],
)
def test_a_cell_is_computed_as_often_as_its_run_says(
    times: int, stability: Stability | None, told: str, gate: Gate
) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", CELL)
    tell_of_repeats(times, stability)
    outcome = gate("report", "out")
    assert (outcome.code, told in outcome.err) == (2 if told else 0, True)


def test_a_journal_tells_of_as_many_repeats_as_its_report(gate: Gate) -> None:
    gate("run", "matrices/smoke.yaml", "--cell", CELL, "--repeat", "2")
    path = Path("out/journal.jsonl")
    path.write_text(path.read_text("utf-8").replace('"runs": 2', '"runs": 3'), "utf-8")
    outcome = gate("report", "out")
    assert outcome.code == 2
    assert "computed 3 times, in a run with --repeat 2; it is no report" in outcome.err
