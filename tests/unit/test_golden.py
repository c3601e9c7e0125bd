"""Goldens: values survive as exact bits, and a file that is not whole is refused."""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import re
from pathlib import Path
from typing import Any

import pytest

from backends import registry
from backends.features.float_adm.spec import FloatAdmOptions
from gate import golden
from gate.golden import GoldenError

GOLDEN = Path(__file__).parents[2] / "matrices/golden"
SHIPPED = sorted(GOLDEN.glob("*.json.xz"))

PAIR = {"w": 17, "h": 19, "bpc": 10, "frames": 2, "ref_sha256": "aa", "dis_sha256": "bb"}


def content(*frames: dict[str, Any], **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    base = {"feature": "float_adm", "dialect": "ieee-single", "cases": {"pair": PAIR}}
    return base | {"results": {"pair": {"": list(frames)}}} | changes


def write(folder: Path, value: object) -> Path:
    path = folder / "some.json.xz"
    path.write_bytes(lzma.compress(json.dumps(value).encode()))
    return path


def refusal(path: Path, pin: str | None = None) -> str:
    """Return why a file is refused; every sentence names the file."""
    with pytest.raises(GoldenError) as caught:
        golden.load(path, pin)
    assert str(caught.value).startswith(f"golden {str(path)!r}: ")
    return str(caught.value)


def scores_of(path: Path) -> list[float | None]:
    results = golden.load(path).results.values()
    frames = [frame for by_options in results for rows in by_options.values() for frame in rows]
    return [score for frame in frames for score in frame.values()]


def listed() -> dict[str, str]:
    text = (GOLDEN / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| (\S+\.json\.xz) \| `(\w{64})` \|$", text, re.MULTILINE))


def test_scores_are_exact_and_unset_is_none(tmp_path: Path) -> None:
    frames = ({"adm2": "0x1.de3b6cp-1", "aim": None}, {"adm2": "-0x0p+0", "aim": "inf"})
    loaded = golden.load(write(tmp_path, content(*frames)))
    first, second = loaded.results["pair"][""]
    assert first == {"adm2": float.fromhex("0x1.de3b6cp-1"), "aim": None}
    assert str(second) == str({"adm2": -0.0, "aim": math.inf})


@pytest.mark.parametrize("text", ["nan", "-nan"])
def test_both_spellings_of_nan_are_read(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, content({"adm2": text}, {"adm2": "0x1p-1074"}))
    nan, smallest = scores_of(path)
    assert nan is not None
    assert math.isnan(nan)
    assert smallest == 5e-324


def test_the_head_is_kept(tmp_path: Path) -> None:
    frame = {"adm2": "0x1p+0"}
    loaded = golden.load(write(tmp_path, content(frame, frame, host="Some Processor")))
    assert (loaded.feature, loaded.dialect) == ("float_adm", "ieee-single")
    assert loaded.host == "Some Processor"


@pytest.mark.parametrize(
    ("key", "pair"),
    [
        ("cases", PAIR),
        ("fixtures", {**PAIR, "ref_sha256": None, "sha": {"ref": "aa", "dis": "bb"}}),
    ],
)
def test_both_spellings_of_the_pairs_are_read(
    tmp_path: Path, key: str, pair: dict[str, Any]
) -> None:
    pair = {name: value for name, value in pair.items() if value is not None}
    value = content({"adm2": None}, {"adm2": None}) | {key: {"pair": pair}}
    loaded = golden.load(write(tmp_path, value)).fixtures["pair"]
    assert (loaded.width, loaded.height, loaded.bit_depth, loaded.frames) == (17, 19, 10, 2)
    assert (loaded.ref, loaded.dist) == ("aa", "bb")


def test_the_pinned_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, content({"adm2": None}, {"adm2": None}))
    pin = hashlib.sha256(path.read_bytes()).hexdigest()
    assert golden.load(path, pin).feature == "float_adm"


def test_another_file_than_pinned_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, content({"adm2": None}, {"adm2": None}))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"its sha256 is {digest}, pinned is {'0' * 64}" in refusal(path, "0" * 64)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "none.json.xz")


@pytest.mark.parametrize(
    ("packed", "sentence"),
    [
        (b"", "no single whole xz stream"),
        (b"{}" * 99, "not supported by decoder"),
        (lzma.compress(b"{}")[:-1], "no single whole xz stream"),
        (lzma.compress(b"{}") + b"\0", "no single whole xz stream"),
        (lzma.compress(b"{"), "Invalid JSON"),
        (lzma.compress(b"[]"), "should be an object"),
    ],
    ids=["empty", "not packed", "cut", "trailing", "no JSON", "no object"],
)
def test_a_damaged_file_is_refused(tmp_path: Path, packed: bytes, sentence: str) -> None:
    (path := tmp_path / "some.json.xz").write_bytes(packed)
    assert sentence in refusal(path)


@pytest.mark.parametrize("spare", [0, 1])
def test_content_up_to_the_limit_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    path = write(tmp_path, value := content({"adm2": None}, {"adm2": None}))
    monkeypatch.setattr(golden, "LARGEST", len(json.dumps(value)) + spare)
    assert golden.load(path).feature == "float_adm"


def test_more_content_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, value := content({"adm2": None}, {"adm2": None}))
    monkeypatch.setattr(golden, "LARGEST", len(json.dumps(value)) - 1)
    assert "at most" in refusal(path)


@pytest.mark.parametrize("key", ["feature", "dialect", "cases", "results"])
def test_a_missing_part_is_named(tmp_path: Path, key: str) -> None:
    value = content({"adm2": None}, {"adm2": None})
    del value[key]
    place = "fixtures" if key == "cases" else key
    assert f": {place}: Field required" in refusal(write(tmp_path, value))


@pytest.mark.parametrize("score", [0.5, 1, True, "half", "", "0x1p+1024", ["0x1p+0"], {}])
def test_a_score_that_is_no_hex_text_is_refused(tmp_path: Path, score: object) -> None:
    path = write(tmp_path, content({"adm2": "0x1p+0"}, {"adm2": score}))
    assert "results.pair..1.adm2" in refusal(path)


@pytest.mark.parametrize("frames", [0, 1, 3])
def test_a_wrong_number_of_frames_is_refused(tmp_path: Path, frames: int) -> None:
    path = write(tmp_path, content(*[{"adm2": "0x1p+0"}] * frames))
    assert "results of 'pair' '' do not hold 2 frames of scores" in refusal(path)


def test_a_frame_without_scores_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, content({"adm2": "0x1p+0"}, {}))
    assert "do not hold 2 frames" in refusal(path)


def test_results_of_an_unknown_pair_are_refused(tmp_path: Path) -> None:
    results = {"other": {"": [{"adm2": None}]}}
    assert "results of 'other'" in refusal(write(tmp_path, content(results=results)))


def test_no_results_are_refused(tmp_path: Path) -> None:
    assert "results: Dictionary should have" in refusal(write(tmp_path, content(results={})))


def test_a_refused_frame_is_no_scores(tmp_path: Path) -> None:
    results = {"pair": {"": {"rc": -22}}}
    assert "results.pair.: " in refusal(write(tmp_path, content(results=results)))


# Scores, and how many of them are left unset.
SIZES = {
    "real.float_adm.": (29_700, 0),
    "synthetic.float_adm.": (27_720, 6),
    "real.integer_adm.": (18_252, 0),
    "synthetic.integer_adm.netflix.": (13_464, 10),
    "synthetic.integer_adm.vmafx.": (23_832, 10),
}


def test_the_list_of_shipped_goldens_is_complete() -> None:
    assert sorted(listed()) == [path.name for path in SHIPPED]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_golden_has_the_listed_bytes_and_all_scores(path: Path) -> None:
    loaded = golden.load(path, listed()[path.name])
    assert path.name.split(".")[1:3] == [loaded.feature, loaded.dialect]
    assert bool(loaded.host) == ("intel" in path.name)
    scores = scores_of(path)
    assert (len(scores), scores.count(None)) == next(
        size for start, size in SIZES.items() if path.name.startswith(start)
    )


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_every_option_text_of_a_golden_gives_its_output_names(path: Path) -> None:
    loaded = golden.load(path)
    feature = registry.features()[loaded.feature]
    for by_options in loaded.results.values():
        for text, frames in by_options.items():
            keywords = golden.options(text, feature.options)
            names = feature.outputs(feature.options.model_validate(keywords))
            assert all(set(frame) == set(names) for frame in frames)


def test_option_texts_become_values_of_the_fields_types() -> None:
    text = "adm_enhn_gain_limit=1:adm_csf_mode=2:adm_adm3_apply_hm=true:adm_f1s0=0.02"
    keywords = golden.options(text, FloatAdmOptions)
    assert {name: (type(value), value) for name, value in keywords.items()} == {
        "debug": (bool, True),
        "adm_enhn_gain_limit": (float, 1.0),
        "adm_csf_mode": (int, 2),
        "adm_adm3_apply_hm": (bool, True),
        "adm_f1s0": (float, 0.02),
    }


def test_option_texts_are_taken_as_libvmaf_takes_them() -> None:
    text = "adm_noise_weight=10.000050067901611328125000000001:adm_csf_mode=1.7:adm_p_norm=.5e1"
    keywords = golden.options(text, FloatAdmOptions)
    assert keywords == {
        "debug": True,
        "adm_noise_weight": 10.0001,  # 10 by way of a float64
        "adm_csf_mode": 1,
        "adm_p_norm": 5.0,
    }


def test_an_empty_text_is_the_defaults_with_debug() -> None:
    assert golden.options("", FloatAdmOptions) == {"debug": True}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("adm_gain=1", "adm_gain: Extra inputs"),
        ("adm_csf_mode=10", "adm_csf_mode: Input should be less than or equal to 9"),
        ("adm_csf_mode=-0.5", "adm_csf_mode: is a 0 that libvmaf refuses for its sign; write 0"),
        ("adm_skip_aim_scale=-1", "adm_skip_aim_scale: Input should be greater than or equal to 0"),
        ("adm_noise_weight=nan", "adm_noise_weight: Input should be a valid number"),
        ("adm_skip_scale0=1", "adm_skip_scale0: Input should be a valid boolean"),
        ("adm_csf_mode", "adm_csf_mode: Input should be a valid integer"),
        ("adm_p_norm=three", "adm_p_norm: Input should be a valid number"),
        ("adm_adm3_apply_hm=2", "adm_adm3_apply_hm: Input should be a valid boolean"),
    ],
)
def test_a_wrong_option_text_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(GoldenError, match=re.escape(sentence)):
        golden.options(text, FloatAdmOptions)
