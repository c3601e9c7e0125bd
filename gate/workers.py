"""Backends in processes of their own, which may crash or hang without taking the gate along."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from collections import deque
from contextlib import suppress
from itertools import islice
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from backends.base import Scores, Unavailable
from backends.evidence import Evidence
from gate.asking import Ask
from gate.channel import Channel
from gate.model import Status
from gate.opening import Reported, Trouble
from gate.scratch import Scratch, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from backends.base import Arithmetic, Clip, Feature, Options
    from gate.asking import Pending
    from gate.channel import Arrays, Message

PROGRAM = ("-m", "gate.worker")
OPENING = 300.0  # seconds to open a backend: to start, compile a probe and run it
CLOSING = 30.0  # seconds
AHEAD = 16  # cells that a process knows, so that it need not wait for the gate
TOLD = 4_000  # characters of what a worker that crashed printed last


def open_worker(name: str) -> Worker:
    """Start a process that opens a backend by name."""
    return Worker(name)


class Worker:
    """A backend whose process is started again after it has crashed or hung."""

    def __init__(self, asked: str, program: Sequence[str] = PROGRAM) -> None:
        """Start the process, which opens the backend while the gate does something else."""
        self._asked = asked
        self._program = program
        self._process: _Process | None = _Process(asked, program)
        self._hello: tuple[str, dict[str, str]] | None = None
        self._lost: Trouble | None = None
        self._clip: tuple[int, Clip | None] = (0, None)  # the last one, and its number
        self._waiting: deque[_Pending] = deque()  # the oldest first, which is what it works on
        self._told = 0  # how many of them the process knows

    @property
    def name(self) -> str:
        """The backend's own, when it is open.

        Raises:
            Unavailable: the backend is not on this machine.
            Reported: the worker could not open it, crashed or hung.
        """
        return self._introduction()[0]

    def facts(self) -> Mapping[str, str]:
        """Return the backend's, when it is open; what `name` raises is raised here too."""
        return self._introduction()[1]

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        """Compute every score of every frame in the worker.

        Raises:
            Reported: why there are none, the worker's own end among the reasons.
        """
        return self.begin(Ask(feature, arithmetic, options, clip, OPENING)).scores()

    def begin(self, ask: Ask) -> Pending:
        """Let the process compute, now or after what it was asked for before."""
        pending = _Pending(self, ask, self._number(ask.clip))
        self._waiting.append(pending)
        if self._process is not None and self._hello is not None:
            with suppress(Reported):  # that it is gone is told to who waits
                self._tell(self._process)
        return pending

    def put(self, array: NDArray[Any]) -> str:
        """Write an array to the file that is returned, which the process may read.

        Raises:
            Reported: there is no process any more, or no room.
        """
        return self._running().put(array)

    def do(
        self, task: Mapping[str, Any], seconds: float, progress: Callable[[int], None]
    ) -> Message:
        """Let the process, which was asked for nothing else, do a task of `gate.tasks`.

        Args:
            task: to be done.
            seconds: that may pass before an answer or a word of progress.
            progress: takes how far it is.

        Raises:
            Reported: why it was not done, the worker's own end among the reasons.
        """
        process = self._running()
        try:
            process.send(task)
            while "progress" in (answer := process.wait("computing", seconds))[0]:
                progress(answer[0]["progress"])
        except BaseException:
            self._end()
            raise
        if "trouble" in answer[0]:
            trouble = _trouble(answer[0]["trouble"])
            if trouble.unexpected:
                self._end()  # who knows what state it left
            raise Reported(trouble)
        return answer

    def forget(self) -> None:
        """Stop what is not finished; its clip may be closed now."""
        if self._waiting:
            self._end()
            self._waiting.clear()

    def close(self) -> None:
        """Let the backend close and its process end.

        Raises:
            Reported: it did not close.
        """
        self.forget()
        if self._hello is None:
            self._end()
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def advance(self) -> None:
        """Wait until what the process works on has an answer."""
        pending = self._waiting[0]
        began = perf_counter()
        try:
            process = self._running()
            with suppress(Reported):  # it may have answered before it ended, and `wait` tells
                self._tell(process)
            answer, arrays = process.wait("computing", pending.ask.timeout, pending.ask.clip)
            pending.answered = self._answered(answer, arrays)
            pending.seconds = answer["seconds"]
            self._told -= 1
        except Exception as error:  # noqa: BLE001 - raised where these scores are wanted
            pending.answered, pending.seconds = error, perf_counter() - began
            self._end()
        except BaseException:
            self._end()
            raise
        self._waiting.popleft()
        if isinstance(pending.answered, Reported) and pending.answered.trouble.unexpected:
            self._end()  # who knows what state it left

    def _tell(self, process: _Process) -> None:
        """Keep the process busy, in few messages, for each may interrupt who computes.

        Raises:
            Reported: it is gone.
        """
        if self._told > AHEAD // 2:
            return
        told = list(islice(self._waiting, self._told, AHEAD))
        if told:
            tables = [pending.ask.arithmetic.rcp_table for pending in told]
            named = {table.name: table.bits for table in tables if table is not None}
            asks = [pending.message() for pending in told]
            process.send({"asks": asks, "tables": list(named)}, list(named.values()))
            self._told += len(told)

    def _number(self, clip: Clip) -> int:
        """Return a number that no other clip has; the worker may keep frames by it."""
        number, last = self._clip
        if clip is not last:
            self._clip = number + 1, clip
        return self._clip[0]

    def _answered(self, answer: dict[str, Any], arrays: list[NDArray[Any]]) -> Scores | Reported:
        scores = None
        if arrays:
            values, unset = arrays
            told = answer["evidence"]
            evidence = None if told is None else Evidence.from_json(told)
            scores = Scores(tuple(answer["names"]), values, unset, evidence)
        if "trouble" in answer:
            return Reported(_trouble(answer["trouble"], scores))
        assert scores is not None  # noqa: S101 - what `_answer` of worker.py sends otherwise
        return scores

    def _running(self) -> _Process:
        if self._lost is not None:
            raise Reported(self._lost)
        self._introduction()
        if self._process is None:
            self._restart()
        assert self._process is not None  # noqa: S101 - for mypy
        return self._process

    def _introduction(self) -> tuple[str, dict[str, str]]:
        if self._hello is None:
            self._hello = self._opened()
        return self._hello

    def _restart(self) -> None:
        """Start again; a backend that does not come back as it was costs every later cell."""
        try:
            found = self._opened()
        except Unavailable as error:
            self._lost = Trouble(Status.ERROR, f"{self.name} did not come back: {error}")
        except Reported as error:
            reason = f"{self.name} did not come back: {error.trouble.reason}"
            self._lost = Trouble(Status.ERROR, reason, error.trouble.detail)
        else:
            if found != self._hello:
                told = f"{found[1]}, before {self.facts()}"
                reason = f"{self.name} came back as another one: {told}"
                self._lost = Trouble(Status.ERROR, reason)
        if self._lost is not None:
            self._end()
            raise Reported(self._lost)

    def _opened(self) -> tuple[str, dict[str, str]]:
        """Wait for what the process says of the backend that it opens."""
        if self._process is None:
            self._process = _Process(self._asked, self._program)
        try:
            hello, _ = self._process.wait("opening", OPENING)
        except BaseException:
            self._end()
            raise
        if "name" in hello:
            return hello["name"], hello["facts"]
        self._end()
        if "unavailable" in hello:
            raise Unavailable(hello["unavailable"])
        raise Reported(_trouble(hello["trouble"]))

    def _end(self) -> None:
        process, self._process = self._process, None
        self._told = 0
        if process is not None:
            process.kill()


class _Pending:
    """What a worker was asked for."""

    def __init__(self, worker: Worker, ask: Ask, clip: int) -> None:
        self._worker = worker
        self._clip = clip
        self.ask = ask
        self.answered: Scores | Exception | None = None
        self.seconds = 0.0

    def message(self) -> dict[str, Any]:
        """Return what its process is told."""
        ask, clip = self.ask, self.ask.clip
        table = ask.arithmetic.rcp_table
        return {
            "feature": ask.feature.name,
            "dialect": ask.arithmetic.dialect,
            "conclusion": ask.arithmetic.conclusion,
            "options": ask.options.model_dump(exclude_unset=True),
            "clip": [self._clip, clip.width, clip.height, clip.bit_depth, clip.frames],
            "table": table.name if table else "",
            "way": ask.way,
            "nonce": ask.nonce,
        }

    def scores(self) -> Scores:
        """Wait for them.

        Raises:
            Reported: why there are none; what goes wrong in the gate is raised as it is.
        """
        while self.answered is None:
            self._worker.advance()
        if isinstance(self.answered, Exception):
            raise self.answered
        return self.answered


class _Process:
    """One process, with a folder of its own for temporary files."""

    def __init__(self, backend: str, program: Sequence[str]) -> None:
        self._backend = backend
        sweep()
        self._folder = Scratch()
        self._printed = self._folder.path / "printed"  # what it prints of the present cell
        ours, theirs = socket.socketpair()
        _limit(ours)
        self._channel = Channel(ours)
        # The worker imports what the gate does, wherever it runs.
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = {**os.environ, "TMPDIR": str(self._folder.path), "PYTHONPATH": paths}
        try:
            with self._printed.open("ab") as printed, theirs:
                self._process = subprocess.Popen(  # noqa: S603 - no shell, and only the gate's words
                    [
                        sys.executable,
                        "-P",
                        *program,
                        backend,
                        str(theirs.fileno()),
                        str(os.getpid()),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=printed,
                    pass_fds=[theirs.fileno()],
                    env=environment,
                    start_new_session=True,  # the gate alone takes a terminal's signals
                )
        except BaseException:
            self._channel.close()
            self._folder.cleanup()
            raise

    def send(self, message: Mapping[str, Any], arrays: Arrays = ()) -> None:
        """Send a message.

        Raises:
            Reported: the process is gone.
        """
        try:
            self._channel.send(message, arrays)
        except OSError:
            raise Reported(self._ended()) from None

    def put(self, array: NDArray[Any]) -> str:
        """Write an array to the file that is returned."""
        path = self._folder.path / "operands"
        # In place, for new pages take ten times as long.
        try:
            with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT), "wb") as file:
                file.write(np.ascontiguousarray(array).data)
        except OSError as error:
            sentence = f"{path} cannot be written: {error.strerror}; name another TMPDIR"
            raise Reported(Trouble(Status.ERROR, sentence)) from error
        return str(path)

    def wait(self, doing: str, seconds: float, clip: Clip | None = None) -> Message:
        """Return the next answer; meanwhile the worker may read frames of `clip`.

        Raises:
            Reported: the process ended, or took longer.
        """
        until = monotonic() + seconds
        while True:
            try:
                answer, arrays = self._channel.receive(until)
            except TimeoutError:
                break
            except (EOFError, OSError):
                raise Reported(self._ended()) from None
            if clip is None or "read" not in answer:
                return answer, arrays
            self.send({"frames": True}, clip.read(*answer["read"]))
        reason = f"{self._backend} was {doing} for more than {seconds:g} s; its process was killed"
        raise Reported(Trouble(Status.ERROR, reason, self._last_words()))

    def close(self) -> None:
        """Let the backend close, and show what it printed.

        Raises:
            Reported: it did not close.
        """
        try:
            self.send({"asks": [], "tables": []})
            answer, _ = self.wait("closing", CLOSING)
            if "trouble" in answer:
                raise Reported(_trouble(answer["trouble"]))
            sys.stderr.write(self._last_words())
        finally:
            self.kill()

    def kill(self) -> None:
        """End the process and what it started, and remove its temporary files."""
        with suppress(ProcessLookupError):  # all of them have ended
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # a driver may hold it beyond a SIGKILL
            self._process.wait(CLOSING)
        self._channel.close()
        self._folder.cleanup()

    def _ended(self) -> Trouble:
        """Return how a process that hung up ended."""
        try:
            code = self._process.wait(CLOSING)
        except subprocess.TimeoutExpired:
            how = "stopped answering and did not end"
        else:
            how = f"ended with exit code {code}"
            if code < 0:
                how = f"was ended by signal {-code} ({_name_of(-code)})"
        reason = f"the process of {self._backend} {how}"
        return Trouble(Status.ERROR, reason, self._last_words())

    def _last_words(self) -> str:
        """Return the end of what the process printed."""
        with self._printed.open("rb") as printed:
            printed.seek(max(0, self._printed.stat().st_size - TOLD))
            return printed.read().decode("utf-8", "replace")


def _limit(connection: socket.socket) -> None:
    """Let no process that does not read what it is told block the gate for ever."""
    seconds = struct.pack("ll", round(CLOSING), 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "a real-time signal"


def _trouble(told: dict[str, Any], refused: Scores | None = None) -> Trouble:
    return Trouble(
        Status(told["status"]), told["reason"], told["detail"], refused, told["unexpected"]
    )
