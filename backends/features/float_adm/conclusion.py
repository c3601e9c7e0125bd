"""The twin's end of a frame on the host: roots, pooling and the scores, apart from the reference.

Source: float_adm.md, sections 6.7 and 7 (Netflix's rules, and VMAFx's).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from backends import c_library

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.features.float_adm.spec import FloatAdmOptions

f32 = np.float32
SCALES = 4
FLOOR = 1e-10  # of the frame's sums, at 1920x1080
# The column of each score in SCORES + DEBUG_SCORES.
ADM2, AIM, ADM3, SCALE0, ADM, NUM, DEN, NUM_SCALE0 = 0, 1, 2, 3, 7, 8, 9, 10


def margin(n: int) -> int:
    """Return the samples that the reduction window leaves out on each side of n."""
    return 0 if n < 5 else (n - 5) // 10  # noqa: PLR2004 - integer form of trunc(0.1 n - 0.5)


def pool(totals: NDArray[np.float32], area: int, p_norm: float, noise_weight: float) -> np.float32:
    """Pool one quantity of one scale.

    Args:
        totals: float32 (3,), the folded sums of bands h, v, d.
        area: samples inside the reduction window.
        p_norm: exponent whose root is taken.
        noise_weight: noise floor per sample.
    """
    values = np.append(totals, f32(area * noise_weight))
    *bands, noise = c_library.powf(values, np.full(4, f32(1.0 / p_norm)))
    h, v, d = (band + noise for band in bands)
    return f32(h + v + d)


def frame_scores(
    sums: NDArray[np.float32], width: int, height: int, options: FloatAdmOptions, *, vmafx: bool
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Conclude one frame.

    Args:
        sums: float32 (4, 3): den, num and aim of each scale.
        width: luma samples of a row of the frame.
        height: rows of the frame.
        options: decide about adm3, its clip and the scale left out of aim.
        vmafx: VMAFx's rules for denominators 0 instead of Netflix's.

    Returns:
        float64 (18,) in the order of SCORES + DEBUG_SCORES, and bool (18,): left unset.
    """
    wide = sums.astype(np.float64)
    den, num, aim_den, aim_num = np.zeros(4, np.float64)
    for scale in range(SCALES):
        den, num = den + wide[scale, 0], num + wide[scale, 1]
        if scale != options.adm_skip_aim_scale:
            aim_den, aim_num = aim_den + wide[scale, 0], aim_num + wide[scale, 2]
    floor = FLOOR * (width * height) / (1920.0 * 1080.0)
    num = np.float64(0) if num < floor else num
    den = np.float64(0) if den < floor else den

    values = np.zeros(18, np.float64)
    unset = np.zeros(18, np.bool_)
    if den == 0 and vmafx:
        values[[ADM2, AIM]] = 1
        values[ADM3] = _adm3(values[ADM2], values[AIM], options)
    elif den == 0:
        values[ADM2] = 1
        unset[[AIM, ADM3]] = True  # libvmaf never writes them
    else:
        ratio = aim_num / aim_den
        values[ADM2] = num / den
        values[AIM] = ratio if ratio < 1 else 1  # noqa: FURB136 - a NaN must become 1
        values[ADM3] = _adm3(values[ADM2], values[AIM], options)
    values[[ADM, NUM, DEN]] = values[ADM2], num, den
    ratios = wide[:, 1] / wide[:, 0]
    if vmafx:
        ratios[(wide[:, 0] == 0) & (wide[:, 1] == 0)] = 1
        if options.adm_skip_scale0:
            ratios[0] = 0
    values[SCALE0 : SCALE0 + SCALES] = ratios
    values[NUM_SCALE0 : NUM_SCALE0 + 2 * SCALES : 2] = wide[:, 1]
    values[NUM_SCALE0 + 1 : NUM_SCALE0 + 2 * SCALES : 2] = wide[:, 0]
    return values, unset


def _adm3(adm2: np.float64, aim: np.float64, options: FloatAdmOptions) -> np.float64:
    """Mix adm2 and aim; a NaN becomes the lower clip."""
    if options.adm_adm3_apply_hm:
        # VMAFx takes 0 for the 0/0 of adm2 = aim = 0: a NaN, which the clip below turns into the
        # same, for adm_min_val is never negative.
        mixed = 2.0 * adm2 * aim / (adm2 + aim)
    else:
        weight = options.adm_dlm_weight
        mixed = adm2 * weight + (1.0 - aim) * (1.0 - weight)
    return mixed if mixed > options.adm_min_val else np.float64(options.adm_min_val)
