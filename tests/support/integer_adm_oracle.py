"""A second integer ADM in plain numpy: slow, written from integer_adm.md alone.

It shares nothing with the reference or the twins. Integers are int64, cut by `w16` and `w32` where
the text says so. `vmafx` is the dialect: VMAFx's repairs (section 13) instead of what Netflix does.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from integer_adm_oracle_weights import NoFrame, float_weights, integer_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bands = Mapping[str, Ints]  # a, h, v, d or only the last three

F = np.float32
BANDS = "hvd"
THIRD = F(1) / F(3)


@functools.cache
def _libm_powf() -> Callable[[float, float], float]:
    powf = ctypes.CDLL(ctypes.util.find_library("m")).powf
    powf.argtypes = [ctypes.c_float, ctypes.c_float]
    powf.restype = ctypes.c_float
    return powf


def powf(x: np.float32, p: np.float32) -> np.float32:
    return F(_libm_powf()(float(x), float(p)))


def w16(x: Ints) -> Ints:
    return ((x + 2**15) & 0xFFFF) - 2**15


def w32(x: Ints) -> Ints:
    return ((x + 2**31) & 0xFFFFFFFF) - 2**31


def clog2(n: int) -> int:
    return (n - 1).bit_length()


def half(s: int) -> int:
    return 1 << (s - 1) if s >= 1 else 0


# ---------------------------------------------------------------- 2: geometry
def crop(n: int) -> int:
    return (n - 5) // 10 if n >= 5 else 0


def wide(n: int) -> slice:
    """Return the samples of an axis that libvmaf computes at all in sections 5 and 7."""
    first = (n - 15) // 10 if n >= 15 else 0
    return slice(first, min(n, n - first + 2))


def region(band: Ints) -> tuple[slice, slice]:
    """Return rows and columns that enter the sums."""
    rows, columns = (slice(crop(n), n - crop(n)) for n in band.shape)
    return rows, columns


def area(band: Ints) -> int:
    return int(band[region(band)].size)


def tap_index(n: int) -> list[Ints]:
    first = 2 * np.arange((n + 1) // 2) - 1
    taps = [np.where(first + k < 0, 1, first + k) for k in range(4)]
    return [np.where(i >= n, 2 * n - 1 - i, i) for i in taps]


# ---------------------------------------------------------------- 3, 4: wavelet
LOW = (15826, 27411, 7345, -4240)
HIGH = (-4240, -7345, 27411, -15826)
VERTICAL = ((0, 0), (32768, 16), (32768, 16))
HORIZONTAL = ((16384, 15), (32768, 16), (16384, 15))


def fir(taps: Sequence[int], s: Sequence[Ints]) -> Ints:
    return taps[0] * s[0] + taps[1] * s[1] + taps[2] * s[2] + taps[3] * s[3]


def across(lo: Ints, hi: Ints, finish: Callable[[Ints], Ints]) -> dict[str, Ints]:
    index = tap_index(lo.shape[1])
    low, high = [lo[:, i] for i in index], [hi[:, i] for i in index]
    return {
        "a": finish(fir(LOW, low)),
        "h": finish(fir(LOW, high)),
        "v": finish(fir(HIGH, low)),
        "d": finish(fir(HIGH, high)),
    }


def dwt0(samples: NDArray[Any], depth: int) -> dict[str, Ints]:
    p = samples.astype(np.int64)
    rows, r = [p[i] for i in tap_index(p.shape[0])], 1 << (depth - 1)
    lo = w16((fir(LOW, rows) - 46342 * r + r) >> depth)
    hi = w16((fir(HIGH, rows) + r) >> depth)
    return across(lo, hi, lambda x: w16((x + 32768) >> 16))


def dwt(p: Ints, scale: int) -> dict[str, Ints]:
    rows = [p[i] for i in tap_index(p.shape[0])]
    (down, vs), (over, hs) = VERTICAL[scale - 1], HORIZONTAL[scale - 1]
    lo, hi = (w32((fir(taps, rows) + down) >> vs) for taps in (LOW, HIGH))
    return across(lo, hi, lambda x: w32((x + over) >> hs))


# ---------------------------------------------------------------- 5: decouple
_N = np.arange(1, 32769)
RECIPROCAL = np.concatenate([-(2**30 // _N[::-1]), [0], 2**30 // _N])  # of -32768 .. 32768
COS2 = 16772106 / 16777216


def angle(ref: Bands, dist: Bands) -> NDArray[np.bool_]:
    (oh, ov), (th, tv) = ((side["h"], side["v"]) for side in (ref, dist))
    operands = (oh * th + ov * tv, oh * oh + ov * ov, th * th + tv * tv)
    p, o, t = (x.astype(np.float32).astype(np.float64) / 4096 for x in operands)
    return np.asarray((p >= 0) & (p * p >= (COS2 * o) * t))


def ratio(o: Ints, t: Ints, scale: int) -> Ints:
    magnitude = np.abs(o)
    if scale == 0:
        k = (RECIPROCAL[o + 32768] * t + 16384) >> 15
    else:
        bits = np.array([int(m).bit_length() for m in magnitude.flat]).reshape(o.shape)
        s = np.where(magnitude < 32768, 0, bits - 15)
        kept = np.where(s > 0, (magnitude + (1 << np.maximum(s - 1, 0))) >> s, magnitude)
        signed = RECIPROCAL[kept + 32768] * t * np.where(o < 0, -1, 1)
        k = (signed + (1 << (14 + s))) >> (15 + s)
    return np.clip(np.where(o == 0, 32768, k), 0, 32768)


def decouple(
    ref: Bands, dist: Bands, scale: int, gain: float
) -> tuple[dict[str, Ints], dict[str, Ints]]:
    cut, flag = w32 if scale else w16, angle(ref, dist)
    restored, additive = {}, {}
    for band in BANDS:
        o, t = ref[band], dist[band]
        k = ratio(o, t, scale)
        unlimited = cut((k * o + 16384) >> 15)
        gained, most = unlimited * np.float64(gain), t.astype(np.float64)
        up, down = np.minimum(gained, most), np.maximum(gained, most)
        limited = np.trunc(np.where(o > 0, up, down)).astype(np.int64)
        restored[band] = np.where(flag & (k > 0) & (o != 0), cut(limited), unlimited)
        additive[band] = cut(t - restored[band])
    return restored, additive


# ---------------------------------------------------------------- 7: mask signals
def weigh(bands: Bands, q: Sequence[int], scale: int) -> tuple[dict[str, Ints], dict[str, Ints]]:
    weighted, filtered = {}, {}
    for band, weight, add, shift in zip(BANDS, q, (16384, 16384, 65535), (15, 15, 17), strict=True):
        if scale == 0:
            d = w16(w32(w32(weight * bands[band]) + add) >> shift)
            f = w16((4369 * np.abs(d) + 2048) >> 12)
        else:
            d = w32((weight * bands[band] + (1 << 27)) >> 28)
            f = w32((143165577 * np.abs(d) - 2**31) >> 32)
        weighted[band], filtered[band] = d, f
    return weighted, filtered


# ---------------------------------------------------------------- 8: denominator
def signed(total: int) -> int:
    """Return how int64 reads the low 64 bits."""
    return ((total + 2**63) & (2**64 - 1)) - 2**63


def rows_folded(y: NDArray[np.uint64], shift: int) -> int:
    return sum((int(total) + half(shift)) >> shift for total in y.sum(axis=1, dtype=np.uint64))


def rooted(
    values: Sequence[np.float32], root: np.float32, samples: int, noise_weight: float
) -> np.float32:
    noise = powf(F(samples * noise_weight), root)
    h, v, d = (F(powf(value, root) + noise) for value in values)
    return F(F(h + v) + d)


def denominator(ref: Bands, scale: int, f: Sequence[np.float32], noise_weight: float) -> np.float32:
    rows, columns = (band.stop - band.start for band in region(ref["h"]))
    samples, values = rows * columns, []
    for band, weight in zip(BANDS, (f[0], f[0], f[1]), strict=True):
        x = np.abs(ref[band][region(ref[band])]).astype(np.uint64)
        if scale == 0:
            y, fold = x * x * x, max(0, clog2(samples) - 20)
            places = 18 - fold
        else:
            square, cs, fold = np.uint64((31, 30, 31)[scale - 1]), clog2(columns), clog2(rows)
            squared = (x * x + (np.uint64(1) << square)) >> square
            y = (squared * x + np.uint64(half(cs))) >> np.uint64(cs)
            places = (32, 27, 23)[scale - 1] - fold - cs
        total = rows_folded(y, fold)
        values.append(F(float(total) / 2.0**places * math.pow(float(weight), 3.0)))
    return rooted(values, THIRD, samples, noise_weight)


# ---------------------------------------------------------------- 9: contrast masking
def neighbours(f: Ints) -> Ints:
    h, w = f.shape
    iy, ix = np.arange(h), np.arange(w)
    above, below = np.where(iy == 0, 1, iy - 1), np.minimum(iy + 1, h - 1)
    left, right = np.where(ix == 0, 1, ix - 1), np.minimum(ix + 1, w - 1)
    beside = f[:, left] + f[:, right]
    row: Ints = f + beside
    around: Ints = row[above] + beside + row[below]
    return around


def threshold(weighted: Bands, filtered: Bands, scale: int, *, vmafx: bool) -> Ints:
    total = np.zeros_like(weighted["h"])
    for band in BANDS:
        magnitude = np.abs(weighted[band])
        if scale > 0:
            centre = w32((286331153 * magnitude - 2**31) >> 32)
        else:
            part = (8738 * magnitude + 2048) >> 12
            centre = part if vmafx else w16(part)
        total = total + neighbours(filtered[band]) + centre
    return w32(total)


def excess(signal: Ints, weight: int, limit: Ints, scale: int, band: str, *, vmafx: bool) -> Ints:
    if scale > 0:
        x = np.abs(w32((signal * weight + (1 << 27)) >> 28))
        return np.maximum(w32(x - limit), 0)
    x, scaled = np.abs(w32(signal * weight)), limit * (4096 if band == "d" else 1024)
    if vmafx:
        return np.clip(x - scaled, 0, 2**31 - 1)
    return np.maximum(w32(x - w32(scaled)), 0)


@dataclass
class Masked:
    """How a numerator is formed: the scale's weights, and the exponent of the roots."""

    scale: int
    weights: Sequence[int]
    halvings: int
    root: np.float32
    vmafx: bool

    def pooled(self, signal: Bands, masker: Bands, noise_weight: float) -> np.float32:
        weighted, filtered = weigh(masker, self.weights, self.scale)
        limit = threshold(weighted, filtered, self.scale, vmafx=self.vmafx)
        values = [self._value(signal[band], limit, band) for band in BANDS]
        return rooted(values, self.root, area(limit), noise_weight)

    def _value(self, signal: Ints, limit: Ints, band: str) -> np.float32:
        h, w = signal.shape
        weight = self.weights[BANDS.index(band)]
        x = excess(signal, weight, limit, self.scale, band, vmafx=self.vmafx)
        x = x[region(signal)]
        square, cs, fold = 30, clog2(w), clog2(h)
        if self.scale == 0:
            square, cs = (30, cs - 3) if band == "d" else (29, cs - 4)
        squared = w32((x * x + half(square)) >> square)
        y = (squared * x + half(cs)) >> cs
        totals = [int(total) for total in y.astype(np.uint64).sum(axis=1, dtype=np.uint64)]
        if self.scale > 0 or not self.vmafx:
            totals = [signed(total) for total in totals]
        total = sum((each + half(fold)) >> fold for each in totals)
        if self.scale == 0:
            places = (57 if band == "d" else 52) - cs - fold - 3 * self.halvings
            return F(float(total) / 2.0**places)
        places = (45, 39, 36)[self.scale - 1] - cs - fold - 3 * self.halvings
        narrowed = np.array([total], np.int64).astype(np.float32)[0]  # rounded once
        return F(narrowed / F(2.0**places))


# ---------------------------------------------------------------- the scales, 10: the frame
@dataclass
class Scale:
    """What a scale computes; weighted and filtered are those of the additive part."""

    ref: Bands
    dist: Bands
    restored: Bands
    additive: Bands
    weighted: Bands
    filtered: Bands
    num: np.float32
    den: np.float32
    aim: np.float32


def scale_of(ref: Bands, dist: Bands, scale: int, o: Mapping[str, Any], *, vmafx: bool) -> Scale:
    f = float_weights(scale, o)
    weights, halvings = integer_weights(scale, f, o, vmafx=vmafx)
    root = F(1) / F(o["adm_p_norm"]) if vmafx else THIRD
    masked = Masked(scale, weights, halvings, root, vmafx)
    restored, additive = decouple(ref, dist, scale, o["adm_enhn_gain_limit"])
    weighted, filtered = weigh(additive, weights, scale)
    noise_weight, aim = o["adm_noise_weight"], F(0)
    if not o["adm_skip_aim"]:
        aim = masked.pooled(additive, restored, 0.0)
    num = masked.pooled(restored, additive, noise_weight)
    den = denominator(ref, scale, f, noise_weight)
    return Scale(ref, dist, restored, additive, weighted, filtered, num, den, aim)


def scales(
    ref: NDArray[Any], dist: NDArray[Any], depth: int, o: Mapping[str, Any], *, vmafx: bool
) -> list[Scale]:
    """Return what the four scales compute, scale 0 also where the options skip it."""
    r, d = dwt0(ref, depth), dwt0(dist, depth)
    found = [scale_of(r, d, 0, o, vmafx=vmafx)]
    for scale in range(1, 4):
        r, d = dwt(r["a"], scale), dwt(d["a"], scale)
        found.append(scale_of(r, d, scale, o, vmafx=vmafx))
    return found


def scale_ratio(num: float, den: float, *, vmafx: bool) -> float:
    if den == 0 and num == 0:
        return 1.0 if vmafx else math.nan
    return num / den if den else math.inf


def conclude(
    sums: Sequence[tuple[float, float, float]], samples: int, o: Mapping[str, Any], *, vmafx: bool
) -> dict[str, float | None]:
    # Each addition rounds, from left to right; Python's sum() compensates since 3.12.
    num, den, aim_num = (functools.reduce(operator.add, parts) for parts in zip(*sums, strict=True))
    limit = 1e-10 * samples / (1920.0 * 1080.0)
    num, den = (0.0 if value < limit else value for value in (num, den))
    if den != 0:
        score, aim = num / den, aim_num / den
    elif not vmafx:
        score, aim = 1.0, None
    elif num == 0 and aim_num == 0:
        score, aim = 1.0, 1.0
    else:
        raise NoFrame
    adm3: float | None = None
    if aim is not None:
        weight, least = o["adm_dlm_weight"], o["adm_min_val"]
        blend = score * weight + (1 - aim) * (1 - weight)
        adm3 = blend if blend > least else least  # noqa: FURB136 - a NaN must become the least
    out: dict[str, float | None] = {"adm2": score, "aim": aim, "adm3": adm3}
    for i, (n, d, _) in enumerate(sums):
        out[f"adm_scale{i}"] = scale_ratio(n, d, vmafx=vmafx)
    out |= {"adm": score, "adm_num": num, "adm_den": den}
    for i, (n, d, _) in enumerate(sums):
        out |= {f"adm_num_scale{i}": n, f"adm_den_scale{i}": d}
    return out


def frame(
    ref: NDArray[Any],
    dist: NDArray[Any],
    depth: int,
    o: Mapping[str, Any],
    *,
    vmafx: bool,
    vmafx_conclusion: bool = False,
) -> dict[str, float | None]:
    """Return the 18 scores of a frame in libvmaf's order; None is UNSET.

    `vmafx_conclusion` ends the frame by VMAFx's rules instead of Netflix's.

    Raises:
        NoFrame: the dialect has no weights, or the conclusion has no scores.
    """
    with np.errstate(all="ignore"):
        found = scales(ref, dist, depth, o, vmafx=vmafx)
        sums = [(float(each.num), float(each.den), float(each.aim)) for each in found]
        if o["adm_skip_scale0"]:
            sums[0] = (0.0, float(F(1e-10)), 0.0)
        return conclude(sums, ref.size, o, vmafx=vmafx_conclusion)
