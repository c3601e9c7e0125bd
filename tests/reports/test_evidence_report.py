"""What reports say of the runtimes behind candidates, and which of it they must say."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console

from backends import registry
from backends.evidence import Proof
from gate import record
from gate.model import Cell, Comparison, Result, Run, Status
from reports import console, evidence, junit, markdown
from reports import json as json_report

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]

GPU = Proof("NVIDIA H200, 0a1b", frames=12, launches=33, nanoseconds=1_500_000_000)
PROGRAM = Proof("3.0.0, sha256 ab", frames=12, launches=0, nanoseconds=0)
READER = Proof("", frames=12, launches=0, nanoseconds=0)
TOLD = (
    "cuda ran 34 kernels in 2 cells, 1.75 s, on NVIDIA H200, 0a1b; "
    "cuda ran 1 kernel in 1 cell, 0.25 s, on another; "
    "libvmaf ran in 1 cell: 3.0.0, sha256 ab; cpu read every frame of 1 cell"
)


@pytest.fixture
def proved(build_run: BuildRun, build_cell: BuildCell) -> Run:
    few = replace(GPU, launches=1, nanoseconds=250_000_000)
    kinds = {
        "cuda": (GPU, few, replace(few, runtime="another"), None),
        "libvmaf": (PROGRAM,),
        "cpu": (READER,),
    }
    results = [
        Result(build_cell(f"f{number}", candidate), Status.PASS, proof=proof)
        for candidate, proofs in kinds.items()
        for number, proof in enumerate(proofs)
    ]
    return build_run(*results)


def test_what_ran_is_one_sentence_of_every_report(proved: Run) -> None:
    assert evidence.facts(proved) == {"evidence": TOLD}
    assert f"- evidence <code>{TOLD}</code>" in markdown.render(proved)
    assert f'<property name="evidence" value="{TOLD}" />' in junit.render(proved)
    target = io.StringIO()
    Console(file=target, width=500).print(console.table(proved))
    assert f"Evidence: {TOLD}" in target.getvalue()


def test_where_nothing_was_compared_nothing_is_said_of_runtimes(
    build_run: BuildRun, failed: Result, skipped: Result
) -> None:
    assert evidence.facts(build_run(failed, skipped)) == {}


def test_json_has_what_is_kept_of_each_cell(proved: Run) -> None:
    cells = json.loads(json_report.render(proved))["cells"]
    assert [cell["proof"] for cell in cells] == [
        None if result.proof is None else asdict(result.proof) for result in proved.results
    ]


def read(path: Path, run: Run) -> Run:
    file = path / record.NAME
    file.write_text(json_report.render(run), "utf-8")
    return record.load(file)


EQUAL = Comparison(84, 0, 0, 0, ())


@pytest.mark.parametrize(
    ("candidate", "proof", "believed"),
    [
        ("cuda", GPU, True),
        ("cuda", None, False),
        ("cuda", replace(GPU, launches=0), False),
        ("cuda", replace(GPU, nanoseconds=0), False),
        ("cuda", replace(GPU, frames=11), False),
        ("cuda", replace(GPU, frames=13), False),
        ("cuda", replace(GPU, runtime=""), False),
        ("opencl:pocl", PROGRAM, False),
        ("libvmaf", PROGRAM, True),
        ("libvmaf", READER, False),
        ("libvmaf", None, False),
        ("cpu", READER, True),
        ("cpu", None, False),
    ],
)
def test_a_cell_that_passed_without_its_evidence_is_refused(
    candidate: str,
    proof: Proof | None,
    *,
    believed: bool,
    build_run: BuildRun,
    build_cell: BuildCell,
    tmp_path: Path,
) -> None:
    cell = build_cell(candidate=candidate)
    run = build_run(Result(cell, Status.PASS, comparison=EQUAL, proof=proof))
    if believed:
        assert read(tmp_path, run) == run
    else:
        with pytest.raises(record.Unreadable, match="is PASS without the evidence that it needs"):
            read(tmp_path, run)


def test_a_known_deviation_needs_evidence_too(
    build_run: BuildRun, known: Result, tmp_path: Path
) -> None:
    assert repr(read(tmp_path, build_run(known)).results) == repr((known,))
    with pytest.raises(record.Unreadable, match="is KNOWN without the evidence"):
        read(tmp_path, build_run(replace(known, proof=None)))


def test_a_red_cell_is_read_without_evidence(
    build_run: BuildRun, failed: Result, moved: Result, broken: Result, tmp_path: Path
) -> None:
    run = read(tmp_path, build_run(failed, moved, broken))
    assert [result.proof for result in run.results] == [None] * 3


def test_a_corpus_of_operands_needs_no_evidence(
    build_run: BuildRun, build_cell: BuildCell, tmp_path: Path
) -> None:
    (predicate,) = registry.predicates()
    for feature, believed in ((predicate, True), ("unheard of", False)):
        cell = build_cell("all", feature=feature, outputs=("flag",), frames=84)
        run = build_run(Result(cell, Status.PASS, comparison=EQUAL))
        if believed:
            assert read(tmp_path, run) == run
        else:
            with pytest.raises(record.Unreadable, match="without the evidence"):
                read(tmp_path, run)
