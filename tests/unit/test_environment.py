from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from gate import environment

TWO_PROCESSORS = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 167
model name\t: Some (R) CPU: 3000
stepping\t: 1
flags\t\t:

processor\t: 1
model name\t: Another
"""


def cpuinfo(monkeypatch: pytest.MonkeyPatch, file: Path, text: str | None) -> None:
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(environment, "CPUINFO", file)


def test_processor_is_named_with_family_model_and_stepping(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cpuinfo(monkeypatch, tmp_path / "cpuinfo", TWO_PROCESSORS)
    expected = "Some (R) CPU: 3000 (family 6, model 167, stepping 1)"
    assert environment.processor() == expected
    assert environment.host()["processor"] == expected


@pytest.mark.parametrize("text", [None, "", "CPU part\t: 0xd0c\n"])
def test_processor_falls_back_to_the_platform_where_cpuinfo_names_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None
) -> None:
    cpuinfo(monkeypatch, tmp_path / "cpuinfo", text)
    monkeypatch.setattr(platform, "processor", lambda: "aarch64")
    assert environment.processor() == "aarch64"


def test_processor_that_nobody_knows_is_unknown_and_not_empty(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cpuinfo(monkeypatch, tmp_path / "cpuinfo", None)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert environment.host()["processor"] == "unknown"
    assert environment.host()["C library"] == "unknown"


def test_every_fact_has_a_value_and_repeats() -> None:
    for section in (environment.host, environment.gate):
        facts = section()
        assert all(facts.values())
        assert section() == facts


def test_versions_are_those_of_the_running_program() -> None:
    facts = environment.gate()
    assert facts["numpy"] == np.__version__
    assert facts["python"] == platform.python_version()
    assert facts["parity-gate"] == environment.version()


def test_a_gate_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert environment.version() == "not installed"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of two files."""
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (tmp_path / "backends/features").mkdir(parents=True)
    (tmp_path / "backends/features/spec.py").write_text("a")
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate/cli.py").write_text("b")
    return tmp_path


def test_the_sources_are_the_bytes_of_every_python_file_in_the_order_of_their_paths(
    root: Path,
) -> None:
    told = b"backends/features/spec.py\x001\x00agate/cli.py\x001\x00b"
    assert environment.sources() == hashlib.sha256(told).hexdigest()
    (root / "gate/notes.txt").write_text("c")
    (root / "tests").mkdir()
    (root / "tests/test_it.py").write_text("d")
    assert environment.sources() == hashlib.sha256(told).hexdigest()


@pytest.mark.parametrize("room", environment.PACKAGES)
def test_a_changed_an_added_and_a_renamed_file_are_other_sources(root: Path, room: str) -> None:
    seen = {environment.sources()}
    folder = root / room / "deeper"
    folder.mkdir(parents=True)
    path = folder / "x.py"
    path.touch()
    seen.add(environment.sources())
    path.write_text("1")
    seen.add(environment.sources())
    path.rename(folder / "y.py")
    seen.add(environment.sources())
    assert len(seen) == 4


def test_the_sources_are_those_of_the_running_program() -> None:
    own = Path(environment.__file__)
    assert own.is_relative_to(environment.ROOT / "gate")
    for room in environment.PACKAGES:
        assert (environment.ROOT / room / "__init__.py").samefile(
            import_module(room).__file__ or ""
        )
