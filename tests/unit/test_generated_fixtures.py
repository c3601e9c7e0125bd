"""Opening generated fixtures: what is read is what the generator draws, and it is pinned."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from gate.errors import FixtureError
from gate.fixtures import FixtureSpec, GeneratedFixture, open_fixture

SPEC: TypeAdapter[Any] = TypeAdapter(FixtureSpec)
SIDES = ("ref", "dist")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def noise(**values: object) -> GeneratedFixture:
    size = {"generator": "noise", "width": 17, "height": 19, "bit_depth": 10, "frames": 3}
    spec = SPEC.validate_python(size | values)
    assert isinstance(spec, GeneratedFixture)
    return spec


@pytest.mark.parametrize("bit_depth", [8, 10, 16])
def test_a_generated_fixture_reads_as_its_generator_draws(tmp_path: Path, bit_depth: int) -> None:
    spec = noise(bit_depth=bit_depth)
    with open_fixture("made", spec, tmp_path) as clip:
        ref, dist = clip.read(0, 3)
        for frame in range(3):
            drawn = spec.pictures(frame)
            assert np.array_equal(ref[frame], drawn[0])
            assert np.array_equal(dist[frame], drawn[1])


def test_the_sha256_of_a_generated_fixture_are_of_its_luma(tmp_path: Path) -> None:
    with open_fixture("made", noise(), tmp_path) as clip:
        read = [frames.astype("<u2").tobytes() for frames in clip.read(0, 3)]
        assert clip.sha256 == dict(zip(SIDES, map(sha256, read), strict=True))


def test_a_generated_fixture_with_the_right_pin_opens(tmp_path: Path) -> None:
    with open_fixture("made", noise(), tmp_path) as clip:
        pin = dict(clip.sha256)
    with open_fixture("made", noise(sha256=pin), tmp_path) as clip:
        assert clip.sha256 == pin


@pytest.mark.parametrize("side", SIDES)
def test_a_generated_fixture_with_a_wrong_pin_is_refused(tmp_path: Path, side: str) -> None:
    with open_fixture("made", noise(), tmp_path) as clip:
        pin = dict(clip.sha256) | {side: "0" * 64}
        sentence = f"fixture 'made' {side}: generator 'noise' makes .* pins 0{{64}};"
    with (
        pytest.raises(FixtureError, match=sentence),
        open_fixture("made", noise(sha256=pin), tmp_path),
    ):
        pass


@pytest.mark.parametrize("value", [-1, 256])
def test_a_generator_that_leaves_its_depth_is_caught(tmp_path: Path, value: int) -> None:
    class Loud(GeneratedFixture):
        def pictures(self, frame: int) -> tuple[Any, Any]:
            pictures = np.zeros((2, 19, 17), np.int64)
            pictures[1, 3, 5] = value * frame
            return pictures[0], pictures[1]

    spec = Loud(generator="loud", width=17, height=19, bit_depth=8, frames=2)
    sentence = f"'loud' dist: sample {value} at frame 1, x 5, y 3"
    with pytest.raises(FixtureError, match=sentence), open_fixture("loud", spec, tmp_path):
        pass


def test_memory_does_not_grow_with_a_generated_clip(tmp_path: Path) -> None:
    frames = 1000
    tracemalloc.start()
    with open_fixture("made", noise(frames=frames), tmp_path):
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < frames * 17 * 19 * 2 / 4
