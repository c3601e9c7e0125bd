"""How each status looks in every report; the one place that learns of a new status."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from gate.model import Status

if TYPE_CHECKING:
    from gate.model import Result, Run


class Kind(StrEnum):
    """What a status means to consumers: JUnit's words for it."""

    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"
    PASSED = "passed"


class Look(NamedTuple):
    """How a status is shown.

    Attributes:
        kind: what it counts as.
        mark: in markdown.
        sign: on a terminal, of one column.
        style: of the sign, as rich names it.
    """

    kind: Kind
    mark: str
    sign: str
    style: str


# Worst first.
LOOKS = {
    Status.FAIL: Look(Kind.FAILURE, "❌", "✗", "bold red"),
    Status.NONDETERMINISTIC: Look(Kind.FAILURE, "🎲", "~", "bold red"),
    Status.ERROR: Look(Kind.ERROR, "💥", "!", "bold magenta"),
    Status.SKIP: Look(Kind.SKIPPED, "⏭", "-", "yellow"),
    Status.KNOWN: Look(Kind.PASSED, "🟡", "≠", "cyan"),
    Status.PASS: Look(Kind.PASSED, "✅", "✓", "green"),
}
UNKNOWN = Look(Kind.ERROR, "❓", "?", "bold red")  # a status without a look must not look green


def look(status: Status) -> Look:
    """Return how a status is shown."""
    return LOOKS.get(status, UNKNOWN)


def badness(status: Status) -> int:
    """Return what sorts the worst status first; before all others those without a look."""
    return list(LOOKS).index(status) if status in LOOKS else -1


def of_kind(run: Run, kind: Kind) -> list[Result]:
    """Return the results whose status counts as this, in plan order."""
    wanted = {status for status in Status if look(status).kind is kind}
    return [result for result in run.results if result.status in wanted]
