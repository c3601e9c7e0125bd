"""The real kernels under Oclgrind: no race, no access out of bounds, no API error; all bits equal.

Oclgrind reads its settings when it is loaded and reports beside an exit code of 0, so that
everything here runs in a process of its own, whose log and stderr must be empty of findings.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from backends import registry
from backends.evidence import NO_NONCE
from backends.witness import WORDS
from gate.proof import mixed_sum, witness

if TYPE_CHECKING:
    from backends.base import Backend

ROOT = Path(__file__).parents[2]
MATRIX = ROOT / "matrices" / "oclgrind.yaml"

pytestmark = pytest.mark.usefixtures("oclgrind")

API_ERROR = re.compile(r"Function: (\w+)\n\tError: +(\w+)\n(?:\t(.*)\n)?")
# PyOpenCL asks once a kernel for a property that OpenCL 1.2 does not have, and takes no for an
# answer.
HARMLESS = ("clGetDeviceInfo", "CL_INVALID_VALUE", "For argument 'param_name'")


class Checked(NamedTuple):
    """What a process left behind, and what Oclgrind found in it."""

    process: subprocess.CompletedProcess[str]
    log: str
    api_errors: list[tuple[str, ...]]


def under_oclgrind(folder: Path, *arguments: str, check: str = "OCLGRIND_DATA_RACES") -> Checked:
    """Run Python under Oclgrind's checks; bounds are always checked."""
    log = folder / "oclgrind.log"
    settings = {check: "1", "OCLGRIND_CHECK_API": "1", "OCLGRIND_LOG": str(log)}
    process = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **settings, "PYTHONPATH": str(ROOT / "tests" / "support")},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [match.groups() for match in API_ERROR.finditer(process.stderr)]
    return Checked(process, log.read_text("utf-8"), [each for each in found if each != HARMLESS])


def test_the_real_kernels_are_clean_and_give_every_bit(tmp_path: Path) -> None:
    run = ("-m", "gate", "run", str(MATRIX), "--require", "opencl:oclgrind", "--out", "out")
    checked = under_oclgrind(tmp_path, *run)
    assert checked.process.returncode == 0, checked.process.stderr
    verdict = checked.process.stdout.splitlines()[-1]
    assert verdict == "PASS: 92 cells, 92 PASS, 1256 scores compared, 0 different"
    assert checked.log == ""
    assert checked.api_errors == []


# Starts the kernel `planted` of argv[1] in one work group: 64 x 4 items, 256 floats in and out.
LAUNCH = """
import sys
import numpy as np
from backends import registry
device = registry.open_backend("opencl:oclgrind").device
source, floats = sys.argv[1], int(sys.argv[2])
given, left = device.upload(np.ones(256, np.float32)), device.empty(4 * 256)
device.compile(source).launch("planted", (64, 4, 1), given, left)
print(*device.download(left, (floats,), np.dtype(np.float32))[:4])
"""
HEAD = "KERNEL planted(GLOBAL const float *given, GLOBAL float *left)\n"
BARRIER = "barrier(CLK_LOCAL_MEM_FENCE);"
# Local memory has no word in the dialect: no kernel of a feature uses it.
REDUCTION = (
    HEAD
    + """{
    __local float row[4][64];
    const int x = get_local_id(0), y = get_local_id(1);
    row[y][x] = given[64 * y + x];
    for (int step = 32; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (x < step)
            row[y][x] = row[y][x] + row[y][x + step];
    }
    if (x == 0)
        left[y] = row[y][0];
}"""
)
COPY = HEAD + "{ const int i = 64 * ID(1) + ID(0); left[i] = given[i]; }"
PRIVATE = (
    HEAD
    + """{
    float own[2];
    const int i = 64 * ID(1) + ID(0);
    own[0] = given[i];
    own[1] = given[i];
    left[i] = own[i & 1];
}"""
)


class Cause(NamedTuple):
    """A fault, the kernel text that it spoils, and the kind that Oclgrind calls it."""

    name: str
    source: str
    right: str
    wrong: str
    kind: str
    check: str = "OCLGRIND_DATA_RACES"


CAUSES = [
    Cause("a missing barrier", REDUCTION, BARRIER, "", "Read-write data race at local memory"),
    Cause("a read past the end", COPY, "given[i]", "given[i + 1]", "Invalid read of size 4"),
    Cause("a write past the end", COPY, "left[i]", "left[i + 1]", "Invalid write of size 4"),
    Cause("one place for all", COPY, "= given[i]", "= left[0]", "Read-write data race at global"),
    Cause(
        "a value never written",
        PRIVATE,
        "    own[1] = given[i];\n",
        "",
        "Uninitialized value written to global memory",
        # Not for the real kernels: there it also names values that agree bit for bit.
        check="OCLGRIND_UNINITIALIZED",
    ),
]
causes = pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)


@causes
def test_a_planted_fault_is_logged_with_its_kernel_and_kind(cause: Cause, tmp_path: Path) -> None:
    assert cause.source.count(cause.right) == 1
    faulty = cause.source.replace(cause.right, cause.wrong)
    checked = under_oclgrind(tmp_path, "-c", LAUNCH, faulty, "256", check=cause.check)
    assert checked.process.returncode == 0, "Oclgrind has learnt to fail: rely on it"
    assert cause.kind in checked.log
    assert set(re.findall(r"\tKernel: (\w+)", checked.log)) == {"planted"}


@causes
def test_without_the_fault_the_log_is_empty(cause: Cause, tmp_path: Path) -> None:
    checked = under_oclgrind(tmp_path, "-c", LAUNCH, cause.source, "256", check=cause.check)
    assert checked.process.returncode == 0, checked.process.stderr
    assert checked.process.stdout.startswith("64.0 " if cause.source is REDUCTION else "1.0 ")
    assert checked.log == ""
    assert checked.api_errors == []


def test_a_planted_api_error_is_told(tmp_path: Path) -> None:
    checked = under_oclgrind(tmp_path, "-c", LAUNCH, COPY, "257")
    assert [error[:2] for error in checked.api_errors] == [
        ("clEnqueueReadBuffer", "CL_INVALID_VALUE")
    ]


# Computes one noise picture with the twin of the feature argv[1], whose kernels' source is argv[2].
TWIN = """
import sys
from backends import registry
from backends.base import Arithmetic
from stills import noise
feature = registry.features()[sys.argv[1]]
twin = feature.twin(registry.open_backend("opencl:oclgrind").device, sys.argv[2])
twin.compute(Arithmetic(feature.dialects[-1]), feature.options(), noise(17, 17, 1))
"""


class Fault(NamedTuple):
    """A construct spoilt in a real kernel of a feature, and the kind that Oclgrind calls it."""

    name: str
    feature: str
    right: str
    wrong: str
    kernel: str
    kind: str


RACE, READ = "data race at global", "Invalid read of size 4"
FAULTS = [
    Fault("an edge", "float_adm", "2 * n - 1 - i;", "n;", "dwt_vertical", READ),
    Fault("its neighbour", "float_adm", "* signals[at];", "* signals[at ^ 1];", "csf", RACE),
    Fault("an edge", "integer_adm", "2 * n - 1 - i;", "n;", "dwt_vertical", READ),
    Fault("the last row", "integer_adm", "y == height - 1 ? y : y + 1", "y + 1", "slices", READ),
    Fault("one slice for all", "integer_adm", "+ slice] = sums", "] = sums", "slices", RACE),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.feature}: {fault.name}")
def test_a_fault_planted_in_a_real_kernel_is_logged_under_its_name(
    fault: Fault, tmp_path: Path
) -> None:
    source = registry.features()[fault.feature].kernel_source()
    assert source.count(fault.right) == 1, "the kernels have changed"
    faulty = source.replace(fault.right, fault.wrong)
    checked = under_oclgrind(tmp_path, "-c", TWIN, fault.feature, faulty)
    entries = re.findall(r"\n(\S[^\n]*)\n\tKernel: (\w+)", checked.log)
    assert any(fault.kind in what and where == fault.kernel for what, where in entries)


@pytest.mark.parametrize("name", registry.features())
def test_without_a_fault_the_kernels_of_a_feature_are_clean(name: str, tmp_path: Path) -> None:
    source = registry.features()[name].kernel_source()
    checked = under_oclgrind(tmp_path, "-c", TWIN, name, source)
    assert checked.process.returncode == 0, checked.process.stderr
    assert (checked.log, checked.api_errors) == ("", [])


# Witnesses pictures of as many bytes as argv[1] says.
WITNESSED = """
import sys
import numpy as np
from backends import registry
from backends.witness import Watched
watched = Watched(registry.open_backend("opencl:oclgrind").device)
watched.upload(np.arange(int(sys.argv[1])).astype(np.uint8))
print(*watched.evidence().witnesses)
"""


@pytest.mark.parametrize("length", [1, 8 * 2 * WORDS + 5])
def test_the_witness_of_pictures_is_clean(length: int, tmp_path: Path) -> None:
    checked = under_oclgrind(tmp_path, "-c", WITNESSED, str(length))
    pictures = np.arange(length).astype(np.uint8)
    expected = witness(mixed_sum(pictures, NO_NONCE.run), NO_NONCE)
    assert checked.process.stdout == f"{expected}\n", checked.process.stderr
    assert (checked.log, checked.api_errors) == ("", [])


def test_what_oclgrind_does_not_declare_about_division_is_in_the_report(oclgrind: Backend) -> None:
    facts = oclgrind.facts()
    assert facts["correctly rounded division"] == "not declared, probed"
    assert "float division is correctly rounded" in facts["exactness probe"]
