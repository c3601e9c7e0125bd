"""`parity-gate angle` where something fails: an ERROR of the cells it concerns, never a PASS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pytest
from angle_desk import Desk, angle, furnished
from fake_device import FakeDevice

from backends.base import Inexact, Refused
from backends.cpu import Cpu
from backends.device import DeviceBackend
from backends.features.integer_adm import FEATURE
from backends.features.integer_adm.angle import Spelled
from backends.predicate import Block, Corpus

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from backends.base import Number
    from backends.predicate import Flags

PLATFORM = "Portable Computing Language device of opencl:pocl"
RIGHT = ("--candidate", "cpu:int64", "--candidate", "opencl:pocl")


@pytest.fixture
def desk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Desk:
    return furnished(monkeypatch, tmp_path, Desk(capsys))


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (FakeDevice("uncompiled"), "the kernels do not compile"),
        (FakeDevice(launches=0), "RuntimeError: device lost"),
        (Inexact("opencl:pocl fuses"), "opencl:pocl fuses"),
        (Refused("two devices"), "two devices"),
        (OSError(), "OSError: no message"),
    ],
)
def test_trouble_with_a_device_is_the_error_of_its_cells_alone(
    desk: Desk, device: FakeDevice | Exception, reason: str
) -> None:
    desk.devices["opencl:pocl"] = device
    outcome = desk(*RIGHT)
    assert outcome.code == 4
    assert outcome.verdict.startswith("ERROR: 6 cells, 3 PASS, 3 ERROR, ")
    cells = desk.cells()
    assert {cells[name]["reason"] for name in cells if "pocl" in name} == {reason}


def test_a_device_that_dies_later_keeps_what_it_has_proved(desk: Desk) -> None:
    desk.devices["opencl:pocl"] = FakeDevice(launches=2)  # the blocks of near_1
    desk(*RIGHT)
    status = [cell["status"] for name, cell in desk.cells().items() if "pocl" in name]
    assert status == ["PASS", "ERROR", "ERROR"]


def test_a_backend_without_kernels_is_an_error(desk: Desk) -> None:
    desk.devices["cuda"] = Cpu()
    outcome = desk("--candidate", "cuda", "--cell", "*/edges/*")
    assert outcome.code == 4
    assert "cuda is no device, so it has no kernels" in outcome.out


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (
            FakeDevice(told={"platform": "Oclgrind 1", "device": "it"}),
            f"opencl:pocl was opened with platform {PLATFORM!r}, and ran on 'Oclgrind 1'",
        ),
        (
            FakeDevice(span=(9, 9)),
            "launch 0 of opencl:pocl, kernel angle_flags, began at 9 ns and ended at 9 ns; ",
        ),
    ],
)
def test_right_flags_of_a_device_that_did_not_run_them_prove_nothing(
    desk: Desk, device: FakeDevice, reason: str
) -> None:
    desk.devices["opencl:pocl"] = device
    assert desk("--candidate", "opencl:pocl").code == 4
    assert {str(cell["reason"]).startswith(reason) for cell in desk.cells().values()} == {True}


def test_right_flags_that_the_host_decides_prove_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(angle, "on_device", lambda _: Spelled("golden"))
    assert desk("--candidate", "opencl:pocl", "--cell", "*/edges/*").code == 4
    reason = "no evidence that opencl:pocl ran: nothing was launched on a device"
    assert {cell["reason"] for cell in desk.cells().values()} == {reason}


def broken_block(corpus: Corpus, index: int) -> Block:
    if corpus.name == "walk":
        message = "no memory"
        raise MemoryError(message)
    return made_block(corpus, index)


made_block = angle.block


def test_a_corpus_that_cannot_be_made_costs_its_own_cells(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(angle, "block", broken_block)
    outcome = desk(*RIGHT)
    assert outcome.code == 4
    status = {name: cell["status"] for name, cell in desk.cells().items()}
    assert {name for name in status if status[name] == "ERROR"} == {
        name for name in status if "/walk/" in name
    }


def test_an_interrupt_keeps_the_corpora_that_were_finished(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(corpus: Corpus, index: int) -> Block:
        if corpus.name == "walk":
            raise KeyboardInterrupt
        return made_block(corpus, index)

    monkeypatch.setattr(angle, "block", interrupted)
    outcome = desk(*RIGHT)
    assert outcome.code == 130
    assert outcome.verdict.startswith("INTERRUPTED: 6 cells, 2 PASS, 4 did not finish, ")
    assert desk.closed == ["opencl:pocl"]


def opposite(launches: int | None = None) -> FakeDevice:
    class Opposite(FakeDevice):
        def download(self, *arguments: Any) -> NDArray[Any]:  # noqa: ANN401 - passed on
            return (1 - super().download(*arguments)).astype(np.uint8)

    return Opposite(launches=launches)


def stopped_at_second_block(error: BaseException) -> Callable[[Corpus, int], Block]:
    def block(corpus: Corpus, index: int) -> Block:
        if index == 1:
            raise error
        return made_block(corpus, index)

    return block


def assert_mismatches_are_kept(cell: dict[str, Any], trouble: str) -> None:
    assert cell["status"] == "FAIL"
    assert cell["reason"].startswith("operand 0 (")
    assert cell["reason"].endswith(
        f", 500000 of 500000 scores; then: {trouble}, after 500000 of 550000 samples"
    )
    assert cell["comparison"]["scores"] == cell["comparison"]["different"] == 500_000
    assert [m["frame"] for m in cell["comparison"]["mismatches"]] == list(range(100))


NEAR = "angle_flag/netflix/default/near_1"


def test_a_device_that_dies_after_a_mismatch_fails(desk: Desk) -> None:
    desk.devices["opencl:pocl"] = opposite(launches=1)
    outcome = desk(*RIGHT, "--cell", "*/near_1/*")
    assert outcome.code == 1
    assert outcome.verdict.startswith(
        "FAIL: 2 of 6 cells, 1 PASS, 1 FAIL, 1050000 scores compared, 500000 different"
    )
    assert_mismatches_are_kept(desk.cells()[f"{NEAR}/opencl:pocl"], "RuntimeError: device lost")


def test_a_block_that_cannot_be_made_loses_no_mismatch(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.devices["opencl:pocl"] = opposite()
    monkeypatch.setattr(angle, "block", stopped_at_second_block(MemoryError("no memory")))
    spelling = ("--candidate", "spelling:a")
    outcome = desk(*RIGHT, *spelling, "--cell", "*/near_1/*")
    assert outcome.code == 1
    cells = desk.cells()
    assert_mismatches_are_kept(cells[f"{NEAR}/opencl:pocl"], "MemoryError: no memory")
    for name in ("cpu:int64", "spelling:a"):  # a wrong spelling must differ
        assert cells[f"{NEAR}/{name}"]["status"] == "ERROR"
        assert cells[f"{NEAR}/{name}"]["reason"] == "MemoryError: no memory"


def test_an_interrupt_loses_no_mismatch(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.devices["opencl:pocl"] = opposite()
    monkeypatch.setattr(angle, "block", stopped_at_second_block(KeyboardInterrupt()))
    outcome = desk(*RIGHT)
    assert outcome.code == 130
    assert outcome.verdict.startswith(
        "INTERRUPTED: 6 cells, 1 FAIL, 5 did not finish, 500000 scores compared, 500000 different"
    )
    cell = desk.cells()[f"{NEAR}/opencl:pocl"]
    assert_mismatches_are_kept(cell, "not finished")
    sentence = "not finished, after 500000 of 550000 samples"
    assert sentence in Path("out/junit.xml").read_text("utf-8")


def test_a_lost_block_loses_no_mismatch(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.devices["opencl:pocl"] = opposite()
    monkeypatch.setattr(angle, "blocks", lambda _: range(1))
    assert desk(*RIGHT, "--cell", "*/near_1/*").code == 1
    sentence = "500000 samples were compared; required: 550000"
    assert_mismatches_are_kept(desk.cells()[f"{NEAR}/opencl:pocl"], sentence)


def test_a_lost_block_is_an_error(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(angle, "blocks", lambda _: range(1))
    outcome = desk(*RIGHT, "--cell", "*/near_1/*")
    assert outcome.code == 4
    assert outcome.verdict.startswith("ERROR: 2 of 6 cells, 2 ERROR, 0 scores compared")
    sentence = "500000 samples were compared; required: 550000"
    assert {cell["reason"] for cell in desk.cells().values()} == {sentence}


def test_a_short_block_is_an_error(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(corpus: Corpus, index: int) -> Block:
        first, samples, operands = made_block(corpus, index)
        return Block(first, samples[:-1], operands[:-1])

    monkeypatch.setattr(angle, "block", short)
    outcome = desk(*RIGHT, "--cell", "*/walk/*")
    assert outcome.code == 4
    sentence = "999 samples were compared; required: 1000"
    assert {cell["reason"] for cell in desk.cells().values()} == {sentence}


def test_a_corpus_without_a_block_is_an_error(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(angle, "blocks", lambda _: range(0))
    outcome = desk(*RIGHT, "--cell", "*/edges/*")
    assert outcome.code == 4
    sentence = "0 samples were compared; required: 2000"
    assert {cell["reason"] for cell in desk.cells().values()} == {sentence}


@pytest.mark.parametrize(
    ("shape", "dtype", "told"),
    [
        ((999,), np.uint8, "uint8 (999,)"),
        ((1001,), np.uint8, "uint8 (1001,)"),
        ((1,), np.uint8, "uint8 (1,)"),
        ((1000,), np.bool_, "bool (1000,)"),
    ],
)
def test_flags_of_another_shape_or_type_are_the_error_of_their_cell(
    desk: Desk, shape: tuple[int, ...], dtype: type[np.generic], told: str
) -> None:
    class Other(FakeDevice):
        def download(self, *_: object) -> NDArray[Number]:
            return np.zeros(shape, dtype)

    desk.devices["opencl:pocl"] = Other()
    outcome = desk(*RIGHT, "--cell", "*/walk/*")
    assert outcome.code == 4
    cells = desk.cells()
    assert cells["angle_flag/netflix/default/walk/cpu:int64"]["status"] == "PASS"
    sentence = f"from sample 0 came flags {told}; required: uint8 (1000,)"
    assert cells["angle_flag/netflix/default/walk/opencl:pocl"]["reason"] == sentence


def test_a_spelling_with_flags_of_another_shape_costs_its_own_cell(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short(Spelled):
        def flags(self, block: Block) -> Flags:
            return super().flags(block)[:-1]

    spelled = angle.spelled
    monkeypatch.setattr(
        angle, "spelled", lambda name: Short(name) if name == "int64" else spelled(name)
    )
    assert desk(*RIGHT, "--cell", "*/walk/*").code == 4
    status = {name.rpartition("/")[2]: cell["status"] for name, cell in desk.cells().items()}
    assert status == {"cpu:int64": "ERROR", "opencl:pocl": "PASS"}


def test_a_device_that_does_not_close_costs_no_report(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: DeviceBackend) -> NoReturn:
        message = "busy"
        raise OSError(message)

    monkeypatch.setattr(DeviceBackend, "close", fails)
    outcome = desk(*RIGHT)
    report = json.loads(Path("out/report.json").read_text("utf-8"))
    assert outcome.code == 0
    assert report["environment"]["candidate opencl:pocl"]["closing failed"] == "OSError: busy"


def test_a_backend_that_answers_under_another_name_proves_nothing(desk: Desk) -> None:
    desk.names["cuda"] = "opencl:pocl"
    desk.devices["cuda"] = FakeDevice()
    outcome = desk("--candidate", "cuda", "--require", "cuda")
    assert outcome.code == 4
    sentence = "opening cuda gave opencl:pocl, which proves nothing about cuda"
    assert {cell["reason"] for cell in desk.cells().values()} == {sentence}
    assert desk.closed == ["opencl:pocl"]


def test_an_unreadable_kernel_costs_the_cells_of_devices_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> NoReturn:
        raise FileNotFoundError(2, "No such file", "angle.cl.h")

    monkeypatch.setattr(angle, "kernel_source", unreadable)
    outcome = desk(*RIGHT)
    assert outcome.code == 4
    assert outcome.verdict.startswith("ERROR: 6 cells, 3 PASS, 3 ERROR, ")
    environment = json.loads(Path("out/report.json").read_text("utf-8"))["environment"]
    problem = "FileNotFoundError: [Errno 2] No such file: 'angle.cl.h'"
    assert environment["kernels"] == {"angle_flag": f"unknown: {problem}"}


def test_unknown_facts_of_the_reference_cost_no_report(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(FEATURE, "reference_facts", unknown)
    outcome = desk(*RIGHT)
    environment = json.loads(Path("out/report.json").read_text("utf-8"))["environment"]
    assert outcome.code == 0
    problem = "PermissionError: [Errno 13] Permission denied"
    assert environment["feature integer_adm"] == {"unknown": problem}
