"""Makes a drawn cell simpler, step by step, as long as it still does what matters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backends import registry
from backends.base import CONCLUSIONS
from gate.fixtures import GeneratedFixture, generators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from backends.base import Feature
    from gate.draw import Draw, Values

DIGITS = range(1, 6)  # of a number that is simpler than one of six digits


def shrink(drawn: Draw, matters: Callable[[Draw], bool], tries: int) -> Draw:
    """Return the simplest cell that a greedy search finds.

    Args:
        drawn: where to begin.
        matters: tells whether a simpler cell still does what this one does.
        tries: how often `matters` may be asked.
    """
    at = failures = 0
    for _ in range(tries):
        steps = list(simpler(drawn))
        if failures >= len(steps):
            break
        # Around in a circle: what has just failed is likely to fail again.
        step = steps[at % len(steps)]
        if matters(step):
            drawn, failures = step, 0
        else:
            at, failures = at + 1, failures + 1
    return drawn


def simpler(drawn: Draw) -> Iterator[Draw]:
    """Yield every cell that is simpler by one step and allowed, the boldest steps first."""
    feature = registry.features()[drawn.feature]
    steps = [replace(drawn, fixture=fixture) for fixture in _fixtures(drawn, feature)]
    steps += [replace(drawn, options=options) for options in _options(drawn.options)]
    steps += [
        replace(drawn, conclusion=CONCLUSIONS[0]),
        replace(drawn, dialect=feature.dialects[0]),
    ]
    return (step for step in steps if step != drawn and step.is_allowed())


def _fixtures(drawn: Draw, feature: Feature) -> Iterator[dict[str, Any]]:
    fixture, least = drawn.fixture, feature.smallest(drawn.dialect)
    width, height = fixture["width"], fixture["height"]
    yield {**fixture, "width": least, "height": least}
    yield {**fixture, "width": (width + least) // 2, "height": (height + least) // 2}
    for side, extent in (("width", width), ("height", height)):
        for smaller in (least, (extent + least) // 2, extent - 1):
            if smaller >= least:
                yield {**fixture, side: smaller}
    yield from ({**fixture, "bit_depth": n} for n in feature.bit_depths if n < fixture["bit_depth"])
    fields = generators()[fixture["generator"]].model_fields
    yield from _without_one(fixture, [name for name in fixture if not fields[name].is_required()])
    for name, value in fixture.items():
        if isinstance(value, int) and name not in GeneratedFixture.model_fields:
            yield {**fixture, name: value // 2}


def _options(options: Values) -> Iterator[dict[str, Any]]:
    if len(options) > 1:
        yield {}
    yield from _without_one(options, options)
    for name, value in options.items():
        if isinstance(value, float):
            rounded = dict.fromkeys(float(f"{value:.{digits}g}") for digits in DIGITS)
            yield from ({**options, name: number} for number in rounded if number != value)


def _without_one(values: Values, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    for left_out in names:
        yield {name: value for name, value in values.items() if name != left_out}
