"""What `parity-gate angle` can be asked: who decides the angle flag, on which operand corpora."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from backends import registry
from backends.base import CONCLUSIONS, Refused
from gate.document import unknown
from gate.model import Cell, ExitCode
from gate.terminal import require_candidates, stop

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from backends.base import Feature
    from backends.predicate import Corpus, Predicate
    from gate.model import Run

NAME = "angle_flag"
REFERENCE = "cpu"
INT64 = "cpu:int64"
SPELLING = "spelling:"  # and a wrong one
DEVICES = ("opencl:pocl", "opencl:nvidia", "cuda")
LIBVMAF = "libvmaf"  # a backend that has no kernels
NEAR_ONLY = "wrong spellings run on near-parallel corpora only"

FullOption = Annotated[
    bool, typer.Option("--full", help="all samples, 339 million; by default 19 million of them")
]
CandidateOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help=f"a device, {INT64} or a wrong spelling such as {SPELLING}a; may be repeated; by "
        f"default {', '.join(DEVICES)} where they are, and all others",
    ),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person wants to be run.

    Attributes:
        title: takes a matrix's place in reports.
        feature: the one that has the predicate.
        predicate: the angle flag.
        corpora: all of them.
        cells: one for each corpus and candidate; wrong spellings have those corpora only that tell
            all of them from the golden one.
        required: backends that must be there.
        arguments: those of the command line that a cell needs to be repeated.
        facts: the same for a report, which a program that runs its cells again reads.
        rerun_of: id of the run whose cells are repeated, if they are.
        fixtures: what that run's report says of corpora, by name.
    """

    title: str
    feature: Feature
    predicate: Predicate
    corpora: tuple[Corpus, ...]
    cells: tuple[Cell, ...]
    required: tuple[str, ...]
    arguments: tuple[str, ...]
    facts: Mapping[str, str]
    rerun_of: str = ""
    fixtures: Mapping[str, str] = field(default_factory=dict)

    def samples(self, cells: Iterable[Cell]) -> int:
        """Return the number of samples of the corpora of some cells."""
        named = {cell.fixture for cell in cells}
        return sum(corpus.samples for corpus in self.corpora if corpus.name in named)

    def kept_off(self, candidate: str, cells: Iterable[Cell]) -> bool:
        """Return whether a candidate has no cell on any corpus of some cells."""
        named = {cell.fixture for cell in cells}
        own = {cell.fixture for cell in self.cells if cell.candidate == candidate}
        return not named & own

    @property
    def names(self) -> str:
        """Return the names that a cell's id may end with."""
        corpora = ", ".join(corpus.name for corpus in self.corpora)
        candidates = ", ".join(dict.fromkeys(cell.candidate for cell in self.cells))
        return f"corpora: {corpora}; candidates: {candidates}"


def found() -> tuple[Feature, Predicate]:
    """Return the angle flag and its feature; where no feature has it the program ends."""
    predicates = registry.predicates()
    if NAME not in predicates:
        broken = "".join(f"; {module}: {error}" for module, error in registry.broken().items())
        stop(ExitCode.ERROR, f"no feature that can be imported has the predicate {NAME}{broken}")
    return predicates[NAME]


def asked(
    candidates: list[str] | None,
    required: list[str] | None,
    *,
    full: bool,
    told: str = "--candidate",
) -> Asked:
    """Return what the options ask for; a name that names nothing ends the program.

    Args:
        candidates: names; all that are known without one.
        required: names among them.
        full: whether the corpora are the full ones.
        told: where the names of candidates come from.
    """
    feature, predicate = found()
    wrong = tuple(f"{SPELLING}{spelling}" for spelling in predicate.wrong)
    devices = (n for n in registry.backend_names() if n not in (REFERENCE, LIBVMAF))
    allowed = (INT64, *devices, *wrong)
    default = (INT64, *DEVICES, *wrong)
    names = tuple(dict.fromkeys(candidates or default))
    _require_known(told, names, allowed)
    _require_known("--require", required or (), allowed)
    require_candidates(required or (), names)
    try:
        corpora = predicate.corpora(full=full)
    except Refused as refusal:  # there is no compiled reference
        stop(ExitCode.ERROR, str(refusal))
    cells = tuple(_cells(feature, predicate, corpora, names))
    for name in names:
        if name not in {cell.candidate for cell in cells}:
            stop(ExitCode.USAGE, f"{told} {name} has no cell: {NEAR_ONLY}")
    arguments = ["angle", *(["--full"] if full else [])]
    spelled = repr((corpora, names))
    return Asked(
        title=" ".join(arguments),
        feature=feature,
        predicate=predicate,
        corpora=corpora,
        cells=cells,
        required=tuple(required or ()),
        arguments=(
            *arguments,
            *(f"--candidate={name}" for name in (() if names == default else names)),
        ),
        facts={
            "sha256": hashlib.sha256(spelled.encode()).hexdigest(),
            "full": "yes" if full else "no",
            "candidates": " ".join(names),
        },
    )


def asked_again(report: str, facts: Mapping[str, str]) -> Asked:
    """Return what a report says that was asked for; if that has changed the program ends.

    Args:
        report: its name.
        facts: of what takes a matrix's place in it, by name; they may come from anybody.
    """
    names, full = facts.get("candidates", "").split(), facts.get("full") == "yes"
    again = asked(names, None, full=full, told=f"{report}: candidate")
    if again.facts != {name: facts.get(name) for name in again.facts}:
        sentence = f"the corpora of `{again.title}` are not the report's here"
        stop(ExitCode.USAGE, f"{report}: {sentence}; repeat it with the version that made them")
    return again


def _require_known(option: str, names: Iterable[str], allowed: tuple[str, ...]) -> None:
    for name in names:
        if name == LIBVMAF:
            told = f"{name} has no kernels; allowed: {', '.join(allowed)}"
            stop(ExitCode.USAGE, f"{option}: {told}")
        if name not in allowed:
            stop(ExitCode.USAGE, f"{option}: {unknown('candidate', name, allowed)}")


def _cells(
    feature: Feature, predicate: Predicate, corpora: Iterable[Corpus], names: tuple[str, ...]
) -> Iterator[Cell]:
    for corpus in corpora:
        for name in names:
            if not name.startswith(SPELLING) or corpus.source == predicate.telling:
                yield _cell(feature, predicate, corpus, name)


def _cell(feature: Feature, predicate: Predicate, corpus: Corpus, candidate: str) -> Cell:
    return Cell(
        feature=predicate.name,
        dialect=feature.dialects[0],
        conclusion=CONCLUSIONS[0],
        options_name="default",
        fixture=corpus.name,
        candidate=candidate,
        reference=REFERENCE,
        options={},
        outputs=predicate.outputs,
        width=0,  # there are no pictures
        height=0,
        bit_depth=0,
        frames=corpus.samples,
        line=0,
    )


def table(asked: Asked, run: Run) -> Table:
    """Return how many samples each candidate flags unlike the golden predicate, on near ones."""
    told = [corpus for corpus in asked.corpora if corpus.source == asked.predicate.telling]
    counts: dict[str, dict[str, str]] = {corpus.name: {} for corpus in told}
    for result in run.results:
        if result.cell.fixture in counts and result.comparison is not None:
            counts[result.cell.fixture][result.cell.candidate] = str(result.comparison.different)
    columns = dict.fromkeys(name for row in counts.values() for name in row)
    table = Table("corpus", box=box.SIMPLE_HEAD)
    for name in ("samples", *columns):
        table.add_column(name, justify="right")
    for corpus in told:
        if row := counts[corpus.name]:
            cells = (row.get(column, "") for column in columns)
            table.add_row(corpus.name, str(corpus.samples), *cells)
    return table
