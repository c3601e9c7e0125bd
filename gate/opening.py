"""Opens the backends of a run, and makes whatever fails the result of the cells that need it."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from backends import registry
from backends.base import CompilationFailed, Failed, Inexact, NoResult, Refused, Unavailable
from gate import asking, proof
from gate.compare import Incomparable
from gate.errors import FixtureError
from gate.model import Cell, Result, Status
from gate.proof import Pictures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backends.base import Backend, Feature, Scores
    from backends.evidence import Evidence, Owed
    from gate.asking import Ask, Pending

T = TypeVar("T")
Facts = Mapping[str, str]
OpenBackend = Callable[[str], "Backend"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something has no value.

    Attributes:
        status: ERROR, or SKIP.
        reason: one sentence.
        detail: compiler log or traceback, may be empty.
        refused: scores that a conclusion refuses.
        unexpected: whether it is none of the ways in which things are known to fail.
    """

    status: Status
    reason: str
    detail: str = ""
    refused: Scores | None = None
    unexpected: bool = False

    def result(self, cell: Cell, *, reference_seconds: float = 0, seconds: float = 0) -> Result:
        """Return this as what became of a cell."""
        return Result(
            cell,
            self.status,
            self.reason,
            self.detail,
            reference_seconds=reference_seconds,
            seconds=seconds,
        )


class Reported(Exception):  # noqa: N818 - reads as what happened
    """Another process has told its trouble."""

    def __init__(self, trouble: Trouble) -> None:
        """Keep the trouble; the message is its reason."""
        super().__init__(trouble.reason)
        self.trouble = trouble


def attempt(work: Callable[[], T]) -> T | Trouble:
    """Return what `work` returns, or why it failed."""
    try:
        return work()
    except Reported as error:
        return error.trouble
    except CompilationFailed as error:
        return Trouble(Status.ERROR, str(error), error.log)
    except NoResult as error:
        return Trouble(Status.ERROR, str(error), refused=error.scores)
    except (FixtureError, Incomparable, Failed, Inexact, Refused) as error:
        return Trouble(Status.ERROR, str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes the ERROR of its cells
        first_line = str(error).partition("\n")[0] or "no message"
        reason = f"{type(error).__name__}: {first_line}"
        detail = "".join(traceback.format_exception(error))
        return Trouble(Status.ERROR, reason, detail, unexpected=True)


@dataclass(frozen=True, slots=True)
class _Opened:
    backend: Backend
    facts: dict[str, str]
    owed: Owed
    begin: Callable[[Ask], Pending]


class _Proved:
    """Scores that come with evidence of how they came about, or not at all."""

    def __init__(self, opened: _Opened, ask: Ask, pictures: Pictures) -> None:
        self._opened, self._ask, self._pictures = opened, ask, pictures
        self._pending = opened.begin(ask)

    @property
    def seconds(self) -> float:
        return self._pending.seconds

    def scores(self) -> Scores:
        """Wait for them.

        Raises:
            Reported: they prove nothing about the backend; the text says why.
        """
        try:
            scores = self._pending.scores()
        except NoResult as error:
            self._require(error.scores)
            raise
        except Reported as error:
            if error.trouble.refused is not None:
                self._require(error.trouble.refused)
            raise
        self._require(scores)
        return scores

    def _require(self, scores: Scores) -> None:
        name, ask = self._opened.backend.name, self._ask
        flaw = proof.flaw(
            name,
            scores.evidence,
            owed=self._opened.owed,
            opened=self._opened.facts,
            frames=ask.clip.frames,
            nonce=ask.nonce,
            sums=self._pictures.of(ask.clip),
        )
        if flaw:
            raise Reported(Trouble(Status.ERROR, flaw))


class Backends:
    """The backends of one run: each is opened once and closed at the end."""

    def __init__(self, open_backend: OpenBackend) -> None:
        """Open nothing yet; `open_backend` may raise Unavailable."""
        self._open_backend = open_backend
        self._pictures = Pictures()
        self._found: dict[str, _Opened | Trouble] = {}

    def __getitem__(self, name: str) -> Backend:
        """Return an opened backend."""
        return self._sound(name).backend

    def begin(self, name: str, ask: Ask) -> Pending:
        """Ask an opened backend, which computes at once if it can, for proven scores."""
        asked = replace(ask, nonce=self._pictures.nonce())
        return _Proved(self._sound(name), asked, self._pictures)

    def require_ran(self, name: str, evidence: Evidence) -> None:
        """Require that an opened backend did itself what it was asked for without pictures.

        Raises:
            Reported: the evidence does not show it; the text says why.
        """
        opened = self._sound(name)
        flaw = proof.flaw_without_pictures(name, evidence, owed=opened.owed, opened=opened.facts)
        if flaw:
            raise Reported(Trouble(Status.ERROR, flaw))

    def forget(self) -> None:
        """Let no backend work on what nobody waits for any more."""
        for opened in self._opened().values():
            asking.forget(opened.backend)

    def trouble(self, name: str) -> Trouble | None:
        """Return why the backend cannot be used, if so."""
        found = self._found[name]
        return found if isinstance(found, Trouble) else None

    def open(self, names: Iterable[str]) -> None:
        """Open those that are there; the others have their trouble then."""
        begun: dict[str, Backend | Trouble] = {}
        try:
            for name in names:  # all are started before the first is waited for
                begun[name] = attempt(partial(self._open, name))
            for name in tuple(begun):
                self._found[name] = attempt(partial(self._checked, name, begun.pop(name)))
        except BaseException:
            for backend in begun.values():
                if not isinstance(backend, Trouble):
                    backend.close()
            raise

    def _open(self, name: str) -> Backend | Trouble:
        try:
            return self._open_backend(name)
        except Unavailable as error:
            return Trouble(Status.SKIP, str(error))

    def _checked(self, name: str, backend: Backend | Trouble) -> _Opened | Trouble:
        if isinstance(backend, Trouble):
            return backend
        try:
            found = backend.name
            if found == name:
                facts, owed = dict(backend.facts()), registry.owed(name)
                return _Opened(backend, facts, owed, asking.beginning(backend))
        except Unavailable as error:
            backend.close()
            return Trouble(Status.SKIP, str(error))
        except BaseException:
            backend.close()
            raise
        backend.close()
        sentence = f"opening {name} gave {found}, which proves nothing about {name}"
        return Trouble(Status.ERROR, sentence)

    def close(self) -> None:
        """Close all; where that fails, the backend's facts tell it."""
        for opened in self._opened().values():
            trouble = attempt(opened.backend.close)
            if trouble is not None:
                opened.facts["closing failed"] = trouble.reason

    def missing(self, required: Iterable[str], used: Iterable[str]) -> tuple[str, ...]:
        """Return the required ones that are absent, or broken while no cell shows it."""
        troubles = {name: self._found.get(name) for name in required}
        shown = set(used)
        return tuple(
            f"{name}: {trouble.reason}"
            for name, trouble in troubles.items()
            if isinstance(trouble, Trouble) and (trouble.status is Status.SKIP or name not in shown)
        )

    def facts(self, cells: Iterable[Cell]) -> dict[str, Facts]:
        """Return one section per opened backend and role, references first."""
        listed = tuple(cells)
        roles = [("reference", cell.reference) for cell in listed]
        roles += [("candidate", cell.candidate) for cell in listed]
        named = {name for _, name in roles}
        opened = self._opened()
        roles += [("required", name) for name in opened if name not in named]
        found = {f"{role} {name}": opened[name].facts for role, name in roles if name in opened}
        return {title: facts for title, facts in found.items() if facts}

    def _sound(self, name: str) -> _Opened:
        found = self._found[name]
        assert isinstance(found, _Opened)  # noqa: S101 - who asks has looked for its trouble
        return found

    def _opened(self) -> dict[str, _Opened]:
        found = list(self._found.items())  # at once, for reports are written in another thread
        return {name: one for name, one in found if isinstance(one, _Opened)}


def reference_facts(feature: Feature) -> Facts:
    """Return what decides the bits of a feature's reference, or why that is unknown."""
    facts = attempt(feature.reference_facts)
    return {"unknown": facts.reason} if isinstance(facts, Trouble) else facts


def kernel_sha256(kernel_source: Callable[[], str]) -> str:
    """Return the hash of a kernel source, or why that is unknown."""
    source = attempt(kernel_source)
    if isinstance(source, Trouble):
        return f"unknown: {source.reason}"
    return hashlib.sha256(source.encode()).hexdigest()
