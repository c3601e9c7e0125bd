"""What several writers say alike: harmless text, cuts that are told, counts, groups."""

from __future__ import annotations

import re
import shlex
from itertools import combinations, zip_longest
from operator import attrgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gate.model import UNFINISHED, Status, arithmetic_name, counted
from reports.marks import Kind, look, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gate.model import Cell, ReferenceScores, Result, Run

_GROUP = attrgetter("feature", "dialect", "conclusion", "options_name", "fixture", "reference")
_ID_PARTS = attrgetter("feature", "arithmetic", "options_name", "fixture", "candidate")
_AXES = ("arithmetic", "options_name", "candidate")  # the table shows the fixtures
_LATE = (Status.ERROR, UNFINISHED)
_RED = (Kind.FAILURE, Kind.ERROR)
Group: TypeAlias = tuple[str, ...]
REPORT = "report.json"
FOUND = ("", "matrices")  # folders in which `rerun` finds a matrix *.yaml by its hash

_NOT_PLAIN = re.compile(r"[^\t\n -~]+")


class Problem(NamedTuple):
    """Why a run proves nothing although no cell is red: a stable name and a sentence."""

    name: str
    sentence: str


def printable(text: str) -> str:
    r"""Return text that neither a terminal nor XML 1.0 chokes on: ESC becomes `\x1b` and so on."""
    if text.isprintable():
        return text

    def spell(match: re.Match[str]) -> str:
        if match[0].isprintable():
            return match[0]
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in match[0])

    return _NOT_PLAIN.sub(spell, text.replace("\r\n", "\n"))


def cut(text: str, limit: int) -> str:
    """Keep `limit` characters of text, head and tail, around a line that says how many went."""
    gone = len(text) - limit
    if gone <= 0:
        return text
    tail = limit // 3  # a traceback ends with what matters, a compiler's log begins with it
    told = f"[... {counted(gone, 'character')} cut ...]"
    return f"{text[: limit - tail]}\n{told}\n{text[len(text) - tail :]}"


def one_line(text: str, limit: int = 1000) -> str:
    """Return printable text on one line, cut at `limit` characters."""
    return " ".join(cut(printable(text), limit).split())


def differing(result: Result) -> str:
    """Return for example `4 of 84 scores differ, in 2 of 12 frames, by at most 1.2e-07`.

    An operand corpus has no frames to count.
    """
    if result.comparison is None:
        return "nothing was compared"
    different, mismatches = result.comparison.different, result.comparison.mismatches
    verb = "differs" if different == 1 else "differ"
    scores = f"{different} of {counted(result.comparison.scores, 'score')} {verb}"
    if not mismatches or mismatches[0].operands:
        return scores
    frames = len({mismatch.frame for mismatch in mismatches})
    scores = f"{scores}, in {frames} of {counted(result.cell.frames, 'frame')}"
    pairs = [(m.reference, m.candidate) for m in mismatches if m.steps is not None]
    away = [abs(one - other) for one, other in pairs if one is not None and other is not None]
    return f"{scores}, by at most {max(away):.1e}" if away else scores


def problems(run: Run) -> list[Problem]:
    """Return what makes the exit code red without a red cell, for readers of one report only."""
    found = [
        Problem(f"required backend {text.partition(': ')[0]}", f"required backend missing: {text}")
        for text in run.missing
    ]
    if run.interrupted:
        late = f"{counted(run.unfinished, 'cell')} did not finish, listed as ERROR"
        told = late if run.unfinished else "every cell had finished"
        found.append(Problem("interrupted", f"the run was interrupted; {told}"))
    elif not run.results:
        # An empty shard proves nothing and leaves that to the others.
        found += [] if run.shard and run.shard.selected else [Problem("no cells", _no_cells(run))]
    elif run.count(Status.SKIP) == len(run.results):
        found.append(Problem("all skipped", "every cell was skipped, so nothing was compared"))
    return found


def _no_cells(run: Run) -> str:
    globs = "".join(f" --cell {glob}" for glob in run.selection)
    planned = counted(run.planned, "cell")
    chosen = f"{globs} selects 0 of its {planned}" if globs else f" it has {planned}"
    return f"no cell of {run.matrix} was run:{chosen}; `parity-gate list` shows the ids"


def origin(run: Run) -> dict[str, str]:
    """Return which run this is, and of which cells."""
    facts = {"run": run.id}
    if run.shard:
        shard, selected = run.shard, counted(run.shard.selected, "selected cell")
        facts["shard"] = f"{shard.index} of {shard.count}, {len(shard.positions)} of {selected}"
    if run.rerun_of:
        facts["repeats cells of run"] = run.rerun_of
    return facts


def rerun_command(run: Run, report: str = REPORT, program: Iterable[str] = ("parity-gate",)) -> str:
    """Return how to repeat all red cells of a run; empty where none is red.

    Args:
        run: the run.
        report: path of its report; by default it lies beside the reader's.
        program: the words that start the program.
    """
    if not any(look(result.status).kind in _RED for result in run.results):
        return ""
    path, facts = PurePath(run.matrix), run.environment.get("matrix", {})
    drawn = "seed" in facts or "full" in facts  # and those of corpora; neither has a file
    found = path.suffix == ".yaml" and path.parent in map(PurePath, FOUND)
    matrix = [] if drawn or found else ["--matrix", run.matrix]
    table = ["--rcp-table", run.rcp_table] if run.rcp_table else []
    return shlex.join([*program, "rerun", report, "--failed", *matrix, *table])


def with_status(run: Run, status: Status) -> list[Result]:
    """Return the results with this status, in plan order."""
    return [result for result in run.results if result.status is status]


def unfinished(run: Run) -> list[Result]:
    """Return the cells that have no result yet, or never got one."""
    return [r for r in run.results if (r.status, r.reason) == _LATE]


def errors(run: Run) -> list[Result]:
    """Return what could not be compared, but for cells that did not finish."""
    return [r for r in of_kind(run, Kind.ERROR) if (r.status, r.reason) != _LATE]


def by_reason(results: Iterable[Result]) -> list[list[Result]]:
    """Return groups of results with the same reason and detail, in order of appearance."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.reason, result.detail), []).append(result)
    return list(groups.values())


def shared_id(results: list[Result]) -> str:
    """Return the cells' id, with `*` for each part in which they differ."""
    parts = zip(*(_ID_PARTS(result.cell) for result in results), strict=True)
    return "/".join(names[0] if len(set(names)) == 1 else "*" for names in parts)


def by_guilty_axes(run: Run) -> list[list[Result]]:
    """Return the failures in few groups that leave the guilty axis visible, the largest first.

    A group spans all values of an axis only where each value that was compared has a failure, in
    whatever fixture; else the axis tells the cause, and its values stay apart.
    """
    failures = of_kind(run, Kind.FAILURE)
    if not failures:
        return []
    red = {_key(result, _AXES) for result in failures}
    green = [result for result in of_kind(run, Kind.PASSED) if _key(result, _AXES) not in red]
    groups: list[list[Result]] = []
    for axes in (axes for size in range(len(_AXES) + 1) for axes in combinations(_AXES, size)):
        mixed = {_key(result, axes) for result in green}
        found: dict[tuple[object, ...], list[Result]] = {}
        for result in failures:
            # One line about a group says one status, and one side that moved.
            key = (_key(result, axes), result.status, result.moved)
            found.setdefault(key, []).append(result)
        groups += [results for (key, *_), results in found.items() if key not in mixed]
        failures = [result for result in failures if _key(result, axes) in mixed]
    return sorted(groups, key=len, reverse=True)


def spread(groups: Iterable[list[Result]]) -> list[Result]:
    """Return of each group one, then of each another, so that every cause is among the first."""
    return [result for turn in zip_longest(*groups) for result in turn if result is not None]


def _key(result: Result, axes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(getattr(result.cell, name) for name in ("feature", *axes))


def by_candidate(run: Run) -> dict[tuple[str, str], list[Result]]:
    """Return the results of each (feature, candidate), in order of appearance."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in run.results:
        groups.setdefault((result.cell.feature, result.cell.candidate), []).append(result)
    return groups


class Tally(NamedTuple):
    """Sums over some results."""

    compared: int  # cells
    scores: int
    different: int
    moved: int  # of these, where the reference differs from itself
    nans: int
    unsets: int
    seconds: float


def tally(results: list[Result]) -> Tally:
    """Add up what was compared; NaN and UNSET are those of the reference."""
    comparisons = [r.comparison for r in results if r.comparison is not None]
    moved = [r.comparison for r in results if r.comparison is not None and "reference" in r.moved]
    return Tally(
        compared=len(comparisons),
        scores=sum(comparison.scores for comparison in comparisons),
        different=sum(comparison.different for comparison in comparisons),
        moved=sum(comparison.different for comparison in moved),
        nans=sum(comparison.nans for comparison in comparisons),
        unsets=sum(comparison.unsets for comparison in comparisons),
        seconds=sum(result.seconds for result in results),
    )


class Unset(NamedTuple):
    """Scores that a reference leaves UNSET, each in `frames` of `of` frames."""

    feature: str
    options_name: str
    scores: tuple[str, ...]
    frames: int
    of: int
    arithmetics: tuple[str, ...]  # in each of which it is so
    fixtures: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return which scores, and in how many frames."""
        return f"{', '.join(self.scores)} in {self.frames} of {counted(self.of, 'frame')}"


def unset_scores(run: Run) -> list[Unset]:
    """Return everything that the references leave UNSET, said once for all to which it applies."""
    arithmetics: dict[Unset, dict[str, None]] = {}
    for unset in (unset for reference in run.references for unset in _unset_in(reference)):
        names = arithmetics.setdefault(unset._replace(arithmetics=()), {})
        names |= dict.fromkeys(unset.arithmetics)
    fixtures: dict[Unset, tuple[str, ...]] = {}
    for unset, names in arithmetics.items():
        shared = unset._replace(arithmetics=tuple(names), fixtures=())
        fixtures[shared] = fixtures.get(shared, ()) + unset.fixtures
    return [unset._replace(fixtures=names) for unset, names in fixtures.items()]


def unset_by_group(run: Run) -> dict[Group, list[Unset]]:
    """Return what each reference leaves UNSET, by what its cells share (`group_of`)."""
    return {_GROUP(reference): _unset_in(reference) for reference in run.references}


def group_of(cell: Cell) -> Group:
    """Return what a cell shares with all that are compared with the same scores."""
    group: Group = _GROUP(cell)
    return group


def _unset_in(reference: ReferenceScores) -> list[Unset]:
    if not any(None in frame for frame in reference.frames):
        return []
    by_frames: dict[int, list[str]] = {}
    for name, values in zip(reference.names, zip(*reference.frames, strict=True), strict=True):
        by_frames.setdefault(values.count(None), []).append(name)
    return [
        Unset(
            reference.feature,
            reference.options_name,
            tuple(scores),
            frames,
            len(reference.frames),
            (arithmetic_name(reference.dialect, reference.conclusion),),
            (reference.fixture,),
        )
        for frames, scores in by_frames.items()
        if frames
    ]


def reference_seconds(run: Run) -> dict[str, float]:
    """Return the seconds of each reference backend; the candidates of a group share one run."""
    shared = {
        (c.reference, c.feature, c.arithmetic, c.options_name, c.fixture): result.reference_seconds
        for result in run.results
        for c in (result.cell,)
    }
    seconds: dict[str, float] = {}
    for (name, *_), value in shared.items():
        seconds[name] = seconds.get(name, 0.0) + value
    return seconds
