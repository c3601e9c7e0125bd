"""Old and tempting constructs, put into the twin one at a time: the gate names the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from causes import CAUSES
from planting import Cause, Planted, run_gate

from backends import exactness, opencl, registry
from backends.base import Inexact
from backends.device import DeviceBackend
from gate.model import ExitCode, Status

if TYPE_CHECKING:
    from backends.base import Backend


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_a_wrong_construct_fails_every_named_cell(
    cause: Cause, pocl: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cause.patch is not None:
        cause.patch(monkeypatch)
    run = run_gate(cause.planted(pocl), *cause.cells)
    assert {r.cell.id: r.status for r in run.results} == {
        r.cell.id: Status.FAIL for r in run.results
    }
    assert run.exit_code is ExitCode.FAIL
    assert run.different > 0


def test_without_a_fault_the_same_cells_pass(pocl: Backend) -> None:
    cells = dict.fromkeys(cell for cause in CAUSES for cell in cause.cells)
    run = run_gate(Planted(pocl, "nothing"), *cells)
    assert run.exit_code is ExitCode.OK
    assert run.count(Status.PASS) == len(run.results)


def test_the_floor_decides_between_zero_and_one(
    pocl: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sample one level up: adm2 is 0, and a floor that is too high makes it 1."""
    (cause,) = (cause for cause in CAUSES if cause.name == "floor of 1e-2")
    assert cause.patch is not None
    cause.patch(monkeypatch)
    (result,) = run_gate(
        cause.planted(pocl), "float_adm/ieee-single/debug_nw_0/flat1_576x324_16"
    ).results
    assert result.comparison is not None
    adm2 = result.comparison.mismatches[0]
    assert (adm2.score, adm2.reference, adm2.candidate) == ("adm2_nw_0", 0.0, 1.0)


def test_the_ieee_quotient_leaves_ieee_dialects_green(pocl: Backend) -> None:
    (cause,) = (cause for cause in CAUSES if cause.name == "IEEE quotient for the estimate")
    run = run_gate(cause.planted(pocl), "float_adm/ieee-*/debug/noise_17x17_8")
    assert run.exit_code is ExitCode.OK


@pytest.fixture
def contracting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose the pragma: PoCL then fuses a*b+c."""
    right = exactness.prelude("opencl.h")
    wrong = right.replace(opencl.CONTRACTION, "")
    assert wrong != right
    monkeypatch.setattr(opencl, "prelude", lambda _: wrong)


@pytest.mark.usefixtures("contracting")
def test_contraction_is_reported_as_a_wrong_flag() -> None:
    with pytest.raises(Inexact, match=r"opencl:pocl is not exact.*a\*b\+c is two operations"):
        registry.open_backend("opencl:pocl")


@pytest.mark.usefixtures("contracting")
def test_contraction_fails_every_named_cell_where_no_probe_stops_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("backends.exactness.check", lambda *_: "not probed")
    faulty = registry.open_backend("opencl:pocl")
    assert isinstance(faulty, DeviceBackend)
    run = run_gate(faulty, "float_adm/*/debug/bbb_63x65_420p8", "float_adm/*/debug/noise_17x17_8")
    assert [r.status for r in run.results] == [Status.FAIL] * 8


def test_a_kernel_that_does_not_compile_is_an_error_with_the_compilers_log(pocl: Backend) -> None:
    broken = Planted(pocl, "broken", kernels=lambda source: source + "KERNEL k() { undeclared; }")
    run = run_gate(broken, "float_adm/ieee-single/debug/noise_17x17_8")
    (result,) = run.results
    assert result.status is Status.ERROR
    assert result.reason == "the kernels do not compile under OpenCL"
    assert "undeclared" in result.detail
    assert run.exit_code is ExitCode.ERROR
