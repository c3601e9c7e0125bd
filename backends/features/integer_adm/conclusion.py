"""The twin's end of a frame on the host: roots, pooling and the scores, apart from the reference.

Source: integer_adm.md, sections 2, 8 to 10 and 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from backends import c_library

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.features.integer_adm.spec import IntegerAdmOptions
    from backends.features.integer_adm.weights import Weights

f32 = np.float32
SCALES = 4
FLOOR = 1e-10  # of the frame's sums, at 1920x1080; the denominator of a scale left out
# The column of each score in SCORES + DEBUG_SCORES.
ADM2, AIM, ADM3, SCALE0, ADM, NUM, DEN, NUM_SCALE0 = 0, 1, 2, 3, 7, 8, 9, 10


def margin(n: int) -> int:
    """Return the samples that the score region leaves out on each side of n."""
    return 0 if n < 5 else (n - 5) // 10  # noqa: PLR2004 - integer form of trunc(0.1 n - 0.5)


def clog2(n: int) -> int:
    """Return the smallest exponent of a power of two that is at least n."""
    return (n - 1).bit_length()


@dataclass(frozen=True)
class Region:
    """A scale's bands, and how its sums were shifted on the device."""

    scale: int
    width: int  # of a band
    height: int

    @property
    def left(self) -> int:
        """Columns left out on each side."""
        return margin(self.width)

    @property
    def top(self) -> int:
        """Rows left out above and below."""
        return margin(self.height)

    @property
    def columns(self) -> int:
        """Columns of the score region."""
        return self.width - 2 * self.left

    @property
    def rows(self) -> int:
        """Rows of the score region."""
        return self.height - 2 * self.top

    @property
    def area(self) -> int:
        """Samples of the score region."""
        return self.columns * self.rows

    @property
    def den_fold(self) -> int:
        """Bits that each row of a denominator loses."""
        return max(0, clog2(self.area) - 20) if self.scale == 0 else clog2(self.rows)

    @property
    def num_fold(self) -> int:
        """Bits that each row of a numerator loses."""
        return clog2(self.height)

    @property
    def den_places(self) -> int:
        """Binary places behind the point of a denominator's total."""
        if self.scale == 0:
            return 18 - self.den_fold
        return (32, 27, 23)[self.scale - 1] - self.den_fold - clog2(self.columns)

    @property
    def num_places(self) -> tuple[int, int, int]:
        """The same of the numerators h, v, d, with weights that were not halved."""
        lost = clog2(self.width) + self.num_fold
        if self.scale == 0:
            return 56 - lost, 56 - lost, 60 - lost  # each sample has lost 4, 4, 3 bits less
        places = (45, 39, 36)[self.scale - 1] - lost
        return places, places, places


def pool_energy(
    totals: NDArray[np.uint64], region: Region, weights: Weights, noise_weight: float
) -> np.float32:
    """Pool the denominator of one scale.

    Args:
        totals: uint64 (3,), the folded sums of bands h, v, d.
        region: the scale's.
        weights: the scale's.
        noise_weight: noise floor per sample.
    """
    hv, d = weights.exact
    unit = 2.0**region.den_places
    bands = [
        f32(float(total) / unit * math.pow(float(weight), 3.0))
        for total, weight in zip(totals.tolist(), (hv, hv, d), strict=True)
    ]
    return _rooted(bands, region, f32(1) / f32(3), noise_weight)


def pool_masked(
    totals: NDArray[np.int64] | NDArray[np.uint64],
    region: Region,
    halvings: int,
    root: np.float32,
    noise_weight: float,
) -> np.float32:
    """Pool a numerator of one scale.

    Args:
        totals: int64 (3,), the folded sums of bands h, v, d; uint64 where they have no sign.
        region: the scale's.
        halvings: of the scale's weights, each of which an energy has in three factors.
        root: exponent of the roots.
        noise_weight: noise floor per sample.
    """
    units = [2.0 ** (places - 3 * halvings) for places in region.num_places]
    if region.scale == 0:  # rounds twice, the other scales once
        wide = zip(totals.tolist(), units, strict=True)
        bands = [f32(float(total) / unit) for total, unit in wide]
    else:
        bands = list(totals.astype(np.float32) / np.array(units, np.float32))
    return _rooted(bands, region, root, noise_weight)


def _rooted(
    bands: list[np.float32], region: Region, root: np.float32, noise_weight: float
) -> np.float32:
    values = np.array([*bands, f32(region.area * noise_weight)], np.float32)
    *roots, noise = c_library.powf(values, np.full(4, root))
    h, v, d = (band + noise for band in roots)
    return f32(h + v + d)


def frame_scores(
    sums: NDArray[np.float32], width: int, height: int, options: IntegerAdmOptions, *, vmafx: bool
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Conclude one frame.

    Args:
        sums: float32 (4, 3): den, num and aim of each scale.
        width: luma samples of a row of the frame.
        height: rows of the frame.
        options: decide about adm3.
        vmafx: VMAFx's rules for denominators 0 instead of Netflix's.

    Returns:
        float64 (18,) in the order of SCORES + DEBUG_SCORES, and bool (18,): left unset.
    """
    wide = sums.astype(np.float64)
    den, num, aim = np.zeros(3, np.float64)
    for scale_den, scale_num, scale_aim in wide:
        den, num, aim = den + scale_den, num + scale_num, aim + scale_aim
    floor = FLOOR * (width * height) / (1920.0 * 1080.0)
    num = np.float64(0) if num < floor else num
    den = np.float64(0) if den < floor else den

    values = np.zeros(18, np.float64)
    unset = np.zeros(18, np.bool_)
    values[[ADM2, AIM]] = num / den, aim / den
    if den == 0 and vmafx and num == 0 and aim == 0:
        values[[ADM2, AIM]] = 1
    elif den == 0 and not vmafx:
        values[[ADM2, AIM]] = 1, 0
        unset[[AIM, ADM3]] = True  # libvmaf has no value for the one, which the other needs
    values[ADM3] = _adm3(values[ADM2], values[AIM], options)
    values[[ADM, NUM, DEN]] = values[ADM2], num, den
    ratios = wide[:, 1] / wide[:, 0]
    if vmafx:
        ratios[(wide[:, 0] == 0) & (wide[:, 1] == 0)] = 1
    values[SCALE0 : SCALE0 + SCALES] = ratios
    values[NUM_SCALE0 : NUM_SCALE0 + 2 * SCALES : 2] = wide[:, 1]
    values[NUM_SCALE0 + 1 : NUM_SCALE0 + 2 * SCALES : 2] = wide[:, 0]
    return np.where(unset, 0, values), unset


def _adm3(adm2: np.float64, aim: np.float64, options: IntegerAdmOptions) -> np.float64:
    """Mix adm2 and aim; a NaN becomes the lower clip."""
    weight = options.adm_dlm_weight
    mixed = adm2 * weight + (1.0 - aim) * (1.0 - weight)
    return mixed if mixed > options.adm_min_val else np.float64(options.adm_min_val)
