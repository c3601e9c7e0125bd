"""Arguments that several commands take: their help, and what is made of them."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from backends import reciprocal, registry
from backends.reciprocal import RcpTable
from gate import cache, fuzz, plan, shards
from gate import matrix as matrices
from gate.cache import ReferenceCache
from gate.document import unknown
from gate.errors import MatrixError
from gate.model import Cell, ExitCode, Shard
from gate.terminal import say, stop
from reports.wording import printable

MatrixArgument = Annotated[Path, typer.Argument(metavar="MATRIX", help="the matrix file (YAML)")]
UnlessResumed = Annotated[
    Path | None, typer.Argument(metavar="MATRIX", help="the matrix file (YAML)")
]
ResumeOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="finish the run that was stopped in DIR, as it was started"),
]
CellOption = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="only cells whose id matches; may be repeated"),
]
CountOption = Annotated[
    int,
    typer.Option(
        min=1, max=fuzz.MOST_CELLS, metavar="N", help="how many cells to draw, before candidates"
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        metavar="S",
        help="any integer; a seed draws the same cells each time, and others behind them with a "
        "larger N; by default a new one, which the verdict tells",
    ),
]
CandidateOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="BACKEND",
        help=f"a backend under test; may be repeated; by default {' and '.join(fuzz.CANDIDATES)}",
    ),
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="BACKEND", help="exit 3 where this backend cannot be opened; may be repeated"
    ),
]
OutOption = Annotated[
    Path, typer.Option(metavar="DIR", help="folder of the reports; old ones are removed first")
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="only the I-th of N shards, which `merge` puts together; by default what a CI's own "
        "variables say",
    ),
]
MOST_REPEATS = 10_000
RepeatOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_REPEATS,
        metavar="N",
        help="compute each candidate N times; results that differ are NONDETERMINISTIC; by default "
        "once, and for `rerun` as often as the run in REPORT did",
    ),
]
CacheOption = Annotated[
    bool | None,
    typer.Option(
        "--cache/--no-cache",
        help="take the reference's scores from earlier runs, where nothing that decides them has "
        "changed; by default at a desk, and not in a CI, which sets the variable CI",
    ),
]
TableOption = Annotated[
    str | None,
    typer.Option(
        "--rcp-table",
        metavar="FILE|NAME",
        help="replay another processor's reciprocal estimate on both sides; "
        f"known: {', '.join(reciprocal.shipped())}",
    ),
]


def require_known(option: str, names: tuple[str, ...], *, without: str = "") -> None:
    """End the program where a name is no backend's that the option takes."""
    allowed = [name for name in registry.backend_names() if name != without]
    for name in names:
        if name not in allowed:
            stop(ExitCode.USAGE, f"{option}: {unknown('backend', name, allowed)}")


def replayed(wanted: str | None) -> RcpTable | None:
    """Return the table that `--rcp-table` names; a wrong one ends the program."""
    try:
        return None if wanted is None else reciprocal.load(wanted)
    except ValueError as error:
        stop(ExitCode.USAGE, f"--rcp-table: {error}")


def reference_cache(*, wanted: bool | None) -> ReferenceCache | None:
    """Return this user's cache, if `--cache` or the place asks for it."""
    if not (cache.wanted_by_default() if wanted is None else wanted):
        return None
    try:
        return ReferenceCache(cache.default_folder())
    except RuntimeError as error:
        say(printable(f"no reference cache: {error}; set XDG_CACHE_HOME"), err=True)
        return None


def described_cache() -> Mapping[str, str]:
    """Return where this user's cache is, how large, and whether a run takes it by default."""
    used = {"used by default": "yes" if cache.wanted_by_default() else "no, CI is set"}
    try:
        return {**ReferenceCache(cache.default_folder()).facts(), **used}
    except RuntimeError as error:
        return {"folder": f"none: {error}"}


def require_alone(matrix: Path | None, *options: object) -> None:
    """End the program where something is asked of a run that has been told all before."""
    if matrix is not None or any(options):
        sentence = "--resume goes on with what the run was started with; leave out everything else"
        stop(ExitCode.USAGE, sentence)


def shared(cells: tuple[Cell, ...], wanted: str | None) -> tuple[Shard | None, tuple[Cell, ...]]:
    """Return the shard that `--shard` or the CI asks for, and its cells; all without one."""
    try:
        text = wanted or shards.from_environment(os.environ)
        return (None, cells) if text is None else shards.share(cells, *shards.parse(text))
    except ValueError as error:
        stop(ExitCode.USAGE, f"--shard: {error}")


def run_command(matrix: Path, out: Path, rcp_table: str | None = None, repeat: int = 1) -> str:
    """Return how a matrix is run like this, with a folder of its own for the reports."""
    replay = ["--rcp-table", rcp_table] if rcp_table else []
    often = ["--repeat", str(repeat)] if repeat > 1 else []
    return as_started(out, "run", str(matrix), *replay, *often)


def as_started(out: Path, *arguments: str) -> str:
    """Return how this program was started, with a folder of its own for the reports."""
    return shlex.join([*program(), *arguments, "--out", str(out / "repeat")])


def program() -> list[str]:
    """Return the words that this program was started by."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return ["python", "-m", "gate"]
    return [started.name if shutil.which(started.name) == str(started) else sys.argv[0]]


def load_matrix(
    path: Path, globs: list[str] | None
) -> tuple[matrices.Matrix, tuple[Cell, ...], tuple[Cell, ...]]:
    """Return the matrix, its cells and the selected ones; a wrong matrix ends the program."""
    for module, error in registry.broken().items():
        say(printable(f"{module}: cannot be imported: {error}"), err=True)
    try:
        matrix = matrices.load(path)
        cells = plan.plan(matrix)
    except MatrixError as error:
        stop(ExitCode.USAGE, "\n".join(error.problems))
    for place, sentence in matrix.warnings.items():
        say(printable(f"{place}: {sentence}"), err=True)
    return (
        matrix,
        cells,
        selected_cells(cells, globs, f"{path}; `parity-gate list` prints their ids"),
    )


def selected_cells(cells: tuple[Cell, ...], globs: list[str] | None, of: str) -> tuple[Cell, ...]:
    """Return the cells that the globs match; none at all where a glob matches none."""
    idle = [glob for glob in globs or () if not plan.select(cells, (glob,))]
    for glob in idle:
        sentence = f"--cell {glob!r} matches none of the {len(cells)} cells of {of}"
        say(printable(sentence), err=True)
    # A glob that has lost its cells must not let the others pass for all.
    return () if idle else plan.select(cells, tuple(globs or ()))
