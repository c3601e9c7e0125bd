"""A folder with a matrix, its list of known deviations, and candidates with faults to bless."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import quick_gate
from planting import Planted
from program import Outcome, started

from backends.base import Arithmetic, Backend, Clip, Failed, Feature, Options, Scores
from gate import workers

MATRIX = Path("matrices/m.yaml")
LIST = Path("matrices/deviations.yaml")
MATRIX_TEXT = """\
version: 1
deviations: deviations.yaml
fixtures:
  a: {generator: noise, width: 17, height: 17, bit_depth: 8}
  b: {generator: noise, width: 18, height: 17, bit_depth: 8}
  listed: {generator: noise, width: 19, height: 17, bit_depth: 8}
  same: {generator: noise, width: 20, height: 17, bit_depth: 8}
matrix:
  - feature: float_adm
    candidates: ["opencl:pocl", cuda]
    dialects: [ieee-single]
    options: [{}, {adm_enhn_gain_limit: 1.2}]
    fixtures: ["*"]
"""
LISTED = """\
# Reviewed.
version: 1
deviations:
  # The first one.
  - cells: [ "*/listed/opencl:pocl" ]   # both
    outputs: ["*"]
    reason: known
    owner: somebody
    expires: 2099-12-31
"""
SOON = (datetime.now(UTC).date() + timedelta(30)).isoformat()
WORDS = ("--reason", "rounds the limited product", "--owner", "@kernels", "--expires", SOON)
ADDED = f"""\
  - cells:
      - float_adm/ieee-single/default/a/opencl:pocl
      - float_adm/ieee-single/default/b/opencl:pocl
    outputs:
      - VMAF_feature_adm2_score
    reason: rounds the limited product
    owner: "@kernels"
    expires: {SOON}

  - cells:
      - float_adm/ieee-single/egl_1.2/a/opencl:pocl
      - float_adm/ieee-single/egl_1.2/b/opencl:pocl
    outputs:
      - adm2_egl_1.2
    reason: rounds the limited product
    owner: "@kernels"
    expires: {SOON}
"""
RED = 4  # cells
ENTRY = '{cells: ["*/listed/*pocl"], outputs: ["*"], reason: r, owner: o, expires: 2099-12-31}'

Fault = Callable[[Scores], Scores]


def last_bit(scores: Scores) -> Scores:
    scores.values.view("u8")[0, 0] ^= 1
    return scores


def lost(scores: Scores) -> Scores:
    scores.values[0, 1] = np.nan
    return scores


def failing(_: Scores) -> Scores:
    message = "the device is on fire"
    raise Failed(message)


@dataclass
class Faulty(Planted):
    """A candidate with faults on pictures of some widths."""

    faults: Mapping[int, Fault] = field(default_factory=dict)

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        scores = self.inner.compute(feature, arithmetic, options, clip)
        fault = self.faults.get(clip.width)
        return scores if fault is None else fault(scores)


@dataclass
class Desk:
    """A folder with a matrix, its list, and a candidate with faults by width."""

    capsys: pytest.CaptureFixture[str]
    faults: dict[int, Fault] = field(
        default_factory=lambda: {17: last_bit, 18: last_bit, 19: last_bit}
    )

    def open_backend(self, name: str) -> Backend:
        backend = quick_gate.open_quickly(name)
        return backend if name == "cpu" else Faulty(backend, "by width", faults=self.faults)

    def __call__(self, *arguments: str) -> Outcome:
        return started(self.capsys, *arguments)

    def run(self, *more: str, out: str = "out") -> Outcome:
        return self("run", str(MATRIX), "--out", out, *more)

    def bless(self, *more: str, report: str = "out") -> Outcome:
        return self("bless", report, *WORDS, *more)

    def refused(self, *more: str, code: int = 2, report: str = "out") -> str:
        """Return the one sentence with which nothing is changed."""
        before = (LIST.read_bytes(), MATRIX.read_bytes())
        ended = self.bless(*more, report=report)
        assert (ended.code, ended.out) == (code, "")
        assert (LIST.read_bytes(), MATRIX.read_bytes()) == before
        assert sorted(path.name for path in LIST.parent.iterdir()) == ["deviations.yaml", "m.yaml"]
        assert ended.err.count("\n") == 1
        return ended.err.rstrip("\n")


def furnished(folder: Path, monkeypatch: pytest.MonkeyPatch, desk: Desk) -> Desk:
    monkeypatch.chdir(folder)
    MATRIX.parent.mkdir()
    MATRIX.write_text(MATRIX_TEXT, "utf-8")
    LIST.write_text(LISTED, "utf-8")
    monkeypatch.setattr(workers, "open_worker", desk.open_backend)
    return desk
