"""Goldens: frozen scores of an independent implementation, read from `.json.xz` files."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from gate.document import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backends.base import Options
    from gate.model import OptionValue

LARGEST = 1 << 26  # bytes of JSON; fifty times what the largest golden has


class GoldenError(Exception):
    """A golden file is damaged or not the pinned one; one sentence that names it."""


def _from_hex(value: object) -> float:
    try:
        return float.fromhex(value) if isinstance(value, str) else _refuse(value)
    except OverflowError:
        return _refuse(value)


def _refuse(value: object) -> float:
    message = f"{value!r} is no float64 as C99 hex text"
    raise ValueError(message)


class _Frozen(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class Pair(_Frozen):
    """What was computed: sizes, and the sha256 of the two raw files with their chroma."""

    width: int = Field(validation_alias="w", gt=0)
    height: int = Field(validation_alias="h", gt=0)
    bit_depth: int = Field(validation_alias="bpc", gt=0)
    frames: int = Field(gt=0)
    ref: str = Field(validation_alias=AliasChoices("ref_sha256", AliasPath("sha", "ref")))
    dist: str = Field(validation_alias=AliasChoices("dis_sha256", AliasPath("sha", "dis")))


Scores = dict[str, Annotated[float, BeforeValidator(_from_hex)] | None]
"""The float64 scores of one frame by output name; None where one is left unset."""


class Golden(_Frozen):
    """The content of one golden file.

    Attributes:
        feature, dialect: names, as in a matrix.
        rcp_table: sha256 of the reciprocal table that decided the scores; empty where none did.
        host: the processor, where it is not the one of the other goldens; else empty.
        fixtures: the picture pairs by name.
        results: one Scores per frame, by fixture and by text of the options (see `options`).
    """

    feature: str
    dialect: str
    rcp_table: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    host: str = ""
    fixtures: dict[str, Pair] = Field(validation_alias=AliasChoices("fixtures", "cases"))
    results: dict[str, dict[str, list[Scores]]] = Field(min_length=1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for name, by_options in self.results.items():
            frames = self.fixtures[name].frames if name in self.fixtures else 0
            for text, scores in by_options.items():
                if len(scores) != frames or not all(scores):
                    message = f"results of {name!r} {text!r} do not hold {frames} frames of scores"
                    raise ValueError(message)
        return self


def load(path: Path, sha256: str | None = None) -> Golden:
    """Read a golden file.

    Args:
        path: xz-compressed JSON.
        sha256: what `sha256sum` must print for the file; None accepts any.

    Raises:
        GoldenError: missing, other bytes than pinned, damaged, or of another form.
    """
    try:
        packed = path.read_bytes()
        _verify(packed, sha256)
        return Golden.model_validate_json(_unpack(packed))
    except (OSError, lzma.LZMAError, ValueError) as error:
        message = f"golden {str(path)!r}: {_reason(error)}; restore the file or correct the pin"
        raise GoldenError(message) from error


def options(text: str, model: type[Options]) -> Mapping[str, OptionValue]:
    """Return the keywords for `model` behind a text such as `adm_a=1:adm_b=true`.

    The text omits `debug`, which goldens always have on; the keywords contain it. Values are
    read as in a matrix.

    Raises:
        GoldenError: an option is unknown, or its value has the wrong type or range.
    """
    pairs = (item.partition("=")[::2] for item in text.split(":") if item)
    values = {name: plain(value) for name, value in pairs}
    try:
        return model.model_validate({"debug": True, **values}).model_dump(exclude_unset=True)
    except ValidationError as error:
        message = f"golden options {text!r}: {_reason(error)}; see {model.__name__}"
        raise GoldenError(message) from error


def _verify(packed: bytes, pinned: str | None) -> None:
    digest = hashlib.sha256(packed).hexdigest()
    if pinned not in {None, digest}:
        message = f"its sha256 is {digest}, pinned is {pinned}"
        raise ValueError(message)


def _unpack(packed: bytes) -> bytes:
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    content = decoder.decompress(packed, LARGEST)
    if not decoder.eof or decoder.unused_data:
        message = f"it is no single whole xz stream of at most {LARGEST} bytes"
        raise ValueError(message)
    return content


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place or 'content'}: {first['msg']} (got {first['input']!r:.40})"
    return str(error)
