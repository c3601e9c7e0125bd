from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import pytest

from gate.model import Cell, Comparison, Deviation, Mismatch, Result, Run, Shard, Status
from reports import json as json_report

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]

TIMES = {"seconds", "reference_seconds", "started"}


def _refuse(constant: str) -> None:
    pytest.fail(f"{constant} is not JSON")


def _document(run: Run) -> Any:  # noqa: ANN401 - whatever JSON holds
    return json.loads(json_report.render(run), parse_constant=_refuse)


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_times(entry) for key, entry in value.items() if key not in TIMES}
    return [_without_times(entry) for entry in value] if isinstance(value, list) else value


def test_document_holds_verdict_and_counts(run: Run) -> None:
    document = _document(run)
    assert document["schema_version"] == 4
    assert document["verdict"] == run.verdict
    assert document["exit_code"] == 1
    assert document["counts"] == {
        "planned": 6,
        "cells": 6,
        "PASS": 1,
        "KNOWN": 1,
        "FAIL": 1,
        "NONDETERMINISTIC": 1,
        "ERROR": 1,
        "SKIP": 1,
        "scores": 336,
        "different": 7,
        "controlled": 0,
        "control_scores": 0,
        "control_different": 0,
        "repeated": 1,
        "references": 1,
        "cached": 0,
    }


def test_cell_holds_every_field(build_run: BuildRun, failed: Result) -> None:
    (cell,) = _document(build_run(failed))["cells"]
    assert cell.keys() >= {field.name for field in fields(Cell)}
    assert cell.keys() >= {field.name for field in fields(Result)} - {"cell"}
    assert cell["id"] == failed.cell.id
    assert cell["options"] == {"adm_enhn_gain_limit": 1.2}
    assert cell["status"] == "FAIL"
    assert cell["comparison"].keys() == {field.name for field in fields(Comparison)}


def test_mismatches_are_exact(build_run: BuildRun, failed: Result) -> None:
    (cell,) = _document(build_run(failed))["cells"]
    mismatches = cell["comparison"]["mismatches"]
    assert [set(mismatch) for mismatch in mismatches] == [
        {field.name for field in fields(Mismatch)}
    ] * 4
    assert [(m["reference"], m["candidate"], m["steps"]) for m in mismatches] == [
        ("0x1.de3b6ep-1", "0x1.de3b6cp-1", -1),
        ("0x0p+0", "-0x0p+0", -1),
        ("0x1p-1", "nan", None),
        ("UNSET", "inf", None),
    ]


def test_known_deviation_holds_its_reason_and_its_mismatches(
    build_run: BuildRun, known: Result
) -> None:
    document = _document(build_run(known))
    (cell,) = document["cells"]
    assert (cell["status"], cell["reason"]) == ("KNOWN", known.reason)
    assert (cell["comparison"]["different"], len(cell["comparison"]["mismatches"])) == (2, 2)
    assert document["exit_code"] == 0


def test_what_is_listed_about_a_cell_is_kept(build_run: BuildRun, known: Result) -> None:
    entry = Deviation(("adm*",), known.reason, "kernels", "2031-12-31", "d.yaml:3")
    listed = replace(known, cell=replace(known.cell, deviation=entry))
    cells = _document(build_run(known, listed))["cells"]
    assert [cell["deviation"] for cell in cells] == [
        None,
        {
            "outputs": ["adm*"],
            "reason": known.reason,
            "owner": "kernels",
            "expires": "2031-12-31",
            "place": "d.yaml:3",
            "not_finite": False,
        },
    ]


def test_operands_are_kept_beside_the_count_of_all(build_run: BuildRun, corpus: Result) -> None:
    document = _document(build_run(corpus))
    comparison = document["cells"][0]["comparison"]
    assert comparison["different"] == document["counts"]["different"] == 23_000
    assert [m["operands"] for m in comparison["mismatches"]] == [
        [-11037, -15188, -12400, -16452],
        [1, -2, 3, 2**63 - 1],
    ]
    assert [m["frame"] for m in comparison["mismatches"]] == [23910, 40000]


def test_references_are_exact(run: Run) -> None:
    (reference,) = _document(run)["references"]
    assert reference["names"] == ["adm2", "aim", "adm3"]
    assert reference["frames"] == [
        ["0x1.999999999999ap-4", "-0x0p+0", "UNSET"],
        ["nan", "inf", "-inf"],
    ]


def test_unset_scores_are_named(run: Run) -> None:
    assert _document(run)["unset"] == [
        {
            "feature": "float_adm",
            "options_name": "egl_1.2",
            "scores": ["adm3"],
            "frames": 1,
            "of": 2,
            "arithmetics": ["rcpss-double"],
            "fixtures": ["bbb_576x324_420p8"],
        }
    ]


def test_conclusions_references_and_notes_are_kept(
    build_run: BuildRun, build_cell: BuildCell
) -> None:
    result = Result(build_cell(conclusion="vmafx"), Status.PASS)
    document = _document(build_run(result, notes=("a table is replayed",)))
    (cell,), (reference,) = document["cells"], document["references"]
    assert (cell["dialect"], cell["conclusion"]) == ("rcpss-double", "vmafx")
    assert cell["id"] == "float_adm/rcpss-double+vmafx/egl_1.2/bbb_576x324_420p8/cuda"
    assert (reference["conclusion"], reference["reference"]) == ("netflix", "cpu")
    assert document["notes"] == ["a table is replayed"]
    assert document["verdict"].endswith(", a table is replayed")


def test_document_holds_every_field_of_a_run(build_run: BuildRun, failed: Result) -> None:
    shard = Shard(2, 3, (4,), selected=9)
    document = _document(build_run(failed, shard=shard, rerun_of="abc", required=("cuda",)))
    derived = {"schema_version", "verdict", "exit_code", "counts", "unset"}
    names = {field.name for field in fields(Run)} - {"results"} | {"cells"}
    assert document.keys() == names | derived
    assert document["id"] == "0123456789abcdef"
    assert document["command"] == "parity-gate run matrices/pr.yaml"
    assert document["shard"] == {"index": 2, "count": 3, "positions": [4], "selected": 9}
    assert (document["rerun_of"], document["required"]) == ("abc", ["cuda"])
    assert _document(build_run(failed))["shard"] is None


def test_each_cell_and_each_reference_is_one_line(run: Run) -> None:
    lines = json_report.render(run).splitlines()
    for result in run.results:
        (line,) = (line for line in lines if line.startswith(f'{{"id": "{result.cell.id}"'))
        assert json.loads(line.removesuffix(","))["status"] == result.status.value
    assert sum(line.startswith('{"feature": ') and '"frames": [[' in line for line in lines) == 1


def test_cell_without_comparison_holds_null(run: Run) -> None:
    cells = _document(run)["cells"]
    assert [cell["comparison"] is None for cell in cells] == [*[False] * 4, *[True] * 2]


def test_hostile_text_is_kept_exactly(build_run: BuildRun, broken: Result) -> None:
    document = json_report.render(build_run(broken))
    assert document.isascii()
    assert json.loads(document)["cells"][0]["detail"] == broken.detail


def test_runs_that_differ_in_times_differ_nowhere_else(run: Run) -> None:
    later = replace(
        run,
        started="2031-01-01T00:00:00+00:00",
        seconds=99.0,
        results=tuple(replace(r, seconds=9.0, reference_seconds=8.0) for r in run.results),
    )
    assert _document(later) != _document(run)
    assert _without_times(_document(later)) == _without_times(_document(run))


def test_same_run_gives_the_same_bytes(run: Run) -> None:
    assert json_report.render(run) == json_report.render(run)
    assert json_report.render(run).endswith("}\n")


def test_read_only_mappings_are_written(build_run: BuildRun, build_cell: BuildCell) -> None:
    result = Result(build_cell(options=MappingProxyType({"debug": True})), Status.PASS)
    frozen = MappingProxyType({"host": MappingProxyType({"cores": "2"})})
    document = _document(build_run(result, environment=frozen))
    assert document["cells"][0]["options"] == {"debug": True}
    assert document["environment"] == {"host": {"cores": "2"}}


def test_missing_backend_and_interruption_are_shown(build_run: BuildRun) -> None:
    document = _document(build_run(missing=("cuda: no driver",), interrupted=True))
    assert document["missing"] == ["cuda: no driver"]
    assert document["interrupted"] is True
    assert document["exit_code"] == 130
    assert document["cells"] == []
