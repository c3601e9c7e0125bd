"""What a cell computed, and under which circumstances, for tests of the reference cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from runner_desk import FRAMES, NAMES, make_cell

from backends.base import Scores
from gate.cache import REPLAYED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gate.cache import Facts, ReferenceCache
    from gate.model import Cell

CLIP = {"ref": "r" * 64, "dist": "d" * 64}
FACTS = {
    "gate": {"parity-gate": "1", "numpy": "2"},
    "host": {"processor": "P (family 6)", "C library": "glibc 2"},
    "feature fake": {"reference": "sha256 ab", "compiler": "cc 1"},
    "reference cpu": {"device": "none"},
    REPLAYED: {"sha256": "none"},
}
SIGNALLING, QUIET = 0x7FF0_0000_0000_0001, 0xFFF8_0000_DEAD_BEEF  # bits of NaNs


def make_scores(first: float = 0.1) -> Scores:
    """Return scores with each value that a careless copy would change, and one that is unset."""
    values = np.array([first, -0.0, np.inf, 5e-324, 0, 0]).reshape(FRAMES, len(NAMES))
    values.view(np.uint64)[2] = SIGNALLING, QUIET
    unset = np.zeros(values.shape, np.bool_)
    unset[0, 1] = True
    return Scores(NAMES, values, unset)


def key_of(
    kept: ReferenceCache,
    cell: Cell | None = None,
    clip: Mapping[str, str] = CLIP,
    facts: Facts = FACTS,
) -> str:
    key = kept.key(cell or make_cell(), clip, facts)
    assert key is not None, kept.problem
    return key


def believed(scores: Scores | None, expected: Scores) -> bool:
    return (
        scores is not None
        and scores.names == expected.names
        and scores.values.dtype == np.float64
        and scores.unset.dtype == np.bool_
        and scores.values.tobytes() == expected.values.tobytes()
        and np.array_equal(scores.unset, expected.unset)
    )
