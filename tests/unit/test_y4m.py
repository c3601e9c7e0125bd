"""YUV4MPEG2 files: the pictures are those of the raw file, and everything wrong is one sentence."""

from __future__ import annotations

import hashlib
import lzma
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from gate.errors import FixtureError
from gate.fixtures import FileFixture, FixtureSpec, open_fixture
from gate.matrix import load

ROOT = Path(__file__).parents[2]
SPEC: TypeAdapter[Any] = TypeAdapter(FixtureSpec)

SUFFIXES = ("y4m", "y4m.xz")
SIDES = ("ref", "dist")
LUMA = 17 * 19
# Chroma samples of both planes for 17x19.
CHROMA = {"4:0:0": 0, "4:2:0": 180, "4:2:2": 342, "4:4:4": 646}
HEADER = b"YUV4MPEG2 W17 H19 F25:1 Ip A1:1 C420jpeg XYSCSS=420JPEG\n"
FRAME = b"FRAME\n"
MOST = 1024  # bytes of a line


def planes(frame: int, bit_depth: int = 8, subsampling: str = "4:2:0") -> bytes:
    """Return a frame whose chroma holds the largest value, so that it cannot pass for luma."""
    dtype = np.dtype(np.uint8 if bit_depth == 8 else "<u2")
    luma = np.random.default_rng(frame).integers(0, 2**bit_depth, LUMA).astype(dtype)
    return luma.tobytes() + np.full(CHROMA[subsampling], 255, dtype).tobytes()


def y4m(frames: list[bytes], header: bytes = HEADER, frame_line: bytes = FRAME) -> bytes:
    return header + b"".join(frame_line + frame for frame in frames)


THREE = [planes(frame) for frame in range(3)]


class Pair:
    """A folder with a fixture of two Y4M files, one of which a test changes."""

    def __init__(self, path: Path, suffix: str = "y4m", **declared: object) -> None:
        self.path = path
        self.suffix = suffix
        self.spec: dict[str, Any] = {"width": 17, "height": 19, "bit_depth": 8, "frames": 3}
        self.spec |= {"subsampling": "4:2:0", **declared}
        self.put("ref", y4m(THREE))
        self.put("dist", y4m(THREE[::-1]))

    def put(self, side: str, content: bytes) -> None:
        """Store a file, packed if its name says so, and pin it."""
        name = f"{side}.{self.suffix}"
        stored = lzma.compress(content, preset=0) if name.endswith(".xz") else content
        (self.path / name).write_bytes(stored)
        self.spec[side] = {"file": name, "sha256": hashlib.sha256(stored).hexdigest()}

    def open(self) -> Any:  # noqa: ANN401 - the type of a context manager says nothing here
        return open_fixture("pair", SPEC.validate_python(self.spec), self.path)

    def luma(self) -> tuple[bytes, bytes]:
        """Return the luma of both sides as it is handed out, little endian."""
        with self.open() as clip:
            ref, dist = clip.read(0, clip.frames)
        return tuple(side.astype(side.dtype.newbyteorder("<")).tobytes() for side in (ref, dist))

    def refusal(self, content: bytes) -> str:
        """Return why `content` is refused as ref, behind the words that every sentence has."""
        self.put("ref", content)
        with pytest.raises(FixtureError) as caught, self.open():
            pass
        sentence, begin = str(caught.value), f"fixture 'pair' ref 'ref.{self.suffix}': "
        assert sentence.startswith(begin)
        assert "\n" not in sentence
        return sentence.removeprefix(begin)


@pytest.fixture(params=SUFFIXES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    return Pair(tmp_path, request.param)


def only_luma(frames: list[bytes], bit_depth: int = 8) -> bytes:
    size = LUMA if bit_depth == 8 else 2 * LUMA
    return b"".join(frame[:size] for frame in frames)


# What is read


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_shipped_clip_as_y4m_equals_the_raw_one_byte_for_byte(
    tmp_path: Path, suffix: str
) -> None:
    name, matrix = "bbb_63x65_420p10", load(ROOT / "matrices/pr.yaml")
    raw = matrix.fixtures[name]
    assert isinstance(raw, FileFixture)
    pair = Pair(tmp_path, suffix, **raw.model_dump(exclude={"ref", "dist"}))
    for side in SIDES:
        content = lzma.decompress((ROOT / "matrices" / getattr(raw, side).file).read_bytes())
        size = len(content) // raw.frames
        frames = [content[n * size : (n + 1) * size] for n in range(raw.frames)]
        pair.put(side, y4m(frames, b"YUV4MPEG2 W63 H65 F25:1 Ip A0:0 C420p10\n"))
    with open_fixture(name, raw, ROOT / "matrices") as expected, pair.open() as clip:
        assert clip.frames == expected.frames == raw.frames
        wanted, read = expected.read(0, raw.frames), clip.read(0, raw.frames)
        assert [side.dtype for side in read] == [side.dtype for side in wanted]
        assert [side.tobytes() for side in read] == [side.tobytes() for side in wanted]


@pytest.mark.parametrize(
    ("tag", "subsampling", "bit_depth"),
    [
        ("", "4:2:0", 8),
        (" C420", "4:2:0", 8),
        (" C420jpeg", "4:2:0", 8),
        (" C420mpeg2", "4:2:0", 8),
        (" C420paldv", "4:2:0", 8),
        (" C422", "4:2:2", 8),
        (" C444", "4:4:4", 8),
        (" Cmono", "4:0:0", 8),
        (" C420p9", "4:2:0", 9),
        (" C420p10", "4:2:0", 10),
        (" C420p12", "4:2:0", 12),
        (" C420p16", "4:2:0", 16),
        (" C422p10", "4:2:2", 10),
        (" C422p16", "4:2:2", 16),
        (" C444p12", "4:4:4", 12),
        (" C444p16", "4:4:4", 16),
        (" Cmono10", "4:0:0", 10),
        (" Cmono12", "4:0:0", 12),
        (" Cmono16", "4:0:0", 16),
    ],
)
def test_every_c_tag_gives_subsampling_and_depth(
    tmp_path: Path, tag: str, subsampling: str, bit_depth: int
) -> None:
    pair = Pair(tmp_path, subsampling=subsampling, bit_depth=bit_depth)
    frames = [planes(frame, bit_depth, subsampling) for frame in range(3)]
    header = f"YUV4MPEG2 W17 H19{tag}\n".encode()
    pair.put("ref", y4m(frames, header))
    pair.put("dist", y4m(frames[::-1], header))
    assert pair.luma() == (only_luma(frames, bit_depth), only_luma(frames[::-1], bit_depth))


@pytest.mark.parametrize(
    "header",
    [
        b"YUV4MPEG2 C420 H19 W17\n",
        b"YUV4MPEG2  W17 H19 \n",
        b"YUV4MPEG2 W17 H19 I?\n",
        b"YUV4MPEG2 W17 H19 F0:0 A0:0 XCOLORRANGE=LIMITED XW18\n",
    ],
)
def test_order_blanks_and_tags_without_a_say_change_nothing(pair: Pair, header: bytes) -> None:
    pair.put("ref", y4m(THREE, header))
    assert pair.luma() == (only_luma(THREE), only_luma(THREE[::-1]))


def test_frame_lines_may_have_parameters_of_any_length(pair: Pair) -> None:
    lines = [b"FRAME\n", b"FRAME Ippp XA=1\n", b"FRAME " + b"X" * (MOST - 7) + b"\n"]
    pair.put("ref", HEADER + b"".join(map(b"".join, zip(lines, THREE, strict=True))))
    assert pair.luma()[0] == only_luma(THREE)


def test_pictures_that_look_like_a_frame_line_are_pictures(pair: Pair) -> None:
    frames = [(FRAME * 100)[: len(THREE[0])]] * 3
    pair.put("ref", y4m(frames))
    assert pair.luma()[0] == only_luma(frames)


def test_only_the_end_of_a_name_makes_a_y4m_file(tmp_path: Path) -> None:
    pair = Pair(tmp_path, "y4m.yuv")
    pair.put("ref", b"".join(THREE))
    pair.put("dist", b"".join(THREE))
    assert pair.luma()[0] == only_luma(THREE)


def test_the_sha256_is_that_of_the_file_on_disk(pair: Pair) -> None:
    digest = hashlib.sha256((pair.path / f"ref.{pair.suffix}").read_bytes()).hexdigest()
    with pair.open() as clip:
        assert clip.sha256["ref"] == digest


def test_luma_lies_in_a_temporary_folder_and_goes(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with pair.open():
        assert [file.stat().st_size for file in temporary.glob("*/*")] == [3 * LUMA] * 2
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_memory_grows_neither_with_the_clip_nor_with_its_frames(
    tmp_path: Path, suffix: str
) -> None:
    side, frames = 1024, 4
    pair = Pair(tmp_path, suffix, width=side, height=side, frames=frames, subsampling="4:4:4")
    content = y4m([bytes(3 * side * side)] * frames, b"YUV4MPEG2 W1024 H1024 C444\n")
    pair.put("ref", content)
    pair.put("dist", content)
    tracemalloc.start()
    with pair.open():
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < side * side


# Headers that are wrong, or say something else than the matrix


@pytest.mark.parametrize(
    ("header", "says", "declared"),
    [
        (b"W18 H19", "width 18", "17"),
        (b"W17 H18", "height 18", "19"),
        (b"W17 H0", "height 0", "19"),
        (b"W17 H19 C420p10", "bit_depth 10", "8"),
        (b"W17 H19 C422", "subsampling 4:2:2", "4:2:0"),
        (b"W17 H19 Cmono", "subsampling 4:0:0", "4:2:0"),
    ],
)
def test_a_header_that_says_something_else_tells_both(
    pair: Pair, header: bytes, says: str, declared: str
) -> None:
    assert pair.refusal(y4m(THREE, b"YUV4MPEG2 " + header + b"\n")) == (
        f"its header says {says}, the matrix declares {declared}; "
        "correct the declaration or name another file"
    )


def test_a_header_without_c_tag_is_held_against_the_matrix(tmp_path: Path) -> None:
    pair = Pair(tmp_path, subsampling="4:4:4")
    sentence = pair.refusal(y4m(THREE, b"YUV4MPEG2 W17 H19\n"))
    assert sentence.startswith("its header says subsampling 4:2:0, the matrix declares 4:4:4")


@pytest.mark.parametrize("tag", ["It", "Ib", "Im", "I", "Ix", "Ip?"])
def test_pictures_that_are_not_progressive_are_refused(pair: Pair, tag: str) -> None:
    assert pair.refusal(y4m(THREE, f"YUV4MPEG2 W17 H19 {tag}\n".encode())) == (
        f"its header says '{tag}'; allowed: Ip (progressive) or I? (unknown); "
        "name a file that is not interlaced"
    )


@pytest.mark.parametrize(
    "tag",
    ["", "411", "440", "444alpha", "420jpegp10", "420p", "420p1x", "monop10", "mono1x", "420P10"],
)
def test_an_unknown_c_tag_is_refused(pair: Pair, tag: str) -> None:
    assert pair.refusal(y4m(THREE, f"YUV4MPEG2 W17 H19 C{tag}\n".encode())) == (
        f"its header says 'C{tag}'; allowed: C420, C420jpeg, C420mpeg2, C420paldv, C422, C444 and "
        "Cmono, deeper ones as in C420p10 and Cmono10; convert the file"
    )


@pytest.mark.parametrize("tag", ["420p010", "444p09", "mono012"])
def test_a_depth_with_leading_zeros_is_an_unknown_tag(pair: Pair, tag: str) -> None:
    refused = pair.refusal(y4m(THREE, f"YUV4MPEG2 W17 H19 C{tag}\n".encode()))
    assert refused.startswith(f"its header says 'C{tag}'; allowed: C420, ")


@pytest.mark.parametrize("word", ["Itt", "Ibpp"])
def test_a_frame_that_says_interlaced_is_refused(pair: Pair, word: str) -> None:
    content = y4m(THREE, b"YUV4MPEG2 W17 H19 I?\n").replace(b"FRAME", f"FRAME {word}".encode(), 1)
    assert pair.refusal(content) == (
        f"its frame 0 says {word!r}, which is interlaced; allowed: progressive; convert the file"
    )


@pytest.mark.parametrize("tag", ["420p0", "420p8", "422p17", "444p32", "mono8", "mono17"])
def test_a_depth_that_y4m_cannot_have_is_refused(pair: Pair, tag: str) -> None:
    depth = tag.removeprefix("mono").rpartition("p")[2]
    assert pair.refusal(y4m(THREE, f"YUV4MPEG2 W17 H19 C{tag}\n".encode())) == (
        f"its header says 'C{tag}', {depth} bits; allowed: none for 8 bits, or 9 to 16; "
        "convert the file"
    )


@pytest.mark.parametrize("value", ["", "x", "-17", "+17", "1_7", "17.0", "17\r", "\u0661"])
def test_a_size_that_is_no_number_is_refused(pair: Pair, value: str) -> None:
    sentence = pair.refusal(y4m(THREE, f"YUV4MPEG2 H19 W{value}\n".encode()))
    assert sentence.startswith("its header says 'W")
    assert sentence.endswith("'; allowed: W and digits; restore the file")


@pytest.mark.parametrize(("header", "key"), [(b"H19", "W"), (b"W17", "H"), (b"", "W")])
def test_a_header_without_a_size_is_refused(pair: Pair, header: bytes, key: str) -> None:
    sentence = pair.refusal(y4m(THREE, b"YUV4MPEG2 " + header + b"\n"))
    assert sentence == f"its header has no {key} tag; restore the file"


@pytest.mark.parametrize("key", ["W", "H", "C", "I", "F", "A"])
def test_a_tag_that_comes_twice_is_refused(pair: Pair, key: str) -> None:
    twice = f"YUV4MPEG2 W17 H19 C420 Ip F1:1 A1:1 {key}1\n".encode()
    assert pair.refusal(y4m(THREE, twice)) == f"its header has two {key} tags; restore the file"


def test_an_unknown_tag_is_refused(pair: Pair) -> None:
    assert pair.refusal(y4m(THREE, b"YUV4MPEG2 W17 H19 Q\xff\n")) == (
        r"its header has the unknown tag 'Q\\xff'; allowed: W, H, C, I, F, A and X; "
        "restore the file"
    )


@pytest.mark.parametrize(
    ("content", "begin"),
    [
        (b"\n", r"b'\n'"),
        (b"YUV4MPEG\n", r"b'YUV4MPEG\n'"),
        (b"YUV4MPEG2W17 H19\n", "b'YUV4MPEG2W17 H19'"),
        (bytes(3 * 503), str(bytes(16))),
    ],
)
def test_a_file_that_is_no_y4m_is_refused(pair: Pair, content: bytes, begin: str) -> None:
    assert pair.refusal(content) == (
        f"the header line begins with {begin} instead of YUV4MPEG2; restore the file"
    )


@pytest.mark.parametrize("content", [b"", b"YUV4", b"YUV4MPEG2", HEADER[:-1]])
def test_a_file_that_ends_in_the_header_is_refused(pair: Pair, content: bytes) -> None:
    assert pair.refusal(content) == "the file ends inside the header line; restore the file"


def long_header(size: int) -> bytes:
    return HEADER[:-1] + b" " + b"X" * (size - len(HEADER) - 1) + b"\n"


@pytest.mark.parametrize("size", [MOST - 1, MOST])
def test_a_header_of_1_kib_is_read(pair: Pair, size: int) -> None:
    pair.put("ref", y4m(THREE, long_header(size)))
    assert pair.luma()[0] == only_luma(THREE)


def test_a_header_above_1_kib_is_refused(pair: Pair) -> None:
    sentence = pair.refusal(y4m(THREE, long_header(MOST + 1)))
    assert sentence == "the header line is longer than 1024 bytes; restore the file"


# Frames


@pytest.mark.parametrize("frames", [0, 1, 2])
def test_fewer_frames_than_declared_are_told(pair: Pair, frames: int) -> None:
    assert pair.refusal(y4m(THREE[:frames])) == (
        f"its frames end after {frames}, the matrix declares frames: 3; "
        "correct the declaration or restore the file"
    )


@pytest.mark.parametrize("extra", [FRAME + THREE[0], FRAME, b"FRAME Ippp\n" + THREE[0]])
def test_more_frames_than_declared_are_told(pair: Pair, extra: bytes) -> None:
    assert pair.refusal(y4m(THREE) + extra) == (
        "its frames go on after 3, the matrix declares frames: 3; "
        "correct the declaration or restore the file"
    )


@pytest.mark.parametrize("extra", [b"\0", b"\n", b"FRAME", b"FRAMES\n", bytes(503)])
def test_bytes_behind_the_last_frame_are_refused(pair: Pair, extra: bytes) -> None:
    assert pair.refusal(y4m(THREE) + extra) == (
        f"trailing bytes follow the last frame, they begin with {extra[:6]!r}; restore the file"
    )


@pytest.mark.parametrize("kept", [0, 1, LUMA - 1, LUMA, LUMA + 1, 501, 502])
def test_a_file_that_ends_in_a_frame_tells_where(pair: Pair, kept: int) -> None:
    content = y4m(THREE[:1]) + FRAME + THREE[1][:kept]
    assert pair.refusal(content) == (
        f"the file ends after {kept} of the 503 bytes of frame 1; restore the file"
    )


@pytest.mark.parametrize("line", [b"F", b"FRAME", b"FRAME Ippp"])
def test_a_file_that_ends_in_a_frame_line_is_refused(pair: Pair, line: bytes) -> None:
    sentence = pair.refusal(y4m(THREE[:2]) + line)
    assert sentence == "the file ends inside the line of frame 2; restore the file"


@pytest.mark.parametrize("line", [b"", b"\n", b"FRAM\n", b"FRAMES\n", b"frame\n", b" FRAME\n"])
def test_a_missing_frame_line_is_refused(pair: Pair, line: bytes) -> None:
    content = y4m(THREE[:1]) + line + bytes(2000)
    assert pair.refusal(content) == (
        f"the line of frame 1 begins with {(line or bytes(16))[:16]!r} instead of FRAME; "
        "restore the file"
    )


def test_a_frame_line_above_1_kib_is_refused(pair: Pair) -> None:
    sentence = pair.refusal(y4m(THREE, frame_line=b"FRAME " + b"X" * (MOST - 6) + b"\n"))
    assert sentence == "the line of frame 0 is longer than 1024 bytes; restore the file"


# What holds for raw files holds here


def test_other_bytes_than_pinned_are_refused(pair: Pair) -> None:
    pair.spec["ref"]["sha256"] = "0" * 64
    with pytest.raises(FixtureError, match=f"the matrix pins {'0' * 64}"), pair.open():
        pass


@pytest.mark.parametrize("bit_depth", [9, 10, 12, 15])
def test_a_sample_above_the_depth_of_the_tag_is_located(tmp_path: Path, bit_depth: int) -> None:
    pair = Pair(tmp_path, bit_depth=bit_depth)
    frames = [planes(frame, bit_depth) for frame in range(3)]
    frames[2] = (2**bit_depth).to_bytes(2, "little") + frames[2][2:]
    sentence = pair.refusal(y4m(frames, f"YUV4MPEG2 W17 H19 C420p{bit_depth}\n".encode()))
    assert sentence.startswith(f"sample {2**bit_depth} at frame 2, x 0, y 0 does not fit")


def test_a_damaged_xz_stream_behind_the_last_frame_is_found(tmp_path: Path) -> None:
    pair = Pair(tmp_path, "y4m.xz")
    content = bytearray((tmp_path / "ref.y4m.xz").read_bytes())
    content[-20] ^= 1  # in the stream's index
    (tmp_path / "ref.y4m.xz").write_bytes(content)
    pair.spec["ref"]["sha256"] = hashlib.sha256(content).hexdigest()
    with pytest.raises(FixtureError, match="cannot be unpacked as xz"), pair.open():
        pass


def test_a_bomb_is_not_unpacked_beyond_the_declared_frames(tmp_path: Path) -> None:
    pair = Pair(tmp_path, "y4m.xz")
    bomb = bytearray(lzma.compress(y4m(THREE) + bytes(1 << 24)))
    bomb[-20] ^= 1  # whoever unpacks all of it stumbles here
    (tmp_path / "ref.y4m.xz").write_bytes(bomb)
    pair.spec["ref"]["sha256"] = hashlib.sha256(bomb).hexdigest()
    with pytest.raises(FixtureError, match="trailing bytes follow the last frame"), pair.open():
        pass
