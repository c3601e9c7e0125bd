"""What features say alike that are each one of libvmaf's extractors, with one arithmetic there."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from backends import outputs
from backends.base import Arithmetic, Extractor, Feature, Options, Refused, Scores
from backends.outputs import ExtractorOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray


def texts(options: ExtractorOptions) -> dict[str, str]:
    """Return the options as libvmaf reads them: `debug`, and those that differ from its defaults.

    With `debug` libvmaf gives all outputs, whichever the options ask for.
    """
    given = {"debug": "true"}
    for name, field in type(options).model_fields.items():
        value = getattr(options, name)
        if name != "debug" and value != field.default:
            given[name] = str(value).lower() if isinstance(value, bool) else f"{value:g}"
    return given


def logged(options: ExtractorOptions) -> tuple[str, ...]:
    """Return the names of all outputs as the log has them: keys in place of long names."""
    keys = {name: key for key, name in options.long_names.items()}
    names = options.model_copy(update={"debug": True}).outputs()
    return tuple(keys.get(name, name) for name in names)


def require(own: Arithmetic, asked: Arithmetic) -> None:
    """Refuse another arithmetic than libvmaf's own.

    Raises:
        Refused: the text says which dialect and conclusion libvmaf has.
    """
    if asked.dialect != own.dialect:
        wrong = f"dialect {asked.dialect}"
    elif asked.conclusion != own.conclusion:
        wrong = f"conclusion {asked.conclusion}"
    else:
        return
    message = (
        f"real libvmaf has only dialect {own.dialect} and conclusion {own.conclusion}; "
        f"asked for {wrong}"
    )
    raise Refused(message)


@dataclass(frozen=True, slots=True)
class Extraction:
    """One of libvmaf's extractors: what to ask it for, and what its numbers mean.

    Attributes:
        name: as libvmaf registers it.
        own: its arithmetic.
        metrics: names under which libvmaf's models know all outputs, in the feature's order.
        denominator: the column that decides whether libvmaf sets the next ones.
        undefined: columns that libvmaf emits from whatever lies in memory where that one is 0.
        exact: whether libvmaf has these bits on every picture.
    """

    name: str
    own: Arithmetic
    metrics: tuple[str, ...]
    denominator: int
    undefined: tuple[int, ...]
    exact: bool = True

    def request(self, arithmetic: Arithmetic, options: ExtractorOptions) -> Extractor:
        """Return what gives all outputs; options that differ from the defaults are passed on.

        Raises:
            Refused: libvmaf has not this dialect or conclusion; the text says which it has.
        """
        require(self.own, arithmetic)
        return Extractor(self.name, texts(options), self.metrics, logged(options), self.exact)

    def scores(self, options: ExtractorOptions, values: NDArray[np.float64]) -> Scores:
        """Return the outputs that the options ask for, UNSET where libvmaf left one unset.

        Args:
            options: decide about debug outputs and names.
            values: float64 (frames, len(metrics)), in the order of the metrics.
        """
        unset = np.zeros(values.shape, np.bool_)
        unset[:, self.undefined] = values[:, [self.denominator]] == 0
        return outputs.named(self.own, options, np.where(unset, 0, values), unset)


class ExtractorFeature(Feature):
    """A feature that is one of libvmaf's extractors, with its kernels in files of its folder."""

    options: ClassVar[type[ExtractorOptions]]
    extraction: ClassVar[Extraction]
    package: ClassVar[str]  # its folder's
    # In the order of the data flow; each file may use the functions of those before it.
    kernel_files: ClassVar[tuple[str, ...]]

    def outputs(self, options: Options) -> tuple[str, ...]:
        """Return the 7 output names of a frame, or all 18 with debug."""
        return self.options.own(options).outputs()

    def options_name(self, options: Options) -> str:
        """Return libvmaf's suffix without its first underscore, `default` for defaults."""
        return self.options.own(options).name()

    def extractor(self, arithmetic: Arithmetic, options: Options) -> Extractor:
        """Return what to ask real libvmaf for.

        Raises:
            Refused: libvmaf has not this arithmetic; the text says which it has.
        """
        return self.extraction.request(arithmetic, self.options.own(options))

    def extracted(self, options: Options, values: NDArray[np.float64]) -> Scores:
        """Return the scores behind libvmaf's values, UNSET where libvmaf left one unset."""
        return self.extraction.scores(self.options.own(options), values)

    def kernel_source(self) -> str:
        """Return the kernels of all stages as one text, in dialect words."""
        folder = resources.files(self.package) / "kernels"
        files = (folder / f"{name}.cl.h" for name in self.kernel_files)
        return "\n".join(file.read_text("utf-8") for file in files)
