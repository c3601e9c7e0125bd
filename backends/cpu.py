"""The compiled CPU reference as a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.evidence import Owed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backends.base import Arithmetic, Clip, Feature, Options, Scores

NAMES = ("cpu",)
OWED = {"cpu": Owed()}  # no more than the frames that it reads


class Cpu:
    """Runs each feature's compiled reference."""

    name = "cpu"

    def facts(self) -> Mapping[str, str]:
        """Return nothing: what decides the reference's bits is each feature's own to tell."""
        return {}

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        """Compute every score of every frame with the compiled reference."""
        return feature.reference(arithmetic, options, clip)

    def close(self) -> None:
        """Do nothing; the reference holds no resources."""


def open_backend(name: str) -> Cpu:  # noqa: ARG001 - every backend module opens by name
    """Return the CPU backend."""
    return Cpu()
