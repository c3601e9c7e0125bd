"""The pieces of a markdown report, rendered from its template: plain text stays plain text."""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gate.model import Status, counted, decimal, exact, mismatch_sentence, steps_apart
from reports import steadiness, wording
from reports.fitting import Block
from reports.marks import LOOKS, look
from reports.wording import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gate.model import Run

VERDICT = 2_000  # characters; it repeats notes and missing backends
SUMMARY = 300  # characters of a reason where it is folded
COMMAND = 4_000  # characters of a command that repeats cells

# A numeric character reference never acts as markup, neither in tables nor in HTML. Inside a word
# an underscore is harmless, and names without references stay readable in the source.
_MARKUP = re.compile(r"[\\`*\[\]|<>&~#\"$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


class Detail(NamedTuple):
    """How much is shown of a red cell.

    Attributes:
        mismatches: scores listed.
        text: characters of its compiler log or traceback.
        reason: characters of what stands beside its name.
        named: cells named of a group that shares a reason.
    """

    mismatches: int
    text: int
    reason: int
    named: int


DETAILS = (Detail(20, 4_000, 1_000, 20), Detail(5, 500, 300, 5), Detail(0, 0, 150, 0))


class Page:
    """The template's macros, about one run."""

    def __init__(self, run: Run) -> None:
        """Load the template."""
        self._macros = _environment().get_template("report.md.j2").make_module({"run": run})

    def text(self, macro: str, *values: object) -> str:
        """Return what a macro makes of some values."""
        return str(getattr(self._macros, macro)(*values))

    def blocks(self, macro: str, found: Iterable[object]) -> list[Block]:
        """Return one block for each value."""
        return [Block((partial(self.text, macro, one),)) for one in found]

    def detailed(self, macro: str, found: Iterable[object]) -> list[Block]:
        """Return one block for each value, in as many forms as there are details."""
        return [
            Block([partial(self.text, macro, one, detail) for detail in DETAILS]) for one in found
        ]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=_escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        counted=counted, decimal=decimal, exact=exact, fenced=_fenced, narrow=_narrow
    )
    environment.globals.update(
        COMMAND=COMMAND,
        LOOKS=LOOKS,
        SUMMARY=SUMMARY,
        VERDICT=VERDICT,
        Status=Status,
        differing=wording.differing,
        look=look,
        mismatch_sentence=mismatch_sentence,
        one_line=wording.one_line,
        shared_id=wording.shared_id,
        sides_sentence=steadiness.sides_sentence,
        steps_apart=steps_apart,
        tally=wording.tally,
    )
    return environment


def _escaped(value: object) -> Markup:
    """Make every expression of the template plain text, unless it is markup already."""
    if isinstance(value, Markup):
        return value
    text = _MARKUP.sub(lambda match: f"&#{ord(match[0])};", printable(str(value)))
    return Markup(text.replace("\n", "<br>"))  # noqa: S704 - escaped on the line above


def _narrow(name: str) -> Markup:
    """Let a name break after its underscores, so that a column of marks stays narrow."""
    return _escaped(name).replace("_", Markup("_<br>"))


def _fenced(text: str, limit: int, language: str = "text") -> Markup:
    """Return a code block whose fence is longer than any run of backticks in the text."""
    shown = printable(wording.cut(text, limit))
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}{language}\n{shown}\n{fence}")  # noqa: S704 - a fence holds any text
