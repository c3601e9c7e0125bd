"""Float powers on every device are the C library's, and a device that differs is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from backends import c_library
from backends.base import Buffer, Kernels, Refused
from backends.features.float_adm import FEATURE, powers
from backends.features.float_adm.powers import BUILDS, Difference, Powers
from backends.features.float_adm.telling import TELLING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.base import Device

EXPONENTS = (1.0, 1.25, 2.0, 2.5, 3.5, 4.5, 13.7, 19.99, 20.0, 1 / 3)
STRIDE = 997  # of all floats without a sign: two million of them
INFINITY = 0x7F800000
builds = pytest.mark.parametrize("fused", [True, False], ids=["fused", "separate"])


def floats(*bits: int) -> NDArray[np.float32]:
    return np.array(bits, np.uint32).view(np.float32)


def to_the(exponent: float, values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.full(len(values), exponent, np.float32)


def refusal(device: Device, exponent: float, right: str, wrong: str) -> str:
    """Return how the check refuses a device whose kernels have `wrong` in place of `right`."""
    source = FEATURE.kernel_source()
    assert source.count(right) == 1, "the kernels have changed"
    faulty = Powers(device, device.compile(source.replace(right, wrong)))
    with pytest.raises(Refused) as refused:
        faulty.check(exponent)
    return str(refused.value)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_a_device_gives_the_c_librarys_power(device_powers: Powers, exponent: float) -> None:
    values = np.arange(0, powers.PATTERNS, STRIDE).astype(np.uint32).view(np.float32)
    exponents = to_the(exponent, values)
    fused = powers.host_fuses()
    assert device_powers.differences(values, exponents, fused=fused) == []
    assert device_powers.check(exponent) is fused


@builds
def test_both_builds_give_their_own_result_where_they_differ(
    device_powers: Powers, *, fused: bool
) -> None:
    values = floats(*(build.value for build in BUILDS))
    exponents = np.array([build.exponent for build in BUILDS], np.float32)
    got = device_powers.compute(values, exponents, fused=fused).view(np.uint32)
    assert got.tolist() == [build.fused if fused else build.separate for build in BUILDS]
    assert all(build.fused != build.separate for build in BUILDS)


@builds
@pytest.mark.parametrize(
    ("value", "exponent", "result"),
    [
        (0, 2.5, 0),
        (1, 1.0, 1),  # the smallest denormal
        (1, 1.25, 0),
        (0x007FFFFF, 1.0, 0x007FFFFF),
        (0x1A000000, 2.0, 0),  # 2^-75: its square is half the smallest denormal
        (0x1A000001, 2.0, 1),
        (0x1FFFFFFF, 2.0, 0x007FFFFF),  # just below 2^-63: its square is denormal
        (0x20000000, 2.0, 0x00800000),
        (0x3F800000, 13.7, 0x3F800000),
        (0x5F7FFFFF, 2.0, 0x7F7FFFFE),  # just below 2^64
        (0x5F800000, 2.0, INFINITY),
        (0x7F7FFFFF, 1.0, 0x7F7FFFFF),
        (0x7F7FFFFF, 20.0, INFINITY),
        (INFINITY, 2.5, INFINITY),
    ],
)
def test_special_values(
    device_powers: Powers, value: int, exponent: float, result: int, *, fused: bool
) -> None:
    values = floats(value)
    got = device_powers.compute(values, to_the(exponent, values), fused=fused)
    assert got.view(np.uint32).tolist() == [result]
    assert c_library.powf(values, to_the(exponent, values)).view(np.uint32).tolist() == [result]


@builds
def test_nan_stays_nan(device_powers: Powers, *, fused: bool) -> None:
    values = floats(0x7FC00000, 0x7FFFFFFF, 0xFFC00000)
    assert np.isnan(device_powers.compute(values, to_the(2.5, values), fused=fused)).all()


def test_an_exponent_is_compared_once_and_each_for_itself(
    device_powers: Powers, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    plain = Powers.differences

    def noted(self: Powers, *arrays: NDArray[np.float32], fused: bool) -> list[Difference]:
        compared.append(float(arrays[1][-1]))
        return plain(self, *arrays, fused=fused)

    monkeypatch.setattr(Powers, "differences", noted)
    for exponent in (2.5, 20.0, 2.5, 20.0):
        device_powers.check(exponent)
    assert compared == [2.5, 20.0]


def test_the_wrong_build_is_refused(device_powers: Powers, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = powers.host_fuses()
    monkeypatch.setattr(powers, "host_fuses", lambda: not fused)
    with pytest.raises(Refused, match=r"^this device's powers, .* are not the C library's for "):
        device_powers.check(2.5)


def test_a_square_by_multiplication_is_refused(device: Device) -> None:
    sentence = refusal(
        device, 2.0, "= power(values[i], exponents[i], fused)", "= values[i] * values[i]"
    )
    assert "are not the C library's for " in sentence


def test_a_power_through_the_devices_own_function_is_refused(device: Device) -> None:
    refusal(
        device,
        2.5,
        "= power(values[i], exponents[i], fused)",
        "= (float)pow((double)values[i], (double)exponents[i])",
    )


@dataclass
class Nudged:
    """Kernels one entry of whose tables is one step off."""

    kernels: Kernels
    entry: int
    up: bool

    # The argument `fused` reaches every place, so the fault travels in its upper bits.
    SWAPS = (
        ("return fused ? fma", "return (fused & 1) ? fma"),
        ("RECIPROCALS[bucket]", "nudged(RECIPROCALS[bucket], bucket, fused)"),
        ("LOGARITHMS[bucket]", "nudged(LOGARITHMS[bucket], 16 + bucket, fused)"),
        (
            "POWERS_OF_TWO[steps & 31]",
            "nudged(POWERS_OF_TWO[steps & 31], 32 + (steps & 31), fused)",
        ),
    )
    HEAD = """
FUNCTION double nudged(double right, int entry, int fused)
{
    const ulong step = (fused & 2) ? 1 : -1;
    return entry == fused >> 2 ? as_double(as_ulong(right) + step) : right;
}
"""

    @classmethod
    def source(cls) -> str:
        source = FEATURE.kernel_source()
        for right, wrong in cls.SWAPS:
            assert source.count(right) == 1, "the kernels have changed"
            source = source.replace(right, wrong)
        return cls.HEAD + source

    def launch(
        self, kernel: str, size: tuple[int, int, int], *arguments: Buffer | np.generic
    ) -> None:
        *buffers, fused, count = arguments
        assert isinstance(fused, np.int32)
        spoiled = np.int32(fused | self.up << 1 | self.entry << 2)
        self.kernels.launch(kernel, size, *buffers, spoiled, count)


ENTRIES = tuple(sorted(set(range(64)) - {9, 16 + 9}))  # without a one, whose logarithm is zero


@builds
def test_every_table_entry_off_by_one_step_is_told(device: Device, *, fused: bool) -> None:
    kernels = device.compile(Nudged.source())
    values, exponents = floats(*np.ravel(TELLING).tolist()).reshape(-1, 2).T

    def results(entry: int, *, up: bool) -> bytes:
        nudged = Powers(device, Nudged(kernels, entry, up))
        return nudged.compute(values, exponents, fused=fused).tobytes()

    right = results(64, up=True)  # there is no such entry
    told = {
        entry for entry in ENTRIES if right not in (results(entry, up=u) for u in (True, False))
    }
    assert told == set(ENTRIES)
    if fused is powers.host_fuses():
        assert right == c_library.powf(values, exponents).tobytes()


@pytest.mark.parametrize("entry", [0, 31, 32, 63])
def test_a_device_with_one_table_entry_off_is_refused(device: Device, entry: int) -> None:
    kernels = device.compile(Nudged.source())
    with pytest.raises(Refused, match=r"are not the C library's for \d+ of \d+ inputs: powf\("):
        Powers(device, Nudged(kernels, entry, up=True)).check(2.5)
