"""The reference gives the same bits whatever compiler and optimisation level built it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import reference_builds
from reference_builds import OUTPUTS, compiled, scores_of
from requirements import absent
from stills import noise

from backends import reciprocal
from backends.base import Arithmetic
from backends.features.float_adm import FEATURE, _reference, spec
from backends.features.float_adm.spec import FloatAdmOptions

SMOKE = Path(__file__).parents[2] / "matrices" / "smoke.yaml"
CPU = Path("/proc/cpuinfo").read_text("utf-8")

# The flags that the installed module was built with, less its optimisation levels.
EXACT = ["-std=c++17", *(f for f in _reference.FLAGS.split() if not f.startswith("-O"))]
LEVELS = [
    "-O0",
    "-O2",
    "-O3",
    "-O2 -march=x86-64-v2",
    "-O3 -march=x86-64-v3",
    "-O3 -march=x86-64-v4",
]
NEEDS = {"v2": "sse4_2", "v3": "avx2", "v4": "avx512vl"}  # what the processor must have to run it
OPTION_SETS = [
    {"debug": True, "adm_enhn_gain_limit": 1.2, "adm_csf_mode": 1},
    {"debug": True, "adm_csf_mode": 2, "adm_p_norm": 2.5, "adm_noise_weight": 0.0},
]


FRAMES = 156  # of smoke.yaml: twelve, under three option sets in four dialects and one more

# The rcpss dialects need the instruction; the reference asks for nothing else.
DIALECTS = [d for d in spec.DIALECTS if _reference.HAS_RCPSS or not spec.uses_rcpss(d)]


ARITHMETICS = [
    *map(Arithmetic, DIALECTS),
    Arithmetic("ieee-single", "vmafx"),
    *(Arithmetic("rcpss-single", rcp_table=table) for table in reciprocal.shipped().values()),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_every_build_gives_the_installed_bits(compiler: str, level: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        absent(compiler, "not installed")
    needed = NEEDS.get(level[-2:], "")
    if needed not in CPU:
        pytest.skip(f"this processor has no {needed}")
    library = compiled(tmp_path, compiler, *EXACT, *level.split())
    assert reference_builds.frames_equal(str(library), str(SMOKE)) == FRAMES
    build, clip = ctypes.CDLL(str(library)), noise(67, 51, 1, 12)
    for chosen in map(FloatAdmOptions.model_validate, OPTION_SETS):
        for arithmetic in ARITHMETICS:
            installed = FEATURE.reference(arithmetic, chosen, clip)
            got = scores_of(build, (clip.ref[0], clip.dist[0]), 12, arithmetic, chosen)
            assert got == (installed.values.tobytes(), installed.unset.tobytes())


def test_the_installed_module_was_built_without_contraction() -> None:
    assert {"-ffp-contract=off", "-fno-fast-math"} <= set(_reference.FLAGS.split())


def test_a_build_with_contraction_gives_other_bits(tmp_path: Path) -> None:
    """Shows that the comparison can fail; needs a processor with fused operations."""
    if " fma " not in CPU:
        pytest.skip("this processor has no fused multiply-add")
    flags = ["-std=c++17", "-O2", "-mfma", "-ffp-contract=fast"]
    build = ctypes.CDLL(str(compiled(tmp_path, "g++", *flags)))
    clip, chosen = noise(67, 51, 1), FloatAdmOptions(debug=True)
    got, _ = scores_of(build, (clip.ref[0], clip.dist[0]), 8, Arithmetic("ieee-double"), chosen)
    assert got != FEATURE.reference(Arithmetic("ieee-double"), chosen, clip).values.tobytes()


def sanitized(
    folder: Path, swap: tuple[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Compute every cell of smoke.yaml with a sanitized build inside a sanitized process."""
    checks = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    library = compiled(folder, "g++", *EXACT, *checks, swap=swap)
    runtime = subprocess.run(
        ["g++", "-print-file-name=libasan.so"],  # noqa: S607 - the compiler that built it
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return subprocess.run(
        [sys.executable, reference_builds.__file__, str(library), str(SMOKE)],
        # Python itself leaks on purpose; the reference's own leaks are what valgrind would find
        env={**os.environ, "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_sanitizers_find_nothing_on_the_smoke_matrix(tmp_path: Path) -> None:
    ended = sanitized(tmp_path)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout == f"{FRAMES} frames equal\n"
    assert ended.stderr == ""


def test_a_planted_read_past_a_row_is_found_by_the_sanitizers(tmp_path: Path) -> None:
    """A mirror rule without its far end reads behind the plane."""
    ended = sanitized(tmp_path, swap=("return i >= n ? 2 * n - 1 - i : i;", "return i;"))
    assert ended.returncode != 0
    assert "heap-buffer-overflow" in ended.stderr


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
            division=_reference.Division.ieee,
            table=None,
            double_weights=False,
            vmafx_conclusion=False,
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
_reference.compute(picture, picture[::-1].copy(), 8, FloatAdmOptions().model_dump(),
                   division=_reference.Division.ieee, table=None, double_weights=False,
                   vmafx_conclusion=False, threads=64, scores=scores, unset=unset)
assert (scores[:, 0] > 0).all()
print("every score")
"""
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "every score\n"), ended.stderr
