"""`float_adm` as the registry finds it."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from backends import reciprocal
from backends.base import (
    Arithmetic,
    Clip,
    Device,
    Extractor,
    Feature,
    Options,
    Refused,
    Scores,
    Twin,
)
from backends.features.float_adm import extractor, powers, spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

# In the order of the data flow; each file may use the functions of those before it.
KERNEL_FILES = ("pixels", "dwt", "decouple", "csf", "mask", "powf", "pool")

MEMORY_BUDGET = 2 << 30  # bytes, for all frames that are computed at a time
BYTES_PER_SAMPLE = 24  # of luma: 19 in the reference's planes at 3840x2160, the rest for the clip


def _threads(samples: int) -> int:
    """Return how many frames of so many luma samples are computed at a time."""
    fitting = MEMORY_BUDGET // (BYTES_PER_SAMPLE * samples)
    return max(1, min(len(os.sched_getaffinity(0)), fitting))


def _compiled() -> Any:  # noqa: ANN401 - a module, described by its .pyi
    """Import the compiled reference late, so that names and options work without it."""
    try:
        from backends.features.float_adm import _reference  # noqa: PLC0415 - see above
    except ImportError as error:
        message = f"the compiled reference is missing ({error}); run make gate or pip install -e ."
        raise Refused(message) from error
    return _reference


def _division(
    divisions: Any,  # noqa: ANN401 - the compiled module's enum
    arithmetic: Arithmetic,
) -> tuple[Any, NDArray[np.uint32] | None]:
    """Return the reference's division and the table that goes with it, if any."""
    if not spec.uses_rcpss(arithmetic.dialect):
        return divisions.ieee, None
    estimate = reciprocal.estimate(arithmetic.rcp_table)
    replayed = estimate.table.bits if estimate.source == "table" and estimate.table else None
    return getattr(divisions, estimate.source), replayed


class FloatAdm(Feature):
    """libvmaf's `float_adm`: its names, its compiled reference, its kernels."""

    name: ClassVar[str] = "float_adm"
    dialects: ClassVar[tuple[str, ...]] = spec.DIALECTS
    options: ClassVar[type[Options]] = spec.FloatAdmOptions
    stages: ClassVar[tuple[str, ...]] = spec.STAGES
    bit_depths: ClassVar[tuple[int, ...]] = (8, 10, 12, 16)
    smallest: ClassVar[int] = 17  # below, the coarsest band has one sample in a direction

    def outputs(self, options: Options) -> tuple[str, ...]:
        """Return the 7 output names of a frame, or all 18 with debug."""
        return spec.own(options).outputs()

    def options_name(self, options: Options) -> str:
        """Return libvmaf's suffix without its first underscore, `default` for defaults."""
        return spec.own(options).name()

    def reference(self, arithmetic: Arithmetic, options: Options, clip: Clip) -> Scores:
        """Compute the clip with the compiled reference, frames in parallel on threads.

        Raises:
            Refused: what `require` refuses, a frame without a result in this conclusion, or the
                reference was never compiled.
        """
        self.require(arithmetic, clip)
        compiled, own = _compiled(), spec.own(options)
        division, table = _division(compiled.Division, arithmetic)
        shape = (clip.frames, len(spec.SCORES + spec.DEBUG_SCORES))
        values, unset = np.empty(shape, np.float64), np.empty(shape, np.bool_)
        threads = _threads(clip.width * clip.height)
        for first in range(0, clip.frames, threads):
            count = min(threads, clip.frames - first)
            ref, dist = clip.read(first, count)
            rows = slice(first, first + count)
            compiled.compute(
                ref,
                dist,
                clip.bit_depth,
                own.model_dump(),
                division=division,
                table=table,
                double_weights=spec.double_weights(arithmetic.dialect),
                vmafx_conclusion=spec.vmafx(arithmetic),
                threads=threads,
                scores=values[rows],
                unset=unset[rows],
            )
        return spec.named(arithmetic, own, values, unset)

    def reference_facts(self) -> Mapping[str, str]:
        """Return compiler, flags, C library and the hash of the reciprocal table."""
        compiled = _compiled()
        binary = hashlib.sha256(Path(compiled.__file__).read_bytes()).hexdigest()
        return {
            "reference": f"sha256 {binary}",
            "compiler": compiled.COMPILER,
            "flags": compiled.FLAGS,
            "C library": " ".join(platform.libc_ver()) or "unknown",
            "powf": powers.described(),
            "reciprocal estimate of this processor": reciprocal.estimate(None).shown,
        }

    def notes(self, arithmetic: Arithmetic) -> tuple[str, ...]:
        """Return that a table is replayed or that this processor has no usable estimate."""
        if not spec.uses_rcpss(arithmetic.dialect):
            return ()
        note = reciprocal.estimate(arithmetic.rcp_table).note
        return (note,) if note else ()

    def extractor(self, arithmetic: Arithmetic, options: Options) -> Extractor:
        """Return what to ask real libvmaf for; it has rcpss-single on this processor."""
        return extractor.request(arithmetic, spec.own(options))

    def extracted(self, options: Options, values: NDArray[np.float64]) -> Scores:
        """Return the scores behind libvmaf's values, UNSET where libvmaf left one unset."""
        return extractor.scores(spec.own(options), values)

    def kernel_source(self) -> str:
        """Return the kernels of all stages as one text, in dialect words."""
        folder = resources.files(__package__) / "kernels"
        return "\n".join((folder / f"{name}.cl.h").read_text("utf-8") for name in KERNEL_FILES)

    def twin(self, device: Device, source: str) -> Twin:
        """Compile `source` on `device`.

        Raises:
            CompilationFailed: the source does not compile.
        """
        from backends.features.float_adm.twin import FloatAdmTwin  # noqa: PLC0415 - needs a device

        return FloatAdmTwin(device, source)
