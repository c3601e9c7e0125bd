"""Backends by name, as every test here wants them: absent ones skip, required ones fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from requirements import REQUIRED, absent

from backends import registry
from backends.base import Unavailable
from backends.features.float_adm import FEATURE
from backends.features.float_adm.powers import Powers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.base import Backend, Device
    from backends.device import DeviceBackend

OCLGRIND = "opencl:oclgrind"
"""Checks kernels and is too slow for the tests of every device; its own are test_oclgrind.py."""

NO_DEVICES = ("cpu", "libvmaf", OCLGRIND)

DEVICES = [name for name in registry.backend_names() if name not in NO_DEVICES]


def pytest_configure() -> None:
    """A requirement that names nothing, or a backend that does not import, must not pass."""
    known = {*registry.backend_names(), "nvrtc", "g++", "clang++", "check-jsonschema", "zizmor"}
    if not known.issuperset(REQUIRED):
        message = f"PARITY_GATE_REQUIRE={' '.join(REQUIRED)!r}; allowed: {', '.join(sorted(known))}"
        raise pytest.UsageError(message)
    if registry.broken():
        message = f"modules that do not import: {registry.broken()}"
        raise pytest.UsageError(message)


def open_or_skip(name: str) -> Backend:
    try:
        return registry.open_backend(name)
    except Unavailable as absence:
        absent(name, absence)


@pytest.fixture(scope="session", params=DEVICES)
def device_backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    backend = open_or_skip(request.param)
    yield backend
    backend.close()


@pytest.fixture(scope="session", params=["cpu", *DEVICES])
def reference_or_device(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """For what is known apart from the reference, which is held to it like every device."""
    backend = open_or_skip(request.param)
    yield backend
    backend.close()


@pytest.fixture(scope="session")
def oclgrind() -> Iterator[Backend]:
    backend = open_or_skip(OCLGRIND)
    yield backend
    backend.close()


@pytest.fixture
def device(device_backend: DeviceBackend) -> Device:
    return device_backend.device


@pytest.fixture
def device_powers(device: Device) -> Powers:
    return Powers(device, device.compile(FEATURE.kernel_source()))
