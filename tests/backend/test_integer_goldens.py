"""The integer reference and twins give every value of the goldens, which come from libvmaf."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from goldens import HAVE_UNSHIPPED, File, check, told

from backends.base import Arithmetic
from backends.features.integer_adm import FEATURE
from backends.features.integer_adm.spec import IntegerAdmOptions

if TYPE_CHECKING:
    from backends.base import Backend
    from gate import golden

FILES = {
    File(
        "real.integer_adm.netflix",
        "c4738ed60b7aac50e2f4a5f9111a2c903f7a94f63aff41adab3ffae9769bbd01",
    ): 18_252 if HAVE_UNSHIPPED else 8_748,
    File(
        "real.integer_adm.vmafx",
        "308b41698cd07ae4b918a84e28ccd8292771e4e1c505ee975a517fd9c4eb37d7",
    ): 18_252 if HAVE_UNSHIPPED else 8_748,
    File(
        "synthetic.integer_adm.netflix",
        "66b99886cc4aee078f0151f7ce3ac733256ea91a5bb41ddfe7bc1ade4e42f1bc",
    ): 13_464,
    File(
        "synthetic.integer_adm.vmafx",
        "8339b2f5478db7870687e3f121c92a34f60edb8f2f293d2d3cb000d97d805607",
    ): 23_832,
}
"""Each file, and how many scores must be compared."""


def arithmetic(content: golden.Golden) -> Arithmetic:
    """Return the golden's arithmetic, which is the same on every machine."""
    assert content.feature == FEATURE.name
    return Arithmetic(content.dialect)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_reference_gives_every_golden_value(file: File) -> None:
    compared, wrong = check(file, IntegerAdmOptions, arithmetic, FEATURE.reference)
    print(f"{file.name}: {told(compared, wrong)}")  # noqa: T201 - the count is the evidence
    assert wrong == 0
    assert compared == FILES[file]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_twin_gives_every_golden_value(file: File, device_backend: Backend) -> None:
    compute = partial(device_backend.compute, FEATURE)
    compared, wrong = check(file, IntegerAdmOptions, arithmetic, compute)
    print(f"{file.name} on {device_backend.name}: {told(compared, wrong)}")  # noqa: T201 - the count is the evidence
    assert wrong == 0
    assert compared == FILES[file]
