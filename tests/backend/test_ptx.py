"""The CUDA kernels as NVRTC compiles them, without a GPU: nothing fused, flushed or estimated."""

from __future__ import annotations

import re

import pytest
from ptx import ARCHITECTURES, compiled, kernels

from backends import cuda
from backends.base import CompilationFailed
from backends.exactness import prelude
from backends.features.float_adm import FEATURE

FUSED = "fma.rn.f64"
FUSED_IN_A_POWER = 9  # the places that the specification names
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
    "powers",
    "terms",
    "row_sums",
    "fold",
}


def inexact(text: str) -> list[str]:
    """Return what no kernel may have, and where fused operations are not as many as powers ask for.

    A kernel that has powers stores each of them once, so its stores count them.
    """
    found = []
    for name, kernel in kernels(text).items():
        powers = kernel.count("st.global.f32") if name in ("powers", "terms") else 0
        listed = INEXACT.findall(kernel)
        if listed.count(FUSED) != FUSED_IN_A_POWER * powers:
            found.append(f"{name}: {FUSED} {listed.count(FUSED)} times for {powers} powers")
        found += [f"{name}: {each}" for each in listed if each != FUSED]
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ptx_of_every_kernel_is_exact(architecture: str) -> None:
    text = compiled(FEATURE.kernel_source(), architecture)
    assert set(kernels(text)) == KERNELS
    assert inexact(text) == []
    assert "div.rn.f32" in text


def test_fused_operations_are_counted_and_doubles_only() -> None:
    found = kernels(compiled(FEATURE.kernel_source(), "compute_90"))
    assert INEXACT.findall(found["powers"]) == [FUSED] * FUSED_IN_A_POWER
    assert set(INEXACT.findall(found["terms"])) == {FUSED}


def test_the_probe_kernel_fuses_once_where_it_says_so() -> None:
    text = compiled(prelude("probe.cl.h"), "compute_90")
    assert INEXACT.findall(text) == [FUSED]


@pytest.mark.parametrize(
    ("right", "wrong", "shown"),
    [
        (
            "(double)sum + 0.0666666701 * (double)centre",
            "fma(0.0666666701, (double)centre, (double)sum)",
            r"mask: fma\.rn\.f64 \d times for 0 powers",
        ),
        (
            "const double r2 = r * r;",
            "const double r2 = fma(r, r, 1.0);",
            r"powers: fma\.rn\.f64 10 times for 1 powers",
        ),
        (
            "fused ? fma(a, b, c) : c + a * b",
            "c + a * b",
            r"powers: fma\.rn\.f64 0 times for 1 powers",
        ),
    ],
)
def test_a_fused_operation_too_many_or_too_few_shows(right: str, wrong: str, shown: str) -> None:
    source = FEATURE.kernel_source()
    assert source.count(right) == 1, "the kernels have changed"
    found = inexact(compiled(source.replace(right, wrong), "compute_90"))
    assert any(re.fullmatch(shown, each) for each in found)


def test_contraction_shows_in_a_kernel_of_doubles() -> None:
    source = "KERNEL planted(GLOBAL double *x) { x[0] = x[0] * x[1] + x[2]; }"
    contracting = tuple("--fmad=true" if "fmad" in flag else flag for flag in cuda.FLAGS)
    assert inexact(compiled(source, "compute_90")) == []
    assert inexact(compiled(source, "compute_90", contracting)) == [
        "planted: fma.rn.f64 1 times for 0 powers"
    ]


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
    assert any(shown in found for found in inexact(text))


def test_contraction_shows_in_the_powers_themselves() -> None:
    contracting = tuple("--fmad=true" if "fmad" in flag else flag for flag in cuda.FLAGS)
    found = inexact(compiled(FEATURE.kernel_source(), "compute_90", contracting))
    assert "powers: fma.rn.f64 18 times for 1 powers" in found


def test_a_kernel_that_does_not_compile_shows_the_compilers_log() -> None:
    compiled(FEATURE.kernel_source(), "compute_90")  # skips where there is no NVRTC
    with pytest.raises(CompilationFailed, match="do not compile under NVRTC") as failure:
        cuda.ptx("KERNEL broken(int x) { return undeclared; }", "compute_90")
    assert "undeclared" in failure.value.log
