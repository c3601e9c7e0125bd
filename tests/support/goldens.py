"""Golden files held against a backend: what the tests of every feature share."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from stills import Clip

from gate import golden, matrix
from gate.fixtures import FileFixture, PinnedFile, open_fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backends.base import Arithmetic, Options, Scores
    from gate.fixtures import FixtureSpec

    Compute = Callable[[Arithmetic, Options, Clip], Scores]

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "matrices" / "golden"
MATRIX = ROOT / "matrices" / "nightly.yaml"


class File(NamedTuple):
    """A golden file and its pin."""

    name: str
    sha256: str


# Pairs without a clear licence are not shipped; where they lie beside the checkout, they count.
BESIDE = ROOT.parent / "shared" / "fixtures"
UNSHIPPED = {
    "carphone_176x144_420p8": (
        "f128cc8f9e6c0decf7461191173e3d21eb35a63871df812fe4a1eed5c20da138",
        "6946d2714ea7cdd04199c8f598d0af087c59eabb7f00bd3a6c27f85b1fa2fc86",
    ),
    "city_576x324_420p8": (
        "0c419239202e4ebcd255b2989e57c9b3187aefc6ba6527738a40d859e271daf4",
        "b117438fa50a48a0aa594c3e63f36ca40f579a1faf6f846a69ea327a7a045e3b",
    ),
}


HAVE_UNSHIPPED = all((BESIDE / f"{name}_ref.yuv.xz").is_file() for name in UNSHIPPED)


def unshipped(name: str, pair: golden.Pair) -> FileFixture:
    """Describe a pair that lies beside the checkout under its original file names."""
    sides = zip(("ref", "dis"), UNSHIPPED[name], strict=True)
    files = [PinnedFile(file=f"{name}_{side}.yuv.xz", sha256=pin) for side, pin in sides]
    return FileFixture(
        width=pair.width,
        height=pair.height,
        bit_depth=pair.bit_depth,
        frames=pair.frames,
        subsampling="4:2:0",
        ref=files[0],
        dist=files[1],
    )


def told(compared: int, wrong: int) -> str:
    """Return the counts, with what is missing from them, as one line."""
    missing = "" if HAVE_UNSHIPPED else f"; without {', '.join(UNSHIPPED)}, which are not here"
    return f"{compared} scores, {wrong} different{missing}"


@functools.cache
def nightly() -> matrix.Matrix:
    """Load the matrix that has every fixture, once for all golden files."""
    return matrix.load(MATRIX)


@functools.cache
def clip(name: str, pair: golden.Pair) -> Clip:
    """Read a fixture into memory, once for all golden files: all of them take 160 MB."""
    spec: FixtureSpec = nightly().fixtures[name] if name not in UNSHIPPED else unshipped(name, pair)
    root = BESIDE if name in UNSHIPPED else MATRIX.parent
    with open_fixture(name, spec, root) as opened:
        ref, dist = opened.read(0, opened.frames)
        return Clip(ref, dist, opened.bit_depth)


def clips(content: golden.Golden) -> Iterator[tuple[str, Clip]]:
    """Return every fixture of a golden that is here; the unshipped ones may be absent."""
    for name, pair in content.fixtures.items():
        if name not in UNSHIPPED or HAVE_UNSHIPPED:
            yield name, clip(name, pair)


def different(scores: Scores, frames: list[golden.Scores]) -> int:
    """Count scores whose bits are not the golden's; any NaN equals any NaN."""
    expected = [[frame[name] for name in scores.names] for frame in frames]
    unset = np.array([[value is None for value in row] for row in expected])
    values = np.array([[0.0 if value is None else value for value in row] for row in expected])
    same = values.view(np.uint64) == scores.values.view(np.uint64)
    same |= np.isnan(values) & np.isnan(scores.values)
    return int(np.count_nonzero(np.where(unset, ~scores.unset, ~same | scores.unset)))


def check(
    file: File,
    options: type[Options],
    arithmetic: Callable[[golden.Golden], Arithmetic],
    compute: Compute,
) -> tuple[int, int]:
    """Hold a backend against a golden file.

    Args:
        file: the golden.
        options: those of its feature.
        arithmetic: returns that of the golden on this machine.
        compute: the backend.

    Returns:
        scores compared, scores different.
    """
    content = golden.load(GOLDENS / f"{file.name}.json.xz", file.sha256)
    wanted, compared, wrong = arithmetic(content), 0, 0
    for name, pictures in clips(content):
        for text, frames in content.results[name].items():
            chosen = options.model_validate(golden.options(text, options))
            scores = compute(wanted, chosen, pictures)
            assert {len(frame) for frame in frames} == {len(scores.names)}
            assert len(scores.values) == len(frames)
            compared += scores.values.size
            wrong += different(scores, frames)
    return compared, wrong
