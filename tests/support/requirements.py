"""What a machine may lack: absent, it skips its tests with a reason; required, it fails them."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRED = os.environ.get("PARITY_GATE_REQUIRE", "").split()
"""Names whose absence is a failure; CI sets it, a desk need not."""


def absent(name: str, reason: object) -> NoReturn:
    """Skip the test, or fail it where `name` is required."""
    if name in REQUIRED:
        pytest.fail(f"required {name} is absent: {reason}")
    pytest.skip(f"{name}: {reason}")
