"""The integer reference gives every bit that real libvmaf gives where its SIMD code is exact.

It is so at whole gain limits, at weights in their range, without full-range noise, and at widths
whose last column at scale 0 begins no block of AVX2 or AVX-512; matrices/deviations.yaml lists the
rest.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import real_libvmaf
from real_libvmaf import generated
from stills import Clip, noise

from backends import registry
from backends.base import Arithmetic, Failed, Refused
from backends.features.integer_adm import FEATURE
from backends.features.integer_adm.extractor import EXTRACTION
from backends.features.integer_adm.feature import IntegerAdm
from backends.features.integer_adm.spec import IntegerAdmOptions
from gate import matrix
from gate.fixtures import FixtureSpec, open_fixture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends import base
    from backends.libvmaf import Libvmaf
    from gate.model import Comparison

ROOT = Path(__file__).parents[2]
MATRIX = ROOT / "matrices" / "pr.yaml"
OWN = Arithmetic("netflix")
DEBUG = IntegerAdmOptions(debug=True)

EVERY_OPTION = {
    "adm_csf_mode": 1,
    "adm_csf_scale": 0.00412345,
    "adm_csf_diag_scale": 0.00212345,
    "adm_dlm_weight": 1.23456e-05,
    "adm_enhn_gain_limit": 7.0,
    "adm_ref_display_height": 2160,
    "adm_norm_view_dist": 2.34567,
    "adm_noise_weight": 1.23456e-05,
    "adm_skip_aim": True,
    "adm_skip_scale0": True,
    "adm_min_val": 0.123456,
}

OPTION_SETS: list[dict[str, Any]] = [
    {},
    *({"adm_enhn_gain_limit": limit} for limit in (1.0, 2.0, 7.0)),
    *({"adm_noise_weight": weight} for weight in (0.0, 1.23456e-05, 1500.0)),
    {"adm_norm_view_dist": 1.5, "adm_ref_display_height": 2160},
    {"adm_norm_view_dist": 4.3, "adm_ref_display_height": 1440},
    {"adm_csf_mode": 1, "adm_csf_scale": 0.004, "adm_csf_diag_scale": 0.002},
    *({"adm_csf_mode": mode} for mode in (2, 3)),
    {"adm_csf_mode": 2, "adm_norm_view_dist": 5.0, "adm_ref_display_height": 2160},
    {"adm_skip_scale0": True},
    {"adm_skip_aim": True},
    {"adm_dlm_weight": 0.3, "adm_min_val": 0.9},
    EVERY_OPTION,
]


def named(options: dict[str, Any]) -> str:
    return IntegerAdmOptions(**options).name()[:60]


@pytest.fixture(scope="module")
def backend() -> Iterator[Libvmaf]:
    opened = real_libvmaf.opened()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def fixtures() -> dict[str, FixtureSpec]:
    return dict(matrix.load(MATRIX).fixtures)


def compared(backend: Libvmaf, clip: base.Clip, options: IntegerAdmOptions = DEBUG) -> Comparison:
    return real_libvmaf.compared(backend, FEATURE, OWN, clip, options)


def still(width: int, height: int, bit_depth: int = 8) -> Clip:
    """Return nearly the same noise of half the range on both sides."""
    random = np.random.default_rng(width * 1000 + height)
    dtype = np.uint8 if bit_depth == 8 else np.uint16
    full = 1 << bit_depth
    ref = random.integers(full // 4, 3 * full // 4, (2, height, width), dtype)
    dist = ref + random.integers(0, full // 16, ref.shape, dtype)
    return Clip(ref, dist, bit_depth)


@pytest.mark.parametrize("name", ["bbb_63x65_420p8", "bbb_63x65_420p10"])
@pytest.mark.parametrize("options", OPTION_SETS, ids=named)
def test_the_integer_reference_is_libvmaf_on_real_pictures(
    backend: Libvmaf, fixtures: dict[str, FixtureSpec], name: str, options: dict[str, Any]
) -> None:
    with open_fixture(name, fixtures[name], MATRIX.parent) as clip:
        assert clip.frames > 1
        comparison = compared(backend, clip, IntegerAdmOptions(debug=True, **options))
    assert comparison.mismatches == ()


@pytest.mark.parametrize(
    ("width", "height", "bit_depth"),
    [
        *((width, height, 8) for width in (33, 34, 35) for height in (33, 34, 35)),
        *((width, 33, depth) for width in (35, 36, 63, 64) for depth in (10, 12, 16)),
        (200, 120, 8),
        (120, 200, 16),
    ],
)
def test_the_integer_reference_is_libvmaf_at_every_depth_and_parity_of_size(
    backend: Libvmaf, width: int, height: int, bit_depth: int
) -> None:
    assert compared(backend, still(width, height, bit_depth)).mismatches == ()


def test_a_row_total_beyond_63_bits_is_the_same_nan_in_both(backend: Libvmaf) -> None:
    with open_fixture("ridges", generated("ridges", 64, 64, 8), ROOT) as clip:
        comparison = compared(backend, clip)
    assert comparison.mismatches == ()
    assert comparison.nans > 0


def test_mid_grey_without_noise_floor_leaves_integer_aim_and_adm3_unset(backend: Libvmaf) -> None:
    """The denominator is 0: libvmaf never sets aim, and every scale's ratio is 0/0."""
    picture = np.full((2, 64, 48), 128, np.uint8)
    options = IntegerAdmOptions(debug=True, adm_noise_weight=0.0)
    comparison = compared(backend, Clip(picture, picture, 8), options)
    assert comparison.mismatches == ()
    assert (comparison.unsets, comparison.nans) == (2 * 2, 2 * 4)


@pytest.mark.parametrize("options", [{}, {"adm_enhn_gain_limit": 1.2}, EVERY_OPTION], ids=named)
def test_libvmaf_emits_the_integer_names_that_outputs_promises(
    backend: Libvmaf, options: dict[str, Any]
) -> None:
    """The log has the short key in place of a long name; and adm is emitted from adm2."""
    own, clip = IntegerAdmOptions(debug=True, **options), still(35, 33)
    request = FEATURE.extractor(OWN, own)
    logged = backend.log(request, clip.ref, clip.dist, 8).frames[0].metrics
    assert tuple(key for key in logged if not key.startswith("m")) == request.logged
    short = [
        name.replace("VMAF_integer_feature_", "integer_").removesuffix("_score")
        for name in own.outputs()
    ]
    assert request.logged == tuple(short)
    assert logged[f"integer_adm{own.suffix()}"] == logged[f"integer_adm2{own.suffix()}"]


@pytest.mark.parametrize("swapped", ["integer_adm2_ssz_egl_7", "integer_adm2_egl_7.0_ssz"])
def test_an_integer_suffix_that_is_not_libvmafs_is_an_error(
    backend: Libvmaf, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = IntegerAdmOptions(adm_enhn_gain_limit=7.0, adm_skip_scale0=True)
    names = (swapped, *own.outputs()[1:])
    monkeypatch.setattr(IntegerAdmOptions, "outputs", lambda _: names)
    with pytest.raises(Failed, match=f"libvmaf logged no {swapped} in frame 0"):
        backend.compute(FEATURE, OWN, own, still(35, 33))


@pytest.mark.parametrize("wrong", ["integer_adm2", "VMAF_integer_feature_adm_scale0_score"])
def test_a_metric_that_no_model_knows_is_an_error(
    backend: Libvmaf, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an output's key and its long name, models know one only."""
    asked = replace(EXTRACTION, metrics=(wrong, *EXTRACTION.metrics[1:]))
    monkeypatch.setattr(IntegerAdm, "extraction", asked)
    sentence = r"no scores of adm with debug=true \(libvmaf ERROR .*\"" + wrong
    with pytest.raises(Failed, match=sentence):
        backend.compute(FEATURE, OWN, DEBUG, still(35, 33))


def test_metrics_in_another_order_are_mismatches(
    backend: Libvmaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *rest = EXTRACTION.metrics
    asked = replace(EXTRACTION, metrics=(second, first, *rest))
    monkeypatch.setattr(IntegerAdm, "extraction", asked)
    comparison = compared(backend, still(35, 33))
    assert {mismatch.score for mismatch in comparison.mismatches} == set(DEBUG.outputs()[:2])


def test_without_debug_the_seven_integer_scores_are_those_of_debug(backend: Libvmaf) -> None:
    clip = still(63, 65)
    few = backend.compute(FEATURE, OWN, IntegerAdmOptions(), clip)
    many = backend.compute(FEATURE, OWN, DEBUG, clip)
    assert few.names == many.names[:7]
    assert few.values.tobytes() == many.values[:, :7].tobytes()


@pytest.mark.parametrize(
    ("arithmetic", "wrong"),
    [
        (Arithmetic("vmafx"), "dialect vmafx"),
        (Arithmetic("netflix", "vmafx"), "conclusion vmafx"),
    ],
)
def test_another_integer_arithmetic_is_refused(
    backend: Libvmaf, arithmetic: Arithmetic, wrong: str
) -> None:
    told = f"real libvmaf has only dialect netflix and conclusion netflix; asked for {wrong}"
    assert registry.refusal("libvmaf", FEATURE, arithmetic, DEBUG) == told
    with pytest.raises(Refused, match=f"^{told}$"):
        backend.compute(FEATURE, arithmetic, DEBUG, still(33, 33))


def test_a_power_that_libvmaf_has_not_is_refused(backend: Libvmaf) -> None:
    options = IntegerAdmOptions(debug=True, adm_p_norm=2.5)
    with pytest.raises(Refused, match=r"adm_p_norm 2\.5 is an option of dialect vmafx only"):
        backend.compute(FEATURE, OWN, options, still(33, 33))


@pytest.mark.parametrize(("width", "height"), [(32, 33), (33, 32), (17, 64)])
def test_sizes_where_libvmaf_reads_other_memory_are_refused(
    backend: Libvmaf, width: int, height: int
) -> None:
    with pytest.raises(Refused, match=f"frame {width}x{height} is below 33x33"):
        backend.compute(FEATURE, OWN, DEBUG, noise(width, height, 1))


def test_libvmaf_is_asked_for_what_differs_from_its_defaults() -> None:
    options = IntegerAdmOptions(adm_enhn_gain_limit=1.2, adm_ref_display_height=2160)
    whole = options.model_copy(update={"adm_skip_aim": True})
    request = FEATURE.extractor(OWN, whole)
    assert request.name == "adm"
    assert request.options == {
        "debug": "true",
        "adm_enhn_gain_limit": "1.2",
        "adm_ref_display_height": "2160",
        "adm_skip_aim": "true",
    }
