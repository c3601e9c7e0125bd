"""The program, started in this process as its command line starts it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from report_schema import require_valid

from gate import cli


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def verdict(self) -> str:
        return self.out.splitlines()[-1]


Gate: TypeAlias = Callable[..., Outcome]


def started(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """Run `parity-gate` with `arguments` to its end; each report.json it wrote must be valid."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["parity-gate", *arguments])
        with pytest.raises(SystemExit) as exit_info:
            cli.main()
    out, err = capsys.readouterr()
    for path in re.findall(r"^wrote (.*\breport\.json)$", out, re.MULTILINE):
        require_valid(Path(path))
    return Outcome(int(exit_info.value.code or 0), out, err)
