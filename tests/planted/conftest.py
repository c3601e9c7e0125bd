"""The device that faults are planted on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from planting import CANDIDATE

from backends import registry
from backends.base import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.base import Backend


@pytest.fixture(scope="session")
def pocl() -> Iterator[Backend]:
    try:
        backend = registry.open_backend(CANDIDATE)
    except Unavailable as absence:
        pytest.fail(f"planted faults are shown on {CANDIDATE}, which is absent: {absence}")
    yield backend
    backend.close()
