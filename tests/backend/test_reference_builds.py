"""The reference gives the same bits whatever compiler and optimisation level built it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from backends import reciprocal
from backends.base import Refused
from backends.features.float_adm import _reference
from backends.features.float_adm.spec import FloatAdmOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).parents[2] / "backends/features/float_adm/reference"
# The flags that the installed module was built with, less its optimisation levels.
EXACT = ["-std=c++17", *(f for f in _reference.FLAGS.split() if not f.startswith("-O"))]
BUILDS = [
    ("g++", "-O0"),
    ("g++", "-O2"),
    ("g++", "-O3"),
    ("g++", "-O3 -march=native"),
    ("clang++", "-O0"),
    ("clang++", "-O3 -march=native"),
]
OPTION_SETS = [
    {},
    {"adm_enhn_gain_limit": 1.2, "adm_csf_mode": 1},
    {"adm_csf_mode": 2, "adm_p_norm": 2.5, "adm_noise_weight": 0.0},
]
WIDTH, HEIGHT, OUTPUTS = 67, 51, 18


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


def rcpss_settings() -> Iterator[bool]:
    """Yield the divisions that this processor has."""
    yield False
    try:
        reciprocal.host_table()
    except Refused:
        return
    yield True


def built(folder: Path, compiler: str, *flags: str) -> ctypes.CDLL:
    """Compile the reference without its Python binding."""
    library = folder / "reference.so"
    sources = sorted(str(s) for s in SOURCES.glob("*.cpp") if s.name != "bindings.cpp")
    command = [compiler, *flags, "-shared", "-fPIC", "-o", str(library), *sources, "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def pictures() -> tuple[bytes, bytes]:
    random = np.random.default_rng(67)
    ref = random.integers(0, 1024, (HEIGHT, WIDTH), np.uint16)
    dist = np.clip(ref.astype(np.int32) + random.integers(-40, 41, ref.shape), 0, 1023)
    return ref.tobytes(), dist.astype(np.uint16).tobytes()


def scores_of(build: ctypes.CDLL, chosen: FloatAdmOptions, *, rcpss: bool, double: bool) -> bytes:
    """Return the 18 scores of one frame as bytes."""
    ref, dist = pictures()
    scores, unset = (ctypes.c_double * OUTPUTS)(), (ctypes.c_bool * OUTPUTS)()
    options = Options.of(chosen)
    build.float_adm_frame(
        ref, dist, WIDTH, HEIGHT, 10, ctypes.byref(options), rcpss, double, scores, unset
    )
    assert not any(unset)
    return bytes(scores)


def installed_scores(chosen: FloatAdmOptions, *, rcpss: bool, double: bool) -> bytes:
    """Return the same of the module that is installed."""
    ref, dist = (np.frombuffer(p, np.uint16).reshape(1, HEIGHT, WIDTH) for p in pictures())
    scores, unset = np.empty((1, OUTPUTS)), np.empty((1, OUTPUTS), np.bool_)
    _reference.compute(
        ref,
        dist,
        10,
        chosen.model_dump(),
        rcpss=rcpss,
        double_weights=double,
        threads=1,
        scores=scores,
        unset=unset,
    )
    return scores.tobytes()


@pytest.mark.parametrize(("compiler", "level"), BUILDS)
def test_every_build_gives_the_installed_bits(compiler: str, level: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    build = built(tmp_path, compiler, *EXACT, *level.split())
    compared = set()
    for chosen in map(FloatAdmOptions.model_validate, OPTION_SETS):
        for rcpss in rcpss_settings():
            for double in (False, True):
                got = scores_of(build, chosen, rcpss=rcpss, double=double)
                assert got == installed_scores(chosen, rcpss=rcpss, double=double)
                compared.add(got)
    assert len(compared) > len(OPTION_SETS)  # the settings do change the bits


def test_the_installed_module_was_built_without_contraction() -> None:
    assert {"-ffp-contract=off", "-fno-fast-math"} <= set(_reference.FLAGS.split())


def test_a_build_with_contraction_gives_other_bits(tmp_path: Path) -> None:
    """Shows that the comparison can fail; needs a processor with fused operations."""
    if "fma" not in Path("/proc/cpuinfo").read_text("utf-8"):
        pytest.skip("this processor has no fused multiply-add")
    build = built(tmp_path, "g++", "-std=c++17", "-O2", "-mfma", "-ffp-contract=fast")
    chosen = FloatAdmOptions()
    assert scores_of(build, chosen, rcpss=False, double=True) != installed_scores(
        chosen, rcpss=False, double=True
    )


def test_arrays_that_would_be_copied_are_refused() -> None:
    """A converted copy would be filled and dropped, and the caller would read its own garbage."""
    picture = np.zeros((1, 17, 17), np.uint8)
    scores, unset = np.zeros((1, OUTPUTS), np.float32), np.zeros((1, OUTPUTS), np.bool_)
    with pytest.raises(TypeError):
        _reference.compute(
            picture,
            picture,
            8,
            FloatAdmOptions().model_dump(),
            rcpss=False,
            double_weights=False,
            threads=1,
            scores=scores,  # type: ignore[arg-type] # the wrong dtype is the point
            unset=unset,
        )


def test_a_process_without_threads_to_spare_still_gives_every_score(tmp_path: Path) -> None:
    """Starting a thread may fail (a container's limit); that must not end the process."""
    script = """
import resource, threading
import numpy as np
from backends.features.float_adm import _reference
from backends.features.float_adm.spec import FloatAdmOptions
picture = np.random.default_rng(1).integers(0, 256, (64, 33, 33), np.uint8)
scores, unset = np.full((64, 18), -1.0), np.zeros((64, 18), np.bool_)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)  # a dozen stacks
_reference.compute(picture, picture[::-1].copy(), 8, FloatAdmOptions().model_dump(), rcpss=False,
                   double_weights=False, threads=64, scores=scores, unset=unset)
assert (scores[:, 0] > 0).all()
print("every score")
"""
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "every score\n"), ended.stderr
