"""Options mean in a matrix what they mean to real libvmaf, and names collide where it says so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from real_libvmaf import opened

from backends.features.float_adm.spec import FloatAdmOptions
from gate.document import plain

INPUT = "-f rawvideo -s 17x17 -pix_fmt yuv420p -i"

GAIN, NOISE, MODE, BYPASS = (
    "adm_enhn_gain_limit",
    "adm_noise_weight",
    "adm_csf_mode",
    "adm_bypass_cm",
)
HEIGHT, WEIGHT, SCALE, SKIP = (
    "adm_ref_display_height",
    "adm_f1s0",
    "adm_skip_aim_scale",
    "adm_skip_scale0",
)


@pytest.fixture(scope="module")
def ffmpeg() -> str:
    return str(opened()._executable)  # noqa: SLF001 - to ask it what the backend never does


def emitted(ffmpeg: str, folder: Path, *option_sets: Mapping[str, str]) -> list[str] | None:
    """Return the names that libvmaf emits for a frame, None where it fails.

    Its log shortens `VMAF_feature_adm2_score` to `adm2`.
    """
    instances = []
    for options in option_sets:
        given = "".join(rf"\\:{name}={text}" for name, text in options.items())
        instances.append(f"name=float_adm{given}")
    graph = f"[0:v][1:v]libvmaf=model=:feature={'|'.join(instances)}:log_fmt=json:log_path=log.json"
    picture = np.arange(17 * 17 + 2 * 81, dtype=np.uint16).astype(np.uint8).tobytes()
    (folder / "one.yuv").write_bytes(picture)
    inputs = [*INPUT.split(), "one.yuv", *INPUT.split(), "one.yuv"]
    command = [ffmpeg, "-nostdin", "-v", "quiet", *inputs, "-lavfi", graph, "-f", "null", "-"]
    if subprocess.run(command, cwd=folder, check=False).returncode:
        return None
    (frame,) = json.loads((folder / "log.json").read_text())["frames"]
    return list(frame["metrics"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (NOISE, "0.123456789"),
        (NOISE, "10.000050067901611328125000000001"),
        (NOISE, "10.000050067901611328125"),
        (NOISE, ".5"),
        (NOISE, "1e3"),
        (NOISE, "1e-50"),
        (NOISE, "0.0"),
        (NOISE, "-0"),
        (NOISE, "-0.0"),
        (NOISE, "1e39"),
        (GAIN, "1.00000001"),
        (GAIN, "100.00001"),
        (GAIN, "100.001"),
        (GAIN, "0x10"),
        (MODE, "1.7"),
        (MODE, "1000000"),
        (MODE, "10"),
        (MODE, "0.9"),
        (BYPASS, "-0.3"),
        (BYPASS, "true"),
        (HEIGHT, "1234567"),
        (HEIGHT, "5e6"),
        (HEIGHT, "0.5"),
        (WEIGHT, "-0.5"),
        (WEIGHT, "-1.0"),
        (WEIGHT, "-1.00001"),
        (SCALE, "-1"),
        (SCALE, "3"),
        (SKIP, "true"),
        (SKIP, "1"),
    ],
)
def test_a_matrix_takes_an_option_as_libvmaf_does(
    ffmpeg: str, tmp_path: Path, name: str, text: str
) -> None:
    try:
        suffix: str | None = FloatAdmOptions.model_validate({name: plain(text)}).suffix()
    except ValidationError:
        suffix = None
    names = emitted(ffmpeg, tmp_path, {name: text})
    assert (names and names[0]) == (None if suffix is None else f"adm2{suffix}")


def test_libvmaf_fails_where_two_instances_emit_one_name(ffmpeg: str, tmp_path: Path) -> None:
    limited = {GAIN: "1.2"}
    assert emitted(ffmpeg, tmp_path, {}, limited) is not None
    assert emitted(ffmpeg, tmp_path, {"debug": "true"}, limited) is not None
    assert emitted(ffmpeg, tmp_path, {"debug": "true"}, {"debug": "true", **limited}) is None


@pytest.mark.parametrize("first", [{}, {"debug": "true"}])
def test_libvmaf_runs_the_first_of_instances_that_differ_in_debug_only(
    ffmpeg: str, tmp_path: Path, first: dict[str, str]
) -> None:
    others = [{"debug": "true"}, {}]
    assert emitted(ffmpeg, tmp_path, first, *others) == emitted(ffmpeg, tmp_path, first)
