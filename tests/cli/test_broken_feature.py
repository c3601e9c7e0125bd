"""A feature that does not import is named, and costs the commands that need it alone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# None in sys.modules makes an import fail, before anything of the gate is imported.
PROGRAM = """\
import sys
sys.modules[sys.argv.pop(1)] = None
from gate.cli import main
main()
"""
MATRIX = """\
version: 1
fixtures:
  near: {generator: near, width: 96, height: 95, bit_depth: 8}
matrix:
  - feature: float_adm
    candidates: [opencl:pocl]
    fixtures: ["*"]
"""
FLOAT, INTEGER = "backends.features.float_adm", "backends.features.integer_adm"


def ended(folder: Path, feature: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a new process where a feature does not import."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, feature, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("feature", [FLOAT, INTEGER])
def test_the_version_is_told_with_a_broken_feature(feature: str, tmp_path: Path) -> None:
    found = ended(tmp_path, feature, "--version")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("parity-gate ")


@pytest.mark.parametrize(("feature", "other"), [(FLOAT, "integer_adm"), (INTEGER, "float_adm")])
def test_doctor_names_a_broken_feature_and_tells_of_the_other(
    feature: str, other: str, tmp_path: Path
) -> None:
    found = ended(tmp_path, feature, "doctor")
    assert found.returncode == 4
    assert f"{feature}: cannot be imported: ModuleNotFoundError: import of " in found.stdout
    assert f"feature {other}\n" in found.stdout


def test_the_angle_command_names_its_broken_feature(tmp_path: Path) -> None:
    found = ended(tmp_path, INTEGER, "angle")
    assert (found.returncode, found.stdout) == (4, "")
    sentence = f"no feature that can be imported has the predicate angle_flag; {INTEGER}: Module"
    assert found.stderr.startswith(sentence)


def test_a_survey_names_its_broken_feature(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(MATRIX, "utf-8")
    found = ended(tmp_path, INTEGER, "survey", "m.yaml")
    assert (found.returncode, found.stdout) == (4, "")
    assert "no feature that can be imported has the predicate angle_flag" in found.stderr


def test_powers_name_their_broken_feature_and_reciprocals_need_none(tmp_path: Path) -> None:
    found = ended(tmp_path, FLOAT, "probe", "powf")
    assert (found.returncode, found.stdout) == (4, "")
    assert found.stderr.startswith("powf is float_adm's, which cannot be imported: Module")
    assert ended(tmp_path, FLOAT, "probe", "rcp", "--help").returncode == 0
