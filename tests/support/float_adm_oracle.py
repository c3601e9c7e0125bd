"""A second float ADM in plain numpy: slow, written from float_adm.md alone, shared with nothing.

A dialect is (division, weights): division "rcp" (estimate + one Newton step) or "ieee"; weights
"single" or "double" (precision of the CSF weights' intermediates). The estimate is read from a
table of 4096 float bits; the processor's own is checked elsewhere to be exactly that. The table
QUOTIENT stands for none: the estimate is the IEEE quotient.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Table = NDArray[np.uint32]

F = np.float32
D = np.float64


def bits(pattern: int) -> np.float32:
    return F(np.array([pattern], np.uint32).view(np.float32)[0])


LOW = [bits(0x3EF746EA), bits(0x3F5625EF), bits(0x3E6585F8), bits(0xBE0483EE)]
HIGH = [LOW[3], -LOW[2], LOW[1], -LOW[0]]
COS2 = bits(0x3F7FEC0A)
EPS = bits(0x0DA24260)
ONE30 = 0.0333333351
ONE15 = 0.0666666701


@functools.cache
def _libm_powf() -> Callable[..., Floats]:
    powf = ctypes.CDLL(ctypes.util.find_library("m")).powf
    powf.argtypes = [ctypes.c_float, ctypes.c_float]
    powf.restype = ctypes.c_float
    return np.vectorize(powf, otypes=[np.float32])


def powf(x: np.float32, p: float) -> np.float32:
    return F(_libm_powf()(x, F(p)))


# ---------------------------------------------------------------- division
QUOTIENT = np.zeros(0, np.uint32)


def estimate(table: Table, x: Floats) -> Floats:
    b = np.ascontiguousarray(x, np.float32).view(np.uint32)
    sign = b & np.uint32(0x80000000)
    ex = ((b >> np.uint32(23)) & np.uint32(255)).astype(np.int64)
    ma = b & np.uint32(0x7FFFFF)
    t = table[ma >> np.uint32(11)]
    se = (t >> np.uint32(23)).astype(np.int64) + 127 - ex
    r = sign | (np.maximum(se, 0).astype(np.uint32) << np.uint32(23)) | (t & np.uint32(0x7FFFFF))
    r = np.where(se < 1, sign, r)
    r = np.where(ex == 0, sign | np.uint32(0x7F800000), r)
    r = np.where(ex == 255, np.where(ma != 0, b | np.uint32(0x400000), sign), r)
    return r.astype(np.uint32).view(np.float32)


def divide(n: Floats, d: Floats, table: Table | None) -> Floats:
    if table is None:
        return n / d
    xi = estimate(table, d) if table.size else F(1) / d
    return n * (xi + xi * (F(1) - d * xi))


# ---------------------------------------------------------------- weights
W_A, W_K, W_F0 = F(0.495), F(0.466), F(0.401)
W_G = (F(1.0), F(0.534))
W_AMP = (
    [F(0.67234), F(0.41317), F(0.22727), F(0.11792)],
    [F(0.72709), F(0.49428), F(0.28688), F(0.15214)],
)


def watson(scale: int, theta: int, nvd: float, rdh: int, weights: str) -> np.float32:
    r = nvd * rdh * math.pi / 180.0
    p = 2.0 ** (scale + 1) * float(W_F0) * float(W_G[theta])
    if weights == "single":
        t = F(math.log10(p / float(F(r))))
        e = float(W_K * t * t)
    else:
        wide = math.log10(p / r)
        e = float(W_K) * wide * wide
    return F(1) / F(2.0 * float(W_A) * math.pow(10.0, e) / float(W_AMP[theta][scale]))


B_20 = [F(v) for v in (0.334278, 3.79542, 1.07327, 6.4635)]
B_150 = [F(v) for v in (0.394533, 2.7755, 1.16577, 7.45665)]
B_S = [F(v) for v in (30.162, 4.0627, 1.6596, 0.2712)]
B_U = [
    F(v) for v in (0.424838596301290, 0.572435103936480, 0.000167576239164937, 0.00255872352306433)
]
B_V = [F(v) for v in (0.028, 0.37, 37, 360)]


def barten_positions(*, wide: bool) -> list[np.float32]:
    lp, rp, sp = F(math.log10(20.0)), F(math.log10(150.0)), F(math.log10(100.0))
    if wide:
        return [
            F(float(lv) + float(rv - lv) / float(rp - lp) * float(sp - lp))
            for lv, rv in zip(B_20, B_150, strict=True)
        ]
    return [lv + ((rv - lv) / (rp - lp)) * (sp - lp) for lv, rv in zip(B_20, B_150, strict=True)]


def barten(scale: int, nvd: float, rdh: int, mult: float, weights: str) -> np.float32:
    wide = weights == "double"
    f = F(float(F(nvd * rdh * math.pi / 180.0)) / 2.0 ** (scale + 1))
    p = barten_positions(wide=wide)
    reach = float(p[0]) * float(f) if wide else float(p[0] * f)
    a = F(1.0 + math.pow(reach, float(p[1])))
    u = float(f) / 7.0 if wide else float(f / F(7))
    b = F(1.0 / math.pow(1.0 - math.exp(-(u * u)), float(p[2])))
    c = F(float(p[3]) / math.pow(float(a) * float(b) if wide else float(a * b), 0.5))
    m = F(0)
    for ui, vi in zip(B_U, B_V, strict=True):
        m = F(float(m) + float(ui) * math.exp(-float(vi) * float(f) if wide else float(-vi * f)))
    ratio = math.pow(float(B_S[1] / F(100.0)), float(B_S[2])) + 1.0
    rod = F(float(B_S[0]) * math.pow(ratio, -float(B_S[3])))
    if wide:
        return F(float(c) * float(m) * float(rod) * mult)
    return F(float(c * m * rod) * mult)


def native(scale: int, theta: int, nvd: float, rdh: int) -> np.float32:
    f = F(float(F(nvd * rdh * math.pi / 180.0)) / 2.0 ** (scale + 1))
    if theta == 1:
        f = F(float(f) / 0.7)
    return F((0.31 + 0.69 * float(f)) * math.exp(-0.29 * float(f)))


def band_weights(scale: int, o: Mapping[str, Any], weights: str) -> list[np.float32]:
    nvd, rdh, mode = o["adm_norm_view_dist"], o["adm_ref_display_height"], o["adm_csf_mode"]
    factors = (o["adm_csf_scale"], o["adm_csf_diag_scale"])
    found = []
    for theta in (0, 1):
        override = o[f"adm_f{theta + 1}s{scale}"]
        if override >= 0:
            found.append(F(override))
        elif mode == 1:
            found.append(barten(scale, nvd, rdh, factors[theta], weights))
        elif mode == 2:
            found.append(native(scale, theta, nvd, rdh))
        else:
            found.append(watson(scale, theta, nvd, rdh, weights))
    return [found[0], found[0], found[1]]


# ---------------------------------------------------------------- stages
def to_float(pixels: NDArray[Any], bit_depth: int) -> Floats:
    return pixels.astype(np.float32) / F(1 << (bit_depth - 8)) + F(-128)


def tap_index(n: int) -> list[NDArray[np.int64]]:
    i = np.arange((n + 1) // 2)
    out = []
    for k in range(4):
        s = 2 * i - 1 + k
        s = np.where(s < 0, -s, s)
        out.append(np.where(s >= n, 2 * n - 1 - s, s))
    return out


def fir(c: Sequence[np.float32], s: Sequence[Floats]) -> Floats:
    acc = c[0] * s[0]
    acc = acc + c[1] * s[1]
    acc = acc + c[2] * s[2]
    return acc + c[3] * s[3]


def dwt(x: Floats) -> tuple[Floats, list[Floats]]:
    h, w = x.shape
    rows = [x[i] for i in tap_index(h)]
    vl, vh = fir(LOW, rows), fir(HIGH, rows)
    cl = [vl[:, i] for i in tap_index(w)]
    ch = [vh[:, i] for i in tap_index(w)]
    return fir(LOW, cl), [fir(LOW, ch), fir(HIGH, cl), fir(HIGH, ch)]


def decouple(
    ref: Sequence[Floats], dist: Sequence[Floats], gain: float, table: Table | None
) -> tuple[list[Floats], list[Floats]]:
    oh, ov, _ = ref
    th, tv, _ = dist
    dp = oh * th + ov * tv
    om = oh * oh + ov * ov
    tm = th * th + tv * tv
    flag = (dp >= F(0)) & (dp * dp >= (COS2 * om) * tm)
    restored, additive = [], []
    for o, t in zip(ref, dist, strict=True):
        k = divide(t, o + EPS, table)
        k = np.where(k < F(0), F(0), np.where(k > F(1), F(1), k))
        r = k * o
        td = t.astype(D)
        g = r.astype(D) * D(gain)
        r = np.where(flag & (r > 0), np.where(g < td, g, td).astype(np.float32), r)
        g = r.astype(D) * D(gain)
        r = np.where(flag & (r < 0), np.where(g > td, g, td).astype(np.float32), r)
        restored.append(r)
        additive.append(t - r)
    return restored, additive


def threshold(csf: Sequence[Floats]) -> Floats:
    h, w = csf[0].shape
    iy, ix = np.arange(h), np.arange(w)
    ym, yp = np.where(iy == 0, 1, iy - 1), np.where(iy == h - 1, h - 1, iy + 1)
    xm, xp = np.where(ix == 0, 1, ix - 1), np.where(ix == w - 1, w - 1, ix + 1)
    total = np.zeros((h, w), np.float32)
    for c in csf:
        f = (D(ONE30) * np.abs(c).astype(D)).astype(np.float32)
        up, down = f[ym], f[yp]
        s = up[:, xm] + up
        s = s + up[:, xp]
        s = s + f[:, xm]
        s = (s.astype(D) + D(ONE15) * np.abs(c).astype(D)).astype(np.float32)
        s = s + f[:, xp]
        s = s + down[:, xm]
        s = s + down
        s = s + down[:, xp]
        total = total + s
    return total


def window(n: int) -> slice:
    margin = int(n * 0.1 - 0.5)
    return slice(margin, n - margin)


def energy(x: Floats, p: float) -> Floats:
    return (x * x) * x if p == 3.0 else _libm_powf()(x, F(p))


def pool(terms: Sequence[Floats], p: float, noise: float) -> np.float32:
    h, w = terms[0].shape
    n = powf(F(float(w * h) * noise), 1.0 / p)
    b = []
    for t in terms:
        rows = np.add.accumulate(t, axis=1, dtype=np.float32)[:, -1]
        b.append(powf(np.add.accumulate(rows, dtype=np.float32)[-1], 1.0 / p) + n)
    return F((b[0] + b[1]) + b[2])


def masked(source: Floats, limit: Floats) -> Floats:
    x = np.abs(source) - limit
    return np.where(x < F(0), F(0), x)


def scale_sums(
    ref: Sequence[Floats],
    dist: Sequence[Floats],
    weights: Sequence[np.float32],
    o: Mapping[str, Any],
    table: Table | None,
) -> tuple[np.float32, np.float32, np.float32]:
    h, w = ref[0].shape
    restored, additive = decouple(ref, dist, o["adm_enhn_gain_limit"], table)
    cr = [k * v for k, v in zip(weights, restored, strict=True)]
    ca = [k * v for k, v in zip(weights, additive, strict=True)]
    by_additive = by_restored = np.zeros((h, w), np.float32)
    if o["adm_bypass_cm"] == 0:
        by_additive, by_restored = threshold(ca), threshold(cr)
    inside = (window(h), window(w))
    p, noise = o["adm_p_norm"], o["adm_noise_weight"]
    den = [energy(np.abs(k * v)[inside], p) for k, v in zip(weights, ref, strict=True)]
    num = [energy(masked(c, by_additive)[inside], p) for c in cr]
    aim = [energy(masked(c, by_restored)[inside], p) for c in ca]
    return pool(num, p, noise), pool(den, p, noise), pool(aim, p, 0.0)


def hm(score: float, aim: float, *, vmafx: bool) -> float:
    if vmafx and score + aim == 0:
        return 0.0
    return float(D(2 * score * aim) / D(score + aim))


def ratio(num: np.float32, den: np.float32, *, vmafx: bool) -> float:
    if vmafx and float(num) == 0.0 and float(den) == 0.0:
        return 1.0
    return float(D(num) / D(den))


def conclude(
    sums: Sequence[tuple[np.float32, ...]],
    width: int,
    height: int,
    o: Mapping[str, Any],
    *,
    vmafx: bool,
) -> dict[str, float | None]:
    num = den = aim_num = aim_den = 0.0
    for scale, (n, d, a) in enumerate(sums):
        num, den = num + float(n), den + float(d)
        if o["adm_skip_aim_scale"] != scale:
            aim_num, aim_den = aim_num + float(a), aim_den + float(d)
    limit = 1e-10 * (width * height) / (1920.0 * 1080.0)
    num = 0.0 if num < limit else num
    den = 0.0 if den < limit else den
    score: float = 1.0
    aim: float | None = None
    adm3: float | None = None
    if den == 0.0 and vmafx:
        aim = 1.0
    elif den != 0.0:
        q = float(D(aim_num) / D(aim_den))
        aim = q if q < 1.0 else 1.0  # noqa: FURB136 - a NaN must become 1
        score = float(D(num) / D(den))
    if aim is not None:
        weight, least = o["adm_dlm_weight"], o["adm_min_val"]
        if o["adm_adm3_apply_hm"]:
            v = hm(score, aim, vmafx=vmafx)
        else:
            v = score * weight + (1 - aim) * (1 - weight)
        adm3 = v if v > least else least  # noqa: FURB136 - a NaN must become the least
    out: dict[str, float | None] = {"adm2": score, "aim": aim, "adm3": adm3}
    out.update({f"adm_scale{i}": ratio(n, d, vmafx=vmafx) for i, (n, d, _) in enumerate(sums)})
    if vmafx and o["adm_skip_scale0"]:
        out["adm_scale0"] = 0.0
    out.update({"adm": score, "adm_num": num, "adm_den": den})
    for i, (n, d, _) in enumerate(sums):
        out[f"adm_num_scale{i}"] = float(n)
        out[f"adm_den_scale{i}"] = float(d)
    return out


def frame(
    ref: NDArray[Any],
    dist: NDArray[Any],
    bit_depth: int,
    o: Mapping[str, Any],
    *,
    table: Table | None,
    weights: str,
    vmafx: bool = False,
) -> dict[str, float | None]:
    """Return the 18 scores of a frame in libvmaf's order; None is UNSET.

    `table` is the reciprocal estimate of the dialects rcpss-*, None means IEEE quotients; `vmafx`
    ends the frame by VMAFx's rules instead of Netflix's.
    """
    with np.errstate(all="ignore"):
        x, y = to_float(ref, bit_depth), to_float(dist, bit_depth)
        sums = []
        for scale in range(4):
            x, ref_bands = dwt(x)
            y, dist_bands = dwt(y)
            if scale == 0 and o["adm_skip_scale0"]:
                sums.append((F(0), F(1e-10), F(0)))
                continue
            sums.append(
                scale_sums(ref_bands, dist_bands, band_weights(scale, o, weights), o, table)
            )
        return conclude(sums, ref.shape[1], ref.shape[0], o, vmafx=vmafx)
