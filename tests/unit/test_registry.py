"""Backends and features are found by looking; what is broken or absent is told."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from backends import cuda, libvmaf, opencl, registry
from backends.base import Unavailable
from backends.cpu import Cpu


def test_every_backend_is_found_by_its_module() -> None:
    assert set(registry.backend_names()) == {
        "cpu",
        *opencl.NAMES,
        *cuda.NAMES,
        *libvmaf.NAMES,
    }
    assert registry.broken() == {}


def test_the_feature_is_found_by_its_folder() -> None:
    assert registry.features()["float_adm"].dialects[0] == "rcpss-double"


def test_a_predicate_is_found_with_its_feature() -> None:
    feature, predicate = registry.predicates()["angle_flag"]
    assert (feature.name, predicate.name) == ("integer_adm", "angle_flag")
    assert predicate in feature.predicates


def test_the_cpu_is_always_there() -> None:
    assert isinstance(registry.open_backend("cpu"), Cpu)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(KeyError, match="did you mean 'opencl:pocl'"):
        registry.open_backend("opencl:pcl")


def test_a_missing_driver_is_unavailable_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(Unavailable, match="CuPy is not installed"):
        registry.open_backend("cuda")
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(Unavailable, match="PyOpenCL is not installed"):
        registry.open_backend("opencl:pocl")


def test_a_module_that_does_not_import_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> ModuleType:
        if name == "backends.cuda":
            message = "no such symbol"
            raise ImportError(message)
        return sys.modules[name]

    registry._backend_modules.cache_clear()  # noqa: SLF001 - what this test is about
    with monkeypatch.context() as patch:
        patch.setattr("importlib.import_module", fails)
        assert registry.broken() == {"backends.cuda": "ImportError: no such symbol"}
        assert "cuda" not in registry.backend_names()
    registry._backend_modules.cache_clear()  # noqa: SLF001 - the same
    assert registry.broken() == {}
