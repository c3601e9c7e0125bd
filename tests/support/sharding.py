"""A run of many kinds of cells, as a whole and as what its shards report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gate import plan
from gate.model import (
    UNFINISHED,
    Cell,
    Comparison,
    Control,
    Mismatch,
    ReferenceScores,
    Result,
    Run,
    Shard,
    Stability,
    Status,
)

OUTPUTS = ("adm2", "aim")
FRAMES = ((-0.0, math.nan), (None, math.inf))
FALLBACK = "no reciprocal estimate here"
BROKEN = "opencl:pocl: the probe differs"
STARTED = "2030-01-02T03:04:05+00:00"


def make_cell(fixture: str = "a", candidate: str = "cuda", **others: object) -> Cell:
    cell = Cell(
        feature="float_adm",
        dialect="rcpss-double",
        conclusion="netflix",
        options_name="default",
        fixture=fixture,
        candidate=candidate,
        reference="cpu",
        options={},
        outputs=OUTPUTS,
        width=17,
        height=17,
        bit_depth=8,
        frames=2,
        line=1,
    )
    return replace(cell, **others)  # type: ignore[arg-type]  # any field, by its name


def make_cells() -> list[Cell]:
    """64 cells of 32 references on four fixtures, in plan order."""
    kinds = (("float_adm", "rcpss-double"), ("float_adm", "ieee"), ("integer_adm", "netflix"))
    axes = (("b", "a.x", "a", "a-8"), (*kinds, ("integer_adm", "vmafx")), ("debug", "default"))
    return [
        make_cell(
            fixture, candidate, feature=feature, dialect=dialect, options_name=name, reference=ref
        )
        for fixture, (feature, dialect), name in itertools.product(*axes)
        for candidate, ref in (("opencl:pocl", "cpu"), ("cuda", "cpu"))
    ]


def result_of(position: int, cell: Cell) -> Result:
    """A result of every status in turn, no two alike."""
    mismatch = Mismatch(position, "aim", 0.0, -0.0, -1, "ulp32")
    equal, differs = Comparison(4, 2, 1, 0, ()), Comparison(4, 2, 1, 1, (mismatch,))
    found = (
        Result(cell, Status.PASS, comparison=equal),
        Result(cell, Status.FAIL, f"frame {position} differs", comparison=differs),
        Result(cell, Status.KNOWN, "listed", comparison=differs),
        Result(
            cell,
            Status.NONDETERMINISTIC,
            "moves",
            comparison=equal,
            controls=(Control("reference", "on one thread", 4, position),),
            stability=Stability(position, 2, 1),
        ),
        Result(cell, Status.SKIP, "not here"),
        Result(cell, Status.ERROR, "does not compile", "log"),
        Result(cell, Status.ERROR, UNFINISHED),
    )
    return replace(found[position % len(found)], seconds=float(position))


def environment_of(cells: Sequence[Cell]) -> dict[str, dict[str, str]]:
    """What a run of these cells knows, in the order in which the runner lists it."""
    features = dict.fromkeys(cell.feature for cell in cells)
    roles = [f"reference {cell.reference}" for cell in cells]
    roles += [f"candidate {cell.candidate}" for cell in cells]
    if not any(role.endswith(" opencl:pocl") for role in roles):
        roles.append("required opencl:pocl")
    fixtures = dict.fromkeys(cell.fixture for cell in cells)
    sections = {
        "gate": {"parity-gate": "0.1.0", "sources": "ef", "python": "3.11.7"},
        "host": {"processor": "Some CPU"},
        "matrix": {"path": "m.yaml", "sha256": "ab", "deviations": "d.yaml sha256 cd"},
        "names shared by option sets": plan.shared_names(cells),
        **{f"feature {name}": {"compiler": "cc 1", "flags": "-O2"} for name in features},
        "kernels": {name: f"kernels of {name}" for name in features},
        **{role: {"device": f"device of {role.partition(' ')[2]}"} for role in roles},
    }
    known = {title: facts for title, facts in sections.items() if facts}
    hashes = {f"{name}.{side}": f"{name} {side}" for name in fixtures for side in ("ref", "dist")}
    return {**known, "fixtures": hashes}


def whole_run(cells: Sequence[Cell]) -> Run:
    """The run of all cells by one machine."""
    results = tuple(result_of(position, cell) for position, cell in enumerate(cells))
    groups = dict.fromkeys(
        (c.feature, c.dialect, c.conclusion, c.options_name, c.fixture, c.reference) for c in cells
    )
    # One reference in five has no scores.
    computed = (group for number, group in enumerate(groups) if number % 5 < 4)
    uses_rcpss = any(cell.dialect.startswith("rcpss") for cell in cells)
    return Run(
        id="whole",
        matrix="m.yaml",
        selection=("*adm/*",),
        planned=99,
        results=results,
        references=tuple(ReferenceScores(*group, OUTPUTS, FRAMES) for group in computed),
        missing=("cuda: no such device",),
        notes=(FALLBACK,) if uses_rcpss else (),
        command="parity-gate run m.yaml",
        environment=environment_of(cells),
        started=STARTED,
        seconds=1.0,
        interrupted=False,
        required=("cuda", "opencl:pocl"),
    )


def shard_of(whole: Run, index: int, count: int, positions: Iterable[int]) -> Run:
    """What the machine that ran these positions reports."""
    places = tuple(positions)
    results = tuple(whole.results[place] for place in places)
    cells = [result.cell for result in results]
    own = {
        (c.feature, c.dialect, c.conclusion, c.options_name, c.fixture, c.reference) for c in cells
    }
    uses_rcpss = any(cell.dialect.startswith("rcpss") for cell in cells)
    return replace(
        whole,
        id=f"run {index}",
        results=results,
        references=tuple(scores for scores in whole.references if scores.of in own),
        notes=whole.notes if uses_rcpss else (),
        environment=environment_of(cells),
        started=STARTED.replace("05", f"{59 - index:02}"),
        shard=Shard(index, count, places, len(whole.results)),
    )
