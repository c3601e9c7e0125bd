"""Drives the kernels of `float_adm` on any device and concludes on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from backends import outputs, reciprocal
from backends.base import Arithmetic, Buffer, Clip, Device, Luma, Options, Scores
from backends.features.float_adm import conclusion, spec
from backends.features.float_adm.conclusion import SCALES, margin
from backends.features.float_adm.powers import Powers
from backends.features.float_adm.weights import band_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOTS = 9  # den h, v, d; num h, v, d; aim h, v, d: as in kernels/pool.cl.h
FLOAT = 4  # bytes
BYTE = 8  # bits; deeper samples take two bytes
# As in kernels/decouple.cl.h.
IEEE_QUOTIENT, ESTIMATED, ESTIMATED_BY_QUOTIENT = np.int32(0), np.int32(1), np.int32(2)
BATCH = 1024  # frames at most: a launch has six planes a frame, and CUDA's grid ends at 65535
CUBE = 3.0  # the one adm_p_norm whose energies need no C library


def halved(n: int) -> int:
    """Return the samples of a band of n input samples."""
    return (n + 1) // 2


def window(n: int) -> int:
    """Return the samples of n that the reduction window keeps."""
    return n - 2 * margin(n)


@dataclass(frozen=True)
class Workspace:
    """Device memory of one batch, sized for scale 0 and used again by the smaller scales."""

    pictures: Buffer  # input of the current scale
    low: Buffer  # vertical results
    high: Buffer
    bands: Buffer
    signals: Buffer
    filtered: Buffer
    thresholds: Buffer
    terms: Buffer
    sums: Buffer

    @staticmethod
    def floats(width: int, height: int) -> dict[str, int]:
        """Return the floats per frame of each buffer."""
        w, h = halved(width), halved(height)
        return {
            "pictures": 2 * width * height,
            "low": 2 * width * h,
            "high": 2 * width * h,
            "bands": 6 * w * h,
            "signals": 6 * w * h,
            "filtered": 6 * w * h,
            "thresholds": 2 * w * h,
            "terms": SLOTS * window(w) * window(h),
            "sums": SLOTS * window(h),
        }

    @classmethod
    def allocate(cls, device: Device, width: int, height: int, frames: int) -> Workspace:
        """Allocate buffers for `frames` frames."""
        sizes = cls.floats(width, height)
        return cls(**{name: device.empty(FLOAT * n * frames) for name, n in sizes.items()})

    def poison(self, device: Device, width: int, height: int, frames: int) -> None:
        """Spoil what the kernels of a scale are about to write, so that a gap cannot pass.

        The size is that of the scale's input, which is kept.
        """
        for name, n in self.floats(width, height).items():
            if name != "pictures":
                device.poison(getattr(self, name), FLOAT * n * frames)

    def poison_pictures(self, device: Device, width: int, height: int, frames: int) -> None:
        """Spoil a scale's input, where nothing reads it any more and the next is about to come."""
        n = self.floats(width, height)["pictures"]
        device.poison(self.pictures, FLOAT * n * frames)


def bytes_per_frame(clip: Clip) -> int:
    """Return the device memory that one frame of a batch takes."""
    samples = 2 * clip.width * clip.height * (1 if clip.bit_depth == BYTE else 2)
    return samples + FLOAT * sum(Workspace.floats(clip.width, clip.height).values())


@dataclass(frozen=True)
class Settings:
    """What one cell asks of the kernels, as their arguments."""

    division: np.int32
    table: Buffer
    gain_limit: np.float64
    bypass: np.int32
    energy: tuple[np.int32, np.float32, np.int32]  # cubed, p_norm, fused
    weights: tuple[tuple[np.float32, np.float32], ...]  # per scale: bands h and v, band d


class FloatAdmTwin:
    """`float_adm` on one device: kernels for the sums, the host for roots and scores."""

    def __init__(self, device: Device, source: str) -> None:
        """Compile the kernels.

        Raises:
            CompilationFailed: the source does not compile.
        """
        self._device = device
        self._kernels = device.compile(source)
        self._powers = Powers(device, self._kernels)

    def compute(self, arithmetic: Arithmetic, options: Options, clip: Clip) -> Scores:
        """Compute every score of every frame, in batches that fit the device's budget.

        Raises:
            Refused: an adm_p_norm other than 3 where the C library's powf is not the one that
                devices follow.
        """
        own = spec.FloatAdmOptions.own(options)
        settings = self._settings(arithmetic, own)
        per_frame = bytes_per_frame(clip)
        batch = max(1, min(clip.frames, BATCH, self._device.memory_budget // per_frame))
        workspace = Workspace.allocate(self._device, clip.width, clip.height, batch)
        rows = []
        for first in range(0, clip.frames, batch):
            ref, dist = clip.read(first, min(batch, clip.frames - first))
            totals = self._totals(workspace, ref, dist, clip.bit_depth, own, settings)
            rows += [_conclude(frame, clip, own, arithmetic) for frame in totals]
        values, unset = (np.stack(columns) for columns in zip(*rows, strict=True))
        return outputs.named(arithmetic, own, values, unset)

    def _settings(self, arithmetic: Arithmetic, options: spec.FloatAdmOptions) -> Settings:
        division, table = reciprocal_division(arithmetic)
        cubed = options.adm_p_norm == CUBE
        fused = not cubed and self._powers.check(options.adm_p_norm)
        return Settings(
            division=division,
            table=self._device.upload(table),
            gain_limit=np.float64(options.adm_enhn_gain_limit),
            bypass=np.int32(options.adm_bypass_cm),
            energy=(np.int32(cubed), np.float32(options.adm_p_norm), np.int32(fused)),
            weights=tuple(
                band_weights(scale, options, double=spec.double_weights(arithmetic.dialect))
                for scale in range(SCALES)
            ),
        )

    def _totals(
        self,
        workspace: Workspace,
        ref: Luma,
        dist: Luma,
        bit_depth: int,
        options: spec.FloatAdmOptions,
        settings: Settings,
    ) -> NDArray[np.float32]:
        """Return the folded sums of a batch: float32 (frames, 4, 9)."""
        frames, height, width = ref.shape
        self._pixels(workspace, ref, dist, bit_depth)
        totals = self._device.empty(FLOAT * frames * SCALES * SLOTS)
        for scale in range(SCALES):
            workspace.poison(self._device, width, height, frames)
            self._dwt(workspace, width, height, frames)
            width, height = halved(width), halved(height)
            if not (scale == 0 and options.adm_skip_scale0):
                self._sums(workspace, settings, totals, (scale, width, height, frames))
        return self._device.download(totals, (frames, SCALES, SLOTS), np.dtype(np.float32))

    def _pixels(self, workspace: Workspace, ref: Luma, dist: Luma, bit_depth: int) -> None:
        frames, height, width = ref.shape
        samples = self._device.upload(np.concatenate((ref, dist)))
        workspace.poison_pictures(self._device, width, height, frames)
        size = (width, height, 2 * frames)
        shape = [np.int32(n) for n in size]
        if bit_depth == BYTE:
            self._kernels.launch("pixels_8", size, samples, workspace.pictures, *shape)
        else:
            step = np.float32(1 << (bit_depth - 8))
            self._kernels.launch("pixels_16", size, samples, workspace.pictures, *shape, step)

    def _dwt(self, workspace: Workspace, width: int, height: int, frames: int) -> None:
        w, pictures, rows = np.int32(width), np.int32(2 * frames), halved(height)
        launch = self._kernels.launch
        launch(
            "dwt_vertical",
            (width, rows, 2 * frames),
            workspace.pictures,
            workspace.low,
            workspace.high,
            w,
            np.int32(height),
            pictures,
        )
        workspace.poison_pictures(self._device, width, height, frames)
        launch(
            "dwt_horizontal",
            (halved(width), rows, 2 * frames),
            workspace.low,
            workspace.high,
            workspace.pictures,
            workspace.bands,
            w,
            np.int32(rows),
            pictures,
        )

    def _sums(
        self,
        workspace: Workspace,
        settings: Settings,
        totals: Buffer,
        place: tuple[int, int, int, int],
    ) -> None:
        """Launch everything after the wavelet for one scale."""
        scale, width, height, frames = place
        w, h, n = np.int32(width), np.int32(height), np.int32(frames)
        weights = settings.weights[scale]
        left, top = margin(width), margin(height)
        columns, rows = window(width), window(height)
        bands, signals = workspace.bands, workspace.signals
        filtered, thresholds = workspace.filtered, workspace.thresholds
        launch = self._kernels.launch
        launch(
            "decouple",
            (width, height, frames),
            bands,
            signals,
            settings.table,
            settings.gain_limit,
            settings.division,
            w,
            h,
            n,
        )
        planes, count = 6 * frames, 2 * frames
        launch("csf", (width, height, planes), signals, filtered, *weights, w, h, np.int32(planes))
        launch("mask", (width, height, count), signals, filtered, thresholds, w, h, np.int32(count))
        corner = (np.int32(left), np.int32(top))
        launch(
            "terms",
            (columns, rows, frames),
            bands,
            signals,
            thresholds,
            workspace.terms,
            *weights,
            settings.bypass,
            *settings.energy,
            w,
            h,
            *corner,
            n,
        )
        lines = np.int32(rows)
        launch(
            "row_sums",
            (rows, SLOTS, frames),
            workspace.terms,
            workspace.sums,
            np.int32(columns),
            lines,
            n,
        )
        launch("fold", (SLOTS, frames, 1), workspace.sums, totals, lines, np.int32(scale), n)


def reciprocal_division(arithmetic: Arithmetic) -> tuple[np.int32, NDArray[np.uint32]]:
    """Return what kernels/decouple.cl.h calls `division`, and its table."""
    unused = np.zeros(1, np.uint32)
    if not spec.uses_rcpss(arithmetic.dialect):
        return IEEE_QUOTIENT, unused
    table = reciprocal.estimate(arithmetic.rcp_table).table
    return (ESTIMATED_BY_QUOTIENT, unused) if table is None else (ESTIMATED, table.bits)


def _conclude(
    totals: NDArray[np.float32],
    clip: Clip,
    options: spec.FloatAdmOptions,
    arithmetic: Arithmetic,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Turn the totals of one frame, float32 (4, 9), into its scores."""
    sums = np.empty((SCALES, 3), np.float32)
    width, height = clip.width, clip.height
    with np.errstate(all="ignore"):  # infinities and NaNs follow the formulas
        for scale in range(SCALES):
            width, height = halved(width), halved(height)
            if scale == 0 and options.adm_skip_scale0:
                sums[scale] = np.float32(1e-10), 0, 0
                continue
            area = window(width) * window(height)
            noises = (options.adm_noise_weight, options.adm_noise_weight, 0.0)
            for quantity, noise in enumerate(noises):
                bands = totals[scale, 3 * quantity : 3 * quantity + 3]
                sums[scale, quantity] = conclusion.pool(bands, area, options.adm_p_norm, noise)
        return conclusion.frame_scores(
            sums, clip.width, clip.height, options, vmafx=outputs.concludes_as_vmafx(arithmetic)
        )
