"""What a matrix says and libvmaf takes otherwise is told by every command that reads it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from backends.base import Unavailable
from gate import cli, workers

MATRIX = """\
version: 1
fixtures:
  a: {generator: noise, width: 17, height: 17, bit_depth: 8}
matrix:
  - feature: float_adm
    candidates: [cuda]
    options: [{adm_enhn_gain_limit: 1.123456789}, {debug: true}, {debug: true, adm_csf_mode: 1.7}]
    fixtures: [a]
"""
TOLD = [
    ("m.yaml:7:37", "adm_enhn_gain_limit 1.123456789 becomes 1.12346, as libvmaf takes it"),
    ("m.yaml:7:94", "adm_csf_mode 1.7 becomes 1, as libvmaf takes it"),
]


@pytest.fixture(autouse=True)
def _without_backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> NoReturn:
        message = f"{name} is not here"
        raise Unavailable(message)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "open_worker", absent)
    Path("m.yaml").write_text(MATRIX, "utf-8")


def started(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["parity-gate", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@pytest.mark.parametrize("command", ["list", "run"])
def test_a_changed_number_is_told_apart_from_the_result(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started(monkeypatch, command, "m.yaml") == {"list": 0, "run": 4}[command]
    told = capsys.readouterr()
    assert told.err.splitlines() == [f"{place}: {sentence}" for place, sentence in TOLD]
    assert "float_adm/rcpss-double/egl_1.12346/a/cuda" in told.out


def test_reports_hold_the_warnings_and_the_names_that_option_sets_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started(monkeypatch, "run", "m.yaml")
    environment = json.loads(Path("out/report.json").read_text("utf-8"))["environment"]
    assert environment["warnings"] == dict(TOLD)
    assert environment["names shared by option sets"] == {
        "adm of float_adm": (
            "emitted by 2 option sets; each runs apart; in one libvmaf context the second fails"
        )
    }
    for name in ("junit.xml", "report.md"):
        text = Path(f"out/{name}").read_text("utf-8")
        assert all(sentence in text for _, sentence in TOLD), name
        assert "each runs apart; in one libvmaf context the second fails" in text, name
