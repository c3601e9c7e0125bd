"""References built without Python, with any compiler and flags, and called through ctypes.

Run as a program, it computes the cells that a matrix has of a feature with one such build and with
the installed module: `reference_builds.py FEATURE LIBRARY MATRIX` prints how many frames were
equal, or fails.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from backends import outputs
from backends.base import Arithmetic
from backends.features import float_adm, integer_adm
from backends.features.float_adm import _reference, spec
from gate import matrix, plan
from gate.fixtures import open_fixture

if TYPE_CHECKING:
    from backends.base import Feature, Luma, Options

OUTPUTS = 18
IEEE = _reference.Division.ieee
FEATURES = Path(__file__).parents[2] / "backends/features"


class FloatDialect(ctypes.Structure):
    """float_adm::Dialect, field by field."""

    _fields_ = [
        ("division", ctypes.c_int),
        ("table", ctypes.c_void_p),
        ("double_weights", ctypes.c_int),
        ("vmafx_conclusion", ctypes.c_int),
    ]

    @classmethod
    def of(cls, arithmetic: Arithmetic) -> FloatDialect:
        """Return the arithmetic on this processor, or with its replayed table."""
        dialect, replayed = arithmetic.dialect, arithmetic.rcp_table
        division, table = IEEE, None
        if spec.uses_rcpss(dialect):
            division = _reference.Division.table if replayed else _reference.Division.instruction
            table = replayed.bits.ctypes.data if replayed else None
        return cls(
            division.value,
            table,
            spec.double_weights(dialect),
            outputs.concludes_as_vmafx(arithmetic),
        )


class FloatOptions(ctypes.Structure):
    """float_adm::Options, field by field."""

    _fields_ = [
        ("enhn_gain_limit", ctypes.c_double),
        ("norm_view_dist", ctypes.c_double),
        ("noise_weight", ctypes.c_double),
        ("csf_scale", ctypes.c_double),
        ("csf_diag_scale", ctypes.c_double),
        ("ref_display_height", ctypes.c_int),
        ("csf_mode", ctypes.c_int),
        ("bypass_cm", ctypes.c_int),
        ("adm3_apply_hm", ctypes.c_int),
        ("p_norm", ctypes.c_double),
        ("dlm_weight", ctypes.c_double),
        ("min_val", ctypes.c_double),
        ("f1", ctypes.c_double * 4),
        ("f2", ctypes.c_double * 4),
        ("skip_aim_scale", ctypes.c_int),
        ("skip_scale0", ctypes.c_int),
    ]

    @classmethod
    def of(cls, chosen: Options) -> FloatOptions:
        own = cls()
        for name, *_ in cls._fields_:
            if name in {"f1", "f2"}:
                weights = [getattr(chosen, f"adm_{name}s{scale}") for scale in range(4)]
                setattr(own, name, (ctypes.c_double * 4)(*weights))
            else:
                setattr(own, name, getattr(chosen, f"adm_{name}"))
        return own


class IntegerDialect(ctypes.Structure):
    """integer_adm::Dialect, field by field."""

    _fields_ = [
        ("vmafx", ctypes.c_int),
        ("vmafx_conclusion", ctypes.c_int),
        ("spelling", ctypes.c_int),
    ]

    @classmethod
    def of(cls, arithmetic: Arithmetic) -> IntegerDialect:
        return cls(integer_adm.spec.repaired(arithmetic), outputs.concludes_as_vmafx(arithmetic), 0)


class IntegerOptions(ctypes.Structure):
    """integer_adm::Options, field by field."""

    _fields_ = [
        ("csf_scale", ctypes.c_double),
        ("csf_diag_scale", ctypes.c_double),
        ("dlm_weight", ctypes.c_double),
        ("enhn_gain_limit", ctypes.c_double),
        ("norm_view_dist", ctypes.c_double),
        ("noise_weight", ctypes.c_double),
        ("min_val", ctypes.c_double),
        ("p_norm", ctypes.c_double),
        ("ref_display_height", ctypes.c_int),
        ("csf_mode", ctypes.c_int),
        ("skip_aim", ctypes.c_int),
        ("skip_scale0", ctypes.c_int),
    ]

    @classmethod
    def of(cls, chosen: Options) -> IntegerOptions:
        return cls(*(getattr(chosen, f"adm_{name}") for name, *_ in cls._fields_))


@dataclass(frozen=True)
class Reference:
    """A feature's reference, and what its builds are called with."""

    feature: Feature
    dialect: type[FloatDialect | IntegerDialect]
    options: type[FloatOptions | IntegerOptions]

    def compiled(
        self, folder: Path, compiler: str, *flags: str, swap: tuple[str, str] | None = None
    ) -> Path:
        """Compile it without its Python binding, after an optional planted swap of text."""
        sources = (FEATURES / self.feature.name / "reference").glob("*.[ch]pp")
        texts = {s.name: s.read_text("utf-8") for s in sources if "bindings" not in s.name}
        if swap is not None:
            found = sum(text.count(swap[0]) for text in texts.values())
            assert found == 1, "the source has changed"
            texts = {name: text.replace(*swap) for name, text in texts.items()}
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")

        def run(*arguments: str) -> None:
            subprocess.run([compiler, *flags, "-fPIC", *arguments], check=True, cwd=folder)

        stems = sorted(Path(name).stem for name in texts if name.endswith(".cpp"))
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda stem: run("-c", f"{stem}.cpp", "-o", f"{stem}.o"), stems))
        run("-shared", "-o", "reference.so", *(f"{stem}.o" for stem in stems), "-lm")
        return folder / "reference.so"

    def scores_of(
        self,
        build: ctypes.CDLL,
        pair: tuple[Luma, Luma],
        bit_depth: int,
        arithmetic: Arithmetic,
        chosen: Options,
    ) -> tuple[bytes, bytes]:
        """Return the 18 scores of one frame (height, width) and what is unset, as bytes."""
        ref, dist = (np.ascontiguousarray(picture) for picture in pair)
        scores, unset = (ctypes.c_double * OUTPUTS)(), (ctypes.c_bool * OUTPUTS)()
        build[f"{self.feature.name}_frame"](
            ref.ctypes.data_as(ctypes.c_void_p),
            dist.ctypes.data_as(ctypes.c_void_p),
            ref.shape[1],
            ref.shape[0],
            bit_depth,
            ctypes.byref(self.options.of(chosen)),
            ctypes.byref(self.dialect.of(arithmetic)),
            scores,
            unset,
        )
        return bytes(scores), bytes(unset)

    def frames_equal(self, library: str, path: str) -> int:
        """Hold a build against the installed module on a matrix's cells, all 18 scores.

        Returns:
            The number of frames compared; the first difference ends the program.
        """
        build, declared, frames = ctypes.CDLL(library), matrix.load(Path(path)), 0
        own = (cell for cell in plan.plan(declared) if cell.feature == self.feature.name)
        cells = {(c.fixture, c.arithmetic, c.options_name): c for c in own}
        for cell in cells.values():
            chosen = self.feature.options.model_validate({**cell.options, "debug": True})
            fixture = declared.fixtures[cell.fixture]
            with open_fixture(cell.fixture, fixture, Path(path).parent) as clip:
                arithmetic = Arithmetic(cell.dialect, cell.conclusion)
                installed = self.feature.reference(arithmetic, chosen, clip)
                for frame in range(clip.frames):
                    ref, dist = clip.read(frame, 1)
                    pair = ref[0], dist[0]
                    got = self.scores_of(build, pair, clip.bit_depth, arithmetic, chosen)
                    if got != (installed.values[frame].tobytes(), installed.unset[frame].tobytes()):
                        sys.exit(f"{cell.id} frame {frame}: the builds differ")
                    frames += 1
        return frames


FLOAT_ADM = Reference(float_adm.FEATURE, FloatDialect, FloatOptions)
INTEGER_ADM = Reference(integer_adm.FEATURE, IntegerDialect, IntegerOptions)


if __name__ == "__main__":
    (chosen,) = (r for r in (FLOAT_ADM, INTEGER_ADM) if r.feature.name == sys.argv[1])
    print(chosen.frames_equal(*sys.argv[2:]), "frames equal")  # noqa: T201 - what the caller reads
