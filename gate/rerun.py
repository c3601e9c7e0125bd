"""Chooses the cells of a report that are to run again."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple
from xml.parsers import expat

from gate.model import ExitCode, Status, counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gate.model import Cell, Run

LARGEST = 64_000_000  # bytes of a JUnit file; ours stay below 30 MB
DEEPEST = 8  # elements within each other; ours have 4

GREEN = (Status.PASS, Status.KNOWN, Status.SKIP)
SUITES = ("testsuites", "testsuite")  # what a file may begin with
RED = ("failure", "error")  # what a red testcase contains
GATE = "gate"  # the class of testcases that are no cells


class Reported(NamedTuple):
    """What a report says of one cell."""

    id: str
    red: bool


class NotRepeatable(Exception):  # noqa: N818 - reads as what happened
    """No cells are chosen; the text is one sentence.

    Attributes:
        exit_code: what the process returns for it.
    """

    def __init__(self, message: str, exit_code: ExitCode) -> None:
        """Keep the sentence and the exit code."""
        super().__init__(message)
        self.exit_code = exit_code


def of_run(run: Run) -> list[Reported]:
    """Return every cell of a run; one that did not finish is red."""
    return [Reported(result.cell.id, result.status not in GREEN) for result in run.results]


class JUnit(NamedTuple):
    """What a JUnit file of this program says.

    Attributes:
        cells: every cell.
        facts: the properties, by name.
    """

    cells: list[Reported]
    facts: dict[str, str]


def of_junit(document: bytes) -> JUnit:
    """Read a JUnit file of this program.

    Args:
        document: the file's bytes, at most LARGEST of them; they may come from anybody.

    Raises:
        ValueError: it is no such file, or not all cells found room in it; one sentence.
    """
    if len(document) > LARGEST:
        message = f"the file is larger than {LARGEST} bytes, so it is no junit.xml of parity-gate"
        raise ValueError(message)
    try:
        reader = _Reader(document)
    except expat.ExpatError as error:
        message = f"the file is no whole XML ({error}); name a junit.xml of parity-gate"
        raise ValueError(message) from error
    return JUnit(reader.cells, reader.facts)


class _Reader:
    """Collects the cells and facts of one JUnit document.

    Raises:
        ExpatError: it is no XML.
        ValueError: it is no JUnit file of ours; one sentence.
    """

    def __init__(self, document: bytes) -> None:
        self.cells: list[Reported] = []
        self.facts: dict[str, str] = {}
        self._path: list[str] = []  # of elements, from the root
        self._in_cell = False
        self._parser = expat.ParserCreate("utf-8")  # whatever codec the file names
        self._parser.StartDoctypeDeclHandler = self._refuse_dtd
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.Parse(document, True)  # noqa: FBT003 - expat takes no keyword

    def _refuse_dtd(self, *_: object) -> None:
        message = "the file has a DTD; name a junit.xml of parity-gate, which has none"
        raise ValueError(message)

    def _start(self, element: str, attributes: Mapping[str, str]) -> None:
        self._path.append(element)
        if self._path[0] not in SUITES or len(self._path) > DEEPEST:
            message = f"the file has <{'/'.join(self._path):.200}>; name a junit.xml of parity-gate"
            raise ValueError(message)
        if element == "testcase":
            self._begin_case(attributes)
        elif element == "property" and "testcase" not in self._path:
            self.facts[attributes.get("name", "")] = attributes.get("value", "")
        elif element in RED and self._path[-2] == "testcase" and self._in_cell:
            self.cells[-1] = self.cells[-1]._replace(red=True)

    def _begin_case(self, attributes: Mapping[str, str]) -> None:
        self._in_cell = attributes.get("classname") != GATE
        if not self._in_cell:
            if attributes.get("name") == "report too large":
                message = "not every cell found room in the file; name the report.json beside it"
                raise ValueError(message)
            return
        if not attributes.get("name"):
            message = "the file has a testcase without a name; name a junit.xml of parity-gate"
            raise ValueError(message)
        self.cells.append(Reported(attributes["name"], red=False))

    def _end(self, _: str) -> None:
        self._path.pop()


def selected(
    reported: Sequence[Reported], cells: Sequence[Cell], *, failed: bool, globs: Sequence[str]
) -> tuple[Cell, ...]:
    """Return the cells to repeat, in plan order.

    Args:
        reported: what the report says.
        cells: the whole plan as the matrix has it now.
        failed: whether to take red cells only.
        globs: over cell ids; all without globs.

    Raises:
        NotRepeatable: the report has no such cell, or the matrix no longer has one of them.
    """
    red: dict[str, bool] = {}
    for cell in reported:
        red[cell.id] = red.get(cell.id, False) or cell.red
    asked = [name for name in red if red[name] or not failed]
    _require_some(red, asked, globs)
    chosen = {name for name in asked if not globs or _matches(name, globs)}
    gone = sorted(chosen.difference(cell.id for cell in cells))
    if gone:
        more = f" and {len(gone) - 1} more" if gone[1:] else ""
        message = f"the matrix no longer has cell {gone[0]:.500}{more}; choose others with --cell"
        raise NotRepeatable(message, ExitCode.USAGE)
    return tuple(cell for cell in cells if cell.id in chosen)


def _require_some(red: Mapping[str, bool], asked: Sequence[str], globs: Sequence[str]) -> None:
    """Refuse a report without cells, one without red cells, and globs that match none.

    A glob that has lost its cells must not let the others pass for all.
    """
    cells = counted(len(red), "cell")
    if not red:
        message = "the report has no cell to repeat; name one that has"
        raise NotRepeatable(message, ExitCode.NOTHING)
    if not asked:
        message = f"none of the report's {cells} is red; leave out --failed to repeat them"
        raise NotRepeatable(message, ExitCode.NOTHING)
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in asked):
            green = len([name for name in red if fnmatchcase(name, glob)])
            told = f"none of the report's {cells}; correct it"
            if green:
                told = f"{counted(green, 'cell')}, and none of them is red; leave out --failed"
            message = f"--cell {glob!r} matches {told}"
            raise NotRepeatable(message, ExitCode.NOTHING)


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
