"""Old and tempting constructs, put into the twin one at a time: the gate names the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from planting import Planted, run_gate

from backends import exactness, opencl, registry
from backends.base import Inexact
from backends.device import DeviceBackend
from backends.features.float_adm import twin
from backends.features.float_adm.weights import band_weights
from gate.model import ExitCode, Status

if TYPE_CHECKING:
    import numpy as np

    from backends.base import Backend
    from backends.features.float_adm.spec import FloatAdmOptions


class Cause(NamedTuple):
    """A wrong construct, the text it replaces, and cells of pr.yaml that must turn red."""

    name: str
    right: str
    wrong: str
    cells: tuple[str, ...]


CAUSES = [
    Cause(
        "rows summed in a tree",
        """\
        float sum = 0.0f;
        for (int column = 0; column < columns; column++)
            sum = sum + own[(size_t)column * rows];
""",
        """\
        float even = 0.0f, odd = 0.0f;
        for (int column = 0; column < columns; column += 2)
            even = even + own[(size_t)column * rows];
        for (int column = 1; column < columns; column += 2)
            odd = odd + own[(size_t)column * rows];
        const float sum = even + odd;
""",
        ("float_adm/*/debug/bbb_63x65_420p8", "float_adm/*/debug/boost_576x324_8"),
    ),
    Cause(
        "IEEE quotient for the estimate",
        "if (rcpss) {",
        "if (0) {",
        ("float_adm/rcpss-*/debug/noise_17x17_8", "float_adm/rcpss-*/debug/noise_32x32_12"),
    ),
    Cause(
        "cos^2 multiplied last in the angle test",
        "dot * dot >= scaled * dist_power",
        "dot * dot >= as_float(0x3F7FEC0Au) * (ref_power * dist_power)",
        ("float_adm/*/debug/near_322x182_12", "float_adm/*/debug/bbb_576x324_420p10"),
    ),
]


def replaced(cause: Cause, source: str) -> str:
    """Put the wrong construct in; a source that no longer has the right one is no plant."""
    assert source.count(cause.right) == 1, f"{cause.name}: the kernels have changed"
    return source.replace(cause.right, cause.wrong)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_a_wrong_construct_fails_every_named_cell(cause: Cause, pocl: Backend) -> None:
    faulty = Planted(pocl, cause.name, kernels=lambda source: replaced(cause, source))
    run = run_gate(faulty, *cause.cells)
    assert {r.cell.id: r.status for r in run.results} == {
        r.cell.id: Status.FAIL for r in run.results
    }
    assert run.exit_code is ExitCode.FAIL
    assert run.different > 0


def test_without_a_fault_the_same_cells_pass(pocl: Backend) -> None:
    run = run_gate(Planted(pocl, "nothing"), *(cell for cause in CAUSES for cell in cause.cells))
    assert run.exit_code is ExitCode.OK
    assert run.count(Status.PASS) == len(run.results)


def test_the_ieee_quotient_leaves_ieee_dialects_green(pocl: Backend) -> None:
    cause = CAUSES[1]
    faulty = Planted(pocl, cause.name, kernels=lambda source: replaced(cause, source))
    assert run_gate(faulty, "float_adm/ieee-*/debug/noise_17x17_8").exit_code is ExitCode.OK


def test_weights_of_the_other_precision_fail_every_named_cell(
    pocl: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swapped(
        scale: int, options: FloatAdmOptions, *, double: bool
    ) -> tuple[np.float32, np.float32]:
        return band_weights(scale, options, double=not double)

    monkeypatch.setattr(twin, "band_weights", swapped)
    run = run_gate(Planted(pocl, "other weights"), "float_adm/*/debug/bbb_63x65_420p8")
    assert [r.status for r in run.results] == [Status.FAIL] * 4


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
