"""Divides a selection of cells into shards that several machines run."""

from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from gate import plan
from gate.model import Shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gate.model import Cell

MOST = 256  # jobs of one matrix on GitHub
FORM = re.compile(r"(0|[1-9][0-9]{0,5})/(0|[1-9][0-9]{0,5})")
NUMBER = re.compile(r"0|[1-9][0-9]{0,5}")

VARIABLE = "PARITY_GATE_SHARD"  # INDEX/COUNT, taken as it is

# Of the smallest size in a shard. Smaller chunks balance better, and each opens its fixture again;
# pr.yaml and nightly.yaml, in 2 to 16 shards, end first or nearly so with this many.
CHUNKS = 4


class Service(NamedTuple):
    """Variables in which a CI service numbers the jobs that share a task.

    Attributes:
        number: name of the variable with the job's number.
        total: name of the variable with how many there are.
        first: the number of the first job.
    """

    number: str
    total: str
    first: int


SERVICES = (
    Service("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),  # GitLab
    Service("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    Service("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
)


def parse(text: str) -> tuple[int, int]:
    """Return index, from 1, and count of `2/8`.

    Raises:
        ValueError: there is no such shard; the text is one sentence.
    """
    match = FORM.fullmatch(text)
    if match is None:
        message = f"shard {text[:80]!r} does not have the form INDEX/COUNT; write for example 2/8"
        raise ValueError(message)
    index, count = map(int, match.groups())
    if not 1 <= count <= MOST:
        message = f"shard {text!r} is one of {count}; allowed: 1 to {MOST} shards"
        raise ValueError(message)
    if not 1 <= index <= count:
        message = f"shard {text!r} does not exist; allowed: 1/{count} to {count}/{count}"
        raise ValueError(message)
    return index, count


def from_environment(environ: Mapping[str, str]) -> str | None:
    """Return the shard that a CI job is meant to run, as `parse` reads it; None for no shard.

    PARITY_GATE_SHARD is taken as it is, 1/1 too. The services' own variables count where there is
    more than one job.

    Raises:
        ValueError: a variable has no such value, or its other half is missing; one sentence.
    """
    if VARIABLE in environ:
        try:
            parse(environ[VARIABLE])
        except ValueError as error:
            message = f"{VARIABLE}: {error}"
            raise ValueError(message) from None
        return environ[VARIABLE]
    found = (_of_service(service, environ) for service in SERVICES)
    return next(filter(None, found), None)


def share(cells: Sequence[Cell], index: int, count: int) -> tuple[Shard, tuple[Cell, ...]]:
    """Return one shard of a selection: where its cells are in the selection, and the cells.

    The same on every machine. Cells that share a reference stay together, and so do a fixture's,
    unless it takes too large a part of a shard.

    Args:
        cells: the whole selection, in plan order.
        index: from 1.
        count: of shards; some are empty where there are fewer references.
    """
    shares: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    costs = [(_cost(cells, chunk), chunk) for chunk in _chunks(cells, count)]
    for cost, chunk in sorted(costs, key=lambda pair: -pair[0]):
        least = loads.index(min(loads))
        loads[least] += cost
        shares[least] += chunk
    positions = tuple(sorted(shares[index - 1]))
    shard = Shard(index, count, positions, selected=len(cells))
    return shard, tuple(cells[position] for position in positions)


def _of_service(service: Service, environ: Mapping[str, str]) -> str | None:
    if service.total not in environ and service.number not in environ:
        return None
    count = _number(service.total, environ, service.number)
    if count == 1 and service.number not in environ:  # as GitLab says that there is one job
        return None
    index = _number(service.number, environ, service.total)
    text = f"{index - service.first + 1}/{count}"
    try:
        parse(text)
    except ValueError as error:
        values = f"{service.number}={index} and {service.total}={count}"
        message = f"{values}: {error}; correct them or set {VARIABLE}"
        raise ValueError(message) from None
    return text if count > 1 else None


def _number(name: str, environ: Mapping[str, str], other: str) -> int:
    value = environ.get(name)
    if value is None:
        message = f"{name} is missing beside {other}={environ[other][:80]!r}; set both or neither"
        raise ValueError(message)
    if not NUMBER.fullmatch(value):
        message = f"{name} {value[:80]!r} is no number of jobs; correct it or set {VARIABLE}"
        raise ValueError(message)
    return int(value)


def _chunks(cells: Sequence[Cell], count: int) -> Iterator[list[int]]:
    """Yield positions that stay together: of a fixture, or of an equal part of its references."""
    fixtures: dict[str, dict[tuple[str, ...], list[int]]] = {}
    for position, cell in enumerate(cells):
        groups = fixtures.setdefault(cell.fixture, {})
        groups.setdefault(cell.of, []).append(position)
    most = max(1, _cost(cells, range(len(cells))) // (CHUNKS * count))
    for groups in fixtures.values():
        listed = list(groups.values())
        cost = _cost(cells, chain.from_iterable(listed))
        parts = max(1, min(len(listed), -(-cost // most)))
        ends = [len(listed) * part // parts for part in range(parts + 1)]
        for first, last in pairwise(ends):
            yield list(chain.from_iterable(listed[first:last]))


def _cost(cells: Sequence[Cell], positions: Iterable[int]) -> int:
    """Return nanoseconds: integers, whose sums are the same in every version of Python."""
    return round(plan.computing(cells[position] for position in positions) * 1e9)
