"""JSON: everything of a run, values as hex floats."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from operator import attrgetter
from typing import TYPE_CHECKING

from gate.model import Cell, ReferenceScores, Status, exact
from reports import steadiness
from reports.wording import unset_scores

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed import DataclassInstance

    from gate.model import Comparison, Mismatch, Result, Run

SCHEMA_VERSION = 4

_CELL = [field.name for field in fields(Cell)]
_REFERENCE = [field.name for field in fields(ReferenceScores)]
_of_cell, _of_reference = attrgetter(*_CELL), attrgetter(*_REFERENCE)
# Without an indent the encoder is C code: a large run is written in half the time.
_dump = json.JSONEncoder(allow_nan=False).encode


def render(run: Run) -> str:
    """Return the run as strict JSON, with one line a cell.

    Two runs that differ only in times differ only under the keys `started`, `seconds`,
    `reference_seconds` and `nanoseconds`, and under `launches` where a device had less free memory
    and so smaller batches. Values are hex floats, or `UNSET`, `nan`, `inf`, `-inf`.
    Texts read back as they are, but two surrogates side by side as the one character that they
    spell.
    """
    facts = {
        "schema_version": SCHEMA_VERSION,
        "verdict": run.verdict,
        "exit_code": int(run.exit_code),
        "counts": _counts(run),
        "id": run.id,
        "matrix": run.matrix,
        "selection": run.selection,
        "planned": run.planned,
        "required": run.required,
        "rcp_table": run.rcp_table,
        "command": run.command,
        "shard": None if run.shard is None else asdict(run.shard),
        "rerun_of": run.rerun_of,
        "repeat": run.repeat,
        "sample": run.sample,
        "missing": run.missing,
        "notes": run.notes,
        "interrupted": run.interrupted,
        "started": run.started,
        "seconds": run.seconds,
        "environment": {section: dict(facts) for section, facts in run.environment.items()},
    }
    members = [f"{_dump(name)}: {_dump(value)}" for name, value in facts.items()]
    members.append(_list("cells", map(result_entry, run.results)))
    members.append(_list("unset", (unset._asdict() for unset in unset_scores(run))))
    members.append(_list("references", map(reference_entry, run.references)))
    return "{\n" + ",\n".join(members) + "\n}\n"


def _list(name: str, entries: Iterable[object]) -> str:
    lines = ",\n".join(map(_dump, entries))
    return f"{_dump(name)}: [\n{lines}\n]"


def _counts(run: Run) -> dict[str, int]:
    return {
        "planned": run.planned,
        "cells": len(run.results),
        **{status.value: run.count(status) for status in Status},
        "scores": run.scores,
        "different": run.different,
        **steadiness.counts(run),
    }


def result_entry(result: Result) -> dict[str, object]:
    """Return what the report says about a cell."""
    return {
        "id": result.cell.id,
        **_cell(result.cell),
        "status": result.status.value,
        "reason": result.reason,
        "detail": result.detail,
        "comparison": _comparison(result.comparison),
        "reference_seconds": result.reference_seconds,
        "seconds": result.seconds,
        "controls": [_flat(control) for control in result.controls],
        "stability": _flat(result.stability),
        "proof": _flat(result.proof),
    }


def _flat(of: DataclassInstance | None) -> dict[str, object] | None:
    """Return the fields of what has plain values only; `asdict` would copy each of them."""
    return None if of is None else {name: getattr(of, name) for name in of.__dataclass_fields__}


def _cell(cell: Cell) -> dict[str, object]:
    values = dict(zip(_CELL, _of_cell(cell), strict=True))
    listed = None if cell.deviation is None else asdict(cell.deviation)
    return values | {"options": dict(cell.options), "deviation": listed}


def _comparison(comparison: Comparison | None) -> dict[str, object] | None:
    if comparison is None:
        return None
    return {
        "scores": comparison.scores,
        "nans": comparison.nans,
        "unsets": comparison.unsets,
        "different": comparison.different,
        "mismatches": [_mismatch(mismatch) for mismatch in comparison.mismatches],
    }


def _mismatch(mismatch: Mismatch) -> dict[str, object]:
    return {
        "frame": mismatch.frame,
        "score": mismatch.score,
        "reference": exact(mismatch.reference),
        "candidate": exact(mismatch.candidate),
        "steps": mismatch.steps,
        "unit": mismatch.unit,
        "operands": mismatch.operands,
    }


def reference_entry(reference: ReferenceScores) -> dict[str, object]:
    """Return what the report says about a reference's scores."""
    values = dict(zip(_REFERENCE, _of_reference(reference), strict=True))
    return values | {"frames": [[exact(value) for value in frame] for frame in reference.frames]}
