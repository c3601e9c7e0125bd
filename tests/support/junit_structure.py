"""Holds junit.xml against what JUnit consumers read."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Shape(NamedTuple):
    """What JUnit consumers read of an element.

    Attributes:
        required: attributes that must be there.
        allowed: attributes that may be there too.
        children: how often each may be there, at least and at most.
    """

    required: set[str]
    allowed: set[str]
    children: dict[str, tuple[int, float]]


OUTCOMES = dict.fromkeys(("failure", "error", "skipped", "system-out"), (0, 1.0))
TOTALS = {"tests", "failures", "errors", "disabled", "time"}
SCHEMA = {
    "testsuites": Shape(TOTALS, set(), {"testsuite": (1, 1)}),
    "testsuite": Shape(
        {*TOTALS, "name", "skipped", "timestamp"},
        set(),
        {"properties": (1, 1), "testcase": (0, math.inf)},
    ),
    "properties": Shape(set(), set(), {"property": (1, math.inf)}),
    "property": Shape({"name", "value"}, set(), {}),
    "testcase": Shape({"name", "classname"}, {"time", "file", "line"}, OUTCOMES),
    "failure": Shape({"type", "message"}, set(), {}),
    "error": Shape({"type", "message"}, set(), {}),
    "skipped": Shape({"type", "message"}, set(), {}),
    "system-out": Shape(set(), set(), {}),
}


def check_structure(element: ET.Element) -> None:
    """Hold an element and all within it against SCHEMA."""
    required, allowed, children = SCHEMA[element.tag]
    assert required <= element.attrib.keys() <= required | allowed, element.attrib
    tags = [child.tag for child in element]
    assert set(tags) <= set(children), tags
    for tag, (least, most) in children.items():
        assert least <= tags.count(tag) <= most, tags
    for key in element.attrib.keys() & {"tests", "failures", "errors", "skipped", "line"}:
        assert element.attrib[key].isdecimal()
    for key in element.attrib.keys() & {"time"}:
        assert float(element.attrib[key]) >= 0
    if children:
        assert not (element.text or "").strip()
    for child in element:
        assert not (child.tail or "").strip()
        check_structure(child)


def require_structure(path: Path) -> None:
    """Refuse a file that is no whole XML, or has another structure."""
    check_structure(ET.fromstring(path.read_bytes()))  # noqa: S314 - our own document
