"""The reference and the twins give every value of the goldens, which come from real libvmaf."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from backends import reciprocal
from backends.features.float_adm import FEATURE
from backends.features.float_adm.spec import FloatAdmOptions
from gate import golden, matrix
from gate.fixtures import FileFixture, PinnedFile, open_fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backends.base import Backend, Clip, Scores
    from gate.fixtures import FixtureSpec

    Compute = Callable[[str, FloatAdmOptions, Clip], Scores]

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "matrices" / "golden"
MATRIX = ROOT / "matrices" / "nightly.yaml"

AMD = "3f6f51774a48dd9912c71d0dbbd1a1d0a231ee873fba8ff036afc712f9d9133c"
INTEL = "3af61b27639405d793d15f1eeaa5d86e429e70e5a1e5350df98e360227fdb06b"
TABLES = {
    table["sha256"]: np.array(table["bits"], np.uint32)
    for table in json.loads((ROOT / "tests/support/rcp_tables.json").read_text())["tables"]
}


class File(NamedTuple):
    """A golden file: its pin and the sha256 of the reciprocal table behind it."""

    name: str
    sha256: str
    table: str


FILES = [
    File(
        "real.float_adm.ieee-double",
        "cf11442da46d0628e3a025fb3688373266925ca46bc1701dcc1f12a4e82757f3",
        "",
    ),
    File(
        "real.float_adm.ieee-single",
        "a767e572b4a81394588e8c007e6c6f6fd053ff10cc578bd7ee080fbcba5e2980",
        "",
    ),
    File(
        "real.float_adm.rcpss-double.intel",
        "3c563463ae276b8706a671cd7265930957f7919bcfb19c9587c5ba75c4f44ef0",
        INTEL,
    ),
    File(
        "real.float_adm.rcpss-double",
        "dbf08b0944fed1aef9023e352ba15deb9917e4b86ef1a8ca7ad40f3a99b08c9b",
        AMD,
    ),
    File(
        "real.float_adm.rcpss-single.intel",
        "d3071c132694a1356e6eeb6b6b0e856df90c9558f89ffa2b19f5fa9bafab2efe",
        INTEL,
    ),
    File(
        "real.float_adm.rcpss-single",
        "e0d1d57b7d147932d7d3daaa7048d7574712af985a8c05f3c2b76e0842c35a77",
        AMD,
    ),
    File(
        "synthetic.float_adm.ieee-double",
        "79a9ae857c28a2fbb6ab7167a9d284c23238e581c5550936cf20be271fc773d7",
        "",
    ),
    File(
        "synthetic.float_adm.ieee-single",
        "12e53a501a92a269a967b6fd0db24d674485006b4a71253c821259c7f3af345f",
        "",
    ),
    File(
        "synthetic.float_adm.rcpss-double",
        "4712820936e99ef32a96e62e1e42acb4573182c43801f108aaa5e97f93307ce5",
        AMD,
    ),
    File(
        "synthetic.float_adm.rcpss-single",
        "cbe97d706584933894f6316a3a3983d702f5aeedd953b92d1a728a050b3fc72e",
        AMD,
    ),
]

# Pairs without a clear licence are not shipped; where they lie beside the checkout, they count.
BESIDE = ROOT.parent / "shared" / "fixtures"
UNSHIPPED = {
    "carphone_176x144_420p8": (
        "f128cc8f9e6c0decf7461191173e3d21eb35a63871df812fe4a1eed5c20da138",
        "6946d2714ea7cdd04199c8f598d0af087c59eabb7f00bd3a6c27f85b1fa2fc86",
    ),
    "city_576x324_420p8": (
        "0c419239202e4ebcd255b2989e57c9b3187aefc6ba6527738a40d859e271daf4",
        "b117438fa50a48a0aa594c3e63f36ca40f579a1faf6f846a69ea327a7a045e3b",
    ),
}


HAVE_UNSHIPPED = all((BESIDE / f"{name}_ref.yuv.xz").is_file() for name in UNSHIPPED)

# Scores of a file: all of them, and those with p-norm 3.
SYNTHETIC = (27_720, 23_832)
REAL = (29_700, 23_112) if HAVE_UNSHIPPED else (14_148, 11_016)


def scores_of(file: File) -> tuple[int, int]:
    """Return how many scores must be compared: all, and those with p-norm 3."""
    return REAL if file.name.startswith("real") else SYNTHETIC


def unshipped(name: str, pair: golden.Pair) -> FileFixture:
    """Describe a pair that lies beside the checkout under its original file names."""
    sides = zip(("ref", "dis"), UNSHIPPED[name], strict=True)
    files = [PinnedFile(file=f"{name}_{side}.yuv.xz", sha256=pin) for side, pin in sides]
    return FileFixture(
        width=pair.width,
        height=pair.height,
        bit_depth=pair.bit_depth,
        frames=pair.frames,
        subsampling="4:2:0",
        ref=files[0],
        dist=files[1],
    )


@functools.cache
def nightly() -> matrix.Matrix:
    """Load the matrix that has every fixture, once for all golden files."""
    return matrix.load(MATRIX)


def clips(content: golden.Golden) -> Iterator[tuple[str, Clip]]:
    """Open every fixture of a golden that is here; the unshipped ones may be absent."""
    shipped = nightly().fixtures
    for name, pair in content.fixtures.items():
        spec: FixtureSpec
        if name in UNSHIPPED:
            if not HAVE_UNSHIPPED:
                continue
            spec, root = unshipped(name, pair), BESIDE
        else:
            spec, root = shipped[name], MATRIX.parent
        with open_fixture(name, spec, root) as clip:
            yield name, clip


def different(scores: Scores, frames: list[golden.Scores]) -> int:
    """Count scores whose bits are not the golden's; any NaN equals any NaN."""
    expected = [[frame[name] for name in scores.names] for frame in frames]
    unset = np.array([[value is None for value in row] for row in expected])
    values = np.array([[0.0 if value is None else value for value in row] for row in expected])
    same = values.view(np.uint64) == scores.values.view(np.uint64)
    same |= np.isnan(values) & np.isnan(scores.values)
    return int(np.count_nonzero(np.where(unset, ~scores.unset, ~same | scores.unset)))


def check(file: File, compute: Compute, *, cubes_only: bool) -> tuple[int, int]:
    """Hold a backend against a golden file; return (scores compared, scores different)."""
    content = golden.load(GOLDENS / f"{file.name}.json.xz", file.sha256)
    compared = wrong = 0
    for name, clip in clips(content):
        for text, frames in content.results[name].items():
            options = FloatAdmOptions.model_validate(golden.options(text, FloatAdmOptions))
            if cubes_only and options.adm_p_norm != 3:
                continue
            scores = compute(content.dialect, options, clip)
            assert {len(frame) for frame in frames} == {len(scores.names)}
            assert len(scores.values) == len(frames)
            compared += scores.values.size
            wrong += different(scores, frames)
    return compared, wrong


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_reference_gives_every_golden_value(file: File) -> None:
    if file.table and file.table != reciprocal.table_hash(reciprocal.host_table()):
        pytest.skip("made with the reciprocal table of another processor")
    compared, wrong = check(file, FEATURE.reference, cubes_only=False)
    print(f"{file.name}: {compared} scores, {wrong} different")  # noqa: T201 - the count is the evidence
    assert wrong == 0
    assert compared == scores_of(file)[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_twin_gives_every_golden_value(
    file: File, device_backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device follows any processor's table, so only p-norms other than 3 are left out."""
    if file.table:
        monkeypatch.setattr(reciprocal, "host_table", lambda: TABLES[file.table])

    def compute(dialect: str, options: FloatAdmOptions, clip: Clip) -> Scores:
        return device_backend.compute(FEATURE, dialect, options, clip)

    compared, wrong = check(file, compute, cubes_only=True)
    print(f"{file.name} on {device_backend.name}: {compared} scores, {wrong} different")  # noqa: T201 - the count is the evidence
    assert wrong == 0
    assert compared == scores_of(file)[1]
