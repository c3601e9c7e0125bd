"""The JSON Schema of report.json, derived from the types that a run is made of."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from gate.model import ExitCode, Run, Status
from reports.json import SCHEMA_VERSION
from reports.wording import Unset

if TYPE_CHECKING:
    from pydantic_core import core_schema

_DESCRIPTION = "Everything of a run; scores are C99 hex floats, UNSET, nan, inf or -inf."
_SCORE = r"^(UNSET|nan|-?inf|-?0x[01](\.[0-9a-f]*[1-9a-f])?p[+-][0-9]+)$"
_COUNTS = (
    *("planned", "cells", *Status, "scores", "different"),
    *("controlled", "control_scores", "control_different", "repeated", "references", "cached"),
)
_ATTRIBUTES = re.compile(r"^    (\w+(?:, \w+)*): (.+(?:\n {8}.+)*)", re.MULTILINE)


def schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, that every report.json is valid against."""
    found = TypeAdapter(Run).json_schema(mode="serialization", schema_generator=_Written)
    types = found["$defs"]
    cell = types.pop("Cell")["properties"]
    result = types["Result"]["properties"]
    del result["cell"]
    types["Result"] |= _object({"id": {"type": "string"}, **cell, **result})
    run = found["properties"]
    unset = {name: TypeAdapter(t).json_schema() for name, t in get_type_hints(Unset).items()}
    derived = {
        "schema_version": {"const": SCHEMA_VERSION},
        "verdict": {"type": "string"},
        "exit_code": {"enum": [int(code) for code in ExitCode if code is not ExitCode.USAGE]},
        "counts": _object({name: {"type": "integer", "minimum": 0} for name in _COUNTS}),
        "cells": run.pop("results"),
        "unset": {"type": "array", "items": _object(unset)},
    }
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    named = {"title": "report.json of parity-gate", "description": _DESCRIPTION}
    return dialect | found | named | _object(derived | run)


class _Written(GenerateJsonSchema):
    """Describes types as json.py writes them: every field is there, and scores are texts."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> dict[str, Any]:
        found = super().dataclass_schema(schema)
        told = inspect.getdoc(schema["cls"]) or ""
        summary, _, attributes = told.partition("\n\nAttributes:\n")
        for names, text in _ATTRIBUTES.findall(attributes):
            for name in names.split(", "):
                found["properties"][name]["description"] = " ".join(text.split())
        return found | _object(found["properties"]) | {"description": summary}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        if schema["schema"]["type"] == "float":
            return {"type": "string", "pattern": _SCORE}
        return super().nullable_schema(schema)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
