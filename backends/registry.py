"""Finds backends (modules of this package) and features (folders) by looking, not by a list."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, Protocol, cast

import backends
from backends import features as features_package
from backends.base import Refused
from backends.evidence import Owed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from backends.base import Arithmetic, Backend, Feature, Options
    from backends.predicate import Predicate


class BackendModule(Protocol):
    """What makes a module of this package a backend.

    One that has not every arithmetic of every feature also has `require(feature, arithmetic,
    options)`, which raises Refused without opening anything. One that is known to have other bits
    has `deviates(feature, arithmetic, options)`, asked where `require` refuses nothing.

    Attributes:
        NAMES: of its backends.
        OWED: the evidence that the scores of each of them must come with.
    """

    NAMES: tuple[str, ...]
    OWED: Mapping[str, Owed]

    def open_backend(self, name: str) -> Backend:
        """Open the backend called `name`, one of NAMES; raises Unavailable."""
        ...


Modules = tuple["Mapping[str, ModuleType]", "Mapping[str, str]"]


def _import_all(package: ModuleType) -> Modules:
    """Import what a package holds: modules by full name, and errors of those that cannot be."""
    found: dict[str, ModuleType] = {}
    failed: dict[str, str] = {}
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        try:
            found[info.name] = importlib.import_module(info.name)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown by name
            failed[info.name] = f"{type(error).__name__}: {error}"
    return found, failed


@functools.cache
def _backend_modules() -> Modules:
    return _import_all(backends)


@functools.cache
def _feature_modules() -> Modules:
    return _import_all(features_package)


def _backends() -> Mapping[str, BackendModule]:
    """Return the module behind each backend name."""
    modules = [module for module in _backend_modules()[0].values() if hasattr(module, "NAMES")]
    return {name: cast("BackendModule", module) for module in modules for name in module.NAMES}


def features() -> Mapping[str, Feature]:
    """Return every feature by name."""
    found: list[Feature] = [module.FEATURE for module in _feature_modules()[0].values()]
    return {feature.name: feature for feature in found}


def predicates() -> Mapping[str, tuple[Feature, Predicate]]:
    """Return every predicate by name, with the feature that has it."""
    return {
        one.name: (feature, one) for feature in features().values() for one in feature.predicates
    }


def backend_names() -> tuple[str, ...]:
    """Return every name that a matrix may use, whether or not it is on this machine."""
    return tuple(_backends())


def refusal(name: str, feature: Feature, arithmetic: Arithmetic, options: Options) -> str:
    """Return why a backend has not an arithmetic, empty if it has; it need not be here."""
    require = getattr(_backends()[name], "require", None)
    try:
        if require is not None:
            require(feature, arithmetic, options)
    except Refused as refused:
        return str(refused)
    return ""


def deviates(name: str, feature: Feature, arithmetic: Arithmetic, options: Options) -> bool:
    """Return whether a backend is known to have other bits somewhere, in what it has."""
    told = getattr(_backends()[name], "deviates", None)
    return told is not None and told(feature, arithmetic, options)


def owed(name: str) -> Owed:
    """Return what evidence the scores of a backend must come with; it need not be here."""
    module = _backends().get(name)
    return Owed() if module is None else module.OWED[name]


def broken() -> Mapping[str, str]:
    """Return the modules of backends and features that cannot be imported, with the error."""
    return {**_backend_modules()[1], **_feature_modules()[1]}


def open_backend(name: str) -> Backend:
    """Open a backend by name.

    Raises:
        Unavailable: it is not on this machine; the text says what is missing.
        Inexact: its device fails the exactness probe.
        KeyError: there is no such name.
    """
    modules = _backends()
    if name not in modules:
        close = difflib.get_close_matches(name, modules, 1)
        hint = f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(modules)}"
        message = f"unknown backend '{name}'{hint}"
        raise KeyError(message)
    return modules[name].open_backend(name)
