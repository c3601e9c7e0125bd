"""The reference and the twins give every value of the goldens, which come from real libvmaf."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from goldens import HAVE_UNSHIPPED, File, check, told

from backends import reciprocal
from backends.base import Arithmetic
from backends.features.float_adm import FEATURE, spec
from backends.features.float_adm.spec import FloatAdmOptions

if TYPE_CHECKING:
    from backends.base import Backend
    from gate import golden

FILES = [
    File(
        "real.float_adm.ieee-double",
        "cf11442da46d0628e3a025fb3688373266925ca46bc1701dcc1f12a4e82757f3",
    ),
    File(
        "real.float_adm.ieee-single",
        "a767e572b4a81394588e8c007e6c6f6fd053ff10cc578bd7ee080fbcba5e2980",
    ),
    File(
        "real.float_adm.rcpss-double.intel",
        "0258564df9a73a1f058c4ad8fd8541a82b9975d46347c88f562da662c3f1e03f",
    ),
    File(
        "real.float_adm.rcpss-double",
        "10dd775cc311a27f0067160257bef397a48df6fd738311f731006eb1dd791170",
    ),
    File(
        "real.float_adm.rcpss-single.intel",
        "9377e000d2c1db8937fffe623db238a0082166132867a860baed65ca70dd490f",
    ),
    File(
        "real.float_adm.rcpss-single",
        "137984ba953b435753f4bb541064a506cc0ab351e03cfdde9268027533203654",
    ),
    File(
        "synthetic.float_adm.ieee-double",
        "79a9ae857c28a2fbb6ab7167a9d284c23238e581c5550936cf20be271fc773d7",
    ),
    File(
        "synthetic.float_adm.ieee-single",
        "12e53a501a92a269a967b6fd0db24d674485006b4a71253c821259c7f3af345f",
    ),
    File(
        "synthetic.float_adm.rcpss-double",
        "0aa268f896ef3376052ba5d1616aa9ad4f1435248d16aa2ccbfccdc6bfc56041",
    ),
    File(
        "synthetic.float_adm.rcpss-single",
        "35d21df2474142725cb613a1669fccad58a023399d9003a867eb65e68400fa0f",
    ),
]


def scores_of(file: File) -> int:
    """Return how many scores must be compared."""
    if file.name.startswith("synthetic"):
        return 27_720
    return 29_700 if HAVE_UNSHIPPED else 14_148


def arithmetic(content: golden.Golden) -> Arithmetic:
    """Return the golden's arithmetic; a table of another processor is replayed, not skipped."""
    assert bool(content.rcp_table) is spec.uses_rcpss(content.dialect)
    if content.rcp_table in ("", reciprocal.host_table().sha256):
        return Arithmetic(content.dialect)
    tables = {table.sha256: table for table in reciprocal.shipped().values()}
    return Arithmetic(content.dialect, rcp_table=tables[content.rcp_table])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_reference_gives_every_golden_value(file: File) -> None:
    compared, wrong = check(file, FloatAdmOptions, arithmetic, FEATURE.reference)
    print(f"{file.name}: {told(compared, wrong)}")  # noqa: T201 - the count is the evidence
    assert wrong == 0
    assert compared == scores_of(file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_twin_gives_every_golden_value(file: File, device_backend: Backend) -> None:
    compute = partial(device_backend.compute, FEATURE)
    compared, wrong = check(file, FloatAdmOptions, arithmetic, compute)
    print(f"{file.name} on {device_backend.name}: {told(compared, wrong)}")  # noqa: T201 - the count is the evidence
    assert wrong == 0
    assert compared == scores_of(file)
