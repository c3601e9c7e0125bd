"""Temporary luma: what does not fit into a folder or into memory is told before it is written."""

from __future__ import annotations

import lzma
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from pydantic import TypeAdapter

from gate.errors import FixtureError
from gate.fixtures import FixtureSpec, GeneratedFixture, open_fixture

SPEC: TypeAdapter[Any] = TypeAdapter(FixtureSpec)
SIZE: dict[str, Any] = {"width": 17, "height": 19, "bit_depth": 10, "frames": 3}
ONE_SIDE = 17 * 19 * 2 * 3  # bytes


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def noise(**values: object) -> GeneratedFixture:
    spec = SPEC.validate_python({"generator": "noise", **SIZE, **values})
    assert isinstance(spec, GeneratedFixture)
    return spec


def packed(folder: Path) -> Any:  # noqa: ANN401 - what the adapter returns has no common type
    content = lzma.compress(bytes(ONE_SIDE), preset=0)
    (folder / "a.yuv.xz").write_bytes(content)
    pinned = {"file": "a.yuv.xz", "sha256": sha256(content).hexdigest()}
    return SPEC.validate_python({**SIZE, "subsampling": "4:0:0", "ref": pinned, "dist": pinned})


def leave(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**6, 10**6 - free, free))


@pytest.mark.parametrize("free", [2 * ONE_SIDE, 2 * ONE_SIDE + 1])
def test_a_generated_clip_that_fits_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    leave(free, monkeypatch)
    with open_fixture("made", noise(), tmp_path) as clip:
        assert clip.frames == 3


def test_a_generated_clip_needs_room_for_both_sides(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(2 * ONE_SIDE - 1, monkeypatch)
    with pytest.raises(FixtureError) as caught, open_fixture("made", noise(), tmp_path):
        pass
    assert str(caught.value) == (
        f"fixture 'made' ref: luma needs {2 * ONE_SIDE} bytes in {temporary}, which has "
        f"{2 * ONE_SIDE - 1} free; free some or set TMPDIR to another folder"
    )
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("free", [ONE_SIDE, ONE_SIDE + 1])
def test_a_packed_file_that_fits_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    leave(free, monkeypatch)
    with open_fixture("pair", packed(tmp_path), tmp_path) as clip:
        assert clip.frames == 3


def test_a_packed_file_that_does_not_fit_is_not_unpacked(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(ONE_SIDE - 1, monkeypatch)
    spec = packed(tmp_path)
    with pytest.raises(FixtureError) as caught, open_fixture("pair", spec, tmp_path):
        pass
    assert str(caught.value) == (
        f"fixture 'pair' ref 'a.yuv.xz': luma needs {ONE_SIDE} bytes in {temporary}, which has "
        f"{ONE_SIDE - 1} free; free some or set TMPDIR to another folder"
    )


def test_a_missing_temporary_folder_is_one_sentence(tmp_path: Path, temporary: Path) -> None:
    temporary.rmdir()
    sentence = r"'a\.yuv\.xz': no temporary folder for its luma \(No such file"
    spec = packed(tmp_path)
    with pytest.raises(FixtureError, match=sentence), open_fixture("pair", spec, tmp_path):
        pass


def test_a_clip_larger_than_any_disk_is_one_sentence(tmp_path: Path) -> None:
    spec = noise(width=32768, height=32768, frames=1_000_000)
    with pytest.raises(FixtureError) as caught, open_fixture("huge", spec, tmp_path):
        pass
    assert f"luma needs {4 * 32768**2 * 10**6} bytes in " in str(caught.value)


def test_a_generator_without_memory_is_one_sentence(tmp_path: Path) -> None:
    class Greedy(GeneratedFixture):
        def pictures(self, frame: int) -> tuple[Any, Any]:
            del frame
            return (np.empty(1 << 62, np.uint8),) * 2

    spec = Greedy(generator="greedy", **SIZE)
    with pytest.raises(FixtureError) as caught, open_fixture("made", spec, tmp_path):
        pass
    assert str(caught.value) == (
        "fixture 'made': generator 'greedy' has not enough memory for frame 0 of 17x19 at 10 bits; "
        "make the frame smaller or free memory"
    )


def test_a_temporary_folder_that_cannot_be_removed_stops_nothing(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        message = "busy"
        raise OSError(message)

    with monkeypatch.context() as patch:
        with open_fixture("made", noise(), tmp_path) as clip:
            patch.setattr(os, "rmdir", refuse)
        assert clip.frames == 3
    assert len(list(temporary.iterdir())) == 2
