"""Features without floating point, and the witness of pictures, have none in any kernel.

That is read off what two compilers make of them. So these kernels run on devices without doubles.
The prelude's words for floats do not count: what no kernel calls leaves nothing in a compiler's
output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from ptx import ARCHITECTURES, compiled, kernels

from backends import registry
from backends.evidence import WITNESS
from backends.exactness import prelude
from backends.features.integer_adm import FEATURE

FEATURES = [each for each in registry.features().values() if not each.floats]
SOURCES = {
    **{feature.name: feature.kernel_source() for feature in FEATURES},
    WITNESS: prelude(f"{WITNESS}.cl.h"),
}
sources = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)

# Types of PTX and of LLVM, vectors of them included, and what both call them in names of functions.
FLOATS = re.compile(r"(?<![\w.])(?:half|bfloat|float|double)\b|\.(?:b?f16|f32|f64)(?:x2)?\b")
# A compiler may expand a division of integers with reciprocals in floating point; one by a constant
# it turns into a product, in LLVM's text not yet.
DIVISIONS = re.compile(r"\b(?:div|rem)\.\S+|\b[su](?:div|rem)\b[^,]+, %\w+")


def kernels_of(source: str) -> int:
    return source.count("\nKERNEL ")


def found(text: str) -> set[str]:
    """Return every type of floating point and every division in PTX or LLVM's text."""
    return {*FLOATS.findall(text), *DIVISIONS.findall(text)}


@sources
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ptx_has_no_floating_point_and_no_division(source: str, architecture: str) -> None:
    text = compiled(source, architecture)
    assert len(kernels(text)) == kernels_of(source) > 0
    assert found(text) == set()


def test_integer_adm_is_a_feature_without_floats() -> None:
    assert [feature.name for feature in FEATURES] == ["integer_adm"]


def test_a_feature_with_floats_shows_them() -> None:
    text = compiled(registry.features()["float_adm"].kernel_source(), "compute_90")
    assert {".f32", ".f64", "div.rn.f32"} <= found(text)


LIMIT = "const long limit = gained((ulong)magnitude(value), gain, places);"
TABLE = "(long)reciprocals[(size + half_of(drop)) >> drop]"
SLOTS = "const long num = threshold("
CUDA_HALF = 'short bits; asm("cvt.rn.{}.f32 %0, 0f3F800000;" : "=h"(bits)); '
# what is planted; its place and what stands there; what PTX and LLVM show of it
PLANTED = {
    "a double": (
        (LIMIT, "const long limit = (long)((double)magnitude(value) * 1.2);"),
        (".f64", "double"),
    ),
    "a float division": (
        (TABLE, "(long)(1073741824.0f / (float)((size + half_of(drop)) >> drop))"),
        ("div.rn.f32", "float"),
    ),
    "an integer division": (
        (TABLE, "(long)((1 << 30) / (int)((size + half_of(drop)) >> drop))"),
        ("div.s32", "sdiv"),
    ),
    "a remainder": (
        ("kept & 1", "kept % (unit + 1)"),
        ("rem.u64", "urem"),
    ),
}
planted = pytest.mark.parametrize(("swap", "shown"), PLANTED.values(), ids=PLANTED)


def faulty(swap: tuple[str, str]) -> str:
    source = FEATURE.kernel_source()
    assert source.count(swap[0]) == 1, "the kernels have changed"
    return source.replace(*swap)


@planted
def test_what_is_planted_shows_in_ptx(swap: tuple[str, str], shown: tuple[str, str]) -> None:
    assert any(shown[0] in each for each in found(compiled(faulty(swap), "compute_90")))


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_a_half_shows_in_ptx(type_: str) -> None:
    """NVRTC has these types in headers only, so an instruction stands for them."""
    half = (SLOTS, CUDA_HALF.format(type_) + "sums[0] += (ulong)bits; " + SLOTS)
    assert f".{type_}" in found(compiled(faulty(half), "compute_90"))


# Builds argv[1] for Oclgrind as its backend does, which would build the exactness probe, too.
BUILD = """
import sys
import pyopencl
from backends import opencl
name = opencl.PLATFORMS[opencl.OCLGRIND]
platform = next(each for each in pyopencl.get_platforms() if each.name == name)
flags = (*opencl.FLAGS, opencl.UNOPTIMISED)
opencl.OpenClDevice(platform.get_devices()[0], flags=flags).compile(sys.argv[1])
"""
DUMPS = Path("/tmp")  # noqa: S108 - Oclgrind asks no variable for its folder


def dumped(source: str) -> str:
    """Return the LLVM text that Oclgrind makes of a source and leaves beside it."""
    mark = f"// {uuid.uuid4()}\n"
    subprocess.run(
        [sys.executable, "-c", BUILD, source + mark],
        env={**os.environ, "OCLGRIND_DUMP_SPIR": "1", "PYOPENCL_NO_CACHE": "1"},
        check=True,
    )
    own = [file for file in DUMPS.glob("oclgrind_*.cl") if mark in file.read_text("utf-8")]
    assert len(own) == 1, "Oclgrind has dumped nothing"
    text = own[0].with_suffix(".ll").read_text("utf-8")
    for suffix in (".cl", ".ll", ".bc"):
        own[0].with_suffix(suffix).unlink()
    return text


@sources
@pytest.mark.usefixtures("oclgrind")
def test_llvm_has_no_floating_point_and_no_division(source: str) -> None:
    text = dumped(source)
    assert text.count("define dso_local spir_kernel") == kernels_of(source)
    assert found(text) == set()


@planted
@pytest.mark.usefixtures("oclgrind")
def test_what_is_planted_shows_in_llvm(swap: tuple[str, str], shown: tuple[str, str]) -> None:
    assert any(shown[1] in each for each in found(dumped(faulty(swap))))


@pytest.mark.usefixtures("oclgrind")
def test_a_half_shows_in_llvm() -> None:
    half = (SLOTS, "sums[0] += (ulong)vload_half(0, (GLOBAL const half *)bands); " + SLOTS)
    assert {"half", "float"} <= found(dumped(faulty(half)))
