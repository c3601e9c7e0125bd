"""The CUDA kernels as NVRTC compiles them, without a GPU: nothing fused, flushed or estimated."""

from __future__ import annotations

import re

import pytest
from requirements import absent

from backends import cuda
from backends.base import CompilationFailed, Unavailable
from backends.exactness import prelude
from backends.features.float_adm import FEATURE

ARCHITECTURES = ("compute_75", "compute_80", "compute_90")
# Anything that rounds once where the specification rounds twice, flushes, or estimates
# (.app... is PTX's word for an estimate).
INEXACT = re.compile(r"\b(?:fma\.\S+|mad\.\S*f(?:32|64)|\S+\.ftz\S*|\S+\.app\w*\S*|div\.full\S*)")
KERNELS = {
    "pixels_8",
    "pixels_16",
    "dwt_vertical",
    "dwt_horizontal",
    "decouple",
    "csf",
    "mask",
    "terms",
    "row_sums",
    "fold",
}


def compiled(source: str, architecture: str, flags: tuple[str, ...] = cuda.FLAGS) -> str:
    try:
        return cuda.ptx(source, architecture, flags)
    except Unavailable as absence:
        absent("nvrtc", absence)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ptx_of_every_kernel_is_exact(architecture: str) -> None:
    text = compiled(FEATURE.kernel_source(), architecture)
    assert set(re.findall(r"\.entry (\w+)", text)) == KERNELS
    assert INEXACT.findall(text) == []
    assert "div.rn.f32" in text


def test_the_probe_kernel_compiles_exactly() -> None:
    assert INEXACT.findall(compiled(prelude("probe.cl.h"), "compute_90")) == []


@pytest.mark.parametrize(
    ("planted", "shown"),
    [
        ("--fmad=true", "fma.rn.f32"),
        ("--ftz=true", ".ftz"),
        ("--prec-div=false", "div.full"),
        ("--use_fast_math", "div.app"),
    ],
)
def test_a_planted_flag_shows_in_the_ptx(planted: str, shown: str) -> None:
    name = planted.partition("=")[0]
    kept = tuple(flag for flag in cuda.FLAGS if not flag.startswith(name))
    if planted == "--use_fast_math":
        kept = (cuda.FLAGS.language,)
    text = compiled(FEATURE.kernel_source(), "compute_90", (*kept, planted))
    assert any(shown in found for found in INEXACT.findall(text))


def test_a_kernel_that_does_not_compile_shows_the_compilers_log() -> None:
    compiled(FEATURE.kernel_source(), "compute_90")  # skips where there is no NVRTC
    with pytest.raises(CompilationFailed, match="do not compile under NVRTC") as failure:
        cuda.ptx("KERNEL broken(int x) { return undeclared; }", "compute_90")
    assert "undeclared" in failure.value.log
