"""How libvmaf names what ADM's extractors emit, 18 scores, and what a conclusion does with it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from backends.base import NoResult, Options, Scores

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from numpy.typing import NDArray

    from backends.base import Arithmetic

NAME_BYTES = 255  # libvmaf cuts output names here


class Short(NamedTuple):
    """The alias by which an option appears in an output's name."""

    alias: str


class ExtractorOptions(Options):
    """Options of one of libvmaf's ADM extractors; they decide about the names of its outputs."""

    scores: ClassVar[tuple[str, ...]]  # keys of the outputs of every frame, in libvmaf's order
    debug_scores: ClassVar[tuple[str, ...]]  # those that `debug` adds
    long_names: ClassVar[Mapping[str, str]]  # by key; only without a suffix
    unsuffixed: ClassVar[tuple[str, ...]] = ()  # keys missing in libvmaf's table of names

    debug: Annotated[bool, Field(description="11 additional outputs")] = False

    @classmethod
    def own(cls, options: Options) -> Self:
        """Return the options as this extractor's.

        Raises:
            TypeError: they are another's.
        """
        if not isinstance(options, cls):
            message = f"{type(options).__name__} were given; required: {cls.__name__}"
            raise TypeError(message)
        return options

    def suffix(self) -> str:
        """Return what libvmaf appends to the outputs' names, empty for defaults."""
        pieces = []
        aliases = _aliases(type(self))
        for name, value in sorted(self._changed().items()):
            if name not in aliases:
                continue
            shown = "" if isinstance(value, bool) else f"_{value:g}"
            if isinstance(value, int) and not isinstance(value, bool):
                shown = f"_{value:d}"
            pieces.append(f"_{aliases[name]}{shown}")
        return "".join(pieces)

    def outputs(self) -> tuple[str, ...]:
        """Return the output names of a frame in libvmaf's order, with debug those of all."""
        suffix = self.suffix()
        keys = self.scores + self.debug_scores if self.debug else self.scores
        return tuple(self._output(key, suffix)[:NAME_BYTES] for key in keys)

    def _output(self, key: str, suffix: str) -> str:
        if key in self.unsuffixed:
            return key
        return key + suffix if suffix else self.long_names.get(key, key)

    def name(self) -> str:
        """Return the options' part of a cell id: `default`, `egl_1.2`, `debug`, `debug_bcm_1`."""
        aliases = _aliases(type(self))
        pieces = [name.removeprefix("adm_") for name in self._changed() if name not in aliases]
        pieces.append(self.suffix().removeprefix("_"))
        return "_".join(piece for piece in pieces if piece) or "default"

    def _changed(self) -> dict[str, bool | int | float]:
        """Return the options that differ from their defaults, in the order of declaration."""
        given = self.model_fields_set  # every other one has its default
        fields = type(self).model_fields
        values = {name: getattr(self, name) for name in fields if name in given}
        return {name: value for name, value in values.items() if value != fields[name].default}


@cache
def _aliases(options: type[ExtractorOptions]) -> Mapping[str, str]:
    """Return the aliases of options that have one, by the options' names."""
    return {
        name: item.alias
        for name, field in options.model_fields.items()
        for item in field.metadata
        if isinstance(item, Short)
    }


def concludes_as_vmafx(arithmetic: Arithmetic) -> bool:
    """Return whether a frame ends by VMAFx's rules instead of Netflix's."""
    return arithmetic.conclusion == "vmafx"


def named(
    arithmetic: Arithmetic,
    options: ExtractorOptions,
    values: NDArray[np.float64],
    unset: NDArray[np.bool_],
) -> Scores:
    """Keep the outputs that the options ask for.

    Args:
        arithmetic: its conclusion decides about scores that are not finite.
        options: decide about debug outputs and names.
        values: float64 (frames, 18), in the order of the extractor's scores and debug scores.
        unset: bool of the same shape.

    Raises:
        NoResult: the conclusion is `vmafx` and one of these outputs is not finite.
    """
    names = options.outputs()
    scores = Scores(names, values[:, : len(names)].copy(), unset[:, : len(names)].copy())
    if concludes_as_vmafx(arithmetic):
        _require_finite(scores)
    return scores


def _require_finite(scores: Scores) -> None:
    """VMAFx emits nothing of a frame with a score that is not finite."""
    for frame, column in np.argwhere(~np.isfinite(scores.values)).tolist():
        message = (
            f"frame {frame} {scores.names[column]} is {scores.values[frame, column]}; "
            "the conclusion vmafx refuses frames with a score that is not finite"
        )
        raise NoResult(message, scores)
