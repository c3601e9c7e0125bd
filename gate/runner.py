"""Runs cells: the reference once a group, every candidate, and one result a cell in any case."""

from __future__ import annotations

import secrets
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from backends import registry
from backends.base import Arithmetic
from gate import compare, control, environment, plan
from gate.asking import Ask, Known
from gate.cache import REPLAYED
from gate.control import Controls
from gate.errors import FixtureError
from gate.fixtures import open_fixture
from gate.judging import Judge
from gate.model import (
    UNFINISHED,
    UNSET,
    Cell,
    ReferenceScores,
    Result,
    Run,
    Status,
)
from gate.opening import Backends, Trouble, attempt, kernel_sha256, reference_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from backends.base import Feature, Options, Scores
    from backends.reciprocal import RcpTable
    from gate.asking import Pending
    from gate.cache import ReferenceCache
    from gate.fixtures import OpenFixture
    from gate.matrix import Matrix
    from gate.model import Shard
    from gate.opening import Facts, OpenBackend


CACHED = "the reference's scores came from the cache; --no-cache computes them"
AHEAD = 16  # references that are asked for before the first of them is needed


class Progress:
    """Who wants to know how far the run is; this one does not."""

    def begins(self, state: Callable[[], Run]) -> None:
        """Nothing ran yet; `state` returns the run as it is when asked, from any thread."""

    def knows(self, section: str, facts: Facts) -> None:
        """More of a section of the environment is known."""

    def computed(self, scores: ReferenceScores) -> None:
        """A reference has its scores."""

    def starts(self, cell: Cell) -> None:
        """`cell` is about to run; cells that need no run never start."""

    def done(self, result: Result) -> None:
        """A cell has its result."""

    def amended(self, result: Result) -> None:
        """A cell that is done has another result now."""


class Changed(Exception):  # noqa: N818 - a state of this machine, not a mistake
    """A run cannot go on here; the text says what is not as it was when it began."""


def begun(  # noqa: PLR0913 - all of it is independent
    matrix: Matrix,
    cells: tuple[Cell, ...],
    *,
    planned: int,
    command: str,
    selection: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    rcp_table: str = "",
    shard: Shard | None = None,
    rerun_of: str = "",
    repeat: int = 1,
    sample: tuple[str, ...] | None = None,
    notes: tuple[str, ...] = (),
    fixtures: Facts | None = None,
) -> Run:
    """Return a run of `cells` before anything ran; none of them is finished.

    Args:
        matrix: declares the cells' fixtures.
        cells: what to run, grouped by fixture, then by (feature, dialect, options).
        planned: number of cells of the whole matrix.
        command: the program and its options up to `--cell`, for whoever repeats a cell.
        selection: the globs that chose the cells, for the record.
        required: backends that must be there, whether or not a cell uses them.
        rcp_table: the replayed table, as the command line names it.
        shard: the part of the selection that `cells` are.
        rerun_of: id of the run whose cells these repeat.
        repeat: how often each candidate is computed.
        sample: references for control, of the whole selection; by default drawn from `cells`.
        notes: what the verdict must say, beside what the arithmetic makes it say.
        fixtures: facts of pictures, by name, that must be the same; others are an ERROR.
    """
    here = set(map(control.named, cells))
    chosen = control.sample(cells) if sample is None else sample
    return Run(
        id=secrets.token_hex(8),
        matrix=str(matrix.path),
        selection=selection,
        planned=planned,
        results=tuple(Result(cell, Status.ERROR, UNFINISHED) for cell in cells),
        references=(),
        missing=(),
        notes=notes,
        command=command,
        environment={"matrix": _declared(matrix), **({"fixtures": fixtures} if fixtures else {})},
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=0.0,
        interrupted=True,  # until it ends, should nothing else be written of it
        shard=shard,
        rerun_of=rerun_of,
        repeat=repeat,
        sample=tuple(name for name in chosen if name in here),
        required=required,
        rcp_table=rcp_table,
    )


def run(
    matrix: Matrix,
    unfinished: Run,
    *,
    open_backend: OpenBackend,
    progress: Progress,
    rcp_table: RcpTable | None = None,
    cache: ReferenceCache | None = None,
) -> Run:
    """Finish a run; whatever fails becomes the result of the cells that depend on it.

    Args:
        matrix: declares the cells' fixtures.
        unfinished: what `begun` returned, or what is left of a run that stopped; results that it
            has stay as they are.
        open_backend: opens a backend by name, or raises Unavailable.
        progress: is told about each cell.
        rcp_table: another processor's reciprocal estimate, for both sides of every cell.
        cache: has scores of references from earlier runs.

    Returns:
        One result per cell, in the order of `unfinished`. Ctrl-C ends the run early: `interrupted`
        is set and everything computed is kept.

    Raises:
        Changed: the run began under other circumstances.
    """
    backends = Backends(open_backend)
    session = _Session(matrix, unfinished, backends, progress, rcp_table, cache)
    try:
        progress.begins(session.state)
        session.look_around()
        try:
            session.open_backends()
            session.execute()
        finally:
            backends.close()
    except KeyboardInterrupt:
        return session.state()
    return replace(session.state(), interrupted=False)


def _used(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return the backends that the cells need; a declared skip needs none."""
    return tuple(name for c in cells if not c.skip for name in (c.reference, c.candidate))


class _Group(NamedTuple):
    """Cells that are compared with the same scores, and what was asked for them.

    Attributes:
        key: of the reference's scores in the cache, if they may be there.
        cached: whether they are there.
        candidates: of each cell, as often as it is to be computed.
    """

    cells: list[Cell]
    ask: Ask
    key: str | None
    cached: bool
    reference: Pending
    candidates: list[list[Pending]]


class _Session:
    """The cells of one run and what has become of them so far."""

    def __init__(
        self,
        matrix: Matrix,
        unfinished: Run,
        backends: Backends,
        progress: Progress,
        rcp_table: RcpTable | None,
        cache: ReferenceCache | None,
    ) -> None:
        self._matrix = matrix
        self._run = unfinished
        self._cells = tuple(result.cell for result in unfinished.results)
        self._backends = backends
        self._progress = progress
        self._rcp_table = rcp_table
        self._cache = cache
        self._began = perf_counter()
        late = (Status.ERROR, UNFINISHED)
        self._results = {  # by cell id
            result.cell.id: result
            for result in unfinished.results
            if (result.status, result.reason) != late
        }
        self._references = {scores.of: scores for scores in unfinished.references}
        self._facts: dict[str, Facts] = {}
        self._deciding: dict[str, Facts] = {}  # the bits of references
        self._fixtures = dict(unfinished.environment.get("fixtures", {}))
        controls = Controls(backends, unfinished.sample)
        self._judge = Judge(controls, datetime.now(UTC).date())

    def state(self) -> Run:
        """Return the run as far as it is: an interrupted one."""
        blank = (self._results.get(result.cell.id, result) for result in self._run.results)
        facts = {**self._facts, **self._backends.facts(self._cells), "fixtures": self._fixtures}
        return replace(
            self._run,
            results=tuple(blank),
            references=tuple(self._references.values()),
            missing=self._backends.missing(self._run.required, _used(self._cells)),
            notes=tuple(dict.fromkeys((*_notes(self._cells, self._rcp_table), *self._run.notes))),
            environment={title: dict(section) for title, section in facts.items()},
            seconds=self._run.seconds + perf_counter() - self._began,
            interrupted=True,
        )

    def look_around(self) -> None:
        """Collect the facts that do not come from backends and fixtures."""
        self._facts = _environment(self._matrix, self._cells)
        self._tell(self._facts)

    def open_backends(self) -> None:
        """Open all that the cells use or that are required."""
        self._backends.open(dict.fromkeys((*_used(self._cells), *self._run.required)))
        facts = self._backends.facts(self._cells)
        self._tell(facts)
        table = "none" if self._rcp_table is None else self._rcp_table.sha256
        self._deciding = {**self._facts, **facts, REPLAYED: {"sha256": table}}
        for title in self._run.environment:
            if title.partition(" ")[0] in ("reference", "candidate") and title not in facts:
                message = f"{title}: it was here when the run began; bring it back or start anew"
                raise Changed(message)

    def _tell(self, sections: Mapping[str, Facts]) -> None:
        for title, facts in sections.items():
            before = self._run.environment.get(title, facts)
            if before != facts:
                changed = [key for key in {**before, **facts} if before.get(key) != facts.get(key)]
                message = f"{title}: {', '.join(changed)} changed since the run began; start anew"
                raise Changed(message)
            self._progress.knows(title, facts)

    def execute(self) -> None:
        """Give every cell its result."""
        to_run = []
        for cell in self._cells:
            if cell.id in self._results:
                continue
            trouble = self._before_running(cell)
            if trouble is None:
                to_run.append(cell)
            else:
                self._finish(trouble.result(cell))
        for name, cells in groupby(to_run, key=lambda cell: cell.fixture):
            self._run_fixture(name, list(cells))

    def _before_running(self, cell: Cell) -> Trouble | None:
        """Return why the cell cannot or need not run, if so."""
        if cell.skip:
            return Trouble(Status.SKIP, cell.skip)
        reference = self._backends.trouble(cell.reference)
        if reference is not None:
            return _of_reference(reference, cell)
        return self._backends.trouble(cell.candidate) or self._cannot_replay(cell)

    def _cannot_replay(self, cell: Cell) -> Trouble | None:
        """Return why the candidate cannot follow the run's table, of which the plan knows nothing.

        A required candidate has to; of another one the person who replays expects no more.
        """
        if self._rcp_table is None:
            return None
        declined = registry.refusal(cell.candidate, *self._asked(cell))
        status = Status.ERROR if cell.candidate in self._run.required else Status.SKIP
        return Trouble(status, declined) if declined else None

    def _run_fixture(self, name: str, cells: list[Cell]) -> None:
        trouble = attempt(partial(self._run_groups, name, cells))
        if trouble is None:
            return
        unfinished = [cell for cell in cells if cell.id not in self._results]
        for cell in unfinished:
            self._finish(trouble.result(cell))
        if not unfinished:  # only closing it failed: what was compared stays as it is
            self._knows_fixture({f"{name}: closing failed": trouble.reason})

    def _run_groups(self, name: str, cells: list[Cell]) -> None:
        spec, root = self._matrix.fixtures[name], self._matrix.path.parent
        with open_fixture(name, spec, root) as clip:
            digests = {f"{name}.{side}": digest for side, digest in clip.sha256.items()}
            self._knows_fixture(digests)
            try:
                self._run_ahead(cells, clip)
            finally:
                self._backends.forget()

    def _run_ahead(self, cells: list[Cell], clip: OpenFixture) -> None:
        """Run a fixture's cells; backends compute the next ones while the gate compares."""
        begun: deque[_Group] = deque()
        for _, group in groupby(cells, key=attrgetter("of")):
            begun.append(self._begin(list(group), clip))
            if len(begun) > AHEAD:
                self._conclude(begun.popleft())
        for waiting in begun:
            self._conclude(waiting)

    def _begin(self, cells: list[Cell], clip: OpenFixture) -> _Group:
        ask, key = self._ask(cells[0], clip), self._key(cells[0], clip)
        known = self._cache.load(key) if self._cache and key else None
        reference = Known(known) if known else self._backends.begin(cells[0].reference, ask)
        candidates = [
            [
                self._backends.begin(cell.candidate, _patient(ask, cell))
                for _ in range(self._run.repeat)
            ]
            for cell in cells
        ]
        return _Group(cells, ask, key, known is not None, reference, candidates)

    def _conclude(self, group: _Group) -> None:
        self._progress.starts(group.cells[0])
        reference, seconds = self._reference(group)
        for number, (cell, runs) in enumerate(zip(group.cells, group.candidates, strict=True)):
            if number:
                self._progress.starts(cell)
            result = self._judge.judged(cell, group.ask, reference, runs)
            if "reference" in result.moved:
                result = self._disowned(group, result)
            took = sum(run.seconds for run in runs)
            self._finish(replace(result, reference_seconds=seconds, seconds=took))
        for cell in group.cells:
            self._amend(group, cell)

    def _reference(self, group: _Group) -> tuple[Scores | Trouble, float]:
        """Return a group's reference, and the seconds that it took."""
        found = attempt(group.reference.scores)
        if not isinstance(found, Trouble):
            found = attempt(partial(self._recorded, group, found))
        if isinstance(found, Trouble):
            found = _of_reference(found, group.cells[0])
        return found, group.reference.seconds

    def _recorded(self, group: _Group, scores: Scores) -> Scores:
        cell = group.cells[0]
        compare.require_structure("reference", scores, cell.frames, cell.outputs)
        recorded = _recorded(cell, scores, cached=group.cached)
        before = self._references.setdefault(recorded.of, recorded)
        if not compare.same(before, recorded):
            message = "it gave other bits before this run was resumed; start anew"
            raise compare.Incomparable(message)
        self._progress.computed(recorded)
        if self._cache and group.key and not group.cached:
            self._cache.store(group.key, scores)
        return scores

    def _amend(self, group: _Group, cell: Cell) -> None:
        """Change the result of a cell whose reference moved beside a later one."""
        result = self._results[cell.id]
        late = self._judge.controls.late(result)
        if late is not result:
            self._results[cell.id] = self._disowned(group, late)
            self._progress.amended(self._results[cell.id])

    def _disowned(self, group: _Group, result: Result) -> Result:
        """Let no later run take the scores of a reference that moved."""
        if self._cache and group.key:
            self._cache.forget(group.key)
        return replace(result, reason=f"{result.reason}; {CACHED}") if group.cached else result

    def _key(self, cell: Cell, clip: OpenFixture) -> str | None:
        if self._cache is None:
            return None
        # A file's bytes do not tell how they are read.
        declared = {"declared": repr(self._matrix.fixtures[cell.fixture])}
        return self._cache.key(cell, {**clip.sha256, **declared}, self._deciding)

    def _ask(self, cell: Cell, clip: OpenFixture) -> Ask:
        feature, arithmetic, options = self._asked(cell)
        return Ask(feature, arithmetic, options, clip, cell.timeout)

    def _asked(self, cell: Cell) -> tuple[Feature, Arithmetic, Options]:
        """Return what a cell asks of a backend, but for the clip."""
        feature = registry.features()[cell.feature]
        options = feature.options.model_validate(dict(cell.options))
        return feature, Arithmetic(cell.dialect, cell.conclusion, self._rcp_table), options

    def _knows_fixture(self, facts: Facts) -> None:
        for key, value in facts.items():
            if self._fixtures.get(key, value) != value:
                message = f"fixture {key} is {value}, and {self._fixtures[key]} before; start anew"
                raise FixtureError(message)
        self._fixtures |= facts
        self._progress.knows("fixtures", facts)

    def _finish(self, result: Result) -> None:
        self._results[result.cell.id] = result
        self._progress.done(result)


def _patient(ask: Ask, cell: Cell) -> Ask:
    """Return what a cell asks, which takes no longer than it may."""
    return ask if ask.timeout == cell.timeout else replace(ask, timeout=cell.timeout)


def _of_reference(trouble: Trouble, cell: Cell) -> Trouble:
    """Return trouble of the reference: an ERROR, since nothing can be compared with it."""
    reason = f"reference {cell.reference}: {trouble.reason}"
    return replace(trouble, status=Status.ERROR, reason=reason)


def _recorded(cell: Cell, scores: Scores, *, cached: bool) -> ReferenceScores:
    rows = zip(scores.values.tolist(), scores.unset.tolist(), strict=True)
    frames = tuple(
        tuple(UNSET if unset else value for value, unset in zip(*row, strict=True)) for row in rows
    )
    arithmetic = (cell.feature, cell.dialect, cell.conclusion)
    names = (*arithmetic, cell.options_name, cell.fixture, cell.reference)
    return ReferenceScores(*names, scores.names, frames, cached)


def _notes(cells: Iterable[Cell], rcp_table: RcpTable | None) -> tuple[str, ...]:
    """Return what the cells' arithmetic makes every verdict say, each note once."""
    kinds = dict.fromkeys((cell.feature, cell.dialect, cell.conclusion) for cell in cells)
    notes: dict[str, None] = {}
    for name, dialect, conclusion in kinds:
        arithmetic = Arithmetic(dialect, conclusion, rcp_table)
        notes |= dict.fromkeys(registry.features()[name].notes(arithmetic))
    return tuple(notes)


def _declared(matrix: Matrix) -> Facts:
    """Return what a report needs to know where its cells come from."""
    facts = {"path": str(matrix.path), "sha256": matrix.sha256, "version": str(matrix.version)}
    if matrix.deviations is not None:
        facts["deviations"] = f"{matrix.deviations.path} sha256 {matrix.deviations.sha256}"
    return {**facts, **matrix.drawn}


def _environment(matrix: Matrix, cells: tuple[Cell, ...]) -> dict[str, Facts]:
    """Return the sections of facts that do not come from backends and fixtures."""
    names = dict.fromkeys(cell.feature for cell in cells)
    features = {name: registry.features()[name] for name in names}
    sections = {
        "gate": environment.gate(),
        "host": environment.host(),
        "matrix": _declared(matrix),
        "warnings": matrix.warnings,
        "names shared by option sets": plan.shared_names(cells),
        **{f"feature {name}": reference_facts(feature) for name, feature in features.items()},
        "kernels": {
            name: kernel_sha256(feature.kernel_source) for name, feature in features.items()
        },
    }
    return {title: facts for title, facts in sections.items() if facts}
