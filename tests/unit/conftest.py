"""What several unit tests ask for."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from runner_desk import Desk

from backends import registry
from gate import runner


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own, empty folder for temporary files."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk for the runner, whose fixtures and feature it takes."""
    desk = Desk()
    monkeypatch.setattr(runner, "open_fixture", desk.open_fixture)
    monkeypatch.setattr(registry, "features", lambda: {"fake": desk})
    return desk
