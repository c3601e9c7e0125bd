"""A worker whose backend ends its process, hangs or lies, on pictures of one width.

Run as the program of a `gate.workers.Worker`; the backend's name says what happens.
"""

from __future__ import annotations

import ctypes
import os
import random
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn, TextIO

import numpy as np
from forging import Forger

from backends.base import Failed, Scores, Unavailable
from backends.cpu import Cpu
from gate import worker

if TYPE_CHECKING:
    from backends.base import Arithmetic, Backend, Clip, Feature, Options

FATAL = 19  # width of the pictures on which it happens


def say(text: str, stream: TextIO = sys.stdout) -> None:
    stream.write(f"{text}\n")
    stream.flush()


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crashed() -> None:
    say("reading at address 0", sys.stderr)
    ctypes.string_at(0)


def left() -> NoReturn:
    say("the driver gives up")
    os._exit(7)


def hung() -> None:
    say("waiting for the device")
    threading.Event().wait()


def hung_with_a_child() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    say(f"child {child.pid}")
    threading.Event().wait()


def out_of_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))
    np.ones(1 << 31, np.uint8)


def lost() -> NoReturn:
    message = "CL_DEVICE_NOT_AVAILABLE"
    raise RuntimeError(message)


def refused() -> NoReturn:
    message = "it declines"
    raise Failed(message)


FAULTS: Mapping[str, Callable[[], None]] = {
    "killed": killed,
    "crashed": crashed,
    "aborted": os.abort,
    "left": left,
    "hung": hung,
    "hung with a child": hung_with_a_child,
    "out of memory": out_of_memory,
    "lost": lost,
    "refused": refused,
    "sound": lambda: None,
    "stubborn": lambda: None,
    "changing": killed,
    "vanishing": killed,
    "careless": lambda: None,
    "counting": lambda: None,
    "greedy": lambda: None,
}
# What a side might take its bits from, and must not.
LIBERTIES: Mapping[str, Callable[[], int]] = {
    "careless": lambda: int(np.empty(1 << 20, np.uint8).max()),  # what nobody wrote
    "counting": lambda: len(os.sched_getaffinity(0)),
}


class Planted:
    """Returns what it read of each frame, its process, how often it was asked, and the table.

    With a liberty it returns what it takes from there instead.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._asked = 0

    def facts(self) -> Mapping[str, str]:
        return {"device": str(os.getpid()) if self.name == "changing" else "planted"}

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        del feature, options
        self._asked += 1
        if clip.width == FATAL:
            FAULTS[self.name]()
        greedy = self.name == "greedy" and clip.width == FATAL
        frames = [clip.read(frame, 1) for frame in range(clip.frames + greedy)]
        taken = LIBERTIES.get(self.name, lambda: self._asked)()
        table = arithmetic.rcp_table.bits.sum() if arithmetic.rcp_table else 0
        rows = [[ref.sum(), dist.sum(), os.getpid(), taken, table] for ref, dist in frames]
        values = np.array(rows, np.float64)
        return Scores(
            ("ref", "dist", "process", "asked", "table"), values, np.zeros(values.shape, np.bool_)
        )

    def close(self) -> None:
        say(f"{self.name} closes")
        if self.name == "stubborn":
            message = "the device cannot be released"
            raise OSError(message)


class Fragile(Forger):
    """The reference under a candidate's name, with the fault that PLANTED names."""

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        if clip.width == FATAL:
            FAULTS[os.environ["PLANTED"]]()
        return super().compute(feature, arithmetic, options, clip)


class Flipping(Forger):
    """The reference under a candidate's name, which flips a bit in 7.7 % of its runs.

    A worker repeats its runs in the same order, so that a test sees the same each time.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._drawn = random.Random(3)  # noqa: S311 - no secret

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        scores = super().compute(feature, arithmetic, options, clip)
        if clip.width == FATAL and self._drawn.random() < 0.077:
            scores.values.view(np.uint64)[0, 0] ^= np.uint64(1)
        return scores


def open_planted(name: str) -> Backend:
    if name == "cpu":
        return Cpu()
    if name == "opencl:pocl":
        return Flipping(name) if os.environ["PLANTED"] == "flipping" else Fragile(name)
    if name == "absent":
        message = "no such device"
        raise Unavailable(message)
    if name == "broken":
        message = "no symbol in the driver"
        raise ImportError(message)
    if name == "dies at once":
        os._exit(3)
    if name == "vanishing":  # it is there once
        try:
            os.close(os.open(os.environ["PLANTED_MARK"], os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            message = "no device any more"
            raise Unavailable(message) from None
    return Planted(name)


if __name__ == "__main__":
    worker.main(open_planted)
