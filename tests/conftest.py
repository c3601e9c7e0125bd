"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_reference_cache() -> Iterator[None]:
    """Keep runs off the tester's own cache, which must not answer for a planted reference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CI", "true")
        yield
