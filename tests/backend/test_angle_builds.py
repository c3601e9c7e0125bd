"""The angle flag and its corpora are the same whatever compiler and optimisation built them."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import angle_builds
import pytest
from angle_builds import BUILDS, compiled, digests
from requirements import absent

installed = functools.cache(angle_builds.installed)


@pytest.mark.parametrize(("compiler", "flags"), BUILDS)
def test_every_build_gives_the_installed_samples_and_flags(
    compiler: str, flags: str, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        absent(compiler, "not installed")
    assert digests(compiled(tmp_path, compiler, *flags.split())) == installed()


def test_a_planted_constant_in_the_integer_form_gives_other_flags(tmp_path: Path) -> None:
    """Shows that the comparison can fail, and where."""
    swap = ("whole = product - 5110 *", "whole = product - 5109 *")
    found = digests(compiled(tmp_path, "g++", "-O2", swap=swap))
    different = {name for name, digest in installed().items() if found[name] != digest}
    assert "near_parallel 1 int64" in different
    assert {name.rpartition(" ")[2] for name in different} == {"int64"}


def undefined(
    folder: Path, swap: tuple[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Compute everything with a build that stops at undefined behaviour."""
    checks = ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    library = compiled(folder, "g++", *checks, swap=swap)
    return subprocess.run(
        [sys.executable, angle_builds.__file__, str(library)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_sample_meets_undefined_behaviour(tmp_path: Path) -> None:
    ended = undefined(tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == installed()


def test_a_planted_overflow_is_found(tmp_path: Path) -> None:
    """The lowest integer has no opposite."""
    ended = undefined(tmp_path, swap=("0 - static_cast<uint64_t>(value)", "uint64_t(-value)"))
    assert ended.returncode != 0
    assert "negation of -9223372036854775808" in ended.stderr
