"""The reference built without Python, with any compiler and flags, and called through ctypes.

Run as a program, it computes every cell of a matrix with one such build and with the installed
module: `reference_builds.py LIBRARY MATRIX` prints how many frames were equal, or fails.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np

from backends.base import Arithmetic, Luma
from backends.features.float_adm import FEATURE, _reference, spec
from backends.features.float_adm.spec import FloatAdmOptions
from gate import matrix, plan
from gate.fixtures import open_fixture

OUTPUTS = 18
IEEE = _reference.Division.ieee
SOURCES = Path(__file__).parents[2] / "backends/features/float_adm/reference"


class Dialect(ctypes.Structure):
    """float_adm::Dialect, field by field."""

    _fields_ = [
        ("division", ctypes.c_int),
        ("table", ctypes.c_void_p),
        ("double_weights", ctypes.c_int),
        ("vmafx_conclusion", ctypes.c_int),
    ]

    @classmethod
    def of(cls, arithmetic: Arithmetic) -> Dialect:
        """Return the arithmetic on this processor, or with its replayed table."""
        dialect, replayed = arithmetic.dialect, arithmetic.rcp_table
        division, table = IEEE, None
        if spec.uses_rcpss(dialect):
            division = _reference.Division.table if replayed else _reference.Division.instruction
            table = replayed.bits.ctypes.data if replayed else None
        return cls(division.value, table, spec.double_weights(dialect), spec.vmafx(arithmetic))


class Options(ctypes.Structure):
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
    def of(cls, chosen: FloatAdmOptions) -> Options:
        own = cls()
        for name, *_ in cls._fields_:
            if name in {"f1", "f2"}:
                weights = [getattr(chosen, f"adm_{name}s{scale}") for scale in range(4)]
                setattr(own, name, (ctypes.c_double * 4)(*weights))
            else:
                setattr(own, name, getattr(chosen, f"adm_{name}"))
        return own


def compiled(folder: Path, compiler: str, *flags: str, swap: tuple[str, str] | None = None) -> Path:
    """Compile the reference without its Python binding, after an optional planted swap of text."""
    texts = {s.name: s.read_text("utf-8") for s in SOURCES.iterdir() if s.name != "bindings.cpp"}
    if swap is not None:
        assert sum(text.count(swap[0]) for text in texts.values()) == 1, "the source has changed"
        texts = {name: text.replace(*swap) for name, text in texts.items()}
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    library = folder / "reference.so"
    sources = sorted(str(path) for path in folder.glob("*.cpp"))
    command = [compiler, *flags, "-shared", "-fPIC", "-o", str(library), *sources, "-lm"]
    subprocess.run(command, check=True)
    return library


def scores_of(
    build: ctypes.CDLL,
    pair: tuple[Luma, Luma],
    bit_depth: int,
    arithmetic: Arithmetic,
    chosen: FloatAdmOptions,
) -> tuple[bytes, bytes]:
    """Return the 18 scores of one frame (height, width) and what is unset, as bytes."""
    ref, dist = (np.ascontiguousarray(picture) for picture in pair)
    scores, unset = (ctypes.c_double * OUTPUTS)(), (ctypes.c_bool * OUTPUTS)()
    build.float_adm_frame(
        ref.ctypes.data_as(ctypes.c_void_p),
        dist.ctypes.data_as(ctypes.c_void_p),
        ref.shape[1],
        ref.shape[0],
        bit_depth,
        ctypes.byref(Options.of(chosen)),
        ctypes.byref(Dialect.of(arithmetic)),
        scores,
        unset,
    )
    return bytes(scores), bytes(unset)


def frames_equal(library: str, path: str) -> int:
    """Hold a build against the installed module on every cell of a matrix, all 18 scores.

    Returns:
        The number of frames compared; the first difference ends the program.
    """
    build, declared, frames = ctypes.CDLL(library), matrix.load(Path(path)), 0
    cells = {(c.fixture, c.arithmetic, c.options_name): c for c in plan.plan(declared)}
    for cell in cells.values():
        chosen = FloatAdmOptions.model_validate({**cell.options, "debug": True})
        with open_fixture(cell.fixture, declared.fixtures[cell.fixture], Path(path).parent) as clip:
            arithmetic = Arithmetic(cell.dialect, cell.conclusion)
            installed = FEATURE.reference(arithmetic, chosen, clip)
            for frame in range(clip.frames):
                ref, dist = clip.read(frame, 1)
                got = scores_of(build, (ref[0], dist[0]), clip.bit_depth, arithmetic, chosen)
                if got != (installed.values[frame].tobytes(), installed.unset[frame].tobytes()):
                    sys.exit(f"{cell.id} frame {frame}: the builds differ")
                frames += 1
    return frames


if __name__ == "__main__":
    print(frames_equal(*sys.argv[1:]), "frames equal")  # noqa: T201 - what the caller reads
