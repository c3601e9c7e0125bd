"""CSF weights for the twin, apart from the reference's. Source: float_adm.md, section 6.3.

All logarithms and powers are the C library's doubles, which Python's math module calls.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.features.float_adm.spec import FloatAdmOptions

BARTEN, NATIVE_ADM = 1, 2  # adm_csf_mode; every other number means Watson97

f32 = np.float32
DIAGONAL = "d"


def band_weights(
    scale: int, options: FloatAdmOptions, *, double: bool
) -> tuple[np.float32, np.float32]:
    """Return the weights of a scale: bands h and v, band d.

    Args:
        scale: 0..3.
        options: viewing condition, csf mode and overrides.
        double: fp64 intermediates (the `-double` dialects) instead of fp32.
    """
    formula: Callable[[int, str, FloatAdmOptions, bool], np.float32] = {
        BARTEN: _barten,
        NATIVE_ADM: _native_adm,
    }.get(options.adm_csf_mode, _watson)
    weights = []
    for orientation, override in (("hv", f"adm_f1s{scale}"), (DIAGONAL, f"adm_f2s{scale}")):
        given: float = getattr(options, override)
        weights.append(f32(given) if given >= 0 else formula(scale, orientation, options, double))
    return weights[0], weights[1]


def _resolution(options: FloatAdmOptions) -> float:
    """Return pixels per degree in fp64."""
    return options.adm_norm_view_dist * options.adm_ref_display_height * math.pi / 180.0


def _frequency(scale: int, options: FloatAdmOptions) -> np.float32:
    """Return the scale's spatial frequency, rounded twice."""
    return f32(float(f32(_resolution(options))) / (2 << scale))


# Watson97: threshold factor, curvature, peak frequency, and per orientation the frequency
# shift and the basis amplitudes of the four scales.
_WATSON_A, _WATSON_K, _WATSON_F0 = f32(0.495), f32(0.466), f32(0.401)
_WATSON_SHIFT = {"hv": f32(1.0), DIAGONAL: f32(0.534)}
_WATSON_AMPLITUDE = {
    "hv": [f32(v) for v in (0.67234, 0.41317, 0.22727, 0.11792)],
    DIAGONAL: [f32(v) for v in (0.72709, 0.49428, 0.28688, 0.15214)],
}


def _watson(scale: int, orientation: str, options: FloatAdmOptions, double: bool) -> np.float32:  # noqa: FBT001 - one signature for three formulas
    resolution = _resolution(options)
    peak = float(2 << scale) * float(_WATSON_F0) * float(_WATSON_SHIFT[orientation])
    if double:
        log = math.log10(peak / resolution)
        exponent = float(_WATSON_K) * log * log
    else:
        short = f32(math.log10(peak / float(f32(resolution))))
        exponent = float(_WATSON_K * short * short)
    amplitude = float(_WATSON_AMPLITUDE[orientation][scale])
    step = f32(2.0 * float(_WATSON_A) * math.pow(10.0, exponent) / amplitude)
    return f32(1) / step


def _native_adm(scale: int, orientation: str, options: FloatAdmOptions, double: bool) -> np.float32:  # noqa: ARG001, FBT001 - one signature for three formulas
    frequency = float(_frequency(scale, options))
    if orientation == DIAGONAL:
        frequency = float(f32(frequency / 0.7))
    return f32((0.31 + 0.69 * frequency) * math.exp(-0.29 * frequency))


# Barten: anchors at luminance 20 and 150 for the fixed luminance 100, the optical transfer's
# amounts and decays, and the rod vision constants.
_ANCHORS = [
    (f32(low), f32(high))
    for low, high in (
        (0.334278, 0.394533),
        (3.79542, 2.7755),
        (1.07327, 1.16577),
        (6.4635, 7.45665),
    )
]
_TRANSFER = [
    (f32(amount), f32(decay))
    for amount, decay in (
        (0.424838596301290, 0.028),
        (0.572435103936480, 0.37),
        (0.000167576239164937, 37.0),
        (0.00255872352306433, 360.0),
    )
]
_ROD = [f32(v) for v in (30.162, 4.0627, 1.6596, 0.2712)]


def _interpolate(low: np.float32, high: np.float32, double: bool) -> np.float32:  # noqa: FBT001 - private
    """Read a parameter at luminance 100, on a logarithmic axis."""
    first, last, here = (f32(math.log10(luminance)) for luminance in (20.0, 150.0, 100.0))
    rise, run, offset = high - low, last - first, here - first
    if double:
        return f32(float(low) + float(rise) / float(run) * float(offset))
    return low + rise / run * offset


def _optical_transfer(frequency: np.float32, double: bool) -> np.float32:  # noqa: FBT001 - private
    total = f32(0)
    for amount, decay in _TRANSFER:
        decayed = -float(decay) * float(frequency) if double else float(-decay * frequency)
        total = f32(float(total) + float(amount) * math.exp(decayed))
    return total


def _barten(scale: int, orientation: str, options: FloatAdmOptions, double: bool) -> np.float32:  # noqa: FBT001 - one signature for three formulas
    factor = options.adm_csf_diag_scale if orientation == DIAGONAL else options.adm_csf_scale
    f = _frequency(scale, options)
    p = [_interpolate(low, high, double) for low, high in _ANCHORS]
    reach = float(p[0]) * float(f) if double else float(p[0] * f)
    alpha = f32(1.0 + math.pow(reach, float(p[1])))
    u = float(f) / 7.0 if double else float(f / f32(7))
    beta = f32(1.0 / math.pow(1.0 - math.exp(-(u * u)), float(p[2])))
    product = float(alpha) * float(beta) if double else float(alpha * beta)
    contrast = f32(float(p[3]) / math.pow(product, 0.5))
    transfer = _optical_transfer(f, double)
    ratio = math.pow(float(_ROD[1] / f32(100)), float(_ROD[2])) + 1.0
    rod = f32(float(_ROD[0]) * math.pow(ratio, -float(_ROD[3])))
    if double:
        return f32(float(contrast) * float(transfer) * float(rod) * factor)
    return f32(float(contrast * transfer * rod) * factor)
