"""The reference and the twins give every value of the goldens, which come from real libvmaf."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from backends import reciprocal
from backends.base import Arithmetic
from backends.features.float_adm import FEATURE, spec
from backends.features.float_adm.spec import FloatAdmOptions
from gate import golden, matrix
from gate.fixtures import FileFixture, PinnedFile, open_fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backends.base import Backend, Clip, Scores
    from gate.fixtures import FixtureSpec

    Compute = Callable[[Arithmetic, FloatAdmOptions, Clip], Scores]

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "matrices" / "golden"
MATRIX = ROOT / "matrices" / "nightly.yaml"


class File(NamedTuple):
    """A golden file and its pin."""

    name: str
    sha256: str


FILES = [
    File(
        "real.float_adm.ieee-double",
        "cf11442da46d0628e3a025fb3688373266925ca46bc1701dcc1f12a4e82757f3",
    ),
    File(
        "real.float_adm.ieee-single",
        "a767e572b4a81394588e8c007e6c6f6fd053ff10cc578bd7ee080fbcba5e2980",
    ),
    File(
        "real.float_adm.rcpss-double.intel",
        "0258564df9a73a1f058c4ad8fd8541a82b9975d46347c88f562da662c3f1e03f",
    ),
    File(
        "real.float_adm.rcpss-double",
        "10dd775cc311a27f0067160257bef397a48df6fd738311f731006eb1dd791170",
    ),
    File(
        "real.float_adm.rcpss-single.intel",
        "9377e000d2c1db8937fffe623db238a0082166132867a860baed65ca70dd490f",
    ),
    File(
        "real.float_adm.rcpss-single",
        "137984ba953b435753f4bb541064a506cc0ab351e03cfdde9268027533203654",
    ),
    File(
        "synthetic.float_adm.ieee-double",
        "79a9ae857c28a2fbb6ab7167a9d284c23238e581c5550936cf20be271fc773d7",
    ),
    File(
        "synthetic.float_adm.ieee-single",
        "12e53a501a92a269a967b6fd0db24d674485006b4a71253c821259c7f3af345f",
    ),
    File(
        "synthetic.float_adm.rcpss-double",
        "0aa268f896ef3376052ba5d1616aa9ad4f1435248d16aa2ccbfccdc6bfc56041",
    ),
    File(
        "synthetic.float_adm.rcpss-single",
        "35d21df2474142725cb613a1669fccad58a023399d9003a867eb65e68400fa0f",
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


def scores_of(file: File) -> int:
    """Return how many scores must be compared."""
    if file.name.startswith("synthetic"):
        return 27_720
    return 29_700 if HAVE_UNSHIPPED else 14_148


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


def arithmetic(content: golden.Golden) -> Arithmetic:
    """Return the golden's arithmetic; a table of another processor is replayed, not skipped."""
    assert bool(content.rcp_table) is spec.uses_rcpss(content.dialect)
    if content.rcp_table in ("", reciprocal.host_table().sha256):
        return Arithmetic(content.dialect)
    tables = {table.sha256: table for table in reciprocal.shipped().values()}
    return Arithmetic(content.dialect, rcp_table=tables[content.rcp_table])


def check(file: File, compute: Compute) -> tuple[int, int]:
    """Hold a backend against a golden file; return (scores compared, scores different)."""
    content = golden.load(GOLDENS / f"{file.name}.json.xz", file.sha256)
    wanted, compared, wrong = arithmetic(content), 0, 0
    for name, clip in clips(content):
        for text, frames in content.results[name].items():
            options = FloatAdmOptions.model_validate(golden.options(text, FloatAdmOptions))
            scores = compute(wanted, options, clip)
            assert {len(frame) for frame in frames} == {len(scores.names)}
            assert len(scores.values) == len(frames)
            compared += scores.values.size
            wrong += different(scores, frames)
    return compared, wrong


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_reference_gives_every_golden_value(file: File) -> None:
    compared, wrong = check(file, FEATURE.reference)
    print(f"{file.name}: {compared} scores, {wrong} different")  # noqa: T201 - the count is the evidence
    assert wrong == 0
    assert compared == scores_of(file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_twin_gives_every_golden_value(file: File, device_backend: Backend) -> None:
    def compute(arithmetic: Arithmetic, options: FloatAdmOptions, clip: Clip) -> Scores:
        return device_backend.compute(FEATURE, arithmetic, options, clip)

    compared, wrong = check(file, compute)
    print(f"{file.name} on {device_backend.name}: {compared} scores, {wrong} different")  # noqa: T201 - the count is the evidence
    assert wrong == 0
    assert compared == scores_of(file)
