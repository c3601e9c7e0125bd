"""The words of a run as immutable values; the only module that the report writers import."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from pydantic import PositiveInt

from backends.base import CONCLUSIONS
from backends.evidence import Proof

if TYPE_CHECKING:
    from collections.abc import Iterable

OptionValue = bool | int | float

UNSET = None
"""A score that an implementation leaves unset; equal only to UNSET."""

BOTH_REFUSE = "both sides refuse the same scores"
"""How the reason of a cell begins whose frames have no result on either side: an ERROR."""

UNFINISHED = "not finished"
"""Reason of a cell that has no result yet, or never got one; its status is ERROR."""


def arithmetic_name(dialect: str, conclusion: str) -> str:
    """Return a dialect's name with its conclusion, unless that is the default."""
    return dialect if conclusion == CONCLUSIONS[0] else f"{dialect}+{conclusion}"


class Status(StrEnum):
    """Status of a cell."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    KNOWN = "KNOWN"  # differs as a reviewed deviation says; counts as PASS and is always shown
    FAIL = "FAIL"
    NONDETERMINISTIC = "NONDETERMINISTIC"  # a side gives other bits when it is asked again
    ERROR = "ERROR"
    SKIP = "SKIP"


class ExitCode(IntEnum):
    """What the process returns; the first that applies, in the order INTERRUPTED .. OK."""

    INTERRUPTED = 130
    USAGE = 2
    FAIL = 1  # also NONDETERMINISTIC
    NOTHING = 3  # nothing selected, every cell skipped, or a required backend missing
    ERROR = 4
    OK = 0


@dataclass(frozen=True, slots=True)
class Deviation:
    """A reviewed entry about cells that are known to differ.

    Attributes:
        outputs: globs over the names of the outputs that may differ.
        reason: one sentence.
        owner: who answers for it.
        expires: the last day on which it holds, YYYY-MM-DD.
        place: file and line of the entry.
        not_finite: whether a side may also be NaN, infinite or UNSET.
    """

    outputs: tuple[str, ...]
    reason: str
    owner: str
    expires: str
    place: str
    not_finite: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the matrix: what is computed by both sides and compared.

    Attributes:
        feature, dialect, conclusion, fixture, candidate, reference: names, as in the matrix.
        options_name: the options' part of the id, `default` for defaults.
        options: the options that the matrix sets, by libvmaf's names.
        outputs: names of the scores of one frame.
        width, height: luma samples.
        line: line of the matrix file that declares the cell's product.
        skip: reason when the matrix declares the cell skipped, else empty.
        deviation: what is listed about the cell, if it is known to differ.
        timeout: seconds that each side may take, before its process is stopped.
    """

    feature: str
    dialect: str
    conclusion: str
    options_name: str
    fixture: str
    candidate: str
    reference: str
    options: Mapping[str, OptionValue]
    outputs: tuple[str, ...]
    width: int
    height: int
    bit_depth: int
    frames: int
    line: int
    skip: str = ""
    deviation: Deviation | None = None
    timeout: float = 300.0

    @property
    def id(self) -> str:
        """Stable name: feature/dialect/options/fixture/candidate."""
        names = (self.feature, self.arithmetic, self.options_name, self.fixture, self.candidate)
        return "/".join(names)

    @property
    def of(self) -> tuple[str, ...]:
        """What its reference computes: cells that share a reference's scores have the same."""
        arithmetic = (self.feature, self.dialect, self.conclusion, self.options_name)
        return (*arithmetic, self.fixture, self.reference)

    @property
    def arithmetic(self) -> str:
        """The dialect's part of the id: `rcpss-double`, `rcpss-double+vmafx`."""
        return arithmetic_name(self.dialect, self.conclusion)

    @property
    def scores(self) -> int:
        """Number of scores that a finished cell must have compared."""
        return self.frames * len(self.outputs)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One score of one frame, or one output of one operand of a corpus, whose bits differ.

    Attributes:
        frame: index of the frame, or of the operand in its corpus, from 0.
        score: output name.
        reference, candidate: both values; UNSET where a side leaves the score unset.
        steps: candidate minus reference in steps of `unit`, -0 to +0 as 1; none for UNSET or NaN.
        unit: `ulp32` when both values are float32 values, else `ulp64`; empty without steps.
        operands: integers that both sides were given, for an operand corpus only.
    """

    frame: int
    score: str
    reference: float | None
    candidate: float | None
    steps: int | None
    unit: str
    operands: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Bits of a candidate against bits of the reference, for one cell.

    Attributes:
        scores: number of scores compared (frames x outputs).
        nans, unsets: reference scores that are NaN / UNSET.
        different: number of scores that differ.
        mismatches: by frame, then in output order; all of pictures, the first of an operand corpus.
    """

    scores: int
    nans: int
    unsets: int
    different: int
    mismatches: tuple[Mismatch, ...]


@dataclass(frozen=True, slots=True)
class Control:
    """A side that was computed once more and compared with itself.

    Attributes:
        side: `reference` or `candidate`.
        how: what was another: `again`, `on one thread`, `in dirty memory`.
        scores, different: number of scores compared, and of those whose bits differ.
    """

    side: str
    how: str
    scores: int
    different: int


@dataclass(frozen=True, slots=True)
class Stability:
    """How the results of a candidate that was computed several times compare with each other.

    Attributes:
        runs: how often it was computed, at least 2.
        results: number of different results among them.
        rare: number of runs that gave another result than the most frequent one.
    """

    runs: int
    results: int
    rare: int

    @property
    def detection(self) -> float:
        """Probability that so many runs see a fault that shows as often as here."""
        return 1 - (1 - self.rare / self.runs) ** self.runs


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one cell.

    Attributes:
        reason: one sentence for every status but PASS; for FAIL the first mismatch.
        detail: compiler log or traceback, may be empty, may be long.
        comparison: present for PASS, KNOWN, FAIL and NONDETERMINISTIC.
        reference_seconds: time of the reference; it is shared by the candidates of a group.
        seconds: time of the candidate.
        controls: how the sides compare with themselves; for a sample of cells and for red ones.
        stability: present where the candidate was computed several times.
        proof: what the candidate's runtime showed the first time, where it was compared.
    """

    cell: Cell
    status: Status
    reason: str = ""
    detail: str = ""
    comparison: Comparison | None = None
    reference_seconds: float = 0.0
    seconds: float = 0.0
    controls: tuple[Control, ...] = ()
    stability: Stability | None = None
    proof: Proof | None = None

    @property
    def moved(self) -> tuple[str, ...]:
        """Sides that gave other bits when they were asked again."""
        sides = [control.side for control in self.controls if control.different]
        if self.stability is not None and self.stability.results > 1:
            sides.append("candidate")
        return tuple(dict.fromkeys(sides))

    @property
    def unstable(self) -> bool:
        """Whether a side gave other bits when it was asked again."""
        return bool(self.moved)


@dataclass(frozen=True, slots=True)
class ReferenceScores:
    """A reference's scores of one (feature, dialect, conclusion, options, fixture).

    Attributes:
        reference: the backend's name.
        names: output names, one per column.
        frames: the values of each frame; UNSET where one is left unset.
        cached: whether they were computed by an earlier run.
    """

    feature: str
    dialect: str
    conclusion: str
    options_name: str
    fixture: str
    reference: str
    names: tuple[str, ...]
    frames: tuple[tuple[float | None, ...], ...]
    cached: bool = False

    @property
    def of(self) -> tuple[str, ...]:
        """Return what the scores are of; no other reference of a run has the same."""
        arithmetic = (self.feature, self.dialect, self.conclusion, self.options_name)
        return (*arithmetic, self.fixture, self.reference)


@dataclass(frozen=True, slots=True)
class Shard:
    """Which part of a selection a run has.

    Attributes:
        index: from 1.
        count: how many shards there are.
        positions: of each result of the run in the whole selection, from 0, ascending.
        selected: number of cells of the whole selection.
    """

    index: int
    count: int
    positions: tuple[int, ...]
    selected: int


@dataclass(frozen=True, slots=True)
class Run:
    """Everything a report may say about one run.

    Attributes:
        id: random, the same in every report and in the journal of one run.
        matrix: the matrix file as given on the command line.
        selection: the `--cell` globs, empty for the whole matrix.
        planned: number of cells of the whole matrix, whatever the selection.
        results: one per selected cell, in plan order.
        references: the scores that candidates were compared with.
        command: the program and its options up to `--cell`, as this run was started.
        required: backends that must be there.
        rcp_table: the replayed table, as the command line named it; empty without one.
        missing: required backends that are not there, each as `name: reason`.
        notes: what every verdict must say: a replayed table, a fallback.
        environment: sections of facts (`gate`, `host`, `matrix`, `reference cpu`,
            `candidate opencl:pocl`, `fixtures` ...), the same for two runs on one machine.
        started: start of the run, ISO 8601 UTC.
        seconds: duration of the run.
        interrupted: whether it was stopped before its end, or still goes on.
        shard: the part of the selection that this run has, if not all of it.
        rerun_of: id of the run whose cells this one repeats, if it does.
        repeat: how often each candidate is computed.
        sample: the controlled references, as `feature/dialect/conclusion/options/fixture/name`.
    """

    id: str
    matrix: str
    selection: tuple[str, ...]
    planned: int
    results: tuple[Result, ...]
    references: tuple[ReferenceScores, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    command: str
    environment: Mapping[str, Mapping[str, str]]
    started: str
    seconds: float
    interrupted: bool
    shard: Shard | None = None
    rerun_of: str = ""
    required: tuple[str, ...] = ()
    rcp_table: str = ""
    repeat: PositiveInt = 1
    sample: tuple[str, ...] = ()

    def count(self, status: Status) -> int:
        """Return the number of cells with this status."""
        return [result.status for result in self.results].count(status)

    @property
    def scores(self) -> int:
        """Number of scores compared."""
        return sum(r.comparison.scores for r in self.results if r.comparison is not None)

    @property
    def different(self) -> int:
        """Number of scores whose bits differ."""
        return _different(self.results)

    @property
    def exit_code(self) -> ExitCode:
        """Return the code of the process, by the rules of DESIGN.md."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.count(Status.FAIL) or self.count(Status.NONDETERMINISTIC):
            return ExitCode.FAIL
        if self.missing or self._nothing:
            return ExitCode.NOTHING
        return ExitCode.ERROR if self.count(Status.ERROR) else ExitCode.OK

    @property
    def _nothing(self) -> bool:
        """Whether nothing was proved; an empty shard of a selection leaves that to the others."""
        empty_shard = self.shard is not None and self.shard.selected > 0 and not self.results
        return self.count(Status.SKIP) == len(self.results) and not empty_shard

    @property
    def unfinished(self) -> int:
        """Number of cells without a result."""
        late = (Status.ERROR, UNFINISHED)
        return sum((result.status, result.reason) == late for result in self.results)

    @property
    def verdict(self) -> str:
        """Return one line: the verdict and the counts behind it."""
        cells = counted(len(self.results), "cell")
        if self.selection or self.shard or self.rerun_of:
            cells = f"{len(self.results)} of {counted(self.planned, 'cell')}"
        if self.shard:
            cells += f" (shard {self.shard.index} of {self.shard.count})"
        if self.rerun_of:
            cells += f" (repeated of run {self.rerun_of})"
        counts = {status: self.count(status) for status in Status}
        counts[Status.ERROR] -= self.unfinished
        parts = [cells, *(f"{number} {status}" for status, number in counts.items() if number)]
        if self.unfinished:
            parts.append(f"{self.unfinished} did not finish")
        parts.append(f"{counted(self.scores, 'score')} compared, {self.different} different")
        if known := _different(r for r in self.results if r.status is Status.KNOWN):
            parts[-1] += f" ({known} known)"
        unstable = (r for r in self.results if r.status is Status.NONDETERMINISTIC)
        if moved := _different(r for r in unstable if "reference" in r.moved):
            parts[-1] += f" ({moved} where the reference moved)"
        if cached := sum(scores.cached for scores in self.references):
            results = counted(len(self.references), "reference result")
            parts.append(f"{cached} of {results} from the cache")
        parts += [f"required backend missing: {name}" for name in self.missing]
        parts += self.notes
        return f"{self._word}: {', '.join(parts)}"

    @property
    def _word(self) -> str:
        if self.exit_code is ExitCode.NOTHING and not self._nothing:
            return "BACKEND MISSING"
        return {
            ExitCode.OK: "PASS",
            ExitCode.FAIL: "FAIL",
            ExitCode.ERROR: "ERROR",
            ExitCode.NOTHING: "NOTHING PROVED",
            ExitCode.INTERRUPTED: "INTERRUPTED",
        }[self.exit_code]

    def repeat_command(self, cell: Cell) -> str:
        """Return the exact command that repeats this one cell."""
        return f"{self.command} --cell {shlex.quote(cell.id)}"


def _different(results: Iterable[Result]) -> int:
    return sum(r.comparison.different for r in results if r.comparison is not None)


def counted(number: int, word: str) -> str:
    """Return `1 cell`, `2 cells`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def exact(value: float | None) -> str:
    """Return a score as C99 hex float without trailing zeros; UNSET and nan by name."""
    if value is None:
        return "UNSET"
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else f"{value:+}".replace("+", "")
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}"


def decimal(value: float | None) -> str:
    """Return a score as the shortest decimal that reads back to the same bits."""
    return "UNSET" if value is None else repr(value)


def steps_apart(mismatch: Mismatch) -> str:
    """Return the signed distance, for example `-1 ulp32`, or why there is none."""
    if mismatch.steps is None:
        return "no distance"
    return f"{mismatch.steps:+d} {mismatch.unit}"


def place_of(mismatch: Mismatch) -> str:
    """Return where a mismatch is: `frame 3 adm2`, `operand 7 (1, -2, 3, 4) flag`."""
    if mismatch.operands:
        operands = ", ".join(map(str, mismatch.operands))
        return f"operand {mismatch.frame} ({operands}) {mismatch.score}"
    return f"frame {mismatch.frame} {mismatch.score}"


def mismatch_sentence(mismatch: Mismatch) -> str:
    """Return where and what: exact values and their distance; of operands plain integers."""
    sides = mismatch.candidate, mismatch.reference
    if mismatch.operands:
        candidate, reference = (decimal(side).removesuffix(".0") for side in sides)
        return f"{place_of(mismatch)}: {candidate} expected {reference}"
    candidate, reference = map(exact, sides)
    return f"{place_of(mismatch)}: {candidate} expected {reference} ({steps_apart(mismatch)})"


def failure_sentence(result: Result) -> str:
    """Return a FAIL's first mismatch and the counts; the reason where there is no mismatch."""
    comparison = result.comparison
    if comparison is None or not comparison.mismatches:
        return result.reason
    counts = f"{comparison.different} of {counted(comparison.scores, 'score')}"
    return f"{mismatch_sentence(comparison.mismatches[0])}, {counts}"


def control_sentence(control: Control, name: str) -> str:
    """Return which side moved against itself, how, and how far; `name` is the backend's."""
    scores = f"{control.different} of {counted(control.scores, 'score')}"
    blame = ", so it judges no candidate" if control.side == "reference" else ""
    return f"{control.side} {name} gave other bits when computed {control.how} ({scores}){blame}"


def stability_sentence(candidate: str, stability: Stability) -> str:
    """Return how often a candidate moved, and how surely so many runs see what does so."""
    runs, rare = counted(stability.runs, "run"), counted(stability.rare, "run")
    moved = f"{candidate} gave {stability.results} different results in {runs}"
    surely = f"{min(stability.detection, 0.99):.2f}"  # two digits must not make it certain
    return (
        f"{moved}, {rare} unlike the most frequent; "
        f"{runs} see a fault as frequent with probability {surely}"
    )
