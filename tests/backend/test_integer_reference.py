"""The integer reference equals a slow independent numpy integer ADM, plane by plane and score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import integer_adm_oracle as oracle
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integer_adm_oracle_weights import NoFrame
from stills import Clip, noise

from backends.base import CONCLUSIONS, Arithmetic, NoResult, Refused
from backends.features.integer_adm import FEATURE, _reference, spec
from backends.features.integer_adm.spec import IntegerAdmOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEPTHS = (8, 10, 12, 16)
DEBUG = IntegerAdmOptions(debug=True)


def different_from_oracle(
    pair: Clip, arithmetic: Arithmetic, options: IntegerAdmOptions
) -> list[str]:
    """Return the scores whose bits are not the oracle's; any NaN equals any NaN.

    What has no result in a dialect or conclusion vmafx must be refused.
    """
    try:
        expected = oracle.frame(
            pair.ref[0],
            pair.dist[0],
            pair.bit_depth,
            options.model_dump(),
            vmafx=arithmetic.dialect == "vmafx",
            vmafx_conclusion=arithmetic.conclusion == "vmafx",
        )
    except NoFrame:
        expected = {}
    finite = all(value is not None and math.isfinite(value) for value in expected.values())
    if not expected or (arithmetic.conclusion == "vmafx" and not finite):
        with pytest.raises(Refused, match="vmafx"):
            FEATURE.reference(arithmetic, options, pair)
        return []
    scores = FEATURE.reference(arithmetic, options, pair)
    assert len(expected) == scores.values.size == 18
    wrong = []
    columns = zip(scores.names, expected.values(), scores.values[0], scores.unset[0], strict=True)
    for name, value, got, unset in columns:
        if value is None or unset:
            same = value is None and bool(unset)
        else:
            wanted = np.float64(value)
            same = wanted.tobytes() == got.tobytes() or bool(np.isnan(wanted) and np.isnan(got))
        if not same:
            wrong.append(f"{name}: {got!r}, oracle {value!r}")
    return wrong


def still(ref: NDArray[Any], dist: NDArray[Any], depth: int) -> Clip:
    dtype = np.uint8 if depth == 8 else np.uint16
    return Clip(ref.astype(dtype)[None], dist.astype(dtype)[None], depth)


def content(kind: str, width: int, height: int, depth: int, seed: int = 1) -> Clip:
    """Return a pair that uses the full range of its depth, but for `near` and `flat`."""
    top, mid = (1 << depth) - 1, 1 << (depth - 1)
    random = np.random.default_rng(seed)
    shape = (height, width)
    y, x = np.mgrid[0:height, 0:width]
    ref = random.integers(0, top + 1, shape)
    detail = random.integers(-mid // 4, mid // 4, shape)
    flat = np.full(shape, mid)
    stripes = {2: top * (x // 2 % 2), 1: top * (y % 2)}
    ref, dist = {
        "noise": (ref, random.integers(0, top + 1, shape)),
        "near": (ref, np.clip(ref + random.integers(-3, 4, shape), 0, top)),
        "amplified": (mid + 2 * detail, mid + 3 * detail),
        "black and white": tuple(top * random.integers(0, 2, (2, *shape))),
        "stripes to noise": (stripes[2], top * random.integers(0, 2, shape)),
        "noise to stripes": (top * random.integers(0, 2, shape), stripes[1]),
        "stripes across": (stripes[1], stripes[2]),
        "flat": (flat, flat),
        "from flat": (flat, ref),
        "to flat": (ref, flat),
    }[kind]
    return still(ref, dist, depth)


KINDS = (
    "noise",
    "near",
    "amplified",
    "black and white",
    "stripes to noise",
    "noise to stripes",
    "stripes across",
    "flat",
    "from flat",
    "to flat",
)

OPTION_SETS: tuple[dict[str, Any], ...] = (
    {},
    {"adm_enhn_gain_limit": 1.0},
    {"adm_enhn_gain_limit": 1.2},
    {"adm_norm_view_dist": 4.3, "adm_ref_display_height": 1440},
    {"adm_norm_view_dist": 4.5, "adm_ref_display_height": 720},
    {"adm_norm_view_dist": 24.0, "adm_ref_display_height": 4320},
    {"adm_csf_mode": 1},
    {"adm_csf_mode": 1, "adm_csf_scale": 50.0, "adm_csf_diag_scale": 0.01},
    {"adm_csf_mode": 1, "adm_csf_scale": 0.0, "adm_csf_diag_scale": 50.0},
    *(
        {"adm_csf_mode": mode, "adm_norm_view_dist": dist, "adm_ref_display_height": height}
        for mode in spec.TABLES
        for dist, height in ((3.0, 1080), (5.0, 1080), (1.5, 2160), (3.0, 2160), (5.0, 2160))
    ),
    {"adm_csf_mode": 2, "adm_norm_view_dist": 5.0, "adm_ref_display_height": 720},
    {"adm_csf_mode": 3, "adm_norm_view_dist": 5.0, "adm_ref_display_height": 720},
    {"adm_csf_mode": 2, "adm_norm_view_dist": 4.0},
    {"adm_csf_mode": 3, "adm_noise_weight": 0.0, "adm_ref_display_height": 1081},
    {"adm_noise_weight": 0.0},
    {"adm_noise_weight": 1500.0},
    {"adm_dlm_weight": 0.7, "adm_min_val": 0.5},
    {"adm_dlm_weight": 0.0},
    {"adm_dlm_weight": 1.0, "adm_min_val": 1.0},
    {"adm_skip_aim": True},
    {"adm_skip_scale0": True},
    {"adm_skip_scale0": True, "adm_noise_weight": 0.0},
    {"adm_p_norm": 1.0},
    {"adm_p_norm": 2.5, "adm_csf_mode": 1},
    {"adm_p_norm": 20.0, "adm_noise_weight": 0.0},
)


def options_in(dialect: str, chosen: dict[str, Any]) -> IntegerAdmOptions:
    """Return the options, without the one that dialect netflix has not."""
    if dialect == "netflix":
        chosen = {name: value for name, value in chosen.items() if name != "adm_p_norm"}
    return IntegerAdmOptions.model_validate({"debug": True, **chosen})


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
@pytest.mark.parametrize("dialect", spec.DIALECTS)
@pytest.mark.parametrize("number", range(len(OPTION_SETS)))
def test_every_option_equals_the_oracle(number: int, dialect: str, conclusion: str) -> None:
    options = options_in(dialect, OPTION_SETS[number])
    for turn in range(4):  # by all option sets, every kind meets every depth
        pair = content(KINDS[(number + 3 * turn) % len(KINDS)], 39, 35, DEPTHS[turn])
        assert different_from_oracle(pair, Arithmetic(dialect, conclusion), options) == []


# Around the smallest frames, the axis of 32 samples, the first crop of each scale's bands, and the
# powers of two that decide about shifts.
EDGES = (17, 18, 19, 27, 28, 29, 31, 32, 33, 34, 47, 48, 49, 56, 57, 58, 63, 64, 65, 66)
LONG_EDGES = (112, 113, 114, 127, 128, 129, 224, 225, 226, 256, 257, 258)


@pytest.mark.parametrize("edge", EDGES + LONG_EDGES)
def test_every_size_equals_the_oracle(edge: int) -> None:
    for turn, other in enumerate((17, 18, 32, 33, 34, edge) if edge < 100 else (17, 33)):
        kind, depth = KINDS[(edge + turn) % 7], DEPTHS[turn % 4]
        for width, height in {(edge, other), (other, edge)}:
            pair = content(kind, width, height, depth)
            for dialect in spec.DIALECTS:
                if min(width, height) >= FEATURE.smallest(dialect):
                    assert different_from_oracle(pair, Arithmetic(dialect), DEBUG) == []


@pytest.mark.parametrize("dialect", spec.DIALECTS)
def test_a_size_below_the_smallest_is_refused(dialect: str) -> None:
    least = FEATURE.smallest(dialect)
    for width, height in ((least - 1, 40), (40, least - 1)):
        with pytest.raises(Refused, match=f"is below {least}x{least}"):
            FEATURE.reference(Arithmetic(dialect), DEBUG, noise(width, height, 1))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", ["black and white", "stripes to noise", "noise to stripes"])
def test_full_contrast_passes_16_bits_where_the_dialects_differ(kind: str, depth: int) -> None:
    pair, sums = content(kind, 64, 48, depth), set()
    for dialect in spec.DIALECTS:
        assert different_from_oracle(pair, Arithmetic(dialect), DEBUG) == []
        sums.add(FEATURE.reference(Arithmetic(dialect), DEBUG, pair).values[0].tobytes())
    assert len(sums) == 2
    planes, _ = _reference.stages(pair.ref[0], pair.dist[0], depth, DEBUG.model_dump(), False, 0)  # noqa: FBT003 - the module's order
    assert np.abs(planes["weighted"]).max() >= 15_360


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_plane_equals_the_oracle(kind: str, depth: int) -> None:
    pair, chosen = content(kind, 45, 37, depth), options_in("vmafx", {"adm_enhn_gain_limit": 1.2})
    for vmafx in (False, True):
        given = (pair.ref[0], pair.dist[0], depth, chosen.model_dump())
        for scale, expected in enumerate(oracle.scales(*given, vmafx=vmafx)):
            planes, sums = _reference.stages(*given, vmafx, scale)
            assert np.array_equal(planes["ref_low"][0], expected.ref["a"])
            assert np.array_equal(planes["dist_low"][0], expected.dist["a"])
            for name in ("ref", "dist", "restored", "additive", "weighted", "filtered"):
                bands = getattr(expected, name)
                for plane, band in zip(planes[name], oracle.BANDS, strict=True):
                    assert np.array_equal(plane, bands[band]), (name, scale, band)
            assert np.array_equal(sums, [expected.num, expected.den, expected.aim])


def six_digits(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers that libvmaf's text normalisation leaves alone."""
    return st.floats(low, high).map(lambda v: float(f"{float(np.float32(v)):g}"))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Clip, Arithmetic, IntegerAdmOptions]:
    """Pictures of any size, and options of a dialect."""
    dialect = draw(st.sampled_from(spec.DIALECTS))
    sizes = st.integers(FEATURE.smallest(dialect), 90)
    pair = content(
        draw(st.sampled_from(KINDS)),
        draw(sizes),
        draw(sizes),
        draw(st.sampled_from(DEPTHS)),
        draw(st.integers(0, 2**32 - 1)),
    )
    drawn: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "adm_enhn_gain_limit": six_digits(1, 9),
                "adm_csf_mode": st.integers(0, 3),
                "adm_csf_scale": six_digits(0, 50),
                "adm_csf_diag_scale": six_digits(0, 50),
                "adm_noise_weight": st.one_of(st.just(0.0), six_digits(0, 2)),
                "adm_dlm_weight": six_digits(0, 1),
                "adm_min_val": six_digits(0, 1),
                "adm_skip_aim": st.booleans(),
                "adm_skip_scale0": st.booleans(),
                "adm_p_norm": six_digits(1, 20),
            },
        )
    )
    if draw(st.booleans()):
        height = draw(st.integers(136, 4320))
        drawn["adm_ref_display_height"] = height
        drawn["adm_norm_view_dist"] = draw(six_digits(max(0.75, spec.NEAREST / height + 1e-3), 24))
    arithmetic = Arithmetic(dialect, draw(st.sampled_from(CONCLUSIONS)))
    return pair, arithmetic, options_in(dialect, drawn)


@settings(
    deadline=None,  # a slow oracle is the point
    derandomize=True,  # CI runs what a desk runs
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(case=cases())
def test_reference_equals_the_oracle(case: tuple[Clip, Arithmetic, IntegerAdmOptions]) -> None:
    assert different_from_oracle(*case) == []


# ---------------------------------------------------------------- conclusions
def frame_of(
    conclusion: str, pair: Clip, dialect: str = "netflix", **options: float
) -> dict[str, float | None]:
    """Return the frame's scores by their short keys; None is UNSET."""
    chosen = IntegerAdmOptions.model_validate({"debug": True, **options})
    scores = FEATURE.reference(Arithmetic(dialect, conclusion), chosen, pair)
    keys = (key.removeprefix("integer_") for key in spec.SCORES + spec.DEBUG_SCORES)
    columns = zip(keys, scores.values[0].tolist(), scores.unset[0].tolist(), strict=True)
    return {key: None if unset else value for key, value, unset in columns}


FLAT, FROM_FLAT = content("flat", 34, 33, 8), content("from flat", 34, 33, 8)


@pytest.mark.parametrize("dialect", spec.DIALECTS)
def test_netflix_leaves_aim_and_adm3_unset_where_the_denominator_is_0(dialect: str) -> None:
    for pair in (FLAT, FROM_FLAT):
        frame = frame_of("netflix", pair, dialect, adm_noise_weight=0)
        assert (frame["adm2"], frame["aim"], frame["adm3"], frame["adm_den"]) == (1, None, None, 0)
        assert all(math.isnan(frame[f"adm_scale{scale}"] or 0) for scale in range(4))


@pytest.mark.parametrize(("options", "adm3"), [({}, 0.5), ({"adm_dlm_weight": 0.3}, 0.3)])
@pytest.mark.parametrize("dialect", spec.DIALECTS)
def test_vmafx_sets_aim_to_1_where_the_denominator_is_0(
    dialect: str, options: dict[str, float], adm3: float
) -> None:
    frame = frame_of("vmafx", FLAT, dialect, adm_noise_weight=0, **options)
    assert (frame["adm2"], frame["aim"], frame["adm3"], frame["adm_den"]) == (1, 1, adm3, 0)
    assert [frame[f"adm_scale{scale}"] for scale in range(4)] == [1, 1, 1, 1]


def test_vmafx_refuses_a_denominator_of_0_under_anything_else() -> None:
    with pytest.raises(NoResult, match="frame 0 integer_adm2_nw_0 is nan") as refusal:
        frame_of("vmafx", FROM_FLAT, adm_noise_weight=0)
    assert refusal.value.scores.values[0, 1] == math.inf


def test_a_skipped_scale_0_has_a_ratio_of_0_in_both_conclusions() -> None:
    for conclusion in CONCLUSIONS:
        frame = frame_of(conclusion, noise(34, 33, 1), adm_skip_scale0=True)
        assert (frame["adm_scale0"], frame["adm_num_scale0"]) == (0, 0)
        assert frame["adm_den_scale0"] == float(np.float32(1e-10))


# ---------------------------------------------------------------- the compiled module
def computed(pair: Clip, chosen: dict[str, Any], **changed: Any) -> NDArray[np.float64]:  # noqa: ANN401 - arguments of any type
    scores, unset = np.full((1, 18), -1.0), np.zeros((1, 18), np.bool_)
    arguments = {
        "vmafx_dialect": True,
        "vmafx_conclusion": False,
        "threads": 1,
        "scores": scores,
        "unset": unset,
        **changed,
    }
    _reference.compute(pair.ref, pair.dist, pair.bit_depth, chosen, **arguments)
    return scores


def test_the_module_refuses_what_has_no_result_in_vmafx() -> None:
    no_row = IntegerAdmOptions(adm_csf_mode=2, adm_norm_view_dist=4.0).model_dump()
    with pytest.raises(ValueError, match="dialect vmafx has no weights"):
        computed(noise(17, 17, 1), no_row)
    with pytest.raises(ValueError, match="below 17x17"):
        computed(noise(16, 17, 1), DEBUG.model_dump())


def test_the_module_refuses_arrays_that_would_be_copied() -> None:
    """A converted copy would be filled and dropped, and the caller would read its own garbage."""
    with pytest.raises(TypeError):
        computed(noise(17, 17, 1), DEBUG.model_dump(), scores=np.zeros((1, 18), np.float32))


def test_the_module_refuses_an_unknown_spelling() -> None:
    with pytest.raises(TypeError):
        computed(noise(17, 17, 1), DEBUG.model_dump(), spelling=7)


def test_the_spelling_in_64_bit_integers_changes_no_bit() -> None:
    pair, chosen = content("near", 90, 70, 16), options_in("vmafx", {"adm_enhn_gain_limit": 1.2})
    golden, integers = (
        computed(pair, chosen.model_dump(), spelling=spelling)
        for spelling in (_reference.Spelling.golden, _reference.Spelling.int64)
    )
    assert golden.tobytes() == integers.tobytes()
