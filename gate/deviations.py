"""Known deviations: the reviewed file that lists them, and what it makes of a comparison."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from gate.document import Document
from gate.errors import MatrixError
from gate.model import Deviation, Result, Status, failure_sentence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gate.document import Loc
    from gate.model import Cell, Comparison, Mismatch

DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _as_day(text: str) -> str:
    with suppress(ValueError):
        if DAY.fullmatch(text) and date.fromisoformat(text):
            return text
    error = PydanticCustomError("refused", "is not a day; write YYYY-MM-DD")
    raise error


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Day = Annotated[str, AfterValidator(_as_day)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Entry(_Strict):
    """Cells that are known to deviate."""

    cells: list[Text] = Field(min_length=1, description="globs over cell ids")
    outputs: list[Text] = Field(min_length=1, description="globs over the outputs that may differ")
    reason: Text = Field(description="one sentence for the reports")
    owner: Text = Field(description="who answers for it")
    expires: Day = Field(description="the last day on which it holds, YYYY-MM-DD")
    not_finite: bool = Field(False, description="whether NaN, infinite or UNSET is listed too")  # noqa: FBT003 - a default


class DeviationsFile(_Strict):
    """What stands at the top of the file."""

    version: int = Field(ge=1, le=1, description="of the format of these files")
    deviations: list[Entry] = Field(min_length=1, description="each cell in one entry at most")


@dataclass(frozen=True, slots=True)
class Deviations:
    """A deviations file without mistakes.

    Attributes:
        path: the file.
        sha256: of its bytes.
        entries: globs over cell ids with what they list.
    """

    path: Path
    sha256: str
    entries: tuple[tuple[tuple[str, ...], Deviation], ...]

    def of(self, cell: Cell) -> Deviation | None:
        """Return what the file lists about a cell, if anything."""
        found = (deviation for globs, deviation in self.entries if _names(globs, cell))
        return next(found, None)


def load(path: Path, cells: tuple[Cell, ...] | None) -> Deviations:
    """Read and check a deviations file.

    Args:
        path: the file.
        cells: the whole plan that it is about; None where that is not known, so that nothing is
            said to be missing in it.

    Raises:
        MatrixError: all its mistakes, each as `path:line:col: sentence`.
    """
    document = Document(path)
    file = document.check(DeviationsFile, document.value, ())
    if file and cells is not None:
        _check_against(document, file, [cell for cell in cells if not cell.skip])
    if not file or document.problems:
        raise MatrixError(document.problems)
    entries = enumerate(file.deviations)
    listed = ((tuple(entry.cells), _deviation(document, index, entry)) for index, entry in entries)
    return Deviations(path, document.sha256, tuple(listed))


def marked(cells: Iterable[Cell], deviations: Deviations | None) -> tuple[Cell, ...]:
    """Return the cells, with what is listed about them."""
    if deviations is None:
        return tuple(cells)
    listed = ((cell, deviations.of(cell)) for cell in cells)
    return tuple(replace(cell, deviation=one) if one else cell for cell, one in listed)


def judged(cell: Cell, comparison: Comparison, today: date) -> Result:
    """Return PASS, KNOWN or FAIL.

    A cell that is listed must differ, in listed outputs only, and its entry must not be expired.

    Args:
        cell: with what is listed about it.
        comparison: of all its scores.
        today: decides which entries have expired.
    """
    deviation = cell.deviation
    if deviation is None and not comparison.different:
        return Result(cell, Status.PASS, comparison=comparison)
    if deviation is None:
        result = Result(cell, Status.FAIL, comparison=comparison)
        return replace(result, reason=failure_sentence(result))
    if not comparison.different:
        reason = f"agrees although {deviation.place} lists it; narrow or delete the entry"
        return Result(cell, Status.FAIL, reason, comparison=comparison)
    if date.fromisoformat(deviation.expires) < today:
        told = (
            f"{deviation.place}, which lists it, expired on {deviation.expires}; renew or delete it"
        )
        return _failed(cell, comparison, told)
    # What is not listed comes first, so that every report begins with it.
    first, *rest = sorted(comparison.mismatches, key=lambda m: _lists(deviation, m))
    if not _lists(deviation, first):
        told = f"{deviation.place} does not list this output"
        if not (_finite(first) or deviation.not_finite):
            told = f"{deviation.place} lists finite numbers only"
        return _failed(cell, replace(comparison, mismatches=(first, *rest)), told)
    told = f"{deviation.place}, owner {deviation.owner}, expires {deviation.expires}"
    return Result(cell, Status.KNOWN, f"{deviation.reason} ({told})", comparison=comparison)


def _failed(cell: Cell, comparison: Comparison, told: str) -> Result:
    result = Result(cell, Status.FAIL, comparison=comparison)
    return replace(result, reason=f"{failure_sentence(result)}; {told}")


def _names(globs: Iterable[str], cell: Cell) -> bool:
    name = cell.id
    return any(fnmatchcase(name, glob) for glob in globs)


def _finite(mismatch: Mismatch) -> bool:
    sides = (mismatch.reference, mismatch.candidate)
    return all(side is not None and math.isfinite(side) for side in sides)


def _lists(deviation: Deviation, mismatch: Mismatch) -> bool:
    named = any(fnmatchcase(mismatch.score, glob) for glob in deviation.outputs)
    return named and (deviation.not_finite or _finite(mismatch))


def _deviation(document: Document, index: int, entry: Entry) -> Deviation:
    line, _ = document.place(("deviations", index))
    return Deviation(
        outputs=tuple(entry.outputs),
        reason=entry.reason,
        owner=entry.owner,
        expires=entry.expires,
        not_finite=entry.not_finite,
        place=f"{document.path}:{line}",
    )


def _check_against(document: Document, file: DeviationsFile, cells: list[Cell]) -> None:
    """Report globs that name nothing, and cells that two entries name."""
    lines: dict[str, int] = {}  # of the entry that lists a cell first, by cell id
    for index, entry in enumerate(file.deviations):
        loc: Loc = ("deviations", index)
        named = [cell for cell in cells if _names(entry.cells, cell)]
        again = [cell.id for cell in named if cell.id in lines]
        for number, glob in enumerate(entry.cells):
            if not any(fnmatchcase(cell.id, glob) for cell in cells):
                sentence = f"cells {glob!r} names no cell that runs; correct or delete it"
                document.report((*loc, "cells", number), sentence)
        if again:
            more = f" and {len(again) - 1} more" if again[1:] else ""
            where = f"listed in line {lines[again[0]]} and again in line {document.place(loc)[0]}"
            document.report((*loc, "cells"), f"cell {again[0]}{more} {where}; narrow one")
        lines = dict.fromkeys((cell.id for cell in named), document.place(loc)[0]) | lines
        outputs = {name for cell in named for name in cell.outputs}
        for number, glob in enumerate(entry.outputs if named else ()):
            if not any(fnmatchcase(name, glob) for name in outputs):
                sentence = f"outputs {glob!r} names no output of its cells; correct or delete it"
                document.report((*loc, "outputs", number), sentence)
