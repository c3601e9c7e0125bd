"""How launches on CUDA are timed, by a driver of the test's own making."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backends.cuda import CudaDevice, CudaKernels

KERNEL = 0.0025  # milliseconds


class Driver:
    """A driver on which nothing but kernels takes time."""

    def __init__(self, took: float = KERNEL) -> None:
        self.log: list[str] = []
        self.uuid = bytes(range(16))
        self.asked = 0
        self._now, self._took = 0.0, took
        self.cuda = SimpleNamespace(
            runtime=self, Event=lambda: Event(self), get_elapsed_time=lambda a, b: b.at - a.at
        )

    def memGetInfo(self) -> tuple[int, int]:  # noqa: N802 - CuPy's name
        return 1 << 30, 1 << 30

    def getDevice(self) -> int:  # noqa: N802 - CuPy's name
        return 0

    def getDeviceProperties(self, device: int) -> dict[str, Any]:  # noqa: N802 - CuPy's name
        assert device == 0
        self.asked += 1
        return {"name": b"a GPU", "uuid": self.uuid}

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
    kernels = CudaKernels(driver, driver, (64, 4, 1))
    return [kernels.launch(name, (5, 5, 1), np.int32(1)) for name in names]


def test_a_launch_is_between_two_events_of_its_own() -> None:
    driver = Driver()
    events = launched(driver, "csf", "fold")
    assert driver.log == ["event", "csf", "event", "event", "fold", "event"]
    assert CudaDevice(driver).spans(events) == [(0, 2500), (2500, 5000)]
    assert all(after.waited for _, after in events)


def test_no_launch_has_no_span() -> None:
    assert CudaDevice(Driver()).spans([]) == []


def test_a_kernel_that_took_no_time_does_not_end_after_it_began() -> None:
    driver = Driver(took=0)
    ((start, end),) = CudaDevice(driver).spans(launched(driver, "fold"))
    assert start == end


@pytest.mark.parametrize("times", [1, 3])
def test_which_device_ran_is_told_and_costs_the_driver_one_question(times: int) -> None:
    driver = Driver()
    device = CudaDevice(driver)
    for _ in range(times):
        assert device.facts() == {"device": "a GPU", "device UUID": driver.uuid.hex()}
    assert driver.asked == 1
