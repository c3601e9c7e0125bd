"""What a matrix may say about a fixture; an error is about the one field that is wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gate.fixtures import FileFixture, FixtureSpec, generators

SPEC: TypeAdapter[Any] = TypeAdapter(FixtureSpec)

SIZE = {"width": 17, "height": 19, "bit_depth": 8}
NOISE: dict[str, Any] = {"generator": "noise", **SIZE}
FILES: dict[str, Any] = {
    **SIZE,
    "subsampling": "4:2:0",
    "frames": 3,
    "ref": {"file": "ref.yuv", "sha256": "0" * 64},
    "dist": {"file": "dist.yuv.xz", "sha256": "f" * 64},
}


def errors(value: object) -> list[tuple[tuple[int | str, ...], str]]:
    with pytest.raises(ValidationError) as caught:
        SPEC.validate_python(value)
    return [(error["loc"], error["type"]) for error in caught.value.errors()]


def test_a_well_formed_file_fixture_is_accepted() -> None:
    assert isinstance(SPEC.validate_python(FILES), FileFixture)


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("width", 0, "greater_than_equal"),
        ("width", 32769, "less_than_equal"),
        ("height", 32769, "less_than_equal"),
        ("frames", 1_000_001, "less_than_equal"),
        ("width", "17", "int_type"),
        ("height", 17.0, "int_type"),
        ("bit_depth", True, "int_type"),
        ("frames", 0, "greater_than_equal"),
        ("subsampling", "4:1:1", "literal_error"),
        ("subsampling", 420, "literal_error"),
        ("fps", 25, "extra_forbidden"),
        ("ref", "ref.yuv", "model_type"),
    ],
)
def test_a_wrong_field_of_a_file_fixture_is_the_only_error(
    key: str, value: object, kind: str
) -> None:
    assert errors(FILES | {key: value}) == [((key,), kind)]


@pytest.mark.parametrize("size", [1, 32767, 32768])
def test_the_smallest_and_the_largest_size_are_accepted(size: int) -> None:
    assert SPEC.validate_python(NOISE | {"width": size, "height": size}).width == size
    assert SPEC.validate_python(FILES | {"width": size, "height": size}).height == size


@pytest.mark.parametrize("frames", [1, 999_999, 1_000_000])
def test_the_smallest_and_the_largest_number_of_frames_are_accepted(frames: int) -> None:
    assert SPEC.validate_python(NOISE | {"frames": frames}).frames == frames
    assert SPEC.validate_python(FILES | {"frames": frames}).frames == frames


@pytest.mark.parametrize("file", ["a/../b.yuv", "a/b/../../c.yuv", "..a/b", "a..b", "./a"])
def test_a_path_that_stays_inside_the_folder_is_accepted(file: str) -> None:
    dist = FILES["dist"] | {"file": file}
    assert SPEC.validate_python(FILES | {"dist": dist}).dist.file == file


@pytest.mark.parametrize("bit_depth", [-1, 0, 7, 17, 10**9])
def test_a_level_is_not_held_against_a_depth_that_is_wrong_itself(bit_depth: int) -> None:
    flat = {"generator": "flat", "ref_level": 128, "dist_level": 128}
    assert SPEC.validate_python({**SIZE, **flat, "bit_depth": bit_depth}).bit_depth == bit_depth


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("file", "/etc/passwd", "refused"),
        ("file", "a\0b", "refused"),
        ("file", "../a", "refused"),
        ("file", "a/../../b", "refused"),
        ("file", "..", "refused"),
        ("file", "", "string_too_short"),
        ("sha256", "0" * 63, "refused"),
        ("sha256", "0" * 65, "refused"),
        ("sha256", "A" * 64, "refused"),
        ("sha256", "0" * 64 + "\n", "refused"),
        ("md5", "0", "extra_forbidden"),
    ],
)
def test_a_wrong_field_of_a_file_is_the_only_error(key: str, value: object, kind: str) -> None:
    dist = FILES["dist"] | {key: value}
    assert errors(FILES | {"dist": dist}) == [(("dist", key), kind)]


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("width", 0, "greater_than_equal"),
        ("width", 32769, "less_than_equal"),
        ("frames", 0, "greater_than_equal"),
        ("frames", 1_000_001, "less_than_equal"),
        ("subsampling", "4:2:0", "extra_forbidden"),
        ("sha256", "0" * 64, "model_type"),
        ("label", 3, "string_type"),
    ],
)
def test_a_wrong_field_of_a_generated_fixture_is_the_only_error(
    key: str, value: object, kind: str
) -> None:
    assert errors(NOISE | {key: value}) == [((key,), kind)]


@pytest.mark.parametrize("name", ["nois", "Noise", "_random", "", 3, None, ["noise"]])
def test_an_unknown_generator_is_the_only_error_and_lists_the_known(name: object) -> None:
    with pytest.raises(ValidationError) as caught:
        SPEC.validate_python({"generator": name, "width": "wrong", "extra": 1})
    (error,) = caught.value.errors()
    assert (error["loc"], error["type"]) == (("generator",), "literal_error")
    assert re.findall(r"'(\w+)'", error["ctx"]["expected"]) == list(generators())


@pytest.mark.parametrize("value", [None, 3, "noise", ["noise"]])
def test_a_fixture_that_is_no_mapping_is_one_error(value: object) -> None:
    assert errors(value) == [((), "model_type")]


def test_the_schema_knows_files_and_every_generator() -> None:
    schema = SPEC.json_schema()
    generator = [m["properties"].get("generator", {}) for m in schema["$defs"].values()]
    assert [field["const"] for field in generator if field] == list(generators())
    assert "FileFixture" in schema["$defs"]
