"""The CSF weights of the oracle integer_adm_oracle.py: section 6 of integer_adm.md, and 13.4."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

F = np.float32


class NoFrame(Exception):  # noqa: N818 - reads as what happened
    """The dialect or the conclusion vmafx has no result for a frame."""


AMPLITUDE = {
    "h": (0.67234, 0.41317, 0.22727, 0.11792),
    "d": (0.72709, 0.49428, 0.28688, 0.15214),
}


def watson(scale: int, band: str, degree: np.float32) -> np.float32:
    a, k, f0, g = F(0.495), F(0.466), F(0.401), F(1.0 if band == "h" else 0.534)
    t = F(math.log10(2.0 ** (scale + 1) * float(f0) * float(g) / float(degree)))
    power = math.pow(10.0, float(F(k * t) * t))
    return F(1) / F(2.0 * float(a) * power / float(F(AMPLITUDE[band][scale])))


B_20 = [F(v) for v in (0.334278, 3.79542, 1.07327, 6.4635)]
B_150 = [F(v) for v in (0.394533, 2.7755, 1.16577, 7.45665)]
B_A = [
    F(v) for v in (0.424838596301290, 0.572435103936480, 0.000167576239164937, 0.00255872352306433)
]
B_B = [F(v) for v in (0.028, 0.37, 37, 360)]
B_ROD = [F(v) for v in (30.162, 4.0627, 1.6596, 0.2712)]


def barten(scale: int, degree: np.float32, factor: float) -> np.float32:
    sf = F(float(degree) / 2.0 ** (scale + 1))
    low, high, here = F(math.log10(20.0)), F(math.log10(150.0)), F(math.log10(100.0))
    p = [
        first + ((last - first) / (high - low)) * (here - low)  # each operation in binary32
        for first, last in zip(B_20, B_150, strict=True)
    ]
    a = F(1 + math.pow(float(p[0] * sf), float(p[1])))
    reach = math.pow(float(sf / F(7)), 2)
    b = F(1 / math.pow(1 - math.exp(-reach), float(p[2])))
    n = F(float(p[3]) / math.pow(float(a * b), 0.5))
    mtf = F(0)
    for amount, decay in zip(B_A, B_B, strict=True):
        mtf = F(float(mtf) + float(amount) * math.exp(float(-decay * sf)))
    dark = math.pow(float(B_ROD[1] / F(100)), float(B_ROD[2])) + 1
    rod = F(float(B_ROD[0]) * math.pow(dark, -float(B_ROD[3])))
    return F(float(n * mtf * rod) * factor)


Row = tuple[tuple[float, ...], tuple[float, ...]]
TABLES: dict[int, dict[tuple[int, float], Row]] = {
    2: {
        (1080, 3.0): (
            (0.01183, 0.025026, 0.04295, 0.058621),
            (0.004302, 0.011778, 0.023918, 0.035901),
        ),
        (1080, 5.0): (
            (0.004212, 0.014809, 0.029642, 0.047464),
            (0.000984, 0.005852, 0.0146, 0.027574),
        ),
        (2160, 3.0): (
            (0.00226, 0.01183, 0.025026, 0.04295),
            (0.000479, 0.004302, 0.011778, 0.023918),
        ),
        (2160, 5.0): (
            (0.000092, 0.004212, 0.014809, 0.029642),
            (0.000050, 0.000984, 0.005852, 0.0146),
        ),
        (720, 5.0): (
            (0.010144, 0.022561, 0.040309, 0.05672),
            (0.003463, 0.010282, 0.021839, 0.034641),
        ),
    },
    3: {
        (1080, 3.0): (
            (0.011249, 0.022606, 0.035930, 0.045673),
            (0.004097, 0.010921, 0.021430, 0.031313),
        ),
        (1080, 5.0): (
            (0.004052, 0.013939, 0.026298, 0.038833),
            (0.000927, 0.005544, 0.013415, 0.024515),
        ),
        (2160, 3.0): (
            (0.002166, 0.011249, 0.022606, 0.035930),
            (0.000447, 0.004097, 0.010921, 0.021430),
        ),
        (2160, 5.0): (
            (0.000077, 0.004052, 0.013939, 0.026298),
            (0.000045, 0.000927, 0.005544, 0.013415),
        ),
        (720, 5.0): (
            (0.009689, 0.020577, 0.034162, 0.044523),
            (0.003302, 0.009579, 0.019661, 0.030318),
        ),
    },
}
for _table in TABLES.values():
    _table[2160, 1.5] = _table[1080, 3.0]


def float_weights(scale: int, o: Mapping[str, Any]) -> tuple[np.float32, np.float32]:
    """Return the weight of h and v, and that of d."""
    nvd, rdh, mode = o["adm_norm_view_dist"], o["adm_ref_display_height"], o["adm_csf_mode"]
    degree = F(nvd * rdh * math.pi / 180.0)
    if mode == 0:
        return watson(scale, "h", degree), watson(scale, "d", degree)
    if mode == 1:
        factors = o["adm_csf_scale"], o["adm_csf_diag_scale"]
        return barten(scale, degree, factors[0]), barten(scale, degree, factors[1])
    row = TABLES[mode].get((rdh, nvd))
    return (F(row[0][scale]), F(row[1][scale])) if row else (F(-22), F(-22))


LIMITS = (
    (43900.0, 43900.0, 65536.0),
    (279958309.0,) * 3,
    (539893111.0,) * 3,
    (546406567.0,) * 3,
)


def integer_weights(
    scale: int, f: Sequence[np.float32], o: Mapping[str, Any], *, vmafx: bool
) -> tuple[list[int], int]:
    """Return the weights of h, v, d, and how often they were halved."""
    distance = o["adm_norm_view_dist"] * o["adm_ref_display_height"]
    if scale == 0 and o["adm_csf_mode"] == 0 and abs(distance - 3240.0) < 1e-8:
        return [36453, 36453, 49417], 0
    units = (2.0**21, 2.0**21, 2.0**23) if scale == 0 else (2.0**32,) * 3
    x = [float(weight) * unit for weight, unit in zip((f[0], f[0], f[1]), units, strict=True)]
    halvings = 0
    if vmafx:
        if not all(math.isfinite(v) and v >= 0 for v in x):
            raise NoFrame
        while any(v >= limit for v, limit in zip(x, LIMITS[scale], strict=True)):
            x, halvings = [v * 0.5 for v in x], halvings + 1
    low_bits = 0xFFFF if scale == 0 else 0xFFFFFFFF
    return [int(v) & low_bits for v in x], halvings
