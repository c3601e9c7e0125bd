"""The schema of report.json: true of whatever is written, and false of what is not."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from report_schema import faults, require_valid

from backends.evidence import Proof
from gate import record
from gate.model import (
    Cell,
    Comparison,
    Control,
    Deviation,
    Mismatch,
    ReferenceScores,
    Result,
    Run,
    Shard,
    Stability,
    Status,
    exact,
)
from reports import json as json_report
from reports.schema import schema

BuildRun = Callable[..., Run]
Document = dict[str, Any]

COUNTS, SIZES = st.integers(0, 2**64), st.integers(1, 9)
SECONDS = st.floats(0, allow_nan=False, allow_infinity=False)
FACTS = st.dictionaries(st.text(), st.text(), max_size=3)
CELLS = st.builds(
    Cell,
    options=st.dictionaries(st.text(), st.booleans() | st.integers() | SECONDS, max_size=3),
    outputs=st.lists(st.text(), min_size=1, max_size=3).map(tuple),
    frames=SIZES,
    timeout=SECONDS,
)
SCORES = st.none() | st.floats()
MISMATCHES = st.builds(Mismatch, reference=SCORES, candidate=SCORES)
ROW = st.tuples(SCORES, SCORES)
ROWS = st.lists(ROW, min_size=1, max_size=3).map(tuple)
REFERENCES = st.builds(ReferenceScores, names=st.tuples(st.text(), st.text()), frames=ROWS)


@st.composite
def results(draw: st.DrawFn, repeat: int) -> Result:
    """Draw what may become of a cell whose candidate is computed so often."""
    status, cell = draw(st.sampled_from(Status)), draw(CELLS)
    bare = Result(cell, status, draw(st.text()), draw(st.text()))
    bare = replace(bare, seconds=draw(SECONDS), reference_seconds=draw(SECONDS))
    if status in (Status.ERROR, Status.SKIP):
        return bare
    differs = status is Status.KNOWN or (status is not Status.PASS and draw(st.booleans()))
    found = draw(st.lists(MISMATCHES, min_size=1, max_size=3)) if differs else []
    moved = COUNTS.filter(bool) if status is Status.NONDETERMINISTIC else st.just(0)
    controls = st.lists(st.builds(Control, different=moved), min_size=1, max_size=3)
    return replace(
        bare,
        comparison=Comparison(cell.scores, draw(COUNTS), draw(COUNTS), len(found), tuple(found)),
        controls=tuple(draw(controls)),
        stability=Stability(repeat, 1, 0) if repeat > 1 else None,
        proof=Proof("device", cell.frames, 1, 1),
    )


RUNS = SIZES.flatmap(
    lambda repeat: st.builds(
        Run,
        results=st.lists(results(repeat), max_size=4).map(tuple),
        references=st.lists(REFERENCES, max_size=2).map(tuple),
        environment=st.dictionaries(st.text(), FACTS, max_size=3),
        seconds=SECONDS,
        planned=COUNTS,
        shard=st.none() | st.builds(Shard),
        repeat=st.just(repeat),
    )
)


# Shrinking such a run takes minutes, and what is refused has its place in the message.
@settings(max_examples=60, deadline=None, phases=set(Phase) - {Phase.shrink})
@given(run=RUNS)
def test_what_is_written_is_valid_and_reads_back(run: Run) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, record.NAME)
        path.write_text(json_report.render(run), "utf-8")
        require_valid(path)
        assert repr(record.load(path)) == repr(run)


@pytest.mark.parametrize("frames", [(), ((0.5, 0.5),), ((0.5,) * 3, (0.5,) * 2), ((0.5,) * 4,)])
def test_reference_scores_that_are_not_one_a_name_are_refused(
    frames: tuple[tuple[float, ...], ...], run: Run, tmp_path: Path
) -> None:
    document = json.loads(json_report.render(run))
    document["references"][0]["frames"] = [list(map(exact, frame)) for frame in frames]
    path = tmp_path / record.NAME
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(record.Unreadable, match="/cpu are not one a name in each frame; it is no"):
        record.load(path)


def test_the_schema_is_one_of_draft_2020_12() -> None:
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema())


@pytest.fixture
def document(run: Run, moved: Result, known: Result) -> Document:
    """Return a report that has all that a report may have."""
    listed = replace(known.cell, deviation=Deviation(("a*",), "why", "who", "2031-12-31", "d:3"))
    results = (*run.results, moved, replace(known, cell=listed))
    whole = replace(run, results=results, shard=Shard(1, 2, (0, 1), 9), repeat=30)
    found: Document = json.loads(json_report.render(whole))
    assert faults(found) == []
    return found


def objects(value: object, name: str = "report") -> Iterator[tuple[str, Document]]:
    """Yield the objects in a document that have a layout, under their names there."""
    if isinstance(value, dict):
        yield name, value
        for key in value.keys() - {"environment", "options"}:
            yield from objects(value[key], key)
    elif isinstance(value, list):
        for entry in value:
            yield from objects(entry, name)


def test_a_missing_or_an_unknown_key_is_refused_wherever_it_is(document: Document) -> None:
    first = dict(reversed(list(objects(document))))
    assert first.keys() == {
        *("report", "counts", "cells", "comparison", "mismatches", "controls", "stability"),
        *("proof", "deviation", "unset", "references", "shard"),
    }
    for name, found in first.items():
        for key in list(found):
            value = found.pop(key)
            assert faults(document), (name, key)
            found[key] = value
        found["else"] = 1
        assert faults(document), name
        del found["else"]
    assert faults(document) == []


@pytest.mark.parametrize("status", ["", "pass", "PASSED", "UNKNOWN", None, 0])
def test_an_unknown_status_is_refused(status: object, document: Document) -> None:
    document["cells"][0]["status"] = status
    told = faults(document)
    assert f"$.cells[0].status: {status!r} is not one of {[*map(str, Status)]}" in told


@pytest.mark.parametrize(
    "value",
    [
        *(0.5, 0, None, True, "", "0.5", "1e-3", "NaN", "-nan", "unset", "+inf", "infinity"),
        *("0x1.8", "0x1.80p+0", "0x1.p+0", "0x1p0", "0x2p+0", "0X1P+0", "1p+0", "0x1p+0 "),
    ],
)
@pytest.mark.parametrize("place", ["reference", "candidate", "frames"])
def test_what_is_no_hex_float_is_refused_as_a_score(
    place: str, value: object, document: Document
) -> None:
    if place == "frames":
        document["references"][0]["frames"][1][0] = value
    else:
        mismatches = [
            m
            for c in document["cells"]
            for m in (c["comparison"] or {"mismatches": []})["mismatches"]
        ]
        mismatches[0][place] = value
    assert len(faults(document)) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema_version", 3),
        ("schema_version", "4"),
        ("exit_code", 2),  # then there is no report
        ("exit_code", 5),
        ("repeat", 0),
        ("repeat", 1.5),
        ("interrupted", 0),
        ("shard", {}),
        ("seconds", "1"),
        ("environment", {"host": {"cores": 2}}),
        ("cells", None),
    ],
)
def test_a_value_of_another_kind_is_refused(key: str, value: object, document: Document) -> None:
    assert faults({**document, key: value})


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ('"status": "PASS"', '"status": "GOOD"'),
        ('"0x1.999999999999ap-4"', "0.1"),
        ('"repeat": 1', '"repeat": 0'),
        ('"seconds": 12.5', '"seconds": NaN'),
    ],
)
def test_no_test_takes_a_file_that_is_off_the_schema(
    written: str, wrong: str, run: Run, tmp_path: Path
) -> None:
    path, text = tmp_path / record.NAME, json_report.render(run)
    assert text.count(written) == 1
    path.write_text(text, "utf-8")
    require_valid(path)
    path.write_text(text.replace(written, wrong), "utf-8")
    with pytest.raises(AssertionError):
        require_valid(path)


def test_each_key_of_a_cell_and_of_a_run_is_described() -> None:
    whole = schema()
    cell = whole["$defs"]["Result"]["properties"]
    assert cell["reason"]["description"].startswith("one sentence for every status but PASS")
    assert cell["timeout"]["description"].startswith("seconds that each side may take")
    assert whole["properties"]["cells"]["description"] == "one per selected cell, in plan order."
    assert whole["properties"]["environment"]["description"].endswith("on one machine.")
