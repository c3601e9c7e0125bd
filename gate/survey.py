"""How often a wrong spelling flips the angle flag on fixtures, and which scores that moves."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from backends.base import Arithmetic, Refused
from backends.predicate import Survey
from gate import angle, compare
from gate.fixtures import open_fixture
from gate.model import ExitCode, counted, decimal
from gate.opening import Trouble, attempt
from gate.terminal import counting, matching, say, uncut, write_whole
from reports.wording import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from backends.base import Clip, Feature, Scores
    from backends.predicate import Predicate
    from gate.matrix import Matrix
    from gate.model import Comparison, Mismatch

REPORT = "survey.md"
FixtureOption = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="only fixtures whose name matches; may be repeated"),
]


class Moved(NamedTuple):
    """What wrong spellings change in the scores of a fixture.

    Attributes:
        options: what the options are called, one of the predicate's `surveyed`.
        spellings: those that give the same scores.
        comparison: of these scores with the golden ones.
    """

    options: str
    spellings: tuple[str, ...]
    comparison: Comparison


class Surveyed(NamedTuple):
    """What one fixture shows.

    Attributes:
        fixture: its name.
        dialect: the first that has a result.
        frames: how many were counted: all.
        counts: sums over the frames.
        moved: the options and spellings that change a score.
    """

    fixture: str
    dialect: str
    frames: int
    counts: Survey
    moved: tuple[Moved, ...]


@dataclass
class Found:
    """What a survey has found so far.

    Attributes:
        about: the matrix file.
        chosen: how many fixtures were to be surveyed.
        predicate: whose wrong spellings are counted.
        surveyed: the fixtures that could be read.
        problems: those that could not, each with a sentence.
        interrupted: whether a person stopped it.
    """

    about: str
    chosen: int
    predicate: Predicate
    surveyed: list[Surveyed] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """Return the code of the process; what the survey finds is no failure."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.ERROR if self.problems else ExitCode.OK

    @property
    def complete(self) -> bool:
        """Return whether every chosen fixture was surveyed."""
        return len(self.surveyed) == self.chosen

    @property
    def verdict(self) -> str:
        """Return one line: what was surveyed, and of how many where that is not all."""
        fixtures = f"{counted(self.chosen, 'fixture')} surveyed"
        if self.interrupted:
            return f"INTERRUPTED: {len(self.surveyed)} of {fixtures}"
        return fixtures if self.complete else f"ERROR: {len(self.surveyed)} of {fixtures}"


def run(matrix: Matrix, globs: list[str] | None) -> Found:
    """Survey the fixtures that the globs match, all without globs; Ctrl-C ends it early."""
    feature, predicate = angle.found()
    names = matching("--fixture", globs, list(matrix.fixtures))
    found = Found(str(matrix.path), len(names), predicate)
    try:
        with counting("of the fixtures", len(names)) as progress:
            for done, name in enumerate(names, 1):
                one = attempt(partial(survey, feature, predicate, matrix, name))
                if isinstance(one, Trouble):
                    found.problems[name] = one.reason
                else:
                    found.surveyed.append(one)
                progress(done)
    except KeyboardInterrupt:
        found.interrupted = True
    return found


def publish(found: Found, out: Path) -> ExitCode:
    """Print what was found, write the same as markdown, return the exit code."""
    say(uncut(table(found.predicate, found.surveyed)))
    for line in (*legend(found.predicate), *_told(found, movements(found.surveyed, most=1))):
        say(printable(line))
    code, path = found.exit_code, out / REPORT
    try:
        write_whole(path, _as_markdown(found))
        say(printable(f"wrote {path}"))
    except OSError as error:
        say(printable(f"{path} cannot be written: {error.strerror}"), err=True)
        code = code or ExitCode.ERROR
    say(found.verdict)
    return code


def _told(found: Found, moves: list[str]) -> list[str]:
    """Return the problems and the moves; only a complete survey says that there is none."""
    problems = [f"ERROR {name}: {problem}" for name, problem in found.problems.items()]
    return problems + (moves or ["no score moves"] * found.complete)


def _as_markdown(found: Found) -> str:
    rows = uncut(table(found.predicate, found.surveyed, box.MARKDOWN))
    told = "\n".join(f"- {line}" for line in legend(found.predicate))
    items = "".join(f"- {line}\n" for line in _told(found, movements(found.surveyed)))
    parts = (f"# Angle flags of {found.about}", rows, told, items, f"{found.verdict}\n")
    return printable("\n\n".join(part.strip("\n") for part in parts if part) + "\n")


def legend(predicate: Predicate) -> list[str]:
    """Return what the columns of the table mean, a line for each spelling and one for moves."""
    flips = [
        f"{name}: samples whose flag a wrong spelling flips: {predicate.wrong[name]}"
        for name in predicate.historic
    ]
    return [*flips, f"{', '.join(predicate.surveyed)}: the spellings that move a score there"]


def survey(feature: Feature, predicate: Predicate, matrix: Matrix, name: str) -> Surveyed:
    """Return what the fixture `name` of a matrix shows.

    Raises:
        FixtureError: it cannot be read.
        Refused: it has no result in any dialect.
    """
    with open_fixture(name, matrix.fixtures[name], matrix.path.parent) as clip:
        arithmetic, counts = _arithmetic(feature, clip), _counted(predicate, clip)
        flips = zip(predicate.historic, counts.flips, strict=True)
        flipping = [spelling for spelling, count in flips if count]
        moved = _moved(feature, predicate, arithmetic, flipping, clip) if flipping else ()
        return Surveyed(name, arithmetic.dialect, clip.frames, counts, tuple(moved))


def _arithmetic(feature: Feature, clip: Clip) -> Arithmetic:
    """Return the first dialect that has a result."""
    *others, last = map(Arithmetic, feature.dialects)
    for arithmetic in others:
        with suppress(Refused):
            feature.require(arithmetic, clip)
            return arithmetic
    feature.require(last, clip)
    return last


def _counted(predicate: Predicate, clip: Clip) -> Survey:
    total = np.zeros(2 + len(predicate.historic), np.int64)
    for frame in range(clip.frames):
        ref, dist = clip.read(frame, 1)
        samples, large, flips = predicate.survey(ref[0], dist[0], clip.bit_depth)
        total += [samples, large, *flips]
    samples, large, *sums = total.tolist()
    return Survey(samples, large, tuple(sums))


def _moved(
    feature: Feature,
    predicate: Predicate,
    arithmetic: Arithmetic,
    spellings: Iterable[str],
    clip: Clip,
) -> Iterator[Moved]:
    """Yield the spellings that change a score, those together that give the same scores."""
    for title, options in predicate.surveyed.items():
        golden = predicate.scores(arithmetic, options, clip)
        alike: dict[bytes, tuple[Scores, list[str]]] = {}
        for spelling in spellings:
            scores = predicate.scores(arithmetic, options, clip, spelling)
            bits = scores.values.tobytes() + scores.unset.tobytes()
            alike.setdefault(bits, (scores, []))[1].append(spelling)
        for scores, group in alike.values():
            compared = compare.compare(golden, scores, clip.frames, feature.outputs(options))
            if compared.different:
                yield Moved(title, tuple(group), compared)


def table(
    predicate: Predicate, surveyed: Iterable[Surveyed], style: box.Box = box.SIMPLE_HEAD
) -> Table:
    """Return a row for each fixture; `legend` explains the columns."""
    table = Table(box=style)
    table.add_column("fixture", no_wrap=True)
    table.add_column("dialect", no_wrap=True)
    for title in ("samples", "> 2^24", *predicate.historic):
        table.add_column(title, justify="right", no_wrap=True)
    for options in predicate.surveyed:
        table.add_column(options, no_wrap=True)
    for one in surveyed:
        counts = (one.counts.samples, one.counts.large, *one.counts.flips)
        moving = (_moving(one, options) for options in predicate.surveyed)
        table.add_row(*map(Text, (one.fixture, one.dialect, *map(str, counts), *moving)))
    return table


def _moving(one: Surveyed, options: str) -> str:
    """Return the spellings that move a score of a fixture, or a dash."""
    moving = (name for moved in one.moved if moved.options == options for name in moved.spellings)
    return " ".join(sorted(moving)) or "-"


def movements(surveyed: Iterable[Surveyed], most: int | None = None) -> list[str]:
    """Return a line for each fixture, options and spellings that move the same scores.

    Args:
        surveyed: the fixtures.
        most: how many outputs a line tells of, those that move furthest first; None: all.
    """
    return [
        f"{one.fixture}, {moved.options}, spelling {' '.join(moved.spellings)}: "
        + _furthest(moved.comparison, one.frames, most)
        for one in surveyed
        for moved in one.moved
    ]


def _furthest(comparison: Comparison, frames: int, most: int | None) -> str:
    """Tell of outputs that moved how far they did at most, and in how many frames."""
    outputs: dict[str, list[Mismatch]] = {}
    for mismatch in sorted(comparison.mismatches, key=_distance, reverse=True):
        outputs.setdefault(mismatch.score, []).append(mismatch)
    told = [_move(output, mismatches, frames) for output, mismatches in outputs.items()][:most]
    more = len(outputs) - len(told)
    return "; ".join([*told, *([f"and {counted(more, 'more output')}: {REPORT}"] * bool(more))])


def _distance(mismatch: Mismatch) -> int:
    """Return how many binary64 numbers a score moves; a step in binary32 is 2^29 of them."""
    return abs(mismatch.steps or 0) << (29 if mismatch.unit == "ulp32" else 0)


def _move(output: str, mismatches: list[Mismatch], frames: int) -> str:
    most = mismatches[0]
    told = "" if frames == 1 else f" (frame {most.frame}; {len(mismatches)} of {frames} moved)"
    return f"{output} {decimal(most.reference)} -> {decimal(most.candidate)}{told}"
