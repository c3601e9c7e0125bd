"""Finds backends (modules of this package) and features (folders) by looking, not by a list."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, Protocol, cast

import backends
from backends import features as features_package

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backends.base import Backend, Feature


class BackendModule(Protocol):
    """What makes a module of this package a backend."""

    NAMES: tuple[str, ...]

    def open_backend(self, name: str) -> Backend:
        """Open the backend called `name`, one of NAMES; raises Unavailable."""
        ...


@functools.cache
def _modules() -> tuple[Mapping[str, BackendModule], Mapping[str, str]]:
    """Import every module once: backends by name, and broken modules with their error."""
    found: dict[str, BackendModule] = {}
    failed: dict[str, str] = {}
    for info in pkgutil.iter_modules(backends.__path__, "backends."):
        try:
            module = importlib.import_module(info.name)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown by name
            failed[info.name] = f"{type(error).__name__}: {error}"
            continue
        if hasattr(module, "NAMES"):
            backend = cast("BackendModule", module)
            found.update(dict.fromkeys(backend.NAMES, backend))
    return found, failed


@functools.cache
def features() -> Mapping[str, Feature]:
    """Return every feature by name."""
    found = {}
    for info in pkgutil.iter_modules(features_package.__path__, "backends.features."):
        feature: Feature = importlib.import_module(info.name).FEATURE
        found[feature.name] = feature
    return found


def backend_names() -> tuple[str, ...]:
    """Return every name that a matrix may use, whether or not it is on this machine."""
    return tuple(_modules()[0])


def broken() -> Mapping[str, str]:
    """Return the modules that could not be imported, with the error."""
    return _modules()[1]


def open_backend(name: str) -> Backend:
    """Open a backend by name.

    Raises:
        Unavailable: it is not on this machine; the text says what is missing.
        Inexact: its device fails the exactness probe.
        KeyError: there is no such name.
    """
    modules = _modules()[0]
    if name not in modules:
        close = difflib.get_close_matches(name, modules, 1)
        hint = f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(modules)}"
        message = f"unknown backend '{name}'{hint}"
        raise KeyError(message)
    return modules[name].open_backend(name)
