"""How launches on CUDA are timed, by a driver of the test's own making."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backends.cuda import OWED, CudaDevice
from backends.evidence import Evidence, Launch
from gate.proof import flaw_without_pictures

KERNEL = 0.0025  # milliseconds


class Driver:
    """A driver of two devices, on which nothing but kernels takes time."""

    def __init__(self, took: float = KERNEL) -> None:
        self.log: list[str] = []
        self.uuid = bytes(range(16, 32))
        self.current = 0
        self.asked: list[int] = []
        self._now, self._took = 0.0, took
        self.cuda = SimpleNamespace(
            runtime=self, Event=lambda: Event(self), get_elapsed_time=lambda a, b: b.at - a.at
        )

    def memGetInfo(self) -> tuple[int, int]:  # noqa: N802 - CuPy's name
        return 1 << 30, 1 << 30

    def getDevice(self) -> int:  # noqa: N802 - CuPy's name
        return self.current

    def getDeviceProperties(self, device: int) -> dict[str, Any]:  # noqa: N802 - CuPy's name
        self.asked.append(device)
        return {"name": b"a GPU", "uuid": self.uuid}

    def deviceGetPCIBusId(self, device: int) -> str:  # noqa: N802 - CuPy's name
        return f"0000:0{device}:00.0"

    def get_function(self, name: str) -> Any:  # noqa: ANN401 - a kernel
        def run(*_: object) -> None:
            self.log.append(name)
            self._now += self._took

        return run

    def recorded(self) -> float:
        self.log.append("event")
        return self._now


class Event:
    """The time at which it was recorded, once somebody has waited for it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._at: float | None = None
        self.waited = False

    @property
    def at(self) -> float:
        assert self._at is not None
        return self._at

    def record(self) -> None:
        assert self._at is None
        self._at = self._driver.recorded()

    def synchronize(self) -> None:
        self.waited = True


def launched(driver: Driver, *names: str) -> list[Any]:
    kernels = CudaDevice(driver).kernels(driver)
    return [kernels.launch(name, (5, 5, 1), np.int32(1)) for name in names]


def test_a_launch_is_between_two_events_of_its_own() -> None:
    driver = Driver()
    events = launched(driver, "csf", "fold")
    assert driver.log == ["event", "csf", "event", "event", "fold", "event"]
    assert CudaDevice(driver).spans(events) == [(0, 2500), (2500, 5000)]
    assert all(after.waited for _, after in events)


def test_no_launch_has_no_span() -> None:
    assert CudaDevice(Driver()).spans([]) == []


def test_events_without_time_between_them_are_told_as_they_are() -> None:
    driver = Driver(took=0)
    ((start, end),) = CudaDevice(driver).spans(launched(driver, "fold"))
    assert start == end


@pytest.mark.parametrize("times", [1, 3])
def test_which_device_is_current_is_told_and_costs_the_driver_one_question(times: int) -> None:
    driver = Driver()
    device = CudaDevice(driver)
    for _ in range(times):
        assert device.facts() == {
            "device": "a GPU",
            "device UUID": driver.uuid.hex(),
            "PCI bus": "0000:00:00.0",
        }
    assert driver.asked == [0]


def test_a_launch_on_another_device_than_the_current_one_is_told() -> None:
    driver = Driver()
    device = CudaDevice(driver)
    opened = device.facts()
    kernels = device.kernels(driver)
    kernels.launch("csf", (5, 5, 1))
    driver.current = 1
    kernels.launch("fold", (5, 5, 1))
    driver.current = 0
    told = device.facts()
    assert told["PCI bus"] == "0000:00:00.0 and 0000:01:00.0"
    evidence = Evidence(facts=told, launches=(Launch("csf", 0, 1),))
    flaw = flaw_without_pictures("cuda", evidence, owed=OWED["cuda"], opened=opened)
    assert flaw.startswith("cuda was opened with device UUID ")
    one_uuid = replace(evidence, facts={**told, "device UUID": opened["device UUID"]})  # if cut
    flaw = flaw_without_pictures("cuda", one_uuid, owed=OWED["cuda"], opened=opened)
    assert flaw.startswith("cuda was opened with PCI bus '0000:00:00.0', and ran on '")
    kernels.launch("csf", (5, 5, 1))
    assert device.facts() == opened  # what was told is not told again


@pytest.mark.parametrize("uuid", [b"", b"\x01", bytes(range(16)), bytes(range(1, 25))])
def test_a_uuid_with_zeros_or_more_behind_it_has_sixteen_bytes(uuid: bytes) -> None:
    driver = Driver()
    driver.uuid = uuid.split(b"\0")[0] if len(uuid) == 16 else uuid  # as CuPy cuts it
    told = CudaDevice(driver).facts()["device UUID"]
    assert len(bytes.fromhex(told)) == 16
    assert bytes.fromhex(told).startswith(driver.uuid[:16])
