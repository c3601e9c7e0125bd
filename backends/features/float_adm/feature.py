"""`float_adm` as the registry finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from backends import outputs, reciprocal, reference
from backends.base import Arithmetic, Clip, Device, Luma, Options, Scores, Twin
from backends.extraction import Extraction, ExtractorFeature
from backends.features.float_adm import extractor, powers, spec
from backends.outputs import ExtractorOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

BYTES_PER_SAMPLE = 24  # of luma: 19 in the reference's planes at 3840x2160, the rest for the clip


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


class FloatAdm(ExtractorFeature):
    """libvmaf's `float_adm`: its names, its compiled reference, its kernels."""

    name: ClassVar[str] = "float_adm"
    dialects: ClassVar[tuple[str, ...]] = spec.DIALECTS
    options: ClassVar[type[ExtractorOptions]] = spec.FloatAdmOptions
    extraction: ClassVar[Extraction] = extractor.EXTRACTION
    package: ClassVar[str] = __package__
    kernel_files: ClassVar[tuple[str, ...]] = (
        "pixels",
        "dwt",
        "decouple",
        "csf",
        "mask",
        "powf",
        "pool",
    )
    stages: ClassVar[tuple[str, ...]] = spec.STAGES
    bit_depths: ClassVar[tuple[int, ...]] = (8, 10, 12, 16)

    def smallest(self, dialect: str) -> int:  # noqa: ARG002 - the same in all
        """Return 17: below, the coarsest band has one sample in a direction."""
        return 17

    def reference(self, arithmetic: Arithmetic, options: Options, clip: Clip) -> Scores:
        """Compute the clip with the compiled reference, frames in parallel on threads.

        Raises:
            Refused: what `require` refuses, a frame without a result in this conclusion, or the
                reference was never compiled.
        """
        self.require(arithmetic, clip)
        compiled, own = reference.load(__package__), spec.FloatAdmOptions.own(options)
        division, table = _division(compiled.Division, arithmetic)

        def compute(
            ref: Luma,
            dist: Luma,
            threads: int,
            scores: NDArray[np.float64],
            unset: NDArray[np.bool_],
        ) -> None:
            compiled.compute(
                ref,
                dist,
                clip.bit_depth,
                own.model_dump(),
                division=division,
                table=table,
                double_weights=spec.double_weights(arithmetic.dialect),
                vmafx_conclusion=outputs.concludes_as_vmafx(arithmetic),
                threads=threads,
                scores=scores,
                unset=unset,
            )

        columns = len(spec.SCORES + spec.DEBUG_SCORES)
        computed = reference.computed(compute, clip, columns, BYTES_PER_SAMPLE)
        return outputs.named(arithmetic, own, *computed)

    def reference_facts(self) -> Mapping[str, str]:
        """Return compiler, flags, C library and the hash of the reciprocal table."""
        return {
            **reference.facts(reference.load(__package__)),
            "powf": powers.described(),
            "reciprocal estimate of this processor": reciprocal.estimate(None).shown,
        }

    def notes(self, arithmetic: Arithmetic) -> tuple[str, ...]:
        """Return that a table is replayed or that this processor has no usable estimate."""
        if not spec.uses_rcpss(arithmetic.dialect):
            return ()
        note = reciprocal.estimate(arithmetic.rcp_table).note
        return (note,) if note else ()

    def twin(self, device: Device, source: str) -> Twin:
        """Compile `source` on `device`.

        Raises:
            CompilationFailed: the source does not compile.
        """
        from backends.features.float_adm.twin import FloatAdmTwin  # noqa: PLC0415 - needs a device

        return FloatAdmTwin(device, source)
