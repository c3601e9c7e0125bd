"""Opening files: what is read is what lies in the file, and everything wrong is one sentence."""

from __future__ import annotations

import errno
import hashlib
import lzma
import os
import re
import tempfile
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter

from backends.base import Clip
from gate.errors import FixtureError
from gate.fixtures import FixtureSpec, open_fixture

DATA = Path(__file__).parents[2] / "matrices/data"

SPEC: TypeAdapter[Any] = TypeAdapter(FixtureSpec)

# Chroma samples of both planes for 17x19: 9x10 at 4:2:0, 9x19 at 4:2:2.
CHROMA = {"4:0:0": 0, "4:2:0": 180, "4:2:2": 342, "4:4:4": 646}
SUFFIXES = ("yuv", "yuv.xz")
SIDES = ("ref", "dist")

Frames = NDArray[np.integer]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def luma(frames: int, bit_depth: int = 8, width: int = 17, height: int = 19) -> Frames:
    dtype = np.uint8 if bit_depth == 8 else np.uint16
    return np.random.default_rng(7).integers(
        0, 2**bit_depth, (frames, height, width), dtype, endpoint=False
    )


def raw(frames: Frames, chroma: int = CHROMA["4:2:0"]) -> bytes:
    """Return planar bytes; chroma holds the largest value, so that it cannot pass for luma."""
    dtype = frames.dtype.newbyteorder("<")
    plane = np.full(chroma, np.iinfo(dtype).max, dtype).tobytes()
    return b"".join(picture.astype(dtype).tobytes() + plane for picture in frames)


class Folder:
    """A matrix's folder with one fixture whose parts a test may change."""

    def __init__(
        self, path: Path, suffix: str = "yuv", frames: int = 3, bit_depth: int = 8
    ) -> None:
        self.path = path
        self.files = {side: f"{side}.{suffix}" for side in SIDES}
        self.pictures = luma(2 * frames, bit_depth).reshape(2, frames, 19, 17)
        self.spec: dict[str, Any] = {"width": 17, "height": 19, "bit_depth": bit_depth}
        self.spec |= {"subsampling": "4:2:0", "frames": frames}
        for side, pictures in zip(SIDES, self.pictures, strict=True):
            self.put(side, raw(pictures))

    def put(self, side: str, content: bytes) -> None:
        """Store raw content, packed if the file's name says so, and pin it."""
        packed = lzma.compress(content, preset=0) if self.files[side].endswith(".xz") else content
        self.put_as_is(side, packed)

    def put_as_is(self, side: str, content: bytes) -> None:
        """Store the bytes of a file and pin them."""
        (self.path / self.files[side]).write_bytes(content)
        self.spec[side] = {"file": self.files[side], "sha256": sha256(content)}

    def open(self) -> Any:  # noqa: ANN401 - the type of a context manager says nothing here
        return open_fixture("pair", SPEC.validate_python(self.spec), self.path)

    def refusal(self) -> str:
        """Return why the fixture is refused; every sentence names fixture, side and file."""
        with pytest.raises(FixtureError) as caught, self.open():
            pass
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture(params=SUFFIXES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return Folder(tmp_path, request.param)


@pytest.fixture
def packed(tmp_path: Path) -> Folder:
    return Folder(tmp_path, "yuv.xz")


@pytest.fixture
def plain(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# What is read


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("subsampling", CHROMA)
@pytest.mark.parametrize("bit_depth", [8, 10, 12, 16])
def test_only_luma_is_read_whatever_the_subsampling_and_depth(
    tmp_path: Path, suffix: str, subsampling: str, bit_depth: int
) -> None:
    folder = Folder(tmp_path, suffix, bit_depth=bit_depth)
    folder.spec["subsampling"] = subsampling
    for side, pictures in zip(SIDES, folder.pictures, strict=True):
        folder.put(side, raw(pictures, CHROMA[subsampling]))
    with folder.open() as clip:
        for read, stored in zip(clip.read(0, 3), folder.pictures, strict=True):
            assert read.dtype == stored.dtype
            assert np.array_equal(read, stored)


def test_samples_above_8_bits_are_little_endian(tmp_path: Path) -> None:
    folder = Folder(tmp_path, frames=1, bit_depth=16)
    folder.spec |= {"width": 1, "height": 1, "subsampling": "4:0:0"}
    folder.put("ref", b"\x01\x02")
    folder.put("dist", b"\x03\x04")
    with folder.open() as clip:
        assert [int(side[0, 0, 0]) for side in clip.read(0, 1)] == [0x0201, 0x0403]


def test_every_batch_of_frames_can_be_read_in_any_order(folder: Folder) -> None:
    batches = [(first, count) for first in range(4) for count in range(4 - first)]
    with folder.open() as clip:
        for first, count in reversed(batches):
            ref, dist = clip.read(first, count)
            assert ref.shape == dist.shape == (count, 19, 17)
            assert np.array_equal(ref, folder.pictures[0, first : first + count])
            assert np.array_equal(dist, folder.pictures[1, first : first + count])


@pytest.mark.parametrize(("first", "count"), [(0, 4), (3, 1), (-1, 1), (2, -1), (4, 0)])
def test_frames_that_do_not_exist_are_refused(folder: Folder, first: int, count: int) -> None:
    with folder.open() as clip, pytest.raises(IndexError, match="of 3"):
        clip.read(first, count)


def test_arrays_are_fresh_and_contiguous(folder: Folder) -> None:
    with folder.open() as clip:
        ref, _ = clip.read(0, 3)
        assert ref.flags.c_contiguous
        ref[:] = 0
        assert np.array_equal(clip.read(0, 3)[0], folder.pictures[0])


def test_an_open_fixture_is_a_clip(folder: Folder) -> None:
    with folder.open() as opened:
        clip: Clip = opened
        assert (clip.width, clip.height, clip.bit_depth, clip.frames) == (17, 19, 8, 3)


def test_the_sha256_of_files_are_those_on_disk(folder: Folder) -> None:
    disk = {s: sha256((folder.path / file).read_bytes()) for s, file in folder.files.items()}
    with folder.open() as clip:
        assert clip.sha256 == disk


def shipped() -> list[tuple[str, str, str]]:
    row = re.compile(r"^\| (\S+\.yuv\.xz) \| `(\w{64})` \| `(\w{64})` \|$", re.MULTILINE)
    return row.findall((DATA / "README.md").read_text(encoding="utf-8"))


def test_the_list_of_shipped_files_is_complete() -> None:
    assert sorted(name for name, _, _ in shipped()) == sorted(f.name for f in DATA.glob("*.xz"))


@pytest.mark.parametrize("row", shipped(), ids=lambda row: row[0])
def test_a_shipped_file_has_the_listed_bytes(row: tuple[str, str, str]) -> None:
    name, file, content = row
    with (DATA / name).open("rb") as packed, lzma.open(DATA / name) as unpacked:
        assert hashlib.file_digest(packed, "sha256").hexdigest() == file
        assert hashlib.file_digest(unpacked, "sha256").hexdigest() == content


# Paths


def test_a_missing_file_is_named(folder: Folder) -> None:
    (folder.path / folder.files["dist"]).unlink()
    sentence = folder.refusal()
    assert sentence.startswith(f"fixture 'pair' dist '{folder.files['dist']}': cannot be opened")
    assert "No such file" in sentence


def test_a_directory_is_no_fixture(plain: Folder) -> None:
    (plain.path / "sub").mkdir()
    plain.spec["ref"]["file"] = "sub"
    assert "'sub': is a directory" in plain.refusal()


def test_a_pipe_is_refused_and_not_waited_for(plain: Folder) -> None:
    os.mkfifo(plain.path / "pipe")
    plain.spec["ref"]["file"] = "pipe"
    assert "'pipe': is no regular file" in plain.refusal()


def test_a_file_without_permission_is_named(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", refuse)
    assert "ref.yuv" in (sentence := folder.refusal())
    assert "Permission denied" in sentence


def test_a_loop_of_links_is_one_sentence(plain: Folder) -> None:
    (plain.path / "loop").symlink_to("loop")
    plain.spec["ref"]["file"] = "loop"
    assert "'loop': cannot be opened" in plain.refusal()


def test_a_path_that_leaves_the_folder_through_a_link_is_refused(tmp_path: Path) -> None:
    for name in ("inside", "elsewhere/deep"):
        (tmp_path / name).mkdir(parents=True)
    folder = Folder(tmp_path / "inside")
    Folder(tmp_path / "elsewhere")
    (folder.path / "link").symlink_to("../elsewhere/deep")
    folder.spec["ref"]["file"] = "link/../ref.yuv"
    assert "only files inside" in folder.refusal()


def test_a_sibling_whose_name_begins_alike_is_outside(tmp_path: Path) -> None:
    for name in ("matrix", "matrix2"):
        (tmp_path / name).mkdir()
    folder = Folder(tmp_path / "matrix")
    Folder(tmp_path / "matrix2")
    (folder.path / "link").symlink_to("../matrix2")
    folder.spec["ref"]["file"] = "link/ref.yuv"
    assert "only files inside" in folder.refusal()


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    folder = Folder(tmp_path / "inside")
    (folder.path / "ref.yuv").rename(tmp_path / "outside.yuv")
    (folder.path / "ref.yuv").symlink_to("../outside.yuv")
    assert "only files inside" in folder.refusal()


def test_a_link_inside_a_linked_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = Folder(tmp_path / "real")
    (folder.path / "ref.yuv").rename(folder.path / "moved.yuv")
    (folder.path / "ref.yuv").symlink_to("moved.yuv")
    folder.path = tmp_path / "link"
    with folder.open() as clip:
        assert np.array_equal(clip.read(0, 3)[0], folder.pictures[0])


def test_braces_in_a_name_do_no_harm(plain: Folder) -> None:
    plain.spec["ref"]["file"] = "{0}{x}.yuv"
    assert "'{0}{x}.yuv': cannot be opened" in plain.refusal()


# Sizes: a frame of 17x19 at 4:2:0 has 503 bytes, three have 1509.


@pytest.mark.parametrize(
    ("size", "frame", "rest"), [(0, 0, 0), (502, 0, 502), (503, 1, 0), (504, 1, 1), (1508, 2, 502)]
)
def test_a_short_file_tells_the_frame_and_the_bytes(
    folder: Folder, size: int, frame: int, rest: int
) -> None:
    folder.put("dist", raw(folder.pictures[1])[:size])
    sentence = folder.refusal()
    assert f"ends after {rest} byte{'s' * (rest != 1)} of frame {frame} ({size} bytes" in sentence
    assert "frames: 3 of 17x19 4:2:0 at 8 bits need 1509 bytes, 503 each" in sentence


@pytest.mark.parametrize(("extra", "unit"), [(1, "byte"), (2, "bytes"), (503, "bytes")])
def test_trailing_bytes_are_counted(plain: Folder, extra: int, unit: str) -> None:
    plain.put("ref", raw(plain.pictures[0]) + bytes(extra))
    assert f"has {extra} trailing {unit} ({1509 + extra} bytes in all)" in plain.refusal()


@pytest.mark.parametrize("extra", [1, 503])
def test_trailing_content_of_an_xz_file_is_refused(packed: Folder, extra: int) -> None:
    packed.put("ref", raw(packed.pictures[0]) + bytes(extra))
    assert "unpacks to more bytes than declared" in packed.refusal()


@pytest.mark.parametrize(
    ("key", "value", "need"),
    [("width", 18, "1566"), ("height", 20, "1560"), ("bit_depth", 10, "3018")],
)
def test_a_size_that_does_not_fit_tells_what_it_would_need(
    folder: Folder, key: str, value: int, need: str
) -> None:
    folder.spec[key] = value
    assert f"need {need} bytes" in folder.refusal()


def test_a_wrong_size_is_told_before_a_wrong_sha256(plain: Folder) -> None:
    plain.put("ref", raw(plain.pictures[0])[:-1])
    plain.spec["ref"]["sha256"] = "0" * 64
    assert "ends after 502 bytes of frame 2" in plain.refusal()


def test_other_bytes_than_pinned_tell_both_sha256(folder: Folder) -> None:
    actual = folder.spec["dist"]["sha256"]
    folder.spec["dist"]["sha256"] = "0" * 64
    sentence = folder.refusal()
    assert f"its sha256 is {actual}, the matrix pins {'0' * 64}" in sentence


# xz


def test_a_file_that_is_no_xz_is_refused(packed: Folder) -> None:
    packed.put_as_is("ref", raw(packed.pictures[0]))
    assert "'ref.yuv.xz': cannot be unpacked as xz" in packed.refusal()


def test_an_empty_xz_file_is_refused(packed: Folder) -> None:
    packed.put_as_is("ref", b"")
    assert "the xz stream is cut off" in packed.refusal()


@pytest.mark.parametrize("kept", [11, 12, 40, -1])
def test_an_xz_file_that_was_cut_is_refused(packed: Folder, kept: int) -> None:
    packed.put_as_is("ref", lzma.compress(raw(packed.pictures[0]))[:kept])
    assert "the xz stream is cut off" in packed.refusal()


def test_damage_behind_the_last_picture_is_found(packed: Folder) -> None:
    content = bytearray(lzma.compress(raw(packed.pictures[0])))
    content[-20] ^= 1  # in the stream's index
    packed.put_as_is("ref", bytes(content))
    assert "cannot be unpacked as xz" in packed.refusal()


@pytest.mark.parametrize("extra", [b"\0", lzma.compress(b"")])
def test_bytes_behind_the_xz_stream_are_refused(packed: Folder, extra: bytes) -> None:
    packed.put_as_is("ref", lzma.compress(raw(packed.pictures[0])) + extra)
    assert "bytes follow the xz stream" in packed.refusal()


def test_a_bomb_is_not_unpacked_beyond_the_declared_size(packed: Folder) -> None:
    bomb = bytearray(lzma.compress(bytes(1 << 24)))
    bomb[-20] ^= 1  # whoever unpacks all of it stumbles here
    packed.put_as_is("ref", bytes(bomb))
    assert "unpacks to more bytes than declared" in packed.refusal()


def with_dictionary(content: bytes, size_code: int) -> bytes:
    """Return an xz file that asks for a dictionary of 2 or 3 times 2**(size_code // 2 + 11)."""
    end = 12 + 4 * (content[12] + 1) - 4  # of the block header, before its CRC32
    header = bytearray(content[12:end])
    header[4] = size_code
    return content[:12] + header + zlib.crc32(header).to_bytes(4, "little") + content[end + 4 :]


def test_an_xz_file_that_needs_192_mib_of_memory_is_unpacked(packed: Folder) -> None:
    content = lzma.compress(raw(packed.pictures[0]))
    packed.put_as_is("ref", with_dictionary(content, 31))
    with packed.open() as clip:
        assert np.array_equal(clip.read(0, 3)[0], packed.pictures[0])


def test_an_xz_file_that_needs_256_mib_of_memory_is_refused(packed: Folder) -> None:
    content = lzma.compress(raw(packed.pictures[0]))
    packed.put_as_is("ref", with_dictionary(content, 32))
    assert "Memory usage limit exceeded" in packed.refusal()


# Samples


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("bit_depth", [9, 10, 12, 15])
def test_a_sample_above_the_depth_is_located(tmp_path: Path, suffix: str, bit_depth: int) -> None:
    folder = Folder(tmp_path, suffix, bit_depth=bit_depth)
    folder.pictures[1, 2, 18, 16] = 2**bit_depth
    folder.put("dist", raw(folder.pictures[1]))
    sentence = folder.refusal()
    assert f"sample {2**bit_depth} at frame 2, x 16, y 18" in sentence
    assert f"allowed: 0 to {2**bit_depth - 1}" in sentence


@pytest.mark.parametrize("bit_depth", [8, 9, 10, 12, 15, 16])
def test_the_largest_sample_of_a_depth_is_read(tmp_path: Path, bit_depth: int) -> None:
    folder = Folder(tmp_path, bit_depth=bit_depth)
    folder.pictures[1, 2, 18, 16] = 2**bit_depth - 1
    folder.put("dist", raw(folder.pictures[1]))
    with folder.open() as clip:
        assert clip.read(2, 1)[1][0, 18, 16] == 2**bit_depth - 1


@pytest.mark.parametrize("bit_depth", [1, 7, 17, 10**9])
def test_a_depth_that_bytes_and_words_cannot_hold_is_refused(plain: Folder, bit_depth: int) -> None:
    plain.spec["bit_depth"] = bit_depth
    assert f"bit_depth {bit_depth} cannot be read; allowed: 8 to 16" in plain.refusal()


# Temporary files


def test_a_plain_file_is_read_in_place(plain: Folder, temporary: Path) -> None:
    with plain.open():
        assert list(temporary.iterdir()) == []


def test_unpacked_luma_lies_in_a_temporary_folder_and_goes(packed: Folder, temporary: Path) -> None:
    with packed.open():
        sizes = [file.stat().st_size for file in temporary.glob("*/*")]
        assert sizes == [3 * 17 * 19] * 2
    assert list(temporary.iterdir()) == []


def test_temporary_files_go_when_the_caller_fails(packed: Folder, temporary: Path) -> None:
    with pytest.raises(ZeroDivisionError), packed.open():
        raise ZeroDivisionError
    assert list(temporary.iterdir()) == []


def test_temporary_files_go_when_the_second_side_is_refused(
    packed: Folder, temporary: Path
) -> None:
    packed.put("dist", b"")
    packed.refusal()
    assert list(temporary.iterdir()) == []


def test_an_error_of_the_caller_is_not_explained_away(folder: Folder) -> None:
    with pytest.raises(BrokenPipeError), folder.open():
        raise BrokenPipeError


class FullFolder(tempfile.TemporaryDirectory[str]):
    """A temporary folder on a full disk."""

    def __enter__(self) -> str:
        (Path(self.name) / "luma").symlink_to("/dev/full")
        return super().__enter__()


def test_a_full_disk_is_one_sentence(packed: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryDirectory", FullFolder)
    sentence = packed.refusal()
    assert "'ref.yuv.xz': its luma cannot be kept in" in sentence
    assert "No space left on device" in sentence
    assert "free 969 bytes there or set TMPDIR" in sentence


def test_a_full_disk_is_one_sentence_for_a_generator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryDirectory", FullFolder)
    size = {"width": 17, "height": 19, "bit_depth": 8}
    spec = SPEC.validate_python({"generator": "noise", **size})
    sentence = "fixture 'made' ref: its luma cannot be kept .*No space left"
    with pytest.raises(FixtureError, match=sentence), open_fixture("made", spec, tmp_path):
        pass


def test_a_file_that_is_cut_while_open_is_noticed(plain: Folder) -> None:
    with plain.open() as clip:
        os.truncate(plain.path / "ref.yuv", 1509 - 200)
        assert np.array_equal(clip.read(0, 2)[0], plain.pictures[0, :2])
        with pytest.raises(FixtureError, match="frame 2 is gone"):
            clip.read(2, 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_memory_does_not_grow_with_the_clip(tmp_path: Path, suffix: str) -> None:
    frames = 4000
    folder = Folder(tmp_path, suffix, frames, bit_depth=10)
    tracemalloc.start()
    with folder.open():
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < frames * 503 * 2 / 4
