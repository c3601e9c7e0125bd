"""Runs built by hand: every status, values that are hard to print, text that is hard to escape."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from backends.evidence import Proof
from gate.model import (
    UNFINISHED,
    Cell,
    Comparison,
    Control,
    Mismatch,
    ReferenceScores,
    Result,
    Run,
    Stability,
    Status,
    control_sentence,
    failure_sentence,
    stability_sentence,
)

HOSTILE = (
    "k.cl:1: error: `x` | y </failure></error> ]]> <script>alert(1)</script> & \x00 \x1b[31mred"
    "\x9b2J \ufffe \udc80\r\n```\n## not a heading"
)

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]


def _cell(fixture: str = "bbb_576x324_420p8", candidate: str = "cuda", **others: object) -> Cell:
    cell = Cell(
        feature="float_adm",
        dialect="rcpss-double",
        conclusion="netflix",
        options_name="egl_1.2",
        fixture=fixture,
        candidate=candidate,
        reference="cpu",
        options={"adm_enhn_gain_limit": 1.2},
        outputs=("adm2", "aim", "adm3", "adm_scale0", "adm_scale1", "adm_scale2", "adm_scale3"),
        width=576,
        height=324,
        bit_depth=8,
        frames=12,
        line=14,
    )
    return replace(cell, **others)  # type: ignore[arg-type]  # any field, by its name


MISMATCHES = (
    Mismatch(
        3, "adm2", float.fromhex("0x1.de3b6ep-1"), float.fromhex("0x1.de3b6cp-1"), -1, "ulp32"
    ),
    Mismatch(3, "aim", 0.0, -0.0, -1, "ulp32"),
    Mismatch(7, "adm3", 0.5, math.nan, None, ""),
    Mismatch(7, "adm_scale0", None, math.inf, None, ""),
)
OPERANDS = (
    Mismatch(23910, "flag", 1.0, 0.0, -1065353216, "ulp32", (-11037, -15188, -12400, -16452)),
    Mismatch(40000, "flag", 0.0, 1.0, 1065353216, "ulp32", (1, -2, 3, 2**63 - 1)),
)
SENTENCE = "frame 3 adm2: 0x1.de3b6cp-1 expected 0x1.de3b6ep-1 (-1 ulp32), 4 of 84 scores"
KNOWN = "SIMD loses the last <column> | of width 32"
AGREES = "agrees although d.yaml:3 lists it; narrow or delete the entry"
STEADY = (
    Control("reference", "again", 84, 0),
    Control("reference", "on one thread", 84, 0),
    Control("reference", "in dirty memory", 84, 0),
)
MOVED = (STEADY[0], Control("reference", "on one thread", 84, 3), STEADY[2])
PROOF = Proof("NVIDIA H200, 0a1b", frames=12, launches=33, nanoseconds=1_500_000)
PROGRAM = Proof("3.0.0, sha256 ab", frames=12, launches=0, nanoseconds=0)
MISSING = "opencl:nvidia: no platform 'NVIDIA CUDA' on this machine"


@pytest.fixture(scope="session")
def build_cell() -> BuildCell:
    """Return a function that builds a cell; every field can be replaced by name."""
    return _cell


@pytest.fixture
def passed() -> Result:
    return Result(
        _cell("noise_17x17_420p8"),
        Status.PASS,
        comparison=Comparison(84, 3, 7, 0, ()),
        reference_seconds=0.5,
        seconds=1.25,
        proof=PROOF,
    )


@pytest.fixture
def failed() -> Result:
    return Result(
        _cell(),
        Status.FAIL,
        SENTENCE,
        comparison=Comparison(84, 0, 0, 4, MISMATCHES),
        reference_seconds=0.5,
        seconds=2.5,
    )


@pytest.fixture
def unsteady() -> Result:
    """Return a cell whose candidate gives other bits now and then."""
    stability = Stability(30, 2, 3)
    return Result(
        _cell("stripes_33x33_420p8"),
        Status.NONDETERMINISTIC,
        stability_sentence("cuda", stability),
        comparison=Comparison(84, 0, 0, 1, MISMATCHES[:1]),
        stability=stability,
    )


@pytest.fixture
def moved() -> Result:
    """Return a cell whose reference gives other bits on one thread."""
    result = Result(
        _cell("waves_33x33_420p8"),
        Status.NONDETERMINISTIC,
        comparison=Comparison(84, 0, 0, 4, MISMATCHES),
        controls=(*MOVED, Control("candidate", "again", 84, 0)),
    )
    reason = f"{control_sentence(MOVED[1], 'cpu')}; {failure_sentence(result)}"
    return replace(result, reason=reason)


@pytest.fixture
def known() -> Result:
    comparison = Comparison(84, 0, 0, 2, MISMATCHES[:2])
    cell = _cell("noise_32x32_420p8", "libvmaf")
    return Result(cell, Status.KNOWN, KNOWN, comparison=comparison, proof=PROGRAM)


@pytest.fixture
def agreeing() -> Result:
    """Return a cell that fails because its scores agree."""
    return Result(_cell(), Status.FAIL, AGREES, comparison=Comparison(84, 0, 0, 0, ()))


@pytest.fixture
def corpus() -> Result:
    """Return a failed operand corpus, of whose mismatches only the first are kept."""
    cell = _cell("near_parallel", feature="angle", outputs=("flag",), frames=3_000_000)
    comparison = Comparison(3_000_000, 0, 0, 23_000, OPERANDS)
    result = Result(cell, Status.FAIL, comparison=comparison)
    return replace(result, reason=failure_sentence(result))


@pytest.fixture
def broken() -> Result:
    return Result(_cell("flat_16x16"), Status.ERROR, f"csf does not compile: {HOSTILE}", HOSTILE)


@pytest.fixture
def unfinished() -> Result:
    return Result(_cell("late"), Status.ERROR, UNFINISHED)


@pytest.fixture
def skipped() -> Result:
    return Result(_cell(candidate="opencl:intel"), Status.SKIP, "opencl:intel: no such platform")


@pytest.fixture(scope="session")
def build_run() -> BuildRun:
    """Return a function that builds a run of some results; every field can be replaced by name."""

    def build(*results: Result, **others: object) -> Run:
        run = Run(
            id="0123456789abcdef",
            matrix="matrices/pr.yaml",
            selection=(),
            planned=len(results),
            results=results,
            references=(
                ReferenceScores(
                    "float_adm",
                    "rcpss-double",
                    "netflix",
                    "egl_1.2",
                    "bbb_576x324_420p8",
                    "cpu",
                    ("adm2", "aim", "adm3"),
                    ((0.1, -0.0, None), (math.nan, math.inf, -math.inf)),
                ),
            ),
            missing=(),
            notes=(),
            command="parity-gate run matrices/pr.yaml",
            environment={
                "host": {"processor": "Some <CPU> | 3 GHz", "C library": "glibc 2.36"},
                "candidate cuda": {"device": "NVIDIA H200", "flags": "--fmad=false\n-prec-div"},
            },
            started="2030-01-02T03:04:05+00:00",
            seconds=12.5,
            interrupted=False,
        )
        return replace(run, **others)  # type: ignore[arg-type]  # any field, by its name

    return build


@pytest.fixture
def run(
    build_run: BuildRun,
    passed: Result,
    known: Result,
    failed: Result,
    unsteady: Result,
    broken: Result,
    skipped: Result,
) -> Run:
    """Return a run with a cell of every status."""
    return build_run(passed, known, failed, unsteady, broken, skipped)
