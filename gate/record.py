"""Reads back what a run has written: report.json, and the journal beside it."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from backends import registry
from gate import journal
from gate.model import UNSET, Cell, ReferenceScores, Result, Run, Status, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

NAME = "report.json"
VERSION = 4
LARGEST = 1 << 30  # bytes
DIGITS = 300  # of a number at most; a float holds that many

_RUN = TypeAdapter(Run)
_RESULT = TypeAdapter(Result)
_REFERENCE = TypeAdapter(ReferenceScores)
_CELL = [field.name for field in fields(Cell)]
_DERIVED = ("schema_version", "verdict", "exit_code", "counts", "unset")


class Unreadable(Exception):  # noqa: N818 - reads as what happened
    """A report or journal cannot be used; the text is one sentence."""


def load(path: Path) -> Run:
    """Read report.json.

    Raises:
        Unreadable: it is missing, larger than 1 GiB, or no report of this program's version.
    """
    try:
        if path.stat().st_size > LARGEST:
            message = f"{path}: larger than {LARGEST >> 30} GiB, so it is no report"
            raise Unreadable(message)
        document = json.loads(path.read_bytes(), parse_int=_integer)
    except OSError as error:
        message = f"{path}: {error.strerror}; name a report.json of parity-gate"
        raise Unreadable(message) from error
    except ValueError as error:  # RecursionError is for those who write such files
        message = f"{path}: it is no JSON ({error}); name a report.json of parity-gate"
        raise Unreadable(message) from error
    if not isinstance(document, dict) or document.get("schema_version") != VERSION:
        message = f"{path}: it is no report of schema_version {VERSION}; run the matrix again"
        raise Unreadable(message)
    return _checked(path, lambda: _run(document))


def _integer(digits: str) -> int:
    if len(digits) > DIGITS:
        message = f"a number has {len(digits)} digits"
        raise ValueError(message)
    return int(digits)


def recovered(folder: Path) -> Run:
    """Return a run as its reports and its journal have it.

    Raises:
        Unreadable: one of them cannot be used.
    """
    run = load(folder / NAME)
    path = folder / journal.NAME
    try:
        entries = journal.entries(path, run.id)
    except ValueError as error:
        raise Unreadable(str(error)) from error
    return _checked(path, lambda: _with(run, entries))


def _checked(path: Path, read: Callable[[], Run]) -> Run:
    try:
        return read()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = f"{path}: {where or 'document'}: {first['msg']}; it is no report of parity-gate"
        raise Unreadable(message) from error
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"{path}: {type(error).__name__} {error}; it is no report of parity-gate"
        raise Unreadable(message) from error


def _run(document: dict[str, Any]) -> Run:
    for name in _DERIVED:
        del document[name]
    results = [_result(entry) for entry in document.pop("cells")]
    references = [_reference(entry) for entry in document.pop("references")]
    blank: Run = _RUN.validate_python({**document, "results": (), "references": ()})
    return _repeated(replace(blank, results=tuple(results), references=tuple(references)))


def _repeated(run: Run) -> Run:
    """Refuse a run with a candidate that was compared, and computed more or less often than all."""
    for result in run.results:
        times = 1 if result.stability is None else result.stability.runs
        if result.comparison is not None and times != run.repeat:
            told = f"was computed {counted(times, 'time')}, in a run with --repeat {run.repeat}"
            message = f"cell {result.cell.id!r} {told}"
            raise ValueError(message)
    return run


def _result(entry: dict[str, Any]) -> Result:
    name = entry.pop("id")
    cell = {field: entry.pop(field) for field in _CELL}
    for mismatch in (entry["comparison"] or {"mismatches": []})["mismatches"]:
        for side in ("reference", "candidate"):
            mismatch[side] = _value(mismatch[side])
    result: Result = _RESULT.validate_python({"cell": cell, **entry})
    if result.cell.id != name:
        message = f"cell {name!r} says of itself that it is {result.cell.id!r}"
        raise ValueError(message)
    _require_agreement(result)
    return result


def _require_agreement(result: Result) -> None:
    """Refuse a result whose status is not what its comparison and its repeats say."""
    comparison, status = result.comparison, result.status
    compared = status in (Status.PASS, Status.KNOWN, Status.FAIL)
    unstable = status is Status.NONDETERMINISTIC
    sound = result.unstable == unstable and (unstable or compared == (comparison is not None))
    if comparison is not None and status in (Status.PASS, Status.KNOWN):
        whole = comparison.scores == result.cell.scores > 0
        differs = bool(comparison.different or comparison.mismatches)
        sound = sound and whole and differs == (status is Status.KNOWN)
    if not sound:
        message = f"cell {result.cell.id!r} is {status.value}, which its comparison denies"
        raise ValueError(message)
    if status in (Status.PASS, Status.KNOWN) and not _proved(result):
        message = f"cell {result.cell.id!r} is {status.value} without the evidence that it needs"
        raise ValueError(message)


def _proved(result: Result) -> bool:
    """Return whether what is kept of a candidate's evidence is what its backend owes."""
    if result.cell.feature in registry.predicates():
        return True  # of corpora of operands none is kept
    proof, owed = result.proof, registry.owed(result.cell.candidate)
    if proof is None:
        return False
    ran = proof.launches > 0 and proof.nanoseconds > 0 if owed.launches else True
    return ran and bool(proof.runtime or not owed.facts) and proof.frames == result.cell.frames


def _reference(entry: dict[str, Any]) -> ReferenceScores:
    frames = [[_value(value) for value in frame] for frame in entry.pop("frames")]
    found: ReferenceScores = _REFERENCE.validate_python({**entry, "frames": frames})
    if {len(frame) for frame in frames} != {len(found.names)}:
        message = f"reference scores of {'/'.join(found.of)} are not one a name in each frame"
        raise ValueError(message)
    return found


def _value(text: str) -> float | None:
    """Return a score that `exact` of model.py wrote."""
    if text == "UNSET":
        return UNSET
    return math.nan if text == "nan" else float.fromhex(text)


def _with(run: Run, entries: Iterable[dict[str, Any]]) -> Run:
    """Return a run with what its journal has beyond its report."""
    results = {result.cell.id: result for result in run.results}
    references = {scores.of: scores for scores in run.references}
    environment = {title: dict(facts) for title, facts in run.environment.items()}
    for entry in entries:
        if "cell" in entry:
            result = _result(entry["cell"])
            if result.cell.id not in results:
                message = f"cell {result.cell.id!r} is not in the report"
                raise ValueError(message)
            results[result.cell.id] = result
        elif "reference" in entry:
            scores = _reference(entry["reference"])
            references[scores.of] = scores
        else:
            for title, facts in entry["environment"].items():
                environment.setdefault(title, {}).update(facts)
    whole = replace(
        run,
        results=tuple(results.values()),
        references=tuple(references.values()),
        environment=environment,
    )
    return _repeated(whole)
