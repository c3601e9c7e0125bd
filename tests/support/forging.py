"""A backend that runs on no device and forges all of the evidence that its name owes.

No gate can tell it from a device that has computed the reference's bits; DESIGN.md says so. Tests
of what has nothing to do with devices use it for speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from backends import registry
from backends.cpu import Cpu
from backends.evidence import NO_NONCE, WITNESS, Evidence, Launch, Nonce, Read
from gate import proof

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backends.base import Arithmetic, Clip, Feature, Luma, Options, Scores


class Forging:
    """What makes a backend's scores believed, under any name."""

    name: str
    _nonce = NO_NONCE
    _clip: Hashed | None = None

    def facts(self) -> Mapping[str, str]:
        owed = registry.owed(self.name).facts
        return {fact: f"{beginning}forged" for fact, beginning in owed.items()}

    def challenge(self, nonce: Nonce) -> None:
        self._nonce = nonce

    def seen(self, clip: Clip) -> Hashed:
        """Return the clip, to be read in its place."""
        self._clip = Hashed(clip, self._nonce)
        return self._clip

    def evidence(self) -> Evidence:
        assert self._clip is not None
        found = tuple(self._clip.witnesses)
        launches = (Launch(WITNESS, 1, 2), Launch("fold", 2, 3)) * len(found)
        return Evidence(facts=Forging.facts(self), launches=launches, witnesses=found)


class Forger(Forging, Cpu):
    """The reference under the name of a device."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        return super().compute(feature, arithmetic, options, self.seen(clip))


class Hashed(Read):
    """A clip that witnesses what is read of it, on the host."""

    def __init__(self, clip: Clip, nonce: Nonce) -> None:
        super().__init__(clip)
        self.witnesses: list[int] = []
        self._nonce = nonce

    def read(self, first: int, count: int) -> tuple[Luma, Luma]:
        pictures = super().read(first, count)
        total = proof.mixed_sum(np.concatenate(pictures), self._nonce.run)
        self.witnesses.append(proof.witness(total, self._nonce))
        return pictures
