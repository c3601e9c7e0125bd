"""The generators: bytes as the goldens' makers had them, ranges, and parameters at their limits."""

from __future__ import annotations

import hashlib
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from integer_adm_patterns import pattern_o
from pydantic import TypeAdapter, ValidationError

import gate.fixtures
from gate import golden
from gate.fixtures import FixtureSpec, GeneratedFixture, generators

GOLDEN = Path(__file__).parents[2] / "matrices/golden/synthetic.float_adm.ieee-single.json.xz"
PAIRS = golden.load(GOLDEN).fixtures

SPEC: TypeAdapter[Any] = TypeAdapter(FixtureSpec)

# One example of every generator; the size and the depth are added.
EXAMPLES: dict[str, dict[str, Any]] = {
    "amplified": {},
    "boost": {},
    "checkerboard": {"low": 16, "high": 235, "shift": 1},
    "contrast": {},
    "flat": {"ref_level": 16, "dist_level": 25},
    "gradient": {},
    "impulse": {"level": 128, "peak": 129, "x": 0, "y": 0},
    "near": {},
    "noise": {},
    "ridges": {},
    "scaled": {},
    "sequence": {},
    "stripes": {"level": 128, "stripe": 160},
}
LABELLED = ("amplified", "boost", "contrast", "gradient", "near", "noise", "scaled")

ONE_SAMPLE_UP = {"level": 1 << 15, "peak": (1 << 15) + 1, "x": 288, "y": 162}

# The kind is the first word of a golden pair's name.
KINDS: dict[str, dict[str, Any]] = {
    "noise": {"generator": "noise"},
    "grad": {"generator": "gradient"},
    "near": {"generator": "near"},
    "scaled": {"generator": "scaled"},
    "boost": {"generator": "boost"},
    "seq3": {"generator": "sequence"},
    "flat1": {"generator": "impulse", **ONE_SAMPLE_UP},
    "flat1rev": {"generator": "impulse", **ONE_SAMPLE_UP, "side": "dist"},
    "flat": {"generator": "flat", "ref_level": 128, "dist_level": 128},
    "black": {"generator": "flat", "ref_level": 0, "dist_level": 0},
    "flatnf": {"generator": "flat", "ref_level": 16, "dist_level": 25},
    "flatref": {"generator": "stripes", "level": 128, "stripe": 160},
    "checker": {"generator": "checkerboard", "low": 16, "high": 235},
}


def generated(**values: object) -> GeneratedFixture:
    size = {"width": 18, "height": 17, "bit_depth": 8}
    spec = SPEC.validate_python(size | values)
    assert isinstance(spec, GeneratedFixture)
    return spec


def example(name: str, **values: object) -> GeneratedFixture:
    return generated(generator=name, **EXAMPLES[name] | values)


def golden_spec(name: str) -> GeneratedFixture:
    pair, words = PAIRS[name], name.split("_")
    values = dict(KINDS[words[0]])
    if words[0] == "checker":
        values["shift"] = int(words[1])
    if words[0] in {"noise", "grad"} and pair.width == 1920:
        values["label"] = "hd 8"
    size = {"width": pair.width, "height": pair.height, "frames": pair.frames}
    return generated(bit_depth=pair.bit_depth, **size, **values)


def raw_sha256(spec: GeneratedFixture) -> tuple[str, str]:
    """Return the sha256 of ref and dist as planar 4:2:0 files with neutral chroma."""
    dtype = np.uint8 if spec.bit_depth == 8 else np.dtype("<u2")
    samples = 2 * ((spec.width + 1) // 2) * ((spec.height + 1) // 2)
    chroma = np.full(samples, 1 << (spec.bit_depth - 1), dtype).tobytes()
    ref, dist = hashlib.sha256(), hashlib.sha256()
    for frame in range(spec.frames):
        for digest, picture in zip((ref, dist), spec.pictures(frame), strict=True):
            digest.update(picture.astype(dtype).tobytes() + chroma)
    return ref.hexdigest(), dist.hexdigest()


def place_of_only_error(**values: object) -> tuple[int | str, ...]:
    with pytest.raises(ValidationError) as caught:
        generated(**values)
    (error,) = caught.value.errors()
    return error["loc"]


def test_there_are_112_golden_pairs() -> None:
    assert len(PAIRS) == 112


@pytest.mark.parametrize("name", PAIRS)
def test_a_golden_pair_is_reproduced_byte_for_byte(name: str) -> None:
    assert raw_sha256(golden_spec(name)) == (PAIRS[name].ref, PAIRS[name].dist)


def test_every_module_without_underscore_is_a_generator_of_its_own_name() -> None:
    modules = [m.name for m in pkgutil.iter_modules(gate.fixtures.__path__)]
    assert list(generators()) == [name for name in modules if not name.startswith("_")]


def test_every_generator_has_an_example_here() -> None:
    assert list(EXAMPLES) == list(generators())


@pytest.mark.parametrize("name", EXAMPLES)
@settings(deadline=None)
@given(
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    bit_depth=st.integers(8, 16),
    frame=st.integers(0, 3),
)
def test_pictures_have_the_size_stay_in_range_and_repeat(
    name: str, width: int, height: int, bit_depth: int, frame: int
) -> None:
    spec = example(name, width=width, height=height, bit_depth=bit_depth)
    pictures = spec.pictures(frame)
    assert len(pictures) == 2
    for picture, again in zip(pictures, spec.pictures(frame), strict=True):
        assert picture.shape == (height, width)
        assert picture.min() >= 0
        assert picture.max() < 2**bit_depth
        assert np.array_equal(picture, again)


@pytest.mark.parametrize("name", LABELLED)
def test_another_label_or_frame_gives_another_picture(name: str) -> None:
    one, two = example(name, label="one"), example(name, label="two")
    assert not np.array_equal(one.pictures(0)[0], two.pictures(0)[0])
    assert not np.array_equal(one.pictures(0)[0], one.pictures(1)[0])


def test_every_generator_with_a_label_is_tested_for_it() -> None:
    assert [n for n, model in generators().items() if "label" in model.model_fields] == [*LABELLED]


@pytest.mark.parametrize("bit_depth", [8, 10, 16])
def test_contrast_is_black_and_white_and_strays_into_the_range(bit_depth: int) -> None:
    ref, dist = example("contrast", width=64, height=64, bit_depth=bit_depth).pictures(0)
    white = 2**bit_depth - 1
    assert set(np.unique(ref)) == {0, white}
    assert 0.4 < (ref == white).mean() < 0.6
    strays = np.abs(dist - ref)
    assert 0 < strays.max() == 1 << (bit_depth - 8)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ridges_are_three_black_rows_and_a_white_one_turned_at_the_right(count: int) -> None:
    """As in pattern O of the specification, which has three and is flat between them."""
    wanted = pattern_o(8)
    wanted[(15, 27, 39, 64)[count] :] = 127
    for picture in example("ridges", width=64, height=64, count=count).pictures(0):
        assert np.array_equal(picture, wanted)


@pytest.mark.parametrize(("height", "ridges"), [(18, 0), (19, 1), (30, 1), (31, 2)])
def test_only_whole_ridges_are_drawn(height: int, ridges: int) -> None:
    ref, _ = example("ridges", width=17, height=height).pictures(0)
    assert np.count_nonzero(ref[:, 0] == 255) == ridges


@pytest.mark.parametrize("bit_depth", [8, 10, 12, 16])
@pytest.mark.parametrize("amplitude", [2, 4, 82, 84])
def test_amplified_is_one_and_a_half_times_ref_around_mid(bit_depth: int, amplitude: int) -> None:
    spec = example("amplified", width=64, height=64, bit_depth=bit_depth, amplitude=amplitude)
    ref, dist = spec.pictures(0)
    mid = 1 << (bit_depth - 1)
    assert np.array_equal(2 * (dist - mid), 3 * (ref - mid))
    assert np.abs(ref - mid).max() <= amplitude << (bit_depth - 8)
    assert 0 < dist.min() < mid < dist.max() < 2**bit_depth - 1


@pytest.mark.parametrize("amplitude", [0, 1, 3, 83, 85, 86])
def test_amplified_refuses_an_amplitude_that_is_odd_or_would_clip(amplitude: int) -> None:
    place = place_of_only_error(generator="amplified", amplitude=amplitude)
    assert place == ("amplitude",)


@pytest.mark.parametrize("amplitude", [0, 1, 255])
def test_near_strays_by_no_more_than_its_amplitude(amplitude: int) -> None:
    ref, dist = example("near", width=64, height=64, amplitude=amplitude).pictures(0)
    assert np.abs(dist - ref).max() <= amplitude
    assert np.array_equal(ref, dist) == (amplitude == 0)


@pytest.mark.parametrize("amplitude", [-1, 256])
@pytest.mark.parametrize("name", ["near", "sequence"])
def test_a_noise_beyond_the_range_is_refused(name: str, amplitude: int) -> None:
    assert place_of_only_error(generator=name, amplitude=amplitude) == ("amplitude",)


@pytest.mark.parametrize(("bit_depth", "level"), [(8, 255), (10, 1023), (16, 65535), (8, 0)])
def test_the_highest_and_lowest_level_of_a_depth_is_accepted(bit_depth: int, level: int) -> None:
    ref, _ = example("flat", bit_depth=bit_depth, ref_level=level).pictures(0)
    assert set(ref.flat) == {level}


@pytest.mark.parametrize(("bit_depth", "level"), [(8, 256), (10, 1024), (16, 65536), (8, -1)])
def test_a_level_beyond_the_depth_is_refused(bit_depth: int, level: int) -> None:
    levels = {"ref_level": level, "dist_level": 0}
    place = place_of_only_error(generator="flat", bit_depth=bit_depth, **levels)
    assert place == ("ref_level",)


def test_a_level_says_what_its_depth_allows() -> None:
    with pytest.raises(ValidationError, match="256 does not fit bit_depth 8; allowed: 0 to 255"):
        example("flat", ref_level=256)


def test_a_wrong_depth_is_not_blamed_on_the_level() -> None:
    levels = {"ref_level": 256, "dist_level": 0}
    assert place_of_only_error(generator="flat", bit_depth="8", **levels) == ("bit_depth",)


def test_an_impulse_may_sit_on_the_last_sample() -> None:
    ref, dist = example("impulse", x=17, y=16).pictures(0)
    assert np.argwhere(ref != dist).tolist() == [[16, 17]]


@pytest.mark.parametrize(("axis", "value"), [("x", 18), ("x", -1), ("y", 17), ("y", -1)])
def test_an_impulse_outside_of_the_picture_is_refused(axis: str, value: int) -> None:
    values = EXAMPLES["impulse"] | {axis: value}
    assert place_of_only_error(generator="impulse", **values) == (axis,)


@pytest.mark.parametrize("side", ["ref", "dist"])
def test_an_impulse_is_on_the_named_side_only(side: str) -> None:
    ref, dist = example("impulse", side=side).pictures(0)
    assert (ref.max(), dist.max()) == ((129, 128) if side == "ref" else (128, 129))


def test_a_checkerboard_moves_right_by_one_sample_a_frame() -> None:
    spec = example("checkerboard", width=64, height=64)
    before, after = spec.pictures(0)[0], spec.pictures(1)[0]
    assert np.array_equal(before[:, :-1], after[:, 1:])
    assert not np.array_equal(before, after)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("checkerboard", "block", 0),
        ("checkerboard", "block", 65536),
        ("checkerboard", "shift", -65536),
        ("checkerboard", "shift", 65536),
        ("stripes", "thickness", 0),
        ("stripes", "period", 0),
        ("noise", "label", ""),
    ],
)
def test_a_parameter_beyond_its_limits_is_refused(name: str, key: str, value: object) -> None:
    assert place_of_only_error(generator=name, **EXAMPLES[name] | {key: value}) == (key,)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("checkerboard", "block", 1),
        ("checkerboard", "block", 65535),
        ("checkerboard", "shift", -65535),
        ("checkerboard", "shift", 65535),
        ("stripes", "thickness", 1),
        ("stripes", "period", 1),
        ("noise", "label", "x"),
    ],
)
def test_a_parameter_at_its_limits_works(name: str, key: str, value: object) -> None:
    assert example(name, **{key: value}).pictures(0)[0].shape == (17, 18)
