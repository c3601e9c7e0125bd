"""The backend shared by every runtime that has devices: probe once, then drive twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends import exactness
from backends.base import Refused
from backends.evidence import NO_NONCE
from backends.witness import Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from backends.base import Arithmetic, Clip, Feature, Options, Runtime, Scores, Twin
    from backends.evidence import Evidence, Nonce


class DeviceBackend:
    """A device under its backend name; its twins are compiled once per feature.

    Attributes:
        device: what the twins run on.
    """

    def __init__(
        self,
        name: str,
        device: Runtime,
        facts: Mapping[str, str],
        release: Callable[[], None],
        floatless: str = "",
    ) -> None:
        """Probe the device's exactness.

        Args:
            name: the backend's.
            device: what the twins run on.
            facts: for reports.
            release: lets go of the device.
            floatless: why features with floating point cannot run here; empty where they can.

        Raises:
            Inexact: the device does not compute plain arithmetic as IEEE 754 says.
        """
        shown = f"not run: {floatless}" if floatless else exactness.check(name, device)
        self.name = name
        self._floatless = floatless
        self.device = device
        self._watched = Watched(device)
        self._nonce = NO_NONCE
        self._facts = {**facts, "exactness probe": shown}
        self._release = release
        self._twins: dict[str, Twin] = {}

    def facts(self) -> Mapping[str, str]:
        """Return device, driver, runtime, compiler and exactness flags."""
        return self._facts

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        """Compute every score of every frame with the feature's twin.

        Raises:
            Refused: the feature declines, or the device lacks the floating point that it needs.
        """
        feature.require(arithmetic, clip)
        feature.require_options(arithmetic, options)
        if feature.floats and self._floatless:
            raise Refused(self._floatless)
        if feature.name not in self._twins:
            self._twins[feature.name] = feature.twin(self._watched, feature.kernel_source())
        self._watched.begin(self._nonce)
        return self._twins[feature.name].compute(arithmetic, options, clip)

    def challenge(self, nonce: Nonce) -> None:
        """Take what the next computation's pictures are to be witnessed with."""
        self._nonce = nonce

    def evidence(self) -> Evidence:
        """Return what the device did for the last computation."""
        return self._watched.evidence()

    def close(self) -> None:
        """Forget the twins and release the device."""
        self._twins.clear()
        self._release()
