"""The integer twin on every device: the reference's bits, whatever picture, options and launch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from integer_adm_patterns import pattern_o
from stills import Clip, noise

from backends.base import Arithmetic, NoResult, Scores
from backends.features.integer_adm import FEATURE, spec
from backends.features.integer_adm.spec import IntegerAdmOptions
from backends.features.integer_adm.twin import bytes_per_frame, significand

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.base import Backend, Device
    from backends.device import DeviceBackend

DEPTHS = (8, 10, 12, 16)
DEBUG = IntegerAdmOptions(debug=True)
NETFLIX, VMAFX = map(Arithmetic, spec.DIALECTS)
both = pytest.mark.parametrize("arithmetic", [NETFLIX, VMAFX], ids=spec.DIALECTS)


def same(left: Scores, right: Scores) -> bool:
    """Return whether names, bits and what is UNSET agree; any NaN equals any NaN."""
    bits = left.values.view(np.uint64) == right.values.view(np.uint64)
    nans = np.isnan(left.values) & np.isnan(right.values)
    unset = np.array_equal(left.unset, right.unset)
    return left.names == right.names and unset and bool((bits | nans).all())


def agree(backend: Backend, arithmetic: Arithmetic, clip: Clip, **options: Any) -> Scores:  # noqa: ANN401 - options of any type
    """Return the reference's scores, which the twin must have, too."""
    chosen = IntegerAdmOptions.model_validate({"debug": True, **options})
    scores = FEATURE.reference(arithmetic, chosen, clip)
    assert same(backend.compute(FEATURE, arithmetic, chosen, clip), scores)
    return scores


def pair(ref: NDArray[np.integer], dist: NDArray[np.integer], depth: int) -> Clip:
    dtype = np.uint8 if depth == 8 else np.uint16
    return Clip(ref.astype(dtype)[None], dist.astype(dtype)[None], depth)


def amplified(depth: int, width: int = 66, height: int = 50) -> Clip:
    """Return noise around mid-grey and the same with more contrast, for gain limits to bound."""
    random = np.random.default_rng(depth)
    detail = random.integers(-(1 << (depth - 2)), 1 << (depth - 2), (height, width))
    middle, factor = 1 << (depth - 1), random.choice([5, 6, 7, 8], (height, 1))
    return pair(middle + detail, middle + detail * factor // 4 + detail % 3 - 1, depth)


@both
@pytest.mark.parametrize("depth", DEPTHS)
def test_full_range_noise_gives_the_references_bits(
    device_backend: Backend, depth: int, arithmetic: Arithmetic
) -> None:
    agree(device_backend, arithmetic, noise(131, 97, 2, depth))


@pytest.mark.parametrize("width", [63, 64, 65, 127, 128, 129])
@pytest.mark.parametrize("height", [17, 31, 32, 33])
def test_sizes_around_a_work_group_give_the_references_bits(
    device_backend: Backend, width: int, height: int
) -> None:
    clip = noise(width, height, 1, 10)
    for arithmetic in (NETFLIX, VMAFX):
        if height >= FEATURE.smallest(arithmetic.dialect):
            agree(device_backend, arithmetic, clip)


@pytest.mark.parametrize("side", [17, 18, 19, 32, 33, 34])
def test_the_smallest_sizes_give_the_references_bits(device_backend: Backend, side: int) -> None:
    """Down to bands of two samples, whose edges are all they have."""
    for clip in (noise(side, 41, 1), noise(41, side, 1), noise(side, side, 1, 16)):
        for arithmetic in (NETFLIX, VMAFX):
            if side >= FEATURE.smallest(arithmetic.dialect):
                agree(device_backend, arithmetic, clip)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("along", [0, 1])
def test_full_contrast_wraps_the_centre_in_netflix_only(
    device_backend: Backend, depth: int, along: int
) -> None:
    """Stripes against noise make weighted samples of 15 360 and more."""
    top, random = (1 << depth) - 1, np.random.default_rng(depth)
    stripes = top * (np.indices((48, 64))[along] // 2 % 2)
    clip = pair(stripes, top * random.integers(0, 2, stripes.shape), depth)
    netflix, vmafx = (agree(device_backend, each, clip) for each in (NETFLIX, VMAFX))
    column = netflix.names.index("integer_adm_num_scale0")
    assert netflix.values[0, column] != vmafx.values[0, column]


@pytest.mark.parametrize("depth", DEPTHS)
def test_row_totals_beyond_63_bits_have_a_sign_in_netflix_only(
    device_backend: Backend, depth: int
) -> None:
    picture = pattern_o(depth)
    clip = pair(picture, picture, depth)
    netflix, vmafx = (agree(device_backend, each, clip) for each in (NETFLIX, VMAFX))
    assert np.isnan(netflix.values[0, 0])
    assert 1 < vmafx.values[0, 0] < 1.001


@both
@pytest.mark.parametrize("limit", [1.0, 1.05, 1.2, 1.37, 1.4999, 7.3, 100.0])
def test_every_gain_limit_gives_the_references_bits(
    device_backend: Backend, limit: float, arithmetic: Arithmetic
) -> None:
    for depth in DEPTHS:
        clip = amplified(depth)
        limited = agree(device_backend, arithmetic, clip, adm_enhn_gain_limit=limit)
        free = FEATURE.reference(arithmetic, DEBUG, clip)
        assert np.array_equal(limited.values, free.values) == (limit == 100)


OPTIONS: list[dict[str, float]] = [
    {"adm_norm_view_dist": 5.0},
    {"adm_norm_view_dist": 1.5, "adm_ref_display_height": 2160},
    {"adm_norm_view_dist": 24.0, "adm_ref_display_height": 4320},
    {"adm_csf_mode": 1},
    {"adm_csf_mode": 1, "adm_csf_scale": 50.0, "adm_csf_diag_scale": 0.01},
    {"adm_csf_mode": 1, "adm_csf_scale": 0.0, "adm_csf_diag_scale": 7.7},
    {"adm_csf_mode": 2},
    {"adm_csf_mode": 2, "adm_ref_display_height": 2160},
    {"adm_csf_mode": 3, "adm_norm_view_dist": 5.0},
    {"adm_noise_weight": 0.0},
    {"adm_noise_weight": 1500.0},
    {"adm_dlm_weight": 0.7, "adm_min_val": 0.9},
    {"adm_dlm_weight": 0.0},
    {"adm_skip_aim": True},
    {"adm_skip_scale0": True},
    {"adm_skip_scale0": True, "adm_skip_aim": True, "adm_noise_weight": 0.0},
]


@both
@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_every_option_gives_the_references_bits(
    device_backend: Backend, number: int, arithmetic: Arithmetic
) -> None:
    depth = DEPTHS[number % 4]
    for clip in (noise(67, 51, 1, depth), amplified(depth)):
        agree(device_backend, arithmetic, clip, **OPTIONS[number])


@pytest.mark.parametrize("p_norm", [1.0, 2.5, 2.99999, 3.00001, 20.0])
def test_every_p_norm_gives_the_references_bits(device_backend: Backend, p_norm: float) -> None:
    clip = noise(45, 37, 2, 10)
    scores = agree(device_backend, VMAFX, clip, adm_p_norm=p_norm)
    assert not np.array_equal(scores.values, FEATURE.reference(VMAFX, DEBUG, clip).values)


def test_netflix_computes_on_without_weights(device_backend: Backend) -> None:
    scores = agree(
        device_backend, NETFLIX, noise(45, 37, 1), adm_csf_mode=2, adm_norm_view_dist=4.0
    )
    assert np.isnan(scores.values[0, scores.names.index("integer_adm_den_csf_2_nvd_4")])


@pytest.mark.parametrize("dialect", spec.DIALECTS)
@pytest.mark.parametrize(("ref", "dist"), [(128, 128), (128, 77), (0, 255)])
def test_flat_pictures_end_alike_in_both_conclusions(
    device_backend: Backend, dialect: str, ref: int, dist: int
) -> None:
    shape = (33, 35)
    clip = pair(np.full(shape, ref), np.full(shape, dist), 8)
    unset = agree(device_backend, Arithmetic(dialect, "netflix"), clip, adm_noise_weight=0.0)
    assert unset.unset[0].nonzero()[0].tolist() == [1, 2]
    ended = agree(device_backend, Arithmetic(dialect, "vmafx"), clip, adm_noise_weight=0.0)
    assert ended.values[0, :7].tolist() == [1, 1, 0.5, 1, 1, 1, 1]


def test_a_frame_that_vmafx_refuses_keeps_the_references_bits(device_backend: Backend) -> None:
    clip = noise(45, 37, 2)
    clip.ref[1] = 128
    options = IntegerAdmOptions(debug=True, adm_noise_weight=0.0)
    refused = []
    for compute in (FEATURE.reference, lambda *a: device_backend.compute(FEATURE, *a)):
        with pytest.raises(NoResult, match=r"^frame 1 ") as refusal:
            compute(Arithmetic("vmafx", "vmafx"), options, clip)
        refused.append(refusal.value)
    assert str(refused[0]) == str(refused[1])
    assert same(refused[0].scores, refused[1].scores)


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5])
def test_a_batch_boundary_changes_no_bit(
    device_backend: DeviceBackend, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames one by one, in twos and all at once, around the boundary at two frames."""
    clip = noise(37, 35, frames)
    whole = agree(device_backend, NETFLIX, clip)
    for batch in (1, 2):
        monkeypatch.setattr(device_backend.device, "memory_budget", batch * bytes_per_frame(clip))
        assert same(whole, device_backend.compute(FEATURE, NETFLIX, DEBUG, clip))


@pytest.mark.parametrize("group", [(1, 1, 1), (32, 4, 1), (256, 1, 1)])
def test_the_size_of_a_work_group_changes_no_bit(
    device_backend: DeviceBackend, group: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    clip, device = noise(67, 51, 2, 10), device_backend.device
    whole = device_backend.compute(FEATURE, VMAFX, DEBUG, clip)
    monkeypatch.setattr(device, "_work_group", group)
    twin = FEATURE.twin(device, FEATURE.kernel_source())
    assert same(whole, twin.compute(VMAFX, DEBUG, clip))


def test_a_clip_in_another_memory_order_gives_the_same_bits(device_backend: Backend) -> None:
    clip = noise(37, 35, 2, 12)
    turned = replace(clip, ref=np.asfortranarray(clip.ref), dist=np.asfortranarray(clip.dist))
    whole = device_backend.compute(FEATURE, NETFLIX, DEBUG, clip)
    assert same(whole, device_backend.compute(FEATURE, NETFLIX, DEBUG, turned))


# ---------------------------------------------------------------- the limited product
GAINS = """
KERNEL gains(GLOBAL const long *values, GLOBAL const ulong *gains, GLOBAL const int *places,
             GLOBAL long *output, int count)
{
    const int i = ID(0);
    if (i < count && ID(1) == 0 && ID(2) == 0)
        output[i] = gained((ulong)magnitude(values[i]), gains[i], places[i]);
}
"""


def cut_products(
    device: Device, values: NDArray[np.int64], limits: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return what the kernels make of |value| * limit."""
    fractions, exponents = np.frexp(limits)
    bits = (fractions * 2.0**53).astype(np.uint64)
    places = (53 - exponents).astype(np.int32)
    assert significand(float(limits[0])) == (bits[0], places[0])
    output = device.empty(8 * values.size)
    kernels = device.compile(FEATURE.kernel_source() + GAINS)
    buffers = [device.upload(array) for array in (values, bits, places)]
    kernels.launch("gains", (values.size, 1, 1), *buffers, output, np.int32(values.size))
    return device.download(output, values.shape, np.dtype(np.int64))


def products() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return values and limits: random, on ties, beside integers, and at the ends of the ranges."""
    random, n = np.random.default_rng(2030), 250_000
    sizes = 1 << random.integers(0, 32, n)
    plain = random.integers(-sizes, sizes), random.uniform(1, 100, n)
    # three times an odd significand below 2^54 / 3 has 54 bits, of which the last is set
    odd = (random.integers(1 << 51, (1 << 53) // 3, n) << 1) | 1
    ties = random.choice([-3, 3, 6, 96], n), odd / 2.0 ** random.integers(46, 53, n)
    # limits within two steps of a quotient of integers
    value = random.integers(1, 1 << 24, n)
    quotient = random.integers(value, 100 * value) / value
    near = quotient + random.integers(-2, 3, n) * np.spacing(quotient)
    options = random.choice([1.0, 1.05, 1.2, 1.37, 1.4999, 7.3, 100.0], n)
    ends = random.choice([0, 1, -1, 2**31 - 1, 2**31, 1 - 2**31, -(2**31)], n)
    values, limits = zip(plain, ties, (value, np.clip(near, 1, 100)), (ends, options), strict=True)
    samples, factors = np.concatenate(values).astype(np.int64), np.concatenate(limits)
    samples[0], factors[0] = 3, 4 / 3  # 4 - 2^-52, half way to 4
    return samples, factors


def test_a_limited_product_is_rounded_to_53_bits_and_cut_as_in_doubles(device: Device) -> None:
    values, limits = products()
    expected = np.trunc(np.abs(values).astype(np.float64) * limits).astype(np.int64)
    assert values.size == 1_000_000
    assert np.array_equal(cut_products(device, values, limits), expected)


def test_the_corpus_of_products_has_ties_and_products_that_round_to_an_integer() -> None:
    values, limits = products()
    ties = crossings = 0
    for value, limit in zip(values[::10].tolist(), limits[::10].tolist(), strict=True):
        numerator, denominator = limit.as_integer_ratio()
        exact = abs(value) * numerator
        dropped = max(0, exact.bit_length() - 53)
        ties += dropped > 0 and exact % (1 << dropped) == 1 << (dropped - 1)
        crossings += exact // denominator != int(abs(value) * limit)
    assert ties >= 25_000
    assert crossings > 1_000
