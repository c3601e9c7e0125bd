"""What is asked of a backend, and the scores that it will have."""

from __future__ import annotations

import ctypes
import functools
import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from backends.base import Failed, NoResult, Scores
from backends.evidence import NO_NONCE, Evidence, Nonce, Proving, Read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from backends.base import Arithmetic, Backend, Clip, Feature, Options

M_PERTURB = -6  # Source: mallopt(3)
ALLOCATED = 0x80  # fills memory with its complement, 7F: large as a float and as an integer


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let this thread, and those that it starts, run on one processor; a reference counts them."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextmanager
def _dirty_memory() -> Iterator[None]:
    """Let allocated memory hold what nobody wrote there, but for small pieces that a cache keeps.

    Raises:
        Failed: the C library cannot.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt") or library.mallopt(M_PERTURB, ALLOCATED) != 1:
        message = "the C library does not fill the memory that it allocates (mallopt M_PERTURB)"
        raise Failed(message)
    try:
        yield
    finally:
        library.mallopt(M_PERTURB, 0)


WAYS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "again": nullcontext,
    "on one thread": _one_thread,
    "in dirty memory": _dirty_memory,
}
"""How a side is asked once more; none of them may change a bit."""

AGAIN = next(iter(WAYS))


@dataclass(frozen=True, slots=True)
class Ask:
    """One computation of a clip.

    Attributes:
        timeout: seconds that it may take in a process that can be stopped.
        way: one of WAYS.
        nonce: what its evidence is to be mixed with.
    """

    feature: Feature
    arithmetic: Arithmetic
    options: Options
    clip: Clip
    timeout: float
    way: str = AGAIN
    nonce: Nonce = NO_NONCE


def answer(backend: Backend, ask: Ask) -> Scores:
    """Let a backend of this process compute; return scores, or refuse them, with evidence."""
    clip = Read(ask.clip)
    if _proves(type(backend)):
        cast("Proving", backend).challenge(ask.nonce)
    with WAYS[ask.way]():
        try:
            scores = backend.compute(ask.feature, ask.arithmetic, ask.options, clip)
        except NoResult as error:
            refused = _with_evidence(backend, clip, error.scores)
            raise NoResult(str(error), refused) from error
        return _with_evidence(backend, clip, scores)


def _with_evidence(backend: Backend, clip: Read, scores: Scores) -> Scores:
    told = cast("Proving", backend).evidence() if _proves(type(backend)) else Evidence()
    evidence = replace(told, reads=tuple(clip.reads))
    return Scores(scores.names, scores.values, scores.unset, evidence)


@functools.cache  # the answer takes longer than a small cell
def _proves(kind: type) -> bool:
    return issubclass(kind, Proving)


class Pending(Protocol):
    """Scores that are not there yet."""

    @property
    def seconds(self) -> float:
        """Time of the computation, once it has ended."""
        ...

    def scores(self) -> Scores:
        """Wait for them; whatever the backend raises is raised here."""
        ...


@runtime_checkable
class Ahead(Protocol):
    """A backend that computes while its asker does something else."""

    def begin(self, ask: Ask) -> Pending:
        """Let it compute; whatever fails, `scores` of what is returned tells it."""
        ...

    def forget(self) -> None:
        """Compute nothing more of what it was asked for."""
        ...


class Here:
    """Scores of a backend that computes when they are wanted."""

    def __init__(self, backend: Backend, ask: Ask) -> None:
        """Compute nothing yet."""
        self._backend, self._ask = backend, ask
        self.seconds = 0.0

    def scores(self) -> Scores:
        """Compute them."""
        began = perf_counter()
        try:
            return answer(self._backend, self._ask)
        finally:
            self.seconds = perf_counter() - began


class Known:
    """Scores that are there."""

    def __init__(self, scores: Scores) -> None:
        """Keep them."""
        self._scores = scores
        self.seconds = 0.0

    def scores(self) -> Scores:
        """Return them."""
        return self._scores


def beginning(backend: Backend) -> Callable[[Ask], Pending]:
    """Return how to ask a backend, which computes at once if it can."""
    return backend.begin if isinstance(backend, Ahead) else functools.partial(Here, backend)


def forget(backend: Backend) -> None:
    """Let a backend not work on what nobody waits for any more."""
    if isinstance(backend, Ahead):
        backend.forget()
