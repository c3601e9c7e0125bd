"""The process of one backend: opens it, then computes what its gate asks for, cell after cell.

While it computes, the worker asks for the frames that it needs; the fixture itself stays with the
gate, which meanwhile may have asked for more cells.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import os
import signal
import socket
import sys
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from backends import registry
from backends.base import Arithmetic, Scores, Unavailable
from backends.evidence import Nonce
from backends.reciprocal import RcpTable
from gate import tasks
from gate.asking import Ask, answer
from gate.channel import Channel
from gate.opening import Trouble, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from backends.base import Backend, Luma
    from gate.channel import Arrays, Message
    from gate.opening import OpenBackend

KEPT = 32 << 20  # bytes of each side of a clip
PR_SET_PDEATHSIG = 1  # Source: prctl(2)


class _Gate:
    """The other end of the connection, and the cells that it wants."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._asked: deque[dict[str, Any]] = deque()

    def tell(self, message: dict[str, Any], arrays: Arrays = ()) -> None:
        self._channel.send(message, arrays)

    def progress(self, inputs: int) -> None:
        self.tell({"progress": inputs})

    def next(self) -> dict[str, Any] | None:
        """Return the cell that the gate wants first; None when it has no more."""
        if not self._asked:
            self._take(*self._channel.receive())
        return self._asked.popleft() if self._asked else None

    def frames(self, first: int, count: int) -> tuple[Luma, Luma]:
        """Ask for frames; more cells may be asked for before they come."""
        self.tell({"read": [first, count]})
        while "frames" not in (message := self._channel.receive())[0]:
            self._take(*message)
        _, (ref, dist) = message
        return ref, dist

    def _take(self, message: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
        if "task" in message:
            self._asked.append(message)
            return
        tables = dict(zip(message["tables"], arrays, strict=True))
        self._asked += ({**ask, "bits": tables.get(ask["table"])} for ask in message["asks"])


@dataclass(frozen=True, slots=True)
class _Clip:
    """A clip whose frames the gate has; small ones are asked for once."""

    number: int
    width: int
    height: int
    bit_depth: int
    frames: int
    gate: _Gate
    kept: dict[tuple[int, int], tuple[Luma, Luma]] = field(default_factory=dict)

    def read(self, first: int, count: int) -> tuple[Luma, Luma]:
        """Return frames as `Clip.read` promises."""
        if (first, count) in self.kept:
            return self.kept[first, count]
        ref, dist = self.gate.frames(first, count)
        if sum(luma.nbytes for luma, _ in self.kept.values()) + ref.nbytes <= KEPT:
            self.kept[first, count] = ref, dist
        return ref, dist


def serve(channel: Channel, name: str, open_backend: OpenBackend) -> None:
    """Open a backend and compute until the gate has no more cells."""
    gate = _Gate(channel)
    opened = attempt(partial(_opened, open_backend, name))
    if isinstance(opened, Trouble):
        _report(gate, opened)
    elif isinstance(opened, Unavailable):
        gate.tell({"unavailable": str(opened)})
    else:
        gate.tell({"name": opened.name, "facts": dict(opened.facts())})
        clip, device = None, tasks.Here(opened)
        while (asked := gate.next()) is not None:
            if "task" in asked:
                _answer(gate, partial(tasks.do, device, asked, gate.progress))
                continue
            if clip is None or clip.number != asked["clip"][0]:  # one fixture after the other
                number, width, height, bit_depth, frames = asked["clip"]
                clip = _Clip(number, width, height, bit_depth, frames, gate)
            _answer(gate, partial(_computed, clip, opened, asked))
        closed = attempt(opened.close)
        if isinstance(closed, Trouble):
            _report(gate, closed)
        else:
            gate.tell({"closed": True})


def _opened(open_backend: OpenBackend, name: str) -> Backend | Unavailable:
    try:
        return open_backend(name)
    except Unavailable as error:
        return error


def _answer(gate: _Gate, compute: Callable[[], Scores | Message]) -> None:
    began = perf_counter()
    found = attempt(compute)
    seconds = perf_counter() - began
    sys.stdout.flush()
    os.ftruncate(1, 0)  # what it prints from now on is the next cell's
    if isinstance(found, Trouble):
        _report(gate, found, seconds)
    elif isinstance(found, Scores):
        gate.tell({**_scores(found), "seconds": seconds}, [found.values, found.unset])
    else:
        gate.tell(*found)


def _scores(found: Scores) -> dict[str, Any]:
    """Return what scores are, apart from their arrays."""
    evidence = None if found.evidence is None else found.evidence.as_json()
    return {"names": found.names, "evidence": evidence}


def _computed(clip: _Clip, backend: Backend, asked: dict[str, Any]) -> Scores:
    feature = registry.features()[asked["feature"]]
    table = _table(asked["table"], asked["bits"].tobytes()) if asked["table"] else None
    arithmetic = Arithmetic(asked["dialect"], asked["conclusion"], table)
    options = feature.options.model_validate(asked["options"])
    nonce = Nonce(*asked["nonce"])
    return answer(backend, Ask(feature, arithmetic, options, clip, 0, asked["way"], nonce))


@functools.cache
def _table(name: str, bits: bytes) -> RcpTable:
    return RcpTable(name, np.frombuffer(bits, np.uint32))


def _report(gate: _Gate, trouble: Trouble, seconds: float = 0.0) -> None:
    told = {
        "status": trouble.status.value,
        "reason": trouble.reason,
        "detail": trouble.detail,
        "unexpected": trouble.unexpected,
    }
    message = {"trouble": told, "seconds": seconds}
    refused = trouble.refused
    if refused is None:
        gate.tell(message)
    else:
        gate.tell({**message, **_scores(refused)}, [refused.values, refused.unset])


def die_with(parent: int) -> None:
    """End this process when its parent ends, however that ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before it could be watched
        os.kill(os.getpid(), signal.SIGKILL)


def main(open_backend: OpenBackend = registry.open_backend) -> None:
    """Serve the gate that started this process; arguments: backend, descriptor, gate's pid."""
    name, descriptor, parent = sys.argv[1:]
    # Who outlives this process must not hold the descriptor open.
    os.set_inheritable(int(descriptor), False)  # noqa: FBT003 - os takes no keyword
    die_with(int(parent))
    faulthandler.enable()
    with closing(Channel(socket.socket(fileno=int(descriptor)))) as channel:
        try:
            serve(channel, name, open_backend)
        except (ConnectionError, EOFError):
            sys.exit("the gate is gone")


if __name__ == "__main__":
    main()
