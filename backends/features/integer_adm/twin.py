"""Drives the kernels of `integer_adm` on any device and concludes on the host."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from backends import outputs
from backends.base import Arithmetic, Buffer, Clip, Device, Luma, Options, Scores
from backends.features.integer_adm import conclusion, spec
from backends.features.integer_adm.conclusion import SCALES, Region
from backends.features.integer_adm.spec import repaired
from backends.features.integer_adm.weights import Weights, csf_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SLOTS, SLICES = 9, 64  # as in kernels/pool.cl.h
INT, LONG = 4, 8  # bytes
BYTE = 8  # bits; deeper samples take two bytes
BATCH = 1024  # frames at most: a launch has two pictures a frame, and CUDA's grid ends at 65535
# Bits that the wavelet's sums lose; those of scale 0's vertical pass are the samples' own.
VERTICAL, HORIZONTAL = (0, 16, 16), (16, 15, 16, 15)
DOUBLE = 53  # bits of a significand


def halved(n: int) -> int:
    """Return the samples of a band of n input samples."""
    return (n + 1) // 2


def regions(width: int, height: int) -> Iterator[Region]:
    """Yield the four scales of a frame."""
    for scale in range(SCALES):
        width, height = halved(width), halved(height)
        yield Region(scale, width, height)


@dataclass(frozen=True)
class Workspace:
    """Device memory of one batch, sized for scale 0 and used again by the smaller scales."""

    pictures: Buffer  # input of the current scale
    low: Buffer  # vertical results
    high: Buffer
    bands: Buffer
    signals: Buffer
    filtered: Buffer
    centres: Buffer
    slices: Buffer
    folded: Buffer

    @staticmethod
    def sizes(width: int, height: int) -> dict[str, int]:
        """Return the bytes per frame of each buffer, for a scale's input of this size."""
        w, h = halved(width), halved(height)
        rows = Region(0, w, h).rows
        return {
            "pictures": INT * 2 * width * height,
            "low": INT * 2 * width * h,
            "high": INT * 2 * width * h,
            "bands": INT * 6 * w * h,
            "signals": INT * 6 * w * h,
            "filtered": INT * 2 * w * h,
            "centres": INT * 2 * w * h,
            "slices": LONG * SLOTS * rows * SLICES,
            "folded": LONG * SLOTS * rows,
        }

    @classmethod
    def allocate(cls, device: Device, width: int, height: int, frames: int) -> Workspace:
        """Allocate buffers for `frames` frames."""
        sizes = cls.sizes(width, height)
        return cls(**{name: device.empty(n * frames) for name, n in sizes.items()})

    def poison(self, device: Device, width: int, height: int, frames: int) -> None:
        """Spoil what the kernels of a scale are about to write, so that a gap cannot pass.

        The size is that of the scale's input, which is kept.
        """
        for name, n in self.sizes(width, height).items():
            if name != "pictures":
                device.poison(getattr(self, name), n * frames)

    def poison_pictures(self, device: Device, width: int, height: int, frames: int) -> None:
        """Spoil a scale's input, where nothing reads it any more and the next is about to come."""
        device.poison(self.pictures, self.sizes(width, height)["pictures"] * frames)


def bytes_per_frame(clip: Clip) -> int:
    """Return the device memory that one frame of a batch takes."""
    samples = 2 * clip.width * clip.height * (1 if clip.bit_depth == BYTE else 2)
    return samples + sum(Workspace.sizes(clip.width, clip.height).values())


def reciprocals() -> NDArray[np.int32]:
    """Return 2^30 / n, cut, for n up to 32768.

    Returns:
        int32 (32769,), by n; entry 0 is never read.

    Source: integer_adm.md, section 5.1.
    """
    divisors = np.arange(1, 32769, dtype=np.int32)
    return np.concatenate((np.zeros(1, np.int32), (1 << 30) // divisors))


def significand(value: float) -> tuple[np.uint64, np.int32]:
    """Return a gain limit as 53 bits, and how many of them are behind the point.

    Args:
        value: 1 to 100, so that 52 to 46 are.

    Source: integer_adm.md, section 5.4.
    """
    fraction, exponent = math.frexp(value)
    return np.uint64(int(fraction * 2.0**DOUBLE)), np.int32(DOUBLE - exponent)


@dataclass(frozen=True)
class Settings:
    """What one cell asks of the kernels, as their arguments."""

    gain_limit: tuple[np.uint64, np.int32]
    repaired: np.int32
    weights: tuple[Weights, ...]  # per scale


class IntegerAdmTwin:
    """`integer_adm` on one device: kernels for the sums, the host for roots and scores."""

    def __init__(self, device: Device, source: str) -> None:
        """Compile the kernels.

        Raises:
            CompilationFailed: the source does not compile.
        """
        self._device = device
        self._kernels = device.compile(source)
        self._reciprocals = device.upload(reciprocals())

    def compute(self, arithmetic: Arithmetic, options: Options, clip: Clip) -> Scores:
        """Compute every score of every frame, in batches that fit the device's budget.

        Raises:
            NoResult: a frame has no result in this conclusion.
        """
        own = spec.IntegerAdmOptions.own(options)
        settings = Settings(
            significand(own.adm_enhn_gain_limit),
            np.int32(repaired(arithmetic)),
            tuple(csf_weights(scale, arithmetic, own) for scale in range(SCALES)),
        )
        per_frame = bytes_per_frame(clip)
        batch = max(1, min(clip.frames, BATCH, self._device.memory_budget // per_frame))
        workspace = Workspace.allocate(self._device, clip.width, clip.height, batch)
        rows = []
        for first in range(0, clip.frames, batch):
            ref, dist = clip.read(first, min(batch, clip.frames - first))
            totals = self._totals(workspace, ref, dist, clip.bit_depth, own, settings)
            rows += [_conclude(frame, clip, own, arithmetic, settings) for frame in totals]
        values, unset = (np.stack(columns) for columns in zip(*rows, strict=True))
        return outputs.named(arithmetic, own, values, unset)

    def _totals(
        self,
        workspace: Workspace,
        ref: Luma,
        dist: Luma,
        bit_depth: int,
        options: spec.IntegerAdmOptions,
        settings: Settings,
    ) -> NDArray[np.uint64]:
        """Return the folded sums of a batch: uint64 (frames, 4, 9)."""
        frames, height, width = ref.shape
        self._samples(workspace, ref, dist, bit_depth)
        totals = self._device.empty(LONG * frames * SCALES * SLOTS)
        for region in regions(width, height):
            workspace.poison(self._device, width, height, frames)
            vertical = (bit_depth, *VERTICAL)[region.scale]
            self._dwt(workspace, vertical, HORIZONTAL[region.scale], (width, height, frames))
            width, height = region.width, region.height
            if not (region.scale == 0 and options.adm_skip_scale0):
                self._decouple(workspace, settings, region, frames)
                self._pool(workspace, settings, totals, region, frames)
        return self._device.download(totals, (frames, SCALES, SLOTS), np.dtype(np.uint64))

    def _samples(self, workspace: Workspace, ref: Luma, dist: Luma, bit_depth: int) -> None:
        frames, height, width = ref.shape
        samples = self._device.upload(np.concatenate((ref, dist)))
        workspace.poison_pictures(self._device, width, height, frames)
        size = (width, height, 2 * frames)
        self._kernels.launch(
            "samples_8" if bit_depth == BYTE else "samples_16",
            size,
            samples,
            workspace.pictures,
            np.int32(1 << (bit_depth - 1)),
            *map(np.int32, size),
        )

    def _dwt(
        self, workspace: Workspace, down: int, across: int, shape: tuple[int, int, int]
    ) -> None:
        width, height, frames = shape
        rows, pictures = halved(height), 2 * frames
        launch = self._kernels.launch
        launch(
            "dwt_vertical",
            (width, rows, pictures),
            workspace.pictures,
            workspace.low,
            workspace.high,
            np.int32(down),
            *map(np.int32, (width, height, pictures)),
        )
        workspace.poison_pictures(self._device, width, height, frames)
        launch(
            "dwt_horizontal",
            (halved(width), rows, pictures),
            workspace.low,
            workspace.high,
            workspace.pictures,
            workspace.bands,
            np.int32(across),
            *map(np.int32, (width, rows, pictures)),
        )

    def _decouple(
        self, workspace: Workspace, settings: Settings, region: Region, frames: int
    ) -> None:
        """Launch what goes from bands to the weighted signals of one scale."""
        size = (region.width, region.height, frames)
        launch = self._kernels.launch
        launch(
            "decouple",
            size,
            workspace.bands,
            workspace.signals,
            self._reciprocals,
            *settings.gain_limit,
            *map(np.int32, size),
        )
        signals = (region.width, region.height, 2 * frames)
        launch(
            "csf",
            signals,
            workspace.signals,
            workspace.filtered,
            workspace.centres,
            *settings.weights[region.scale].whole,
            np.int32(region.scale),
            settings.repaired,
            *map(np.int32, signals),
        )

    def _pool(
        self,
        workspace: Workspace,
        settings: Settings,
        totals: Buffer,
        region: Region,
        frames: int,
    ) -> None:
        """Launch what goes from there to the sums of one scale."""
        scale, n, rows = np.int32(region.scale), np.int32(frames), np.int32(region.rows)
        logarithms = map(np.int32, map(conclusion.clog2, (region.width, region.columns)))
        shape = (region.width, region.height, region.left, region.top)
        launch = self._kernels.launch
        launch(
            "slices",
            (SLICES, region.rows, frames),
            workspace.bands,
            workspace.signals,
            workspace.filtered,
            workspace.centres,
            workspace.slices,
            *settings.weights[region.scale].whole,
            scale,
            settings.repaired,
            *logarithms,
            *map(np.int32, shape),
            n,
        )
        launch(
            "row_folds",
            (region.rows, SLOTS, frames),
            workspace.slices,
            workspace.folded,
            np.int32(region.den_fold),
            np.int32(region.num_fold),
            scale,
            settings.repaired,
            np.int32(region.columns),
            rows,
            n,
        )
        launch("fold", (SLOTS, frames, 1), workspace.folded, totals, rows, scale, n)


def _conclude(
    totals: NDArray[np.uint64],
    clip: Clip,
    options: spec.IntegerAdmOptions,
    arithmetic: Arithmetic,
    settings: Settings,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Turn the totals of one frame, uint64 (4, 9), into its scores."""
    sums = np.empty((SCALES, 3), np.float32)
    root = np.float32(1) / np.float32(options.adm_p_norm)
    with np.errstate(all="ignore"):  # infinities and NaNs follow the formulas
        for region in regions(clip.width, clip.height):
            scale, weights = region.scale, settings.weights[region.scale]
            if scale == 0 and options.adm_skip_scale0:
                sums[scale] = np.float32(conclusion.FLOOR), 0, 0
                continue
            noise = options.adm_noise_weight
            unsigned = scale == 0 and repaired(arithmetic)
            masked = totals[scale] if unsigned else totals[scale].view(np.int64)
            pooled = (weights.halvings, root)
            sums[scale] = (
                conclusion.pool_energy(totals[scale, :3], region, weights, noise),
                conclusion.pool_masked(masked[3:6], region, *pooled, noise),
                conclusion.pool_masked(masked[6:], region, *pooled, 0.0),
            )
        if options.adm_skip_aim:
            sums[:, 2] = 0
        return conclusion.frame_scores(
            sums, clip.width, clip.height, options, vmafx=outputs.concludes_as_vmafx(arithmetic)
        )
