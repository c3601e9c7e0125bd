"""How the integer twin cuts a clip into launches, seen by a device that only writes down."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from notebook import GRID_LIMIT, Notebook
from stills import noise

from backends.base import Arithmetic
from backends.features.integer_adm.conclusion import Region, pool_masked
from backends.features.integer_adm.spec import IntegerAdmOptions
from backends.features.integer_adm.twin import (
    BATCH,
    IntegerAdmTwin,
    Workspace,
    reciprocals,
    significand,
)

VMAFX = Arithmetic("vmafx")


@pytest.mark.parametrize(
    ("frames", "batches"), [(BATCH - 1, 1), (BATCH, 1), (BATCH + 1, 2), (2 * BATCH + 1, 3)]
)
def test_a_batch_stays_within_the_grid_of_a_launch(frames: int, batches: int) -> None:
    device = Notebook()
    twin = IntegerAdmTwin(device, "")
    scores = twin.compute(VMAFX, IntegerAdmOptions(), noise(17, 17, frames))
    assert scores.values.shape == (frames, 7)
    assert [kernel for kernel, _ in device.launches].count("samples_8") == batches
    assert max(max(size[1:]) for _, size in device.launches) <= GRID_LIMIT


def test_a_scale_is_left_out_but_its_wavelet_is_not() -> None:
    device = Notebook()
    options = IntegerAdmOptions(adm_skip_scale0=True)
    IntegerAdmTwin(device, "").compute(VMAFX, options, noise(17, 17, 1))
    kernels = [kernel for kernel, _ in device.launches]
    assert kernels.count("dwt_vertical") == 4
    assert kernels.count("decouple") == kernels.count("fold") == 3


def test_every_scale_starts_with_poison_in_all_it_will_write() -> None:
    """Otherwise a launch that leaves a gap reads what a larger scale or the batch before left."""
    device, frames = Notebook(), 3
    IntegerAdmTwin(device, "").compute(VMAFX, IntegerAdmOptions(), noise(67, 51, frames))
    expected = [("samples_8", [4 * frames * 2 * 67 * 51])]
    for width, height in ((67, 51), (34, 26), (17, 13), (9, 7)):
        sizes = Workspace.sizes(width, height)
        written = [frames * n for name, n in sizes.items() if name != "pictures"]
        # the input of a scale gives way to the next one's, once it is read
        read = [4 * frames * 2 * width * height]
        expected += [("dwt_vertical", written), ("dwt_horizontal", read)]
    assert device.poisoned_before == expected


@pytest.mark.parametrize(("depth", "first"), [(8, 8), (10, 10), (12, 12), (16, 16)])
def test_the_wavelets_shifts_are_those_of_the_specification(depth: int, first: int) -> None:
    device = Notebook()
    IntegerAdmTwin(device, "").compute(VMAFX, IntegerAdmOptions(), noise(17, 17, 1, depth))
    shifts = {
        kernel: [arguments[position] for name, arguments in device.arguments if name == kernel]
        for kernel, position in (("dwt_vertical", 3), ("dwt_horizontal", 4))
    }
    assert shifts == {"dwt_vertical": [first, 0, 16, 16], "dwt_horizontal": [16, 15, 16, 15]}


@pytest.mark.parametrize("dialect", ["netflix", "vmafx"])
def test_kernels_are_told_the_dialects_repairs_and_weights(dialect: str) -> None:
    device = Notebook()
    clip = noise(33, 33, 1)
    IntegerAdmTwin(device, "").compute(Arithmetic(dialect), IntegerAdmOptions(), clip)
    told = [arguments[3:7] for kernel, arguments in device.arguments if kernel == "csf"]
    weights = (
        (36453, 49417),
        (137373792, 61414028),
        (186284160, 104783920),
        (196165808, 134487184),
    )
    repaired = np.int32(dialect == "vmafx")
    assert told == [
        (np.uint32(hv), np.uint32(d), np.int32(scale), repaired)
        for scale, (hv, d) in enumerate(weights)
    ]


def test_a_reciprocal_is_cut_and_has_one_entry_a_divisor() -> None:
    table = reciprocals()
    assert table.dtype == np.int32
    assert table.tolist() == [0, *(2**30 // n for n in range(1, 32769))]


@pytest.mark.parametrize(
    "value", [1.0, 1.2, np.nextafter(2.0, 1.0), 2.0, 7.3, 64.0, 99.9999, 100.0]
)
def test_a_gain_limit_is_its_double_in_53_bits(value: float) -> None:
    bits, places = significand(value)
    assert 2**52 <= int(bits) < 2**53
    assert 46 <= int(places) <= 52
    assert Fraction(int(bits), 2 ** int(places)) == Fraction(value)


# A little more than half way between two binary32 numbers; its binary64 is half way, and even.
BESIDE_A_TIE = 2**60 + 2**36 + 1


@pytest.mark.parametrize(
    ("scale", "rounded"), [(0, 2**60), *((s, 2**60 + 2**37) for s in (1, 2, 3))]
)
def test_a_total_is_rounded_twice_at_scale_0_and_once_at_the_others(
    scale: int, rounded: int
) -> None:
    def pooled(total: int) -> np.float32:
        totals = np.array([total, total, total], np.int64)
        return pool_masked(totals, Region(scale, 40, 30), 0, np.float32(1), 0)

    assert pooled(BESIDE_A_TIE) == pooled(rounded)
    assert pooled(2**60) != pooled(2**60 + 2**37)
