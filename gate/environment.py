"""Facts about this machine that decide bits, or that a person needs to repeat a run."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CPUINFO = Path("/proc/cpuinfo")
ROOT = Path(__file__).parents[1]  # the packages lie side by side, installed or in a checkout
PACKAGES = ("backends", "gate", "reports")

# The estimate of 1/x differs between processors, even between two steppings of one name.
PROCESSOR_FIELDS = ("model name", "cpu family", "model", "stepping")


def version() -> str:
    """Return the version of the installed parity-gate, or say that it is not installed."""
    try:
        return importlib.metadata.version("parity-gate")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def gate() -> Mapping[str, str]:
    """Return the versions of the gate and of what it computes with, and what its sources are."""
    libraries = {name: importlib.metadata.version(name) for name in ("numpy", "pydantic")}
    python = platform.python_version()
    return {"parity-gate": version(), "sources": sources(), "python": python, **libraries}


def sources() -> str:
    """Return the sha256 of this program's Python files, each with its path and its length.

    A version number stays the same while somebody works on the program.
    """
    found = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(ROOT).as_posix(), path) for path in found):
        text = path.read_bytes()
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def host() -> Mapping[str, str]:
    """Return processor, architecture, operating system and C library."""
    return {
        "processor": processor(),
        "architecture": platform.machine(),
        "operating system": f"{platform.system()} {platform.release()}",
        "C library": " ".join(platform.libc_ver()).strip() or "unknown",
    }


def processor() -> str:
    """Return the name of the processor with its family, model and stepping where known."""
    fields = _cpuinfo()
    if not fields:
        return platform.processor() or "unknown"
    name = fields.pop("model name", "unknown")
    numbers = ", ".join(f"{key.removeprefix('cpu ')} {value}" for key, value in fields.items())
    return f"{name} ({numbers})" if numbers else name


def _cpuinfo() -> dict[str, str]:
    """Return the fields of the first processor, empty where the system has no such file."""
    if not CPUINFO.exists():
        return {}
    first = CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    found = {key.strip(): value.strip() for key, _, value in pairs}
    return {key: found[key] for key in PROCESSOR_FIELDS if key in found}
