"""Holds report.json against its own schema."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NoReturn

from jsonschema import Draft202012Validator

from reports.schema import schema

VALIDATOR = Draft202012Validator(schema())


def faults(document: Any) -> list[str]:  # noqa: ANN401 - whatever JSON holds
    """Return what the schema refuses of a document, and where."""
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(document)]


def require_valid(path: Path) -> None:
    """Refuse a file that is off the schema, or no strict JSON."""
    document = json.loads(path.read_bytes(), parse_constant=_refuse)
    found = faults({**document, "cells": [], "references": []})
    for name in ("cells", "references"):
        for entry in map(_timeless, document[name]):
            found += _of(name, json.dumps(entry))
    assert not found, f"{path}: {found}"


def _timeless(entry: dict[str, Any]) -> dict[str, Any]:
    """Put one number for each time, so that cells of many runs are the same."""
    times = ("seconds", "reference_seconds")
    return entry | {key: 0.0 for key in times if isinstance(entry.get(key), float)}


@functools.cache
def _of(name: str, entry: str) -> list[str]:
    """Return the faults of one entry of a list; many reports have the same ones."""
    items = VALIDATOR.evolve(schema=VALIDATOR.schema["properties"][name])
    return [f"{name}: {error.message}" for error in items.iter_errors([json.loads(entry)])]


def _refuse(constant: str) -> NoReturn:
    message = f"{constant} is not JSON"
    raise AssertionError(message)
