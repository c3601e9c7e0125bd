"""Runs the cells of operand corpora: blocks on all cores, each device in its own process."""

from __future__ import annotations

import os
import secrets
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from gate import environment, tasks
from gate.angle import INT64, SPELLING
from gate.compare import Incomparable
from gate.model import (
    UNFINISHED,
    Cell,
    Comparison,
    Mismatch,
    Result,
    Run,
    Status,
    counted,
    failure_sentence,
)
from gate.opening import Backends, Trouble, attempt, kernel_sha256, reference_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from backends.evidence import Evidence
    from backends.predicate import Block, Candidate, Corpus, Flags, Predicate
    from gate.angle import Asked
    from gate.opening import Facts, OpenBackend
    from gate.tasks import Tasks

T = TypeVar("T")
R = TypeVar("R")

LISTED = 100  # mismatches of a cell


def _spelling(candidate: str) -> str:
    """Return the spelling that a candidate on the CPU is, empty for a device."""
    return "int64" if candidate == INT64 else _wrong(candidate)


def _wrong(candidate: str) -> str:
    return candidate.removeprefix(SPELLING) if candidate.startswith(SPELLING) else ""


class _OnDevice(NamedTuple):
    """A device, which may be in another process."""

    predicate: str
    tasks: Tasks
    require_ran: Callable[[Evidence], None]

    def flags(self, block: Block) -> Flags:
        found = self.tasks.flags(self.predicate, block.operands)
        self.require_ran(found.evidence)
        return found.flags


class _Found(NamedTuple):
    """What came of one candidate on one block."""

    compared: int
    different: int
    first: tuple[Mismatch, ...]
    seconds: float


NOTHING = _Found(0, 0, (), 0.0)


def _compared(candidate: Candidate, block: Block, golden: Flags, output: str) -> _Found:
    began = perf_counter()
    flags = candidate.flags(block)
    if (flags.shape, flags.dtype) != (golden.shape, golden.dtype):
        message = (
            f"from sample {block.first} came flags {flags.dtype} {flags.shape}; "
            f"required: {golden.dtype} {golden.shape}"
        )
        raise Incomparable(message)
    different = np.flatnonzero(flags != golden)
    first = tuple(
        Mismatch(
            frame=block.first + index,
            score=output,
            reference=float(golden[index]),
            candidate=float(flags[index]),
            steps=None,
            unit="",
            operands=tuple(block.samples[index].tolist()),
        )
        for index in different[:LISTED].tolist()
    )
    return _Found(len(flags), len(different), first, perf_counter() - began)


class _Made(NamedTuple):
    """A block with its golden flags, and what came of the candidates on the CPU."""

    block: Block
    golden: Flags
    seconds: float
    found: Mapping[str, _Found | Trouble]


def _made(
    predicate: Predicate, corpus: Corpus, spelled: Mapping[str, Candidate], index: int
) -> _Made:
    block = predicate.block(corpus, index)
    began = perf_counter()
    golden = predicate.spelled("golden").flags(block)
    seconds = perf_counter() - began
    (output,) = predicate.outputs
    found = {
        name: attempt(partial(_compared, one, block, golden, output))
        for name, one in spelled.items()
    }
    return _Made(block, golden, seconds, found)


def _ahead(work: Callable[[T], R], items: Iterable[T]) -> Generator[R]:
    """Yield the results in order, computed on all cores and never far ahead of who takes them."""
    cores = len(os.sched_getaffinity(0))
    waiting = deque[Future[R]]()
    with ThreadPoolExecutor(cores) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > cores + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass
class _Tally:
    """What came of one candidate on a corpus so far; its first trouble ends it."""

    candidate: Candidate | Trouble
    found: _Found = NOTHING

    def add(self, found: _Found | Trouble) -> None:
        if isinstance(self.candidate, Trouble):
            return
        if isinstance(found, Trouble):
            self.candidate = found
            return
        so_far = self.found
        self.found = _Found(  # at once, for an interrupt may come at any time
            so_far.compared + found.compared,
            so_far.different + found.different,
            (*so_far.first, *found.first)[:LISTED],
            so_far.seconds + found.seconds,
        )

    def decide(self, made: _Made, output: str) -> None:
        """Let the candidate, a device, decide a block."""
        if not isinstance(self.candidate, Trouble):
            work = partial(_compared, self.candidate, made.block, made.golden, output)
            self.add(attempt(work))

    def result(self, cell: Cell, wrong: Mapping[str, str]) -> Result:
        found = self.found
        compared = Comparison(found.compared, 0, 0, found.different, found.first)
        if isinstance(self.candidate, Trouble):
            return _cut_short(cell, compared, self.candidate)
        if found.compared != cell.scores:
            sentence = f"{found.compared} samples were compared; required: {cell.scores}"
            return _cut_short(cell, compared, Trouble(Status.ERROR, sentence))
        return _judged(cell, compared, wrong)


def _cut_short(cell: Cell, comparison: Comparison, trouble: Trouble) -> Result:
    """Return the trouble; or FAIL where a candidate that must not differ differed before it."""
    if _wrong(cell.candidate) or not comparison.different:
        return trouble.result(cell)
    result = Result(cell, Status.FAIL, detail=trouble.detail, comparison=comparison)
    how_far = f"after {comparison.scores} of {counted(cell.scores, 'sample')}"
    reason = f"{failure_sentence(result)}; then: {trouble.reason}, {how_far}"
    return replace(result, reason=reason)


def _judged(cell: Cell, comparison: Comparison, wrong: Mapping[str, str]) -> Result:
    """Return PASS or FAIL; a wrong spelling must differ, and is KNOWN then."""
    spelling = _wrong(cell.candidate)
    if not spelling:
        status = Status.FAIL if comparison.different else Status.PASS
        result = Result(cell, status, comparison=comparison)
        return replace(result, reason=failure_sentence(result))
    if comparison.different:
        reason = f"a wrong spelling: {wrong[spelling]}"
        return Result(cell, Status.KNOWN, reason, comparison=comparison)
    reason = "agrees although it is a known wrong spelling"
    return Result(cell, Status.FAIL, reason, comparison=comparison)


class _Session:
    """The cells of one run and what has become of them so far."""

    def __init__(
        self,
        predicate: Predicate,
        backends: Backends,
        progress: Callable[[int], None],
        before: Mapping[str, str],
    ) -> None:
        self._predicate = predicate
        self._backends = backends
        self._progress = progress
        self._before = before  # what corpora had in the run whose cells are repeated
        self._samples = 0
        self._candidates: dict[str, Candidate | Trouble] = {}
        self.results: dict[str, Result] = {}  # by cell id
        self.fixtures: dict[str, str] = {}

    def prepare(self, names: Iterable[str]) -> None:
        """Make every candidate ready to work, or know why there is none."""
        for name in names:
            self._candidates[name] = self._prepared(name)

    def _prepared(self, name: str) -> Candidate | Trouble:
        if spelling := _spelling(name):
            return attempt(partial(self._predicate.spelled, spelling))
        if trouble := self._backends.trouble(name):
            return trouble
        device = tasks.asking(self._backends[name])
        return _OnDevice(self._predicate.name, device, partial(self._backends.require_ran, name))

    def execute(self, corpus: Corpus, cells: list[Cell]) -> None:
        """Give every cell of a corpus its result; an interrupt loses no mismatch."""
        tallies = {cell.candidate: _Tally(self._candidates[cell.candidate]) for cell in cells}
        idle = all(isinstance(tally.candidate, Trouble) for tally in tallies.values())
        try:
            seconds = 0.0 if idle else attempt(partial(self._decide, corpus, tallies))
        except KeyboardInterrupt:
            self._settle(cells, tallies, Trouble(Status.ERROR, UNFINISHED))
            raise
        self._settle(cells, tallies, seconds)

    def _settle(
        self, cells: list[Cell], tallies: Mapping[str, _Tally], seconds: float | Trouble
    ) -> None:
        """Turn tallies into results; trouble costs this corpus, no other."""
        for cell in cells:
            tally = tallies[cell.candidate]
            if isinstance(seconds, Trouble):
                tally.add(seconds)
            self.results[cell.id] = replace(
                tally.result(cell, self._predicate.wrong),
                reference_seconds=0.0 if isinstance(seconds, Trouble) else seconds,
                seconds=tally.found.seconds,
            )

    def _decide(self, corpus: Corpus, tallies: Mapping[str, _Tally]) -> float:
        """Let every candidate decide every sample; return the seconds of the golden predicate."""
        predicate = self._predicate
        ready = {n: t.candidate for n, t in tallies.items() if not isinstance(t.candidate, Trouble)}
        spelled = {name: one for name, one in ready.items() if _spelling(name)}
        (output,) = predicate.outputs
        samples, flags, seconds = 0, 0, 0.0
        work = partial(_made, predicate, corpus, spelled)
        with closing(_ahead(work, predicate.blocks(corpus))) as blocks:
            for made in blocks:
                for name in ready:
                    if name in spelled:
                        tallies[name].add(made.found[name])
                    else:
                        tallies[name].decide(made, output)
                samples += len(made.golden)
                flags += int(made.golden.sum())
                seconds += made.seconds
                self._progress(self._samples + samples)
        self._samples += samples
        told = self.fixtures[corpus.name] = f"{samples} samples, {flags} flags"
        if self._before.get(corpus.name, told) != told:
            message = f"{corpus.name} has {told}, and {self._before[corpus.name]} in the report"
            raise Incomparable(message)
        return seconds


def run(
    asked: Asked,
    cells: tuple[Cell, ...],
    *,
    selection: tuple[str, ...],
    command: str,
    open_backend: OpenBackend,
    progress: Callable[[int], None],
) -> Run:
    """Run `cells`, those of a corpus together; whatever fails becomes the result of its cells.

    Args:
        asked: what is to be run.
        cells: of `asked`, in its order.
        selection: the globs that chose the cells, for the record.
        command: the program and its options up to `--cell`, for whoever repeats a cell.
        open_backend: opens a backend by name, or raises Unavailable.
        progress: is told how many samples are decided so far.

    Returns:
        One result per cell, in the order of `cells`. Ctrl-C ends the run early: `interrupted` is
        set and every corpus that was finished is kept, of the last one every mismatch so far.
    """
    started, began, interrupted = datetime.now(UTC), perf_counter(), False
    backends = Backends(open_backend)
    session = _Session(asked.predicate, backends, progress, asked.fixtures)
    corpora = {corpus.name: corpus for corpus in asked.corpora}
    used = tuple(dict.fromkeys(cell.candidate for cell in cells))
    devices = [name for name in (*used, *asked.required) if not _spelling(name)]
    facts: dict[str, Facts] = {}
    try:
        facts = _environment(asked)
        try:
            backends.open(dict.fromkeys(devices))
            session.prepare(used)
            for name, group in groupby(cells, key=lambda cell: cell.fixture):
                session.execute(corpora[name], list(group))
        finally:
            backends.close()
    except KeyboardInterrupt:
        interrupted = True
    late = {cell.id: Result(cell, Status.ERROR, UNFINISHED) for cell in cells}
    return Run(
        id=secrets.token_hex(8),
        matrix=asked.title,
        selection=selection,
        planned=len(asked.cells),
        results=tuple((late | session.results).values()),
        references=(),
        missing=backends.missing(asked.required, used),
        notes=(),
        command=command,
        environment={**facts, **backends.facts(cells), "fixtures": session.fixtures},
        started=started.isoformat(timespec="seconds"),
        seconds=perf_counter() - began,
        interrupted=interrupted,
        rerun_of=asked.rerun_of,
        required=asked.required,
    )


def _environment(asked: Asked) -> dict[str, Facts]:
    """Return the sections of facts that do not come from backends and corpora."""
    feature, predicate = asked.feature, asked.predicate
    return {
        "gate": environment.gate(),
        "host": environment.host(),
        "matrix": asked.facts,
        f"feature {feature.name}": reference_facts(feature),
        "kernels": {predicate.name: kernel_sha256(predicate.kernel_source)},
    }
