"""`integer_adm` as the registry finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from backends import outputs, reference
from backends.base import Arithmetic, Clip, Device, Luma, Options, Scores, Twin
from backends.extraction import Extraction, ExtractorFeature
from backends.features.integer_adm import extractor, spec
from backends.features.integer_adm.angle import AngleFlag
from backends.outputs import ExtractorOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from backends.base import Format
    from backends.predicate import Predicate

BYTES_PER_SAMPLE = 26  # of luma: 22 in the reference's planes at 3840x2160, the rest for the clip


def computed(
    arithmetic: Arithmetic, options: Options, clip: Clip, spelling: str = "golden"
) -> Scores:
    """Compute a clip with the compiled reference.

    Args:
        arithmetic: one that the feature takes for this clip.
        options: integer_adm's, allowed in that arithmetic.
        clip: is read in batches; frames are computed in parallel on threads.
        spelling: of the angle flag at scale 0, a member of the compiled `Spelling`.

    Raises:
        NoResult: a frame has none in this conclusion.
        Refused: the reference was never compiled.
    """
    compiled, own = reference.load(__package__), spec.IntegerAdmOptions.own(options)

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
            vmafx_dialect=spec.repaired(arithmetic),
            vmafx_conclusion=outputs.concludes_as_vmafx(arithmetic),
            threads=threads,
            scores=scores,
            unset=unset,
            spelling=getattr(compiled.Spelling, spelling),
        )

    columns = len(spec.SCORES + spec.DEBUG_SCORES)
    values = reference.computed(compute, clip, columns, BYTES_PER_SAMPLE)
    return outputs.named(arithmetic, own, *values)


class IntegerAdm(ExtractorFeature):
    """libvmaf's extractor `adm`: its names, its compiled reference, its kernels."""

    name: ClassVar[str] = "integer_adm"
    dialects: ClassVar[tuple[str, ...]] = spec.DIALECTS
    options: ClassVar[type[ExtractorOptions]] = spec.IntegerAdmOptions
    extraction: ClassVar[Extraction] = extractor.EXTRACTION
    package: ClassVar[str] = __package__
    kernel_files: ClassVar[tuple[str, ...]] = ("dwt", "angle", "decouple", "csf", "mask", "pool")
    stages: ClassVar[tuple[str, ...]] = spec.STAGES
    bit_depths: ClassVar[tuple[int, ...]] = (8, 10, 12, 16)
    floats: ClassVar[bool] = False
    predicates: ClassVar[tuple[Predicate, ...]] = (AngleFlag(computed),)

    def smallest(self, dialect: str) -> int:
        """Return 17; 33 in dialect netflix, which reads other memory below."""
        return 33 if dialect == "netflix" else 17

    def require(self, arithmetic: Arithmetic, clip: Format) -> None:
        """Refuse also frames that are too large.

        Raises:
            Refused: as `Feature.require`, and where libvmaf's shifts leave their range.
        """
        super().require(arithmetic, clip)
        spec.require_size(clip.width, clip.height)

    def too_small(self, dialect: str, width: int, height: int) -> str:
        """Return the sentence about a frame below the smallest, with the reason in netflix."""
        sentence = super().too_small(dialect, width, height)
        if dialect == "netflix":
            return f"{sentence}, dialect netflix reads memory outside the picture; vmafx has one"
        return sentence

    def require_options(self, arithmetic: Arithmetic, options: Options) -> None:
        """Refuse `adm_p_norm` in dialect netflix, and weights without a value in vmafx.

        Raises:
            Refused: as above.
        """
        spec.require(arithmetic, spec.IntegerAdmOptions.own(options))

    def reference(self, arithmetic: Arithmetic, options: Options, clip: Clip) -> Scores:
        """Compute the clip with the compiled reference, frames in parallel on threads.

        Raises:
            Refused: what `require` and `require_options` refuse, a frame without a result in this
                conclusion, or the reference was never compiled.
        """
        self.require(arithmetic, clip)
        self.require_options(arithmetic, options)
        return computed(arithmetic, options, clip)

    def reference_facts(self) -> Mapping[str, str]:
        """Return compiler, flags and C library."""
        return reference.facts(reference.load(__package__))

    def twin(self, device: Device, source: str) -> Twin:
        """Compile `source` on `device`.

        Raises:
            CompilationFailed: the source does not compile.
        """
        from backends.features.integer_adm.twin import IntegerAdmTwin  # noqa: PLC0415 - needs a device

        return IntegerAdmTwin(device, source)
