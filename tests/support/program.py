"""The program, started in this process as its command line starts it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from junit_structure import require_structure
from report_schema import require_valid

from gate import cli


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def verdict(self) -> str:
        return self.out.splitlines()[-1]


VALID = {"report.json": require_valid, "junit.xml": require_structure}

Gate: TypeAlias = Callable[..., Outcome]


def started(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """Run `parity-gate` with `arguments` to its end; what it wrote for machines must be valid."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["parity-gate", *arguments])
        with pytest.raises(SystemExit) as exit_info:
            cli.main()
    out, err = capsys.readouterr()
    for path in map(Path, re.findall(r"^wrote (.+)$", out, re.MULTILINE)):
        if path.name in VALID:
            VALID[path.name](path)
    return Outcome(int(exit_info.value.code or 0), out, err)
