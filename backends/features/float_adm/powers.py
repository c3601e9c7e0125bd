"""Shows, before a device's float powers count, that they are the C library's.

The device follows glibc's powf (kernels/powf.cl.h), of which there are two builds: glibc takes the
one with fused operations where the processor has FMA and AVX2, else the one with separate ones.
Source: float_adm.md, section 12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from backends import c_library
from backends.base import Refused
from backends.features.float_adm.telling import TELLING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.base import Device, Kernels

FLOAT = 4  # bytes
PATTERNS = 1 << 31  # all floats without a sign, infinity and NaNs included
CHUNK = 1 << 24  # floats that the exhaustive comparison takes at a time
FIRST = 8  # differences that it tells one by one


class Build(NamedTuple):
    """An input on which glibc's two builds differ and what each gives; floats as bits."""

    value: int
    exponent: float
    fused: int
    separate: int


BUILDS = (
    Build(0x4145F525, 20.0, 0x63BF7791, 0x63BF7790),
    Build(0x3DC5F525, 20.0, 0x1DBF7791, 0x1DBF7790),
    Build(0x36B10833, 3.5, 0x20C72016, 0x20C72017),
)


class Difference(NamedTuple):
    """An input on which a device is not the C library."""

    value: float
    exponent: float
    host: float
    device: float

    def __str__(self) -> str:
        """Return the input and both results as hex floats, which tell every bit."""
        return (
            f"powf({self.value.hex()}, {self.exponent:g}) is {self.host.hex()} in the C library "
            f"and {self.device.hex()} on the device"
        )


class Compared(NamedTuple):
    """What came of comparing inputs of one exponent; `first` are some that differ."""

    compared: int
    different: int
    first: tuple[Difference, ...]


def host_fuses() -> bool:
    """Return whether this process runs glibc's build with fused operations, not the separate one.

    Raises:
        Refused: the C library's powf is neither.
    """
    values, exponents, *builds = (np.array(column) for column in zip(*BUILDS, strict=True))
    got = c_library.powf(_floats(values), exponents.astype(np.float32))
    for fused, results in zip((True, False), builds, strict=True):
        if np.array_equal(got, _floats(results)):
            return fused
    listed = ", ".join(
        f"powf({value.hex()}, {exponent:g}) is {result.hex()}"
        for value, exponent, result in zip(
            _floats(values).tolist(), exponents, got.tolist(), strict=True
        )
    )
    message = (
        f"the C library's powf here is not glibc's, which devices follow where adm_p_norm is not "
        f"3: {listed}; use adm_p_norm 3, or a host with glibc 2.27 or later"
    )
    raise Refused(message)


def described() -> str:
    """Return which powf this host runs and how devices are held against it, for reports."""
    try:
        build = "fused" if host_fuses() else "separate"
    except Refused as refusal:
        return str(refusal)
    compared = len(pairs(1.0)[0])
    return (
        f"glibc's build with {build} operations, as {len(BUILDS)} inputs tell; a device's powers "
        f"are compared with it on {compared} inputs per exponent, before they count"
    )


def sample(exponent: float) -> NDArray[np.float32]:
    """Return inputs over the whole range and around every place where the routine turns.

    Args:
        exponent: decides where a power overflows, vanishes or enters another 32nd of a binade.

    Returns:
        float32 (n,), none negative; n is the same for every exponent.
    """
    whole = np.arange(0, PATTERNS, 65521)  # a prime step, so that every bit varies
    ends = np.array([0, 0x00800000, 0x3F800000, 0x7F800000])  # zero, denormals, one, infinity
    buckets = 0x00030000 + (np.arange(PATTERNS >> 19) << 19)  # sixteen a binade
    # results from the smallest to the largest, in halves of a 32nd of a binade
    logarithms = np.arange(-150 * 64, 128 * 64 + 1) / 64 / exponent
    steps = np.exp2(np.clip(logarithms, -149, 127)).astype(np.float32).view(np.uint32)
    parts = (whole, _around(ends, 512), _around(buckets, 1), _around(steps.astype(np.int64), 1))
    return _floats(np.concatenate(parts))


def pairs(exponent: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return values and exponents, float32 (n,) each: TELLING, then `sample(exponent)`."""
    telling = _floats(np.array(TELLING))
    values = np.concatenate((telling[:, 0], sample(exponent)))
    exponents = np.full(len(values), exponent, np.float32)
    exponents[: len(telling)] = telling[:, 1]
    return values, exponents


class Powers:
    """The float powers of one device."""

    def __init__(self, device: Device, kernels: Kernels) -> None:
        """Take kernels with `powers` of kernels/powf.cl.h among them, compiled on `device`."""
        self._device = device
        self._kernels = kernels
        self._shown: set[float] = set()

    def check(self, exponent: float) -> bool:
        """Hold the device against the C library, once per exponent.

        Returns:
            Whether kernels have to fuse operations, as the C library's build does.

        Raises:
            Refused: the C library's powf is not glibc's, or the device's is another one.
        """
        fused = host_fuses()
        if exponent not in self._shown:
            self._require(*pairs(exponent), fused=fused)
            self._shown.add(exponent)
        return fused

    def _require(
        self, values: NDArray[np.float32], exponents: NDArray[np.float32], *, fused: bool
    ) -> None:
        different = self.differences(values, exponents, fused=fused)
        if different:
            message = (
                f"this device's powers, which adm_p_norm other than 3 needs, are not the C "
                f"library's for {len(different)} of {len(values)} inputs: {different[0]}; "
                "use adm_p_norm 3"
            )
            raise Refused(message)

    def differences(
        self, values: NDArray[np.float32], exponents: NDArray[np.float32], *, fused: bool
    ) -> list[Difference]:
        """Return where the device is not the C library; any NaN equals any NaN.

        Args:
            values: float32 (n,), none negative.
            exponents: float32 (n,), all positive.
            fused: whether the device fuses operations.
        """
        host = c_library.powf(values, exponents)
        device = self.compute(values, exponents, fused=fused)
        unequal = np.flatnonzero(host.view(np.uint32) != device.view(np.uint32))
        unequal = unequal[~(np.isnan(host[unequal]) & np.isnan(device[unequal]))]
        columns = (array[unequal].tolist() for array in (values, exponents, host, device))
        return [Difference(*row) for row in zip(*columns, strict=True)]

    def compute(
        self, values: NDArray[np.float32], exponents: NDArray[np.float32], *, fused: bool
    ) -> NDArray[np.float32]:
        """Return the device's powers, float32 (n,); arguments as for `differences`."""
        inputs = [self._device.upload(array) for array in (values, exponents)]
        output = self._device.empty(FLOAT * len(values))
        count = np.int32(len(values))
        self._kernels.launch("powers", (len(values), 1, 1), *inputs, output, np.int32(fused), count)
        return self._device.download(output, values.shape, np.dtype(np.float32))


def exhaustive(device: Device, exponent: float, progress: Callable[[int], None]) -> Compared:
    """Compare device and C library on every float without a sign.

    Args:
        device: any device; the kernel is compiled on it.
        exponent: rounded to float32.
        progress: told how many inputs are compared so far.

    Raises:
        Refused: the C library's powf is not glibc's.
    """
    exponents = np.full(CHUNK, exponent, np.float32)
    starts = range(0, PATTERNS, CHUNK)
    chunks = ((_floats(np.arange(start, start + CHUNK)), exponents) for start in starts)
    return _compared(device, chunks, progress)


def sampled(device: Device, exponent: float, progress: Callable[[int], None]) -> Compared:
    """Compare device and C library on `pairs(exponent)`; arguments as for `exhaustive`."""
    return _compared(device, [pairs(exponent)], progress)


def _compared(
    device: Device,
    chunks: Iterable[tuple[NDArray[np.float32], NDArray[np.float32]]],
    progress: Callable[[int], None],
) -> Compared:
    fused = host_fuses()
    source = (resources.files(__package__) / "kernels" / "powf.cl.h").read_text("utf-8")
    powers = Powers(device, device.compile(source))
    compared, different, first = 0, 0, list[Difference]()
    for values, exponents in chunks:
        found = powers.differences(values, exponents, fused=fused)
        compared += len(values)
        different += len(found)
        first += found[: FIRST - len(first)]
        progress(compared)
    return Compared(compared, different, tuple(first))


def _floats(bits: NDArray[np.integer]) -> NDArray[np.float32]:
    return bits.astype(np.uint32).view(np.float32)


def _around(centres: NDArray[np.int64], reach: int) -> NDArray[np.int64]:
    """Return every centre with the patterns beside it; those past an end come in at the other."""
    return (centres[:, np.newaxis] + np.arange(-reach, reach + 1)).ravel() % PATTERNS
