"""`probe` shows what belongs to this machine; `run --rcp-table` replays another's."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program import Outcome, started
from requirements import absent

from backends import _reciprocal, c_library, reciprocal, registry
from backends.base import Arithmetic, Unavailable
from backends.features.float_adm import FEATURE, powers
from backends.features.float_adm.spec import FloatAdmOptions
from gate import matrix, runner, workers
from gate.fixtures import open_fixture
from gate.model import exact

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from gate.model import Run

    Program = Callable[..., Outcome]

SMOKE = str(Path(__file__).parents[2] / "matrices" / "smoke.yaml")
CELL = "float_adm/rcpss-single/debug_egl_1.2/bbb_63x65_420p8/opencl:pocl"


LIBVMAF = """\
version: 1
fixtures:
  noise: {generator: noise, width: 17, height: 17, bit_depth: 8}
matrix:
  - feature: float_adm
    candidates: [libvmaf]
    dialects: [rcpss-single]
    fixtures: [noise]
"""


@pytest.fixture
def program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Program:
    """The program in an empty folder."""
    monkeypatch.chdir(tmp_path)
    reciprocal.host_table.cache_clear()
    return functools.partial(started, capsys)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let backends need no process, so that what they run can be planted."""
    monkeypatch.setattr(workers, "open_worker", registry.open_backend)


def test_the_table_is_named_checked_and_written(program: Program) -> None:
    outcome = program("probe", "rcp", "--out", "host.json")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"table: {reciprocal.host_table()}" in outcome.out
    assert "0 of 9437184 inputs differ" in outcome.out
    assert outcome.out.endswith("wrote host.json\n")
    assert reciprocal.load("host.json").sha256 == reciprocal.host_table().sha256


def test_a_processor_without_the_instruction_exits_3(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_reciprocal, "HAS_RCPSS", False)
    outcome = program("probe", "rcp", "--out", "host.json")
    assert outcome == (
        3,
        "",
        "no reciprocal estimate: this processor lacks the x86 instruction RCPSS\n",
    )
    assert not Path("host.json").exists()


def test_an_instruction_that_is_no_table_exits_4_and_writes_none(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_reciprocal, "check_table", lambda _: (9437184, 3))
    outcome = program("probe", "rcp", "--out", "host.json")
    assert outcome.code == 4
    assert "not a table of 4096 entries: 3 of 9437184 inputs differ" in outcome.err
    assert not Path("host.json").exists()


def test_a_table_that_cannot_be_written_exits_2(program: Program) -> None:
    outcome = program("probe", "rcp", "--out", "absent/host.json")
    assert outcome.code == 2
    Path("file").touch()
    for impossible in (".", "file/host.json", "x" * 252):
        assert program("probe", "rcp", "--out", impossible).code == 2
    assert outcome.err == "--out 'absent/host.json' cannot be written: No such file or directory\n"


def test_a_table_that_cannot_be_finished_leaves_the_old_one(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("host.json").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert program("probe", "rcp", "--out", "host.json").code == 2
    assert [path.name for path in Path().iterdir()] == ["host.json"]
    assert Path("host.json").read_text() == "old"


@pytest.mark.parametrize("by_file", [True, False])
def test_a_replayed_table_reaches_both_sides_and_every_report(
    program: Program,
    by_file: bool,  # noqa: FBT001 - a column
) -> None:
    table = reciprocal.shipped()["amd-zen-4"]
    wanted = "t.json" if by_file else table.name
    Path("t.json").write_text(reciprocal.as_file(table, "elsewhere"))
    outcome = program("run", SMOKE, "--cell", CELL, "--rcp-table", wanted)
    assert outcome.code == 0, outcome.out
    note = f"reciprocal table replayed: {table}"
    assert outcome.out.splitlines()[-1].endswith(f"108 scores compared, 0 different, {note}")
    report = json.loads(Path("out/report.json").read_text())
    assert report["notes"] == [note]
    assert note in Path("out/junit.xml").read_text()
    assert table.sha256 in Path("out/report.md").read_text()


@pytest.mark.parametrize("name", reciprocal.shipped())
def test_a_replayed_run_has_the_scores_of_its_table(program: Program, name: str) -> None:
    """Whichever processor this is, one of the tables is another's."""
    assert program("run", SMOKE, "--cell", CELL, "--rcp-table", name).code == 0
    (reported,) = json.loads(Path("out/report.json").read_text())["references"]
    declared = matrix.load(Path(SMOKE))
    spec = declared.fixtures[reported["fixture"]]
    with open_fixture(reported["fixture"], spec, Path(SMOKE).parent) as clip:
        arithmetic = Arithmetic("rcpss-single", rcp_table=reciprocal.shipped()[name])
        options = FloatAdmOptions(debug=True, adm_enhn_gain_limit=1.2)
        scores = FEATURE.reference(arithmetic, options, clip)
        plain = FEATURE.reference(Arithmetic("ieee-single"), options, clip)
    assert reported["frames"] == [[exact(value) for value in row] for row in scores.values.tolist()]
    assert scores.values.tobytes() != plain.values.tobytes()


def test_what_cannot_replay_is_skipped_with_the_reason_unless_it_is_required(
    program: Program,
) -> None:
    try:
        registry.open_backend("libvmaf").close()
    except Unavailable as absence:
        absent("libvmaf", absence)
    Path("m.yaml").write_text(LIBVMAF)
    outcome = program("run", "m.yaml", "--rcp-table", "amd-zen-4")
    assert outcome.code == 3
    assert "real libvmaf cannot replay a reciprocal table (amd-zen-4" in outcome.out
    required = program("run", "m.yaml", "--rcp-table", "amd-zen-4", "--require", "libvmaf")
    assert required.code == 4
    assert required.out.splitlines()[-1].startswith("ERROR: 1 cell, 1 ERROR")


def test_a_replayed_run_is_repeated_with_its_table(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def run(_: object, begun: Run, **__: object) -> None:
        told.append(begun.command)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run", run)
    program("run", SMOKE, "--rcp-table", "amd-zen-4")
    assert "--rcp-table amd-zen-4" in told[0]


def test_an_unknown_table_exits_2_before_anything_runs(program: Program) -> None:
    outcome = program("run", SMOKE, "--rcp-table", "amd")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "--rcp-table: table 'amd': there is no such file or name; "
        "known: amd-zen-4, intel-emerald-rapids; `parity-gate probe rcp --out` writes one\n"
    )


def test_a_sample_of_powers_is_compared_on_each_device(program: Program) -> None:
    outcome = program("probe", "powf", "--exponent", "4.5", "--exponent", "1/3")
    assert (outcome.code, outcome.err) == (0, "")
    assert "glibc's build with" in outcome.out
    lines = [line for line in outcome.out.splitlines() if line.startswith("opencl:pocl p = ")]
    assert [line.partition(" inputs")[0] for line in lines] == [
        "opencl:pocl p = 4.5: 102635",
        "opencl:pocl p = 0.333333343: 102635",
    ]
    assert all(" 0 different, " in line for line in lines)


@pytest.mark.usefixtures("here")
def test_the_other_build_of_powf_is_seen(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: separate roundings for fused operations, or the reverse."""
    fused = powers.host_fuses()
    monkeypatch.setattr(powers, "host_fuses", lambda: not fused)
    outcome = program("probe", "powf", "--exponent", "2", "--backend", "opencl:pocl")
    assert outcome.code == 1


@pytest.mark.usefixtures("here")
def test_powers_that_differ_exit_1_and_are_told(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = powers.Compared(1000, 2, (powers.Difference(0.5, 2.0, 0.25, 0.125),))
    monkeypatch.setattr(powers, "sampled", lambda *_: found)
    outcome = program("probe", "powf", "--exponent", "2", "--backend", "opencl:pocl")
    assert (outcome.code, outcome.err) == (1, "2 results differ from the C library's\n")
    assert "opencl:pocl p = 2: 1000 inputs, 2 different" in outcome.out
    assert "powf(0x1.0000000000000p-1, 2) is 0x1.0000000000000p-2 in the C library" in outcome.out


@pytest.mark.usefixtures("here")
def test_the_exhaustive_comparison_is_asked_for(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = powers.Compared(1 << 31, 0, ())
    monkeypatch.setattr(powers, "exhaustive", lambda *_: found)
    outcome = program(
        "probe", "powf", "--exhaustive", "--exponent", "2", "--backend", "opencl:pocl"
    )
    assert outcome.code == 0
    assert "opencl:pocl p = 2: 2147483648 inputs, 0 different" in outcome.out


@pytest.mark.usefixtures("here")
def test_a_host_without_glibcs_powf_exits_4(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(values: NDArray[np.float32], exponents: NDArray[np.float32]) -> NDArray[np.float32]:
        return values + exponents

    monkeypatch.setattr(c_library, "powf", other)
    outcome = program("probe", "powf", "--exponent", "2", "--backend", "opencl:pocl")
    assert outcome.code == 4
    assert "the C library's powf here is not glibc's" in outcome.err


def test_an_absent_device_that_was_named_exits_3(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(_: str) -> None:
        message = "no GPU"
        raise Unavailable(message)

    monkeypatch.setattr(workers, "open_worker", absent)
    outcome = program("probe", "powf", "--backend", "cuda")
    assert (outcome.code, outcome.err) == (3, "cuda: no GPU\n")
    outcome = program("probe", "powf")
    assert outcome.code == 3
    assert outcome.err.startswith("nothing compared: no device is here")


@pytest.mark.parametrize(
    "exponent",
    [
        "0",
        "-1",
        "20.1",
        "1/0",
        "nan",
        "inf",
        "two",
        "1e400",
        "1e-50",
        "1e99999999",
        "1e39",
        "4.5/",
        "1/2/3",
    ],
)
def test_an_exponent_out_of_range_exits_2(program: Program, exponent: str) -> None:
    outcome = program("probe", "powf", "--exponent", exponent)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"--exponent: {exponent!r} is no number above 0 and at most 20" in outcome.err


def test_a_backend_that_is_no_device_exits_2(program: Program) -> None:
    outcome = program("probe", "powf", "--backend", "cpu")
    assert outcome.code == 2
    assert outcome.err == "--backend cpu: it is no device\n"


def test_an_unknown_device_exits_2(program: Program) -> None:
    outcome = program("probe", "powf", "--backend", "opencl:pokl")
    assert outcome.code == 2
    assert "did you mean 'opencl:pocl'?" in outcome.err
