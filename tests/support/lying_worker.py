"""A worker whose backend has the reference's scores, and lies about how it came by them.

Run as the program of a `gate.workers.Worker`. The width of the pictures says which lie it tells.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from forging import Forger

from backends.base import Scores
from backends.cpu import Cpu
from backends.evidence import WITNESS, Evidence, Launch, Read
from gate import worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from backends.base import Arithmetic, Backend, Clip, Feature, Options

    Lie = Callable[[Evidence], Evidence]

FIRST = 17  # width of the pictures of the first lie
FOLDER = "LYING_FOLDER"  # the variable that names the folder of the last run's file


def spanned(start: int, end: int) -> Lie:
    """Return the lie that the last launch took so long."""

    def lie(told: Evidence) -> Evidence:
        *launches, (kernel, _, _) = told.launches
        return replace(told, launches=(*launches, Launch(kernel, start, end)))

    return lie


def only(told: Evidence, *, witnesses: bool) -> Evidence:
    """Leave out the launches of the feature's kernels, or those that witness pictures."""
    left = (launch for launch in told.launches if (launch.kernel == WITNESS) == witnesses)
    return replace(told, launches=tuple(left))


LIES: Mapping[str, Lie] = {
    "none": lambda told: told,
    "nothing ran": lambda _: Evidence(),
    "another device": lambda told: replace(told, facts={**told.facts, "device": "the processor"}),
    "a launch without an end": spanned(9, 9),
    "a launch that ends before it begins": spanned(9, 8),
    "pictures that nobody witnessed": lambda told: replace(told, witnesses=()),
    "witnesses that were not computed": lambda told: only(told, witnesses=False),
    "pictures that no kernel read": lambda told: only(told, witnesses=True),
    "a made up witness": lambda told: replace(told, witnesses=(7,) * len(told.witnesses)),
    # Lies of `Liar.compute`, whose evidence is what it has.
    "one frame for all": lambda told: told,
    "a score is missing": lambda told: told,
    "a frame is missing": lambda told: told,
    "no scores": lambda told: told,
    "the computation before": lambda told: told,
    "wrong scores, and the computation before": lambda told: told,
    "the last run's file": lambda told: told,
}


class FirstFrame:
    """A clip that ends after its first frame."""

    frames = 1

    def __init__(self, clip: Clip) -> None:
        self.width, self.height, self.bit_depth = clip.width, clip.height, clip.bit_depth
        self.read = clip.read


def shortened(lie: str, scores: Scores) -> Scores:
    """Return scores of which some may be missing."""
    frames, names = scores.values.shape
    frames -= lie == "a frame is missing"
    names -= (lie == "a score is missing") + names * (lie == "no scores")
    kept = slice(frames), slice(names)
    return Scores(scores.names[:names], scores.values[kept], scores.unset[kept])


class Liar(Forger):
    """A backend that tells the lie of the pictures' width."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._lie = ""
        self._kept: dict[str, tuple[Scores, Evidence]] = {}  # by lie
        self._told: Evidence | None = None  # where it is not this computation's

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        self._lie, self._told = list(LIES)[clip.width - FIRST], None
        if self._lie == "one frame for all":
            assert isinstance(clip, Read)
            super().compute(feature, arithmetic, options, FirstFrame(clip))
            return Cpu().compute(feature, arithmetic, options, clip.clip)  # where nobody sees it
        scores = shortened(self._lie, super().compute(feature, arithmetic, options, clip))
        if self._lie.startswith("wrong scores"):
            scores = Scores(scores.names, scores.values + 1, scores.unset)
        if self._lie.endswith("the computation before"):
            scores, self._told = self._kept.setdefault(self._lie, (scores, super().evidence()))
        elif self._lie == "the last run's file":
            file = Path(os.environ[FOLDER]) / f"{arithmetic.dialect}.npz"
            if not file.exists():
                keep(file, scores, super().evidence())
            scores, self._told = kept(file)
        return scores

    def evidence(self) -> Evidence:
        return LIES[self._lie](super().evidence() if self._told is None else self._told)


def keep(file: Path, scores: Scores, evidence: Evidence) -> None:
    told = json.dumps({"names": scores.names, "evidence": evidence.as_json()})
    np.savez(file, values=scores.values, unset=scores.unset, told=np.array(told))


def kept(file: Path) -> tuple[Scores, Evidence]:
    with np.load(file) as arrays:
        told = json.loads(str(arrays["told"]))
        scores = Scores(tuple(told["names"]), arrays["values"], arrays["unset"])
    return scores, Evidence.from_json(told["evidence"])


class Elsewhere(Forger):
    """A backend on the platform of another one, of which it makes no secret."""

    def facts(self) -> Mapping[str, str]:
        return {**super().facts(), "platform": "Oclgrind 1"}

    def evidence(self) -> Evidence:
        return replace(super().evidence(), facts=self.facts())


class Processor(Cpu):
    """The reference under the name of a device: a fallback that nobody asked for."""

    def __init__(self, name: str) -> None:
        self.name = name


BACKENDS: Mapping[str, Callable[[str], Backend]] = {
    "cpu": Processor,
    "opencl:pocl": Liar,
    "opencl:nvidia": Elsewhere,
    "cuda": Processor,
}

if __name__ == "__main__":
    worker.main(lambda name: BACKENDS[name](name))
