"""Each reference gives the same bits whatever compiler and optimisation level built it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
import reference_builds
from reference_builds import FLOAT_ADM, INTEGER_ADM, OUTPUTS, Reference
from requirements import absent
from stills import noise

from backends import reciprocal
from backends.base import Arithmetic
from backends.features.float_adm import _reference, spec
from backends.features.float_adm.spec import FloatAdmOptions
from backends.features.integer_adm import _reference as integer_reference

if TYPE_CHECKING:
    from types import ModuleType

SMOKE = Path(__file__).parents[2] / "matrices" / "smoke.yaml"
CPU = Path("/proc/cpuinfo").read_text("utf-8")

# The flags that the installed module was built with, less its optimisation levels.
EXACT = ["-std=c++17", *(f for f in _reference.FLAGS.split() if not f.startswith("-O"))]
NEEDS = {"v2": "sse4_2", "v3": "avx2", "v4": "avx512vl"}  # what the processor must have to run it

# The rcpss dialects need the instruction; the reference asks for nothing else.
DIALECTS = [d for d in spec.DIALECTS if _reference.HAS_RCPSS or not spec.uses_rcpss(d)]


class Asked(NamedTuple):
    """What the builds of a reference are asked for, beside its cells of smoke.yaml."""

    levels: list[str]
    frames: int  # of smoke.yaml
    arithmetics: list[Arithmetic]
    options: list[dict[str, Any]]


ASKED = {
    FLOAT_ADM: Asked(
        [
            "-O0",
            "-O2",
            "-O3",
            "-O2 -march=x86-64-v2",
            "-O3 -march=x86-64-v3",
            "-O3 -march=x86-64-v4",
        ],
        169,  # thirteen, under three option sets in four dialects and one more
        [
            *map(Arithmetic, DIALECTS),
            Arithmetic("ieee-single", "vmafx"),
            *(Arithmetic("rcpss-single", rcp_table=t) for t in reciprocal.shipped().values()),
        ],
        [
            {"adm_enhn_gain_limit": 1.2, "adm_csf_mode": 1},
            {"adm_csf_mode": 2, "adm_p_norm": 2.5, "adm_noise_weight": 0.0},
        ],
    ),
    INTEGER_ADM: Asked(
        ["-O0", "-O2", "-O3 -march=native"],
        88,  # thirteen, less one in netflix, under three option sets; in vmafx one more
        [Arithmetic("netflix"), Arithmetic("vmafx"), Arithmetic("vmafx", "vmafx")],
        [
            {"adm_enhn_gain_limit": 1.2, "adm_csf_mode": 1},
            {"adm_csf_mode": 2, "adm_noise_weight": 0.0},
        ],
    ),
}


def name(reference: Reference) -> str:
    return reference.feature.name


BUILDS = [(reference, level) for reference, asked in ASKED.items() for level in asked.levels]


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(
    ("reference", "level"),
    BUILDS,
    ids=[f"{name(reference)}-{level}" for reference, level in BUILDS],
)
def test_every_build_gives_the_installed_bits(
    reference: Reference, compiler: str, level: str, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        absent(compiler, "not installed")
    needed = NEEDS.get(level[-2:], "")
    if needed not in CPU:
        pytest.skip(f"this processor has no {needed}")
    library = reference.compiled(tmp_path, compiler, *EXACT, *level.split())
    asked = ASKED[reference]
    assert reference.frames_equal(str(library), str(SMOKE)) == asked.frames
    build, clip = ctypes.CDLL(str(library)), noise(67, 51, 1, 12)
    for options in asked.options:
        chosen = reference.feature.options.model_validate({"debug": True, **options})
        for arithmetic in asked.arithmetics:
            installed = reference.feature.reference(arithmetic, chosen, clip)
            pair = clip.ref[0], clip.dist[0]
            got = reference.scores_of(build, pair, 12, arithmetic, chosen)
            assert got == (installed.values.tobytes(), installed.unset.tobytes())


@pytest.mark.parametrize("module", [_reference, integer_reference])
def test_the_installed_module_was_built_without_contraction(module: ModuleType) -> None:
    assert {"-ffp-contract=off", "-fno-fast-math"} <= set(module.FLAGS.split())


def test_a_build_with_contraction_gives_other_bits(tmp_path: Path) -> None:
    """Shows that the comparison can fail; needs a processor with fused operations."""
    if " fma " not in CPU:
        pytest.skip("this processor has no fused multiply-add")
    flags = ["-std=c++17", "-O2", "-mfma", "-ffp-contract=fast"]
    build = ctypes.CDLL(str(FLOAT_ADM.compiled(tmp_path, "g++", *flags)))
    clip, chosen = noise(67, 51, 1), FloatAdmOptions(debug=True)
    arithmetic = Arithmetic("ieee-double")
    got, _ = FLOAT_ADM.scores_of(build, (clip.ref[0], clip.dist[0]), 8, arithmetic, chosen)
    assert got != FLOAT_ADM.feature.reference(arithmetic, chosen, clip).values.tobytes()


def sanitized(
    reference: Reference, folder: Path, swap: tuple[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Compute the reference's cells of smoke.yaml sanitized, in a sanitized process."""
    checks = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    library = reference.compiled(folder, "g++", *EXACT, *checks, swap=swap)
    runtime = subprocess.run(
        ["g++", "-print-file-name=libasan.so"],  # noqa: S607 - the compiler that built it
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return subprocess.run(
        [
            sys.executable,
            reference_builds.__file__,
            reference.feature.name,
            str(library),
            str(SMOKE),
        ],
        # Python itself leaks on purpose; the reference's own leaks are what valgrind would find
        env={**os.environ, "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("reference", ASKED, ids=name)
def test_sanitizers_find_nothing_on_the_smoke_matrix(reference: Reference, tmp_path: Path) -> None:
    ended = sanitized(reference, tmp_path)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout == f"{ASKED[reference].frames} frames equal\n"
    assert ended.stderr == ""


def test_a_planted_read_past_a_row_is_found_by_the_sanitizers(tmp_path: Path) -> None:
    """A mirror rule without its far end reads behind the plane."""
    ended = sanitized(FLOAT_ADM, tmp_path, swap=("return i >= n ? 2 * n - 1 - i : i;", "return i;"))
    assert ended.returncode != 0
    assert "heap-buffer-overflow" in ended.stderr


def test_a_planted_overflow_is_found_by_the_sanitizers(tmp_path: Path) -> None:
    """A square in 32 bits."""
    swap = ("std::int64_t cube(std::int64_t x)", "std::int64_t cube(std::int32_t x)")
    ended = sanitized(INTEGER_ADM, tmp_path, swap=swap)
    assert ended.returncode != 0
    assert "signed integer overflow" in ended.stderr


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
from backends.features.integer_adm import _reference as integer_reference
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
