"""The reference gives every bit that real libvmaf gives; and what libvmaf cannot give is told."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import real_libvmaf
from real_libvmaf import generated
from stills import Clip, noise

from backends import libvmaf, reciprocal, registry
from backends.base import Arithmetic, Extractor, Failed, Refused, Scores, Unavailable
from backends.features.float_adm import FEATURE, spec
from backends.features.float_adm.extractor import EXTRACTION
from backends.features.float_adm.spec import FloatAdmOptions
from backends.libvmaf import Libvmaf, Log, exact_values
from gate import compare, golden, matrix
from gate.fixtures import FixtureSpec, open_fixture
from gate.terminal import one_interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends import base
    from gate.model import Comparison

ROOT = Path(__file__).parents[2]
MATRIX = ROOT / "matrices" / "nightly.yaml"
OWN = Arithmetic("rcpss-single")
DEBUG = FloatAdmOptions(debug=True)
DEPTHS = (8, 10, 12, 16)

GOLDENS = {  # by the reciprocal table behind it
    "amd-zen-4": (
        "real.float_adm.rcpss-single.json.xz",
        "137984ba953b435753f4bb541064a506cc0ab351e03cfdde9268027533203654",
    ),
    "intel-emerald-rapids": (
        "real.float_adm.rcpss-single.intel.json.xz",
        "9377e000d2c1db8937fffe623db238a0082166132867a860baed65ca70dd490f",
    ),
}

EVERY_OPTION = {
    "adm_enhn_gain_limit": 1.23456,
    "adm_norm_view_dist": 2.34567,
    "adm_noise_weight": 1.23456e-05,
    "adm_csf_scale": 1.23456,
    "adm_csf_diag_scale": 1.23457,
    "adm_ref_display_height": 2160,
    "adm_csf_mode": 1,
    "adm_bypass_cm": 1,
    "adm_adm3_apply_hm": True,
    "adm_p_norm": 2.34567,
    "adm_dlm_weight": 1.23456e-05,
    "adm_min_val": 1.23456e-05,
    **{f"adm_f1s{scale}": 1.34567 for scale in range(4)},
    **{f"adm_f2s{scale}": 2.34567 for scale in range(4)},
    "adm_skip_aim_scale": 2,
    "adm_skip_scale0": True,
}

OPTION_SETS: list[dict[str, Any]] = [
    {},
    *({"adm_csf_mode": mode} for mode in range(1, 10)),
    {"adm_csf_mode": 1, "adm_csf_scale": 2.0, "adm_csf_diag_scale": 0.5},
    *({"adm_p_norm": p} for p in (1.0, 2.0, 2.5, 4.5, 20.0)),
    {"adm_norm_view_dist": 1.5, "adm_ref_display_height": 2160},
    {"adm_noise_weight": 0.0},
    {"adm_bypass_cm": 1},
    {"adm_f1s0": 0.0, "adm_f2s0": 1.5, "adm_f1s3": 10.0, "adm_f2s2": -0.5},
    {"adm_skip_scale0": True},
    *({"adm_skip_aim_scale": scale} for scale in range(4)),
    {"adm_skip_scale0": True, "adm_skip_aim_scale": 0},
    {"adm_adm3_apply_hm": True},
    {"adm_dlm_weight": 0.3, "adm_min_val": 0.9},
    EVERY_OPTION,
]


def named(options: dict[str, Any]) -> str:
    return FloatAdmOptions(**options).name()[:60]


@pytest.fixture(scope="module")
def backend() -> Iterator[Libvmaf]:
    opened = real_libvmaf.opened()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def fixtures() -> dict[str, FixtureSpec]:
    return dict(matrix.load(MATRIX).fixtures)


def compared(backend: Libvmaf, clip: base.Clip, options: FloatAdmOptions) -> Comparison:
    return real_libvmaf.compared(backend, FEATURE, OWN, clip, options)


def flat(level: int) -> Clip:
    picture = np.full((2, 64, 48), level, np.uint8)
    return Clip(picture, picture, 8)


@pytest.mark.parametrize("name", ["bbb_63x65_420p8", "bbb_63x65_420p10", "city_322x182_420p8"])
@pytest.mark.parametrize("options", [{}, {"adm_enhn_gain_limit": 1.2}, {"adm_csf_mode": 1}])
def test_the_reference_is_libvmaf_on_real_pictures(
    backend: Libvmaf, fixtures: dict[str, FixtureSpec], name: str, options: dict[str, Any]
) -> None:
    with open_fixture(name, fixtures[name], MATRIX.parent) as clip:
        assert clip.frames > 1
        assert compared(backend, clip, FloatAdmOptions(debug=True, **options)).mismatches == ()


@pytest.mark.parametrize("bit_depth", DEPTHS)
@pytest.mark.parametrize("size", [(17, 17), (18, 17), (17, 18), (31, 33), (64, 64), (129, 65)])
def test_the_reference_is_libvmaf_at_every_depth_and_parity_of_size(
    backend: Libvmaf, size: tuple[int, int], bit_depth: int
) -> None:
    assert compared(backend, noise(*size, 2, bit_depth), DEBUG).mismatches == ()


@pytest.mark.parametrize("options", OPTION_SETS, ids=named)
def test_the_reference_is_libvmaf_with_every_option(
    backend: Libvmaf, options: dict[str, Any]
) -> None:
    spec_of_near = generated("near", 83, 71, 10, amplitude=20)
    with open_fixture("near", spec_of_near, ROOT) as clip:
        comparison = compared(backend, clip, FloatAdmOptions(debug=True, **options))
    assert comparison.mismatches == ()


@pytest.mark.parametrize("bit_depth", DEPTHS)
@pytest.mark.parametrize("limit", [1.0, 1.05, 1.2, 1.37, 1.4999, 2.0, 7.3, 100.0])
def test_the_reference_is_libvmaf_where_the_gain_limit_decides(
    backend: Libvmaf, limit: float, bit_depth: int
) -> None:
    options = FloatAdmOptions(debug=True, adm_enhn_gain_limit=limit)
    with open_fixture("amplified", generated("amplified", 65, 49, bit_depth), ROOT) as clip:
        assert compared(backend, clip, options).mismatches == ()


def test_libvmaf_gives_the_goldens_of_this_processor(
    backend: Libvmaf, fixtures: dict[str, FixtureSpec]
) -> None:
    table = reciprocal.host_table().name
    if table not in GOLDENS:
        pytest.skip(f"no golden was made with the reciprocal table of this processor; {table!r}")
    file, sha256 = GOLDENS[table]
    content = golden.load(ROOT / "matrices" / "golden" / file, sha256)
    name, wrong, scores = "bbb_63x65_420p8", 0, 0
    with open_fixture(name, fixtures[name], MATRIX.parent) as clip:
        for text, frames in content.results[name].items():
            options = FloatAdmOptions.model_validate(golden.options(text, FloatAdmOptions))
            names = FEATURE.outputs(options)
            rows = [[frame[key] for key in names] for frame in frames]
            values = np.array([[0 if v is None else v for v in row] for row in rows], np.float64)
            frozen = Scores(names, values, np.array([[v is None for v in row] for row in rows]))
            real = backend.compute(FEATURE, OWN, options, clip)
            comparison = compare.compare(frozen, real, clip.frames, names)
            wrong += len(comparison.mismatches)
            scores += comparison.scores
    assert scores > 1000
    assert wrong == 0


def test_mid_grey_without_noise_floor_leaves_aim_and_adm3_unset_and_gives_nans(
    backend: Libvmaf,
) -> None:
    """The denominator is 0: libvmaf never sets aim, and every scale's ratio is 0/0."""
    comparison = compared(backend, flat(128), FloatAdmOptions(debug=True, adm_noise_weight=0.0))
    assert comparison.mismatches == ()
    assert (comparison.unsets, comparison.nans) == (2 * 2, 2 * 4)


def test_an_infinite_sum_comes_back_infinite(backend: Libvmaf) -> None:
    """libvmaf's log has the same word for infinities and NaN; the backend tells them apart."""
    options = FloatAdmOptions(debug=True, adm_p_norm=20.0, adm_f1s0=10.0, adm_f2s0=10.0)
    clip = noise(33, 65, 1)
    assert compared(backend, clip, options).mismatches == ()
    real = backend.compute(FEATURE, OWN, options, clip)
    values = dict(zip(spec.SCORES + spec.DEBUG_SCORES, real.values[0].tolist(), strict=True))
    assert values["adm_num"] == values["adm_den_scale0"] == math.inf
    assert math.isnan(values["adm2"])


@pytest.mark.parametrize("options", [{"adm_bypass_cm": 1, "adm_min_val": 0.9}, EVERY_OPTION])
def test_libvmaf_emits_the_names_that_outputs_promises(
    backend: Libvmaf, options: dict[str, Any]
) -> None:
    """Up to the cut at 255 bytes; and `adm`, which no model can read, is adm2."""
    own, clip = FloatAdmOptions(debug=True, **options), noise(33, 65, 1)
    log = backend.log(FEATURE.extractor(OWN, own), clip.ref, clip.dist, 8)
    logged = log.frames[0].metrics
    assert tuple(key for key in logged if not key.startswith("m")) == own.outputs()
    assert logged["adm"] == logged[own.outputs()[0]]


@pytest.mark.parametrize(
    "swapped", ["adm2_egl_1.2_bcm_1", "adm2_bcm_1_egl_1.20", "adm_bcm_1_egl_1.2"]
)
def test_a_suffix_that_is_not_libvmafs_is_an_error(
    backend: Libvmaf, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides of the gate take names from one place, so only libvmaf can tell a wrong one."""
    own = FloatAdmOptions(adm_enhn_gain_limit=1.2, adm_bypass_cm=1)
    names = (swapped, *own.outputs()[1:])
    monkeypatch.setattr(FloatAdmOptions, "outputs", lambda _: names)
    with pytest.raises(Failed, match=f"libvmaf logged no {swapped} in frame 0"):
        backend.compute(FEATURE, OWN, own, noise(33, 34, 1))


def test_without_debug_the_seven_scores_are_those_of_debug(backend: Libvmaf) -> None:
    clip = noise(33, 65, 2)
    few = backend.compute(FEATURE, OWN, FloatAdmOptions(), clip)
    many = backend.compute(FEATURE, OWN, DEBUG, clip)
    assert few.names == many.names[:7]
    assert few.values.tobytes() == many.values[:, :7].tobytes()


@pytest.mark.parametrize("frames", [1, 2, 3, 5])
def test_a_batch_boundary_changes_no_bit(
    backend: Libvmaf, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = noise(33, 35, frames, 12)
    whole = backend.compute(FEATURE, OWN, DEBUG, clip)
    asked: list[int] = []
    log = backend.log

    def counting(extractor: Extractor, ref: Any, dist: Any, bit_depth: int) -> Log:  # noqa: ANN401 - luma
        asked.append(len(ref))
        return log(extractor, ref, dist, bit_depth)

    picture = 2 * 33 * 35 * 3 // 2
    monkeypatch.setattr(libvmaf, "BATCH", 2 * (2 * picture + libvmaf.LOG_BYTES))
    monkeypatch.setattr(backend, "log", counting)
    batched = backend.compute(FEATURE, OWN, DEBUG, clip)
    assert max(asked) <= 2
    assert sum(asked) == frames
    assert batched.values.tobytes() == whole.values.tobytes()


def test_a_clip_in_another_memory_order_gives_the_same_bits(backend: Libvmaf) -> None:
    clip = noise(37, 29, 2, 10)
    swapped = np.dtype(np.uint16).newbyteorder()
    turned = replace(clip, ref=np.asfortranarray(clip.ref), dist=clip.dist.astype(swapped))
    whole = backend.compute(FEATURE, OWN, DEBUG, clip)
    again = backend.compute(FEATURE, OWN, DEBUG, turned)
    assert whole.values.tobytes() == again.values.tobytes()


@pytest.mark.parametrize(
    ("arithmetic", "wrong"),
    [
        (Arithmetic("rcpss-double"), "dialect rcpss-double"),
        (Arithmetic("ieee-single"), "dialect ieee-single"),
        (replace(OWN, conclusion="vmafx"), "conclusion vmafx"),
    ],
)
def test_another_arithmetic_is_refused(
    backend: Libvmaf, arithmetic: Arithmetic, wrong: str
) -> None:
    has = "^real libvmaf has only dialect rcpss-single and conclusion netflix"
    with pytest.raises(Refused, match=rf"{has}; asked for {wrong}$"):
        backend.compute(FEATURE, arithmetic, DEBUG, noise(17, 17, 1))


@pytest.mark.parametrize("name", reciprocal.shipped())
def test_a_replayed_table_is_refused(backend: Libvmaf, name: str) -> None:
    replayed = replace(OWN, rcp_table=reciprocal.shipped()[name])
    with pytest.raises(Refused, match=rf"not otherwise \(reciprocal table replayed: {name} "):
        backend.compute(FEATURE, replayed, DEBUG, noise(17, 17, 1))


def test_a_processor_whose_estimate_is_no_table_is_refused(
    backend: Libvmaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        message = "it is no table"
        raise Refused(message)

    monkeypatch.setattr(reciprocal, "host_table", refuse)
    with pytest.raises(Refused, match=r"not otherwise \(no reciprocal estimate: it is no table"):
        backend.compute(FEATURE, OWN, DEBUG, noise(17, 17, 1))


def test_plans_that_name_libvmaf_do_not_depend_on_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reciprocal, "host_table", lambda: pytest.fail("asked"))
    assert registry.refusal("libvmaf", FEATURE, OWN, DEBUG) == ""


@pytest.mark.parametrize(
    ("size", "bit_depth", "sentence"),
    [(16, 8, "frame 16x16 is below 17x17"), (17, 14, "bit_depth 14 is not supported")],
)
def test_what_has_no_defined_result_is_refused(
    backend: Libvmaf, size: int, bit_depth: int, sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        backend.compute(FEATURE, OWN, DEBUG, noise(size, size, 1, bit_depth))


def test_an_option_that_libvmaf_refuses_is_told_with_its_words(backend: Libvmaf) -> None:
    clip = noise(17, 17, 1)
    wrong = Extractor("float_adm", {"adm_skip_aim_scale": "-1"}, EXTRACTION.metrics, ())
    sentence = (
        r"^ffmpeg ended with status \d+ and no scores of float_adm with adm_skip_aim_scale=-1 "
        r"\(\[Parsed_libvmaf_0\] problem during vmaf_use_features_from_model\)$"
    )
    with pytest.raises(Failed, match=sentence):
        backend.log(wrong, clip.ref, clip.dist, 8)


def test_facts_name_every_part(backend: Libvmaf) -> None:
    facts = backend.facts()
    assert facts["ffmpeg"].startswith("ffmpeg version ")
    assert len(facts["ffmpeg binary"]) == len("sha256 ") + 64
    assert all(facts[key] for key in ("imageio-ffmpeg", "libvmaf", "reciprocal"))


TWO = Extractor("float_adm", {}, EXTRACTION.metrics[:2], ())
ZEROS: dict[str, float | None] = {"m0": 0.0, "m1": 0.0}


def log_of(*frames: dict[str, float | None], first: int = 0) -> Log:
    numbered = [{"frameNum": n, "metrics": metrics} for n, metrics in enumerate(frames, first)]
    return Log.model_validate({"version": "x", "frames": numbered})


def test_every_kind_of_number_is_read_from_the_log() -> None:
    bits = float.fromhex("0x1.23456789abcdfp-277")
    log = log_of(
        {"m0": bits * 2.0**600, "m1": None},
        {"m0": 2.0**1000, "m1": -(2.0**1000)},
        {"m0": 0.0, "m1": 2.0**53},
    )
    values = exact_values(log, TWO, 3).tolist()
    assert values[0][0] == bits
    assert math.isnan(values[0][1])
    assert values[1:] == [[math.inf, -math.inf], [0.0, 2.0**-547]]


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (log_of(ZEROS), r"libvmaf logged 1 frames \(0\); expected 2, numbered from 0"),
        (log_of(ZEROS, ZEROS, ZEROS), r"libvmaf logged 3 frames \(0, 1, 2\); expected 2"),
        (
            log_of(ZEROS, ZEROS, first=1),
            r"libvmaf logged 2 frames \(1, 2\); expected 2, numbered from 0",
        ),
        (
            log_of(ZEROS, {"m0": 0.0}),
            "libvmaf logged no float_adm VMAF_feature_aim_score of frame 1",
        ),
        (
            log_of(ZEROS, {"m0": math.nextafter(2.0**53, 0), "m1": 0.0}),
            "VMAF_feature_adm2_score of frame 1 is too small for its log to hold every bit",
        ),
    ],
)
def test_a_log_that_lacks_something_is_an_error(log: Log, sentence: str) -> None:
    with pytest.raises(Failed, match=sentence):
        exact_values(log, TWO, 2)


def program(folder: Path, lines: str) -> Path:
    """Write a program that stands in for ffmpeg; it is run where it shall leave log.json."""
    path = folder / "ffmpeg"
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


def logs(content: str) -> str:
    return f"echo '{content}' > log.json"


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("exit 0", r"ended with status 0 and no scores of float_adm with no options \(it gave no"),
        ("echo '[x @ 0x55d1] one' >&2; echo two >&2; exit 3", r"ended with status 3 .*\(\[x\] one"),
        ("kill -9 $$", "ended with status -9 and no scores"),
        (logs('{"version": '), "libvmaf's log cannot be read .*Expecting value"),
        ("printf '\\377' > log.json", "libvmaf's log cannot be read .*codec can't decode"),
        (logs('{"frames": []}'), "libvmaf's log cannot be read .*version"),
        (
            logs('{"version": "x", "frames": []}'),
            r"libvmaf logged 0 frames \(\); expected 1, numbered from 0",
        ),
        (
            logs(
                '{"version": "x", "frames": [{"frameNum": 0, "metrics": {"adm2": 0.0, "m0": 0.0}}]}'
            ),
            "libvmaf gives adm2 0.0 for two identical pictures; expected 1",
        ),
    ],
)
def test_an_ffmpeg_that_gives_no_or_wrong_scores_is_not_opened(
    tmp_path: Path, lines: str, sentence: str
) -> None:
    with pytest.raises(Failed, match=sentence):
        Libvmaf(program(tmp_path, lines), {})


def test_an_interrupt_kills_ffmpeg(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    fake = program(tmp_path, f"echo $$ > {started}; kill -INT $PPID; exec tail -f /dev/null")
    with pytest.raises(KeyboardInterrupt), one_interrupt():  # as every command installs it
        Libvmaf(fake, {})
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_no_room_for_files_is_one_sentence(
    backend: Libvmaf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(Failed, match=r"cannot be run on temporary files .*; free space or set"):
        backend.compute(FEATURE, OWN, DEBUG, noise(17, 17, 1))


def test_without_the_package_the_backend_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    sentence = r"^imageio-ffmpeg is not installed .*; pip install 'parity-gate\[libvmaf\]'$"
    with pytest.raises(Unavailable, match=sentence):
        registry.open_backend("libvmaf")


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("content", "mode", "sentence"),
    [
        (None, 0, "cannot be executed; pip install"),
        ("#!/bin/sh\n", 0o644, "cannot be executed; pip install"),
        ("no program\n", 0o755, "cannot be executed .*Exec format error"),
        ("#!/bin/sh\necho \"Unknown filter 'libvmaf'.\"\n", 0o755, "has no libvmaf filter"),
    ],
)
def test_an_ffmpeg_that_cannot_serve_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, mode: int, sentence: str
) -> None:
    path = tmp_path / "ffmpeg"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(path))
    with pytest.raises(Unavailable, match=sentence):
        registry.open_backend("libvmaf")
