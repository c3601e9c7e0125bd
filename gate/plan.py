"""Expands products of axes to cells, and selects cells by globs over their ids."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from backends import registry
from backends.base import Arithmetic, Refused
from gate.deviations import marked
from gate.model import Cell, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from backends.base import Feature, Options
    from gate.document import Loc
    from gate.fixtures import FixtureSpec
    from gate.matrix import Matrix, Skip

    Problem = tuple[Loc, str]
    """What is wrong with the plan, and the value of the matrix file that says so."""

# From the outermost: a fixture is opened once, and a reference is computed once.
ORDER = ("fixture", "feature", "dialect", "conclusion", "options_name", "reference", "candidate")

# The candidate that every desk has, and its seconds on two cores of an Intel Xeon
# (family 6, model 167): fitted to ten runs between 8 and 1446 cells, 17x17 to 3840x2160, which the
# sum meets within a fifth.
DESK = "opencl:pocl"
START = 1.6  # until all is imported
KERNELS = 1.3  # until the kernels of a feature are built
CELL = 3.5e-3  # a cell, however small
SPOOL = 6e-8  # a luma sample of a fixture, unpacked or generated once
COST = 7e-8  # a luma sample of a cell, in the reference and in the candidate together

# A side that takes longer hangs. A simulator needs 2e-5 s for a luma sample; all of a feature's
# kernels may have to be built first.
PATIENCE = 300.0
SLOWEST = 5e-5


@dataclass(frozen=True, slots=True)
class Product:
    """Axes whose every combination is a cell; a single cell has axes of one value.

    Attributes:
        loc: keys and indices that lead to the product in the matrix file.
        line: line of the matrix file.
        fixtures: names, not globs.
        exclude: globs over cell ids; cells that are left out.
        skip: cells that stay in the plan but do not run.
        timeout: seconds that each side of a cell may take; 0 where the pictures decide.
    """

    loc: Loc
    line: int
    feature: str
    reference: str
    candidates: tuple[str, ...]
    dialects: tuple[str, ...]
    conclusions: tuple[str, ...]
    options: tuple[Options, ...]
    fixtures: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    skip: tuple[Skip, ...] = ()
    timeout: float = 0


def plan(matrix: Matrix) -> tuple[Cell, ...]:
    """Return every cell of a matrix, in the order in which the runner wants them."""
    cells, _ = expand((*matrix.products, *matrix.include), matrix.fixtures)
    return marked(cells, matrix.deviations)


def select(cells: Iterable[Cell], globs: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells whose id matches one of `globs`, in their order; all without globs."""
    return tuple(cell for cell in cells if not globs or _matches(cell, globs))


def estimate(cells: Iterable[Cell]) -> float:
    """Return the seconds that `cells` take on two cores with PoCL; 0 where none runs there.

    Cells of other candidates count nothing: their devices are not known here.
    """
    # Cells of one candidate never share a reference, so each pays for both sides.
    running = [cell for cell in cells if cell.candidate == DESK and not cell.skip]
    kernels = KERNELS * len({cell.feature for cell in running})
    return START + kernels + computing(running) if running else 0.0


def computing(cells: Iterable[Cell]) -> float:
    """Return the seconds in which `cells` open their fixtures and compute, as if all ran on DESK.

    A declared skip takes none.
    """
    running = [cell for cell in cells if not cell.skip]
    samples = {cell.fixture: cell.width * cell.height * cell.frames for cell in running}
    fixtures = SPOOL * sum(samples.values())
    return fixtures + sum(CELL + COST * samples[cell.fixture] for cell in running)


def patience(fixture: FixtureSpec) -> float:
    """Return the seconds that a side of a cell may take where the matrix does not say."""
    return PATIENCE + SLOWEST * fixture.width * fixture.height * fixture.frames


def shared_names(cells: Iterable[Cell]) -> dict[str, str]:
    """Return what happens in libvmaf where option sets of a feature emit the same name.

    Here every cell is an instance of its own, and no score mixes with another.

    Returns:
        One sentence by `name of feature`.
    """
    option_sets = {(cell.feature, cell.options_name): cell.outputs for cell in cells}
    emitted: dict[tuple[str, str], list[frozenset[str]]] = {}
    for (feature, _), names in option_sets.items():
        together = frozenset(names)
        for name in names:
            emitted.setdefault((name, feature), []).append(together)
    return {
        f"{name} of {feature}": f"emitted by {counted(number, 'option set')}; "
        "each runs apart; in one libvmaf context the second fails"
        for (name, feature), sets in emitted.items()
        if (number := len(_instances(sets))) > 1
    }


def expand(
    products: Iterable[Product], fixtures: Mapping[str, FixtureSpec]
) -> tuple[tuple[Cell, ...], list[Problem]]:
    """Return every cell, and what is wrong with the products as far as only cells can tell.

    Args:
        products: all products of one matrix file.
        fixtures: at least those that the products name, in the order of the file.
    """
    planned: dict[str, Cell] = {}
    problems: list[Problem] = []
    for given in products:
        product, repeats = _without_repeats(given)
        problems += repeats
        cells = _combinations(product, fixtures)
        kept = [_skipped(cell, product) for cell in cells if not _matches(cell, product.exclude)]
        problems += _idle(product, cells, kept)
        problems += _without_result(kept, fixtures)
        problems += _without_arithmetic(product)
        problems += _repeated(product, kept, planned)
    return _ordered(planned.values(), fixtures), problems


def unused(
    products: Iterable[Product], cells: Sequence[Cell], fixtures: Iterable[str]
) -> list[str]:
    """Return the fixtures without a cell.

    Args:
        products: all products of one matrix file.
        cells: theirs, as `expand` returns them.
        fixtures: every name in the file, in its order.
    """
    used = {cell.fixture for cell in cells}
    lines = {cell.line for cell in cells}
    for product in products:
        # A product without any cell is a mistake of its own; its fixtures are meant to be used.
        if product.line not in lines:
            used.update(product.fixtures)
    return [name for name in fixtures if name not in used]


def _instances(sets: list[frozenset[str]]) -> list[frozenset[str]]:
    """Drop what libvmaf does not run a second time: option sets that only emit less or more."""
    return [names for names in sets if not any(names < more for more in sets)]


def _without_repeats(product: Product) -> tuple[Product, list[Problem]]:
    """Return a product that names everything once, and a problem for what it named again."""
    feature = registry.features()[product.feature]
    names = [feature.options_name(item) for item in product.options]
    options = dict(zip(names, product.options, strict=True))
    axes = {
        "candidates": product.candidates,
        "dialects": product.dialects,
        "conclusions": product.conclusions,
        "options": names,
    }
    problems: list[Problem] = [
        (
            (*product.loc, axis, index),
            f"{axis}[{index}] repeats {axis}[{first}] ({named[index]}); delete one",
        )
        for axis, named in axes.items()
        for first, index in _repeats(named)
    ]
    once = replace(
        product,
        candidates=tuple(dict.fromkeys(product.candidates)),
        dialects=tuple(dict.fromkeys(product.dialects)),
        conclusions=tuple(dict.fromkeys(product.conclusions)),
        options=tuple(options.values()),
    )
    return once, problems


def _repeats(names: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield where a name is first and where it is again."""
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        first = places.setdefault(name, index)
        if first < index:
            yield first, index


def _combinations(product: Product, fixtures: Mapping[str, FixtureSpec]) -> list[Cell]:
    feature = registry.features()[product.feature]
    named = [
        (item.model_dump(exclude_unset=True), feature.options_name(item), feature.outputs(item))
        for item in product.options
    ]
    axes = (product.fixtures, product.dialects, product.conclusions, named, product.candidates)
    return [
        Cell(
            feature=product.feature,
            dialect=dialect,
            conclusion=conclusion,
            options_name=options_name,
            fixture=fixture,
            candidate=candidate,
            reference=product.reference,
            options=options,
            outputs=outputs,
            width=fixtures[fixture].width,
            height=fixtures[fixture].height,
            bit_depth=fixtures[fixture].bit_depth,
            frames=fixtures[fixture].frames,
            line=product.line,
            timeout=product.timeout or patience(fixtures[fixture]),
        )
        for fixture, dialect, conclusion, (
            options,
            options_name,
            outputs,
        ), candidate in itertools.product(*axes)
    ]


def _matches(cell: Cell, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(cell.id, glob) for glob in globs)


def _skipped(cell: Cell, product: Product) -> Cell:
    reasons = (skip.reason for skip in product.skip if _matches(cell, [skip.cells]))
    reason = next(reasons, "")
    return replace(cell, skip=reason) if reason else cell


def _idle(product: Product, cells: list[Cell], kept: list[Cell]) -> list[Problem]:
    """Return a problem for every glob that does nothing, and for a product without cells."""
    problems: list[Problem] = [
        (
            (*product.loc, "exclude", index),
            f"exclude {glob!r} removes no cell; correct or delete it",
        )
        for index, glob in enumerate(product.exclude)
        if not select(cells, [glob])
    ]
    problems += [
        (
            (*product.loc, "skip", index, "cells"),
            f"skip {glob!r} names no cell; correct or delete it",
        )
        for index, glob in enumerate(skip.cells for skip in product.skip)
        if not select(kept, [glob])
    ]
    if not kept:
        problems.append((product.loc, "no cell is left, every one is excluded; delete the product"))
    return problems


def _without_result(cells: list[Cell], fixtures: Mapping[str, FixtureSpec]) -> list[Problem]:
    """Return a problem for every fixture on which a feature has no defined result."""
    problems: dict[Problem, None] = {}
    kinds = dict.fromkeys((cell.fixture, cell.feature, cell.dialect) for cell in cells)
    for name, feature_name, dialect in kinds:
        feature, fixture = registry.features()[feature_name], fixtures[name]
        width, height, least = fixture.width, fixture.height, feature.smallest(dialect)
        if min(width, height) < least:
            side = "width" if width < least else "height"
            sentence = feature.too_small(dialect, width, height)
            problems[("fixtures", name, side), sentence] = None
        if fixture.bit_depth not in feature.bit_depths:
            allowed = ", ".join(map(str, feature.bit_depths))
            sentence = f"bit_depth {fixture.bit_depth} is not supported; allowed: {allowed}"
            problems[("fixtures", name, "bit_depth"), sentence] = None
    return list(problems)


def _without_arithmetic(product: Product) -> list[Problem]:
    """Return a problem for all options and candidates that have not the product's arithmetics."""
    feature, first = registry.features()[product.feature], product.options[0]
    arithmetics = [
        Arithmetic(*names) for names in itertools.product(product.dialects, product.conclusions)
    ]
    problems: list[Problem] = []
    for index, options in enumerate(product.options):
        reasons = (_refused_options(feature, item, options) for item in arithmetics)
        if reason := next(filter(None, reasons), ""):
            sentence = f"{reason}; give the other dialects a product of their own"
            problems.append(((*product.loc, "options", index), sentence))
    for index, name in enumerate(product.candidates):
        reasons = (registry.refusal(name, feature, item, first) for item in arithmetics)
        if reason := next(filter(None, reasons), ""):
            sentence = f"candidate {name!r}: {reason}; give it a product of its own"
            problems.append(((*product.loc, "candidates", index), sentence))
    return problems


def _refused_options(feature: Feature, arithmetic: Arithmetic, options: Options) -> str:
    try:
        feature.require_options(arithmetic, options)
    except Refused as refused:
        return str(refused)
    return ""


def _repeated(product: Product, cells: list[Cell], planned: dict[str, Cell]) -> list[Problem]:
    """Add `cells` to `planned`; return a problem for every line that has some of them already."""
    repeated: dict[int, list[str]] = {}
    for cell in cells:
        first = planned.setdefault(cell.id, cell)
        if first is not cell:
            repeated.setdefault(first.line, []).append(cell.id)
    problems: list[Problem] = []
    for line, ids in repeated.items():
        more = f" and {len(ids) - 1} more" if ids[1:] else ""
        where = f"declared in line {line} and again in line {product.line}"
        problems.append((product.loc, f"cell {ids[0]}{more} {where}; exclude one"))
    return problems


def _ordered(cells: Iterable[Cell], fixtures: Iterable[str]) -> tuple[Cell, ...]:
    """Sort by ORDER: fixtures as in the file, the rest in order of first appearance."""
    seen = {axis: dict.fromkeys(getattr(cell, axis) for cell in cells) for axis in ORDER}
    seen["fixture"] = dict.fromkeys(fixtures)
    ranks = {axis: {name: rank for rank, name in enumerate(names)} for axis, names in seen.items()}
    return tuple(sorted(cells, key=lambda cell: [ranks[a][getattr(cell, a)] for a in ORDER]))
