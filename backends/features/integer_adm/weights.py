"""CSF weights for the twin, apart from the reference's. Source: integer_adm.md, sections 6 and 13.

All logarithms and powers are the C library's doubles, which Python's math module calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from backends.features.integer_adm.spec import (
    BARTEN,
    NEAREST,
    TABLES,
    TABULATED,
    WATSON,
    repaired,
)

if TYPE_CHECKING:
    from backends.base import Arithmetic
    from backends.features.integer_adm.spec import IntegerAdmOptions

f32 = np.float32
Pair: TypeAlias = tuple[np.float32, np.float32]
"""What bands h and v share, and what band d has."""

UNTABULATED = f32(-22)  # libvmaf takes its error code for a weight


@dataclass(frozen=True)
class Weights:
    """The weights of one scale.

    Attributes:
        exact: for the denominators.
        whole: for everything else, as integers: bands h and v, band d.
        halvings: how often `whole` was halved to stay in its range.
    """

    exact: Pair
    whole: tuple[np.uint32, np.uint32]
    halvings: int


def csf_weights(scale: int, arithmetic: Arithmetic, options: IntegerAdmOptions) -> Weights:
    """Return the weights of a scale.

    Args:
        scale: 0..3.
        arithmetic: its dialect decides about weights beyond the integers' range.
        options: viewing condition and csf mode.
    """
    exact = _exact(scale, options)
    hv, d = _fixed_point(scale, options, exact)
    halvings = 0
    if repaired(arithmetic):
        limits = _LIMITS[scale]
        while hv >= limits[0] or d >= limits[1]:
            hv, d, halvings = hv / 2, d / 2, halvings + 1
    kept = 0xFFFF if scale == 0 else 0xFFFFFFFF  # bits: what does not fit loses the others
    return Weights(exact, (np.uint32(int(hv) & kept), np.uint32(int(d) & kept)), halvings)


# h and v, d: below them no integer of the kernels overflows (section 13.4).
_LIMITS = (
    (43900.0, 65536.0),
    (279958309.0, 279958309.0),
    (539893111.0, 539893111.0),
    (546406567.0, 546406567.0),
)


def _fixed_point(scale: int, options: IntegerAdmOptions, exact: Pair) -> tuple[float, float]:
    """Return the weights in units of the integers, before they are cut."""
    distance = options.adm_norm_view_dist * options.adm_ref_display_height
    if scale == 0 and options.adm_csf_mode == WATSON and abs(distance - NEAREST) < 1e-8:  # noqa: PLR2004 - libvmaf's width of "equal"
        return 36453.0, 49417.0  # by the specification, not by the formula
    places = (21, 23) if scale == 0 else (32, 32)
    hv, d = (float(weight) * 2.0**n for weight, n in zip(exact, places, strict=True))
    return hv, d


def _exact(scale: int, options: IntegerAdmOptions) -> Pair:
    if options.adm_csf_mode in TABLES:
        condition = options.adm_ref_display_height, options.adm_norm_view_dist
        row = _TABLES[TABLES.index(options.adm_csf_mode)].get(condition)
        return (f32(row.hv[scale]), f32(row.d[scale])) if row else (UNTABULATED, UNTABULATED)
    resolution = f32(options.adm_norm_view_dist * options.adm_ref_display_height * math.pi / 180.0)
    if options.adm_csf_mode == BARTEN:
        frequency = f32(float(resolution) / (2 << scale))
        sensitivity = float(_barten(frequency))
        factors = options.adm_csf_scale, options.adm_csf_diag_scale
        return f32(sensitivity * factors[0]), f32(sensitivity * factors[1])
    hv, d = (_watson(scale, resolution, each) for each in _ORIENTATIONS)
    return hv, d


class _Orientation(NamedTuple):
    """Watson97's frequency shift, and its basis amplitudes of the four scales."""

    shift: float
    amplitudes: tuple[float, ...]


_ORIENTATIONS = (
    _Orientation(1.0, (0.67234, 0.41317, 0.22727, 0.11792)),
    _Orientation(0.534, (0.72709, 0.49428, 0.28688, 0.15214)),
)
# Threshold factor, curvature, peak frequency.
_A, _K, _F0 = f32(0.495), f32(0.466), f32(0.401)


def _watson(scale: int, resolution: np.float32, orientation: _Orientation) -> np.float32:
    peak = float(2 << scale) * float(_F0) * float(f32(orientation.shift))
    log = f32(math.log10(peak / float(resolution)))
    power = math.pow(10.0, float(_K * log * log))
    return f32(1) / f32(2.0 * float(_A) * power / float(f32(orientation.amplitudes[scale])))


# Barten: anchors at luminance 20 and 150 for the fixed luminance 100, the optical transfer's
# amounts and decays, and the rod vision constants.
_ANCHORS = (
    (0.334278, 0.394533),
    (3.79542, 2.7755),
    (1.07327, 1.16577),
    (6.4635, 7.45665),
)
_TRANSFER = (
    (0.424838596301290, 0.028),
    (0.572435103936480, 0.37),
    (0.000167576239164937, 37.0),
    (0.00255872352306433, 360.0),
)
_ROD = tuple(map(f32, (30.162, 4.0627, 1.6596, 0.2712)))


def _anchored(low: float, high: float) -> np.float32:
    """Read a parameter at luminance 100, on a logarithmic axis."""
    first, last, here = (f32(math.log10(luminance)) for luminance in (20.0, 150.0, 100.0))
    return f32(low) + (f32(high) - f32(low)) / (last - first) * (here - first)


def _barten(frequency: np.float32) -> np.float32:
    reach, slope, depth, height = (_anchored(*anchors) for anchors in _ANCHORS)
    alpha = f32(1.0 + math.pow(float(reach * frequency), float(slope)))
    u = math.pow(float(frequency / f32(7)), 2.0)
    beta = f32(1.0 / math.pow(1.0 - math.exp(-u), float(depth)))
    contrast = f32(float(height) / math.pow(float(alpha * beta), 0.5))
    transfer = f32(0)
    for amount, decay in _TRANSFER:
        decayed = math.exp(float(-f32(decay) * frequency))
        transfer = f32(float(transfer) + float(f32(amount)) * decayed)
    ratio = math.pow(float(_ROD[1] / f32(100)), float(_ROD[2])) + 1.0
    rod = f32(float(_ROD[0]) * math.pow(ratio, -float(_ROD[3])))
    return contrast * transfer * rod


class _Row(NamedTuple):
    """Tabulated weights of the four scales."""

    hv: tuple[float, ...]
    d: tuple[float, ...]


_NATIVE = _Row((0.01183, 0.025026, 0.04295, 0.058621), (0.004302, 0.011778, 0.023918, 0.035901))
_NATIVE_MAE = _Row((0.011249, 0.022606, 0.03593, 0.045673), (0.004097, 0.010921, 0.02143, 0.031313))
# Of csf modes 2 and 3, in the order of TABULATED.
_ROWS = (
    (
        _NATIVE,
        _NATIVE,
        _Row((0.004212, 0.014809, 0.029642, 0.047464), (0.000984, 0.005852, 0.0146, 0.027574)),
        _Row((0.00226, 0.01183, 0.025026, 0.04295), (0.000479, 0.004302, 0.011778, 0.023918)),
        _Row((0.000092, 0.004212, 0.014809, 0.029642), (0.000050, 0.000984, 0.005852, 0.0146)),
        _Row((0.010144, 0.022561, 0.040309, 0.05672), (0.003463, 0.010282, 0.021839, 0.034641)),
    ),
    (
        _NATIVE_MAE,
        _NATIVE_MAE,
        _Row((0.004052, 0.013939, 0.026298, 0.038833), (0.000927, 0.005544, 0.013415, 0.024515)),
        _Row((0.002166, 0.011249, 0.022606, 0.03593), (0.000447, 0.004097, 0.010921, 0.02143)),
        _Row((0.000077, 0.004052, 0.013939, 0.026298), (0.000045, 0.000927, 0.005544, 0.013415)),
        _Row((0.009689, 0.020577, 0.034162, 0.044523), (0.003302, 0.009579, 0.019661, 0.030318)),
    ),
)
_TABLES = tuple(dict(zip(TABULATED, rows, strict=True)) for rows in _ROWS)
