"""The reciprocal estimate (RCPSS) as data: this processor's table, and other processors' to replay.

Source: float_adm.md, section 6.2; the estimate's bits differ between AMD and Intel.
"""

from __future__ import annotations

import functools
import hashlib
import stat
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from backends.base import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

ENTRIES = 4096
LARGEST = 1 << 20  # bytes of a file; ten times what a table takes
WORST = 1.5 * 2.0**-12  # relative error that the instruction promises

Source = Literal["instruction", "table", "quotient"]
"""RCPSS itself, a table in its place, or the IEEE quotient 1/x in its place."""


@dataclass(frozen=True, slots=True, eq=False)
class RcpTable:
    """The estimates of one processor.

    Attributes:
        name: short, for `--rcp-table` and reports; empty for a processor that has none here.
        bits: uint32 (4096,), read-only: float bits of the estimates of 3F800000 | i << 11.
    """

    name: str
    bits: NDArray[np.uint32]

    @property
    def sha256(self) -> str:
        """The hash of the 4096 little-endian words, which identifies the table."""
        return hashlib.sha256(self.bits.astype("<u4").tobytes()).hexdigest()

    def __str__(self) -> str:
        """Return `intel-emerald-rapids (sha256 3af61b27...)` with the whole hash."""
        return f"{self.name or 'without a name'} (sha256 {self.sha256})"


class Estimate(NamedTuple):
    """Where the rcpss dialects take 1/x from, on this machine and in this run.

    Attributes:
        table: what a device follows; None where `source` is `quotient`.
        shown: one sentence for reports.
        note: what every verdict must say; empty for this processor's own estimate.
    """

    source: Source
    table: RcpTable | None
    shown: str
    note: str = ""


class Check(NamedTuple):
    """What holding a table against this processor's instruction gave."""

    table: RcpTable
    checked: int  # inputs
    different: int
    seconds: float


class _Table(BaseModel):
    """One table of a file; untrusted, so only numbers that an estimate can have are taken."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    name: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_.-]*$")] = ""
    host: Annotated[str, Field(max_length=200)]
    sha256: str
    bits: Annotated[
        list[Annotated[int, Field(ge=0, le=0xFFFFFFFF)]],
        Field(min_length=ENTRIES, max_length=ENTRIES),
    ]

    @model_validator(mode="after")
    def _is_an_estimate(self) -> Self:
        table = self.table()
        inputs = (0x3F80_0000 | np.arange(ENTRIES, dtype=np.uint32) << 11).view(np.float32)
        products = inputs.astype(np.float64) * table.bits.view(np.float32).astype(np.float64)
        wrong = np.flatnonzero(~(np.abs(products - 1) <= WORST))
        if wrong.size:
            message = f"bits: entry {wrong[0]} is no estimate of 1/{inputs[wrong[0]]:g}"
            raise ValueError(message)
        if table.sha256 != self.sha256:
            message = f"sha256: the bits have {table.sha256}, the file says {self.sha256:.64}"
            raise ValueError(message)
        return self

    def table(self) -> RcpTable:
        bits = np.array(self.bits, np.uint32)
        bits.setflags(write=False)
        return RcpTable(self.name, bits)


class _File(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    about: str = ""
    tables: Annotated[list[_Table], Field(min_length=1)]


@functools.cache
def shipped() -> Mapping[str, RcpTable]:
    """Return the tables of known processors by name."""
    text = (resources.files("backends") / "rcp_tables.json").read_text("utf-8")
    return {table.name: table.table() for table in _File.model_validate_json(text).tables}


def load(wanted: str) -> RcpTable:
    """Return the table that a person named.

    Args:
        wanted: a name of `shipped()`, or a file as `probe rcp --out` writes it.

    Raises:
        ValueError: no such name or file, or the file holds no single sound table.
    """
    if wanted in shipped():
        return shipped()[wanted]
    try:
        text = _read(wanted)
        if len(text) > LARGEST:
            message = f"it is larger than {LARGEST} bytes"
            raise ValueError(message)  # noqa: TRY301 - one place makes the sentence
        tables = _File.model_validate_json(text).tables
        if len(tables) > 1:
            message = f"it holds {len(tables)} tables; one is allowed"
            raise ValueError(message)  # noqa: TRY301 - one place makes the sentence
        table = tables[0].table()
        if table.name in shipped() and shipped()[table.name].sha256 != table.sha256:
            message = f"its bits are not those of {table.name}; give it another name"
            raise ValueError(message)  # noqa: TRY301 - one place makes the sentence
    except (OSError, ValueError) as error:
        message = f"table {wanted!r}: {_reason(error)}; `parity-gate probe rcp --out` writes one"
        raise ValueError(message) from error
    return table


def _read(wanted: str) -> bytes:
    """Return the start of a file; a folder, a pipe or nothing at all is no file."""
    path = Path(wanted)
    try:
        is_file = stat.S_ISREG(path.stat().st_mode) if wanted else None
    except FileNotFoundError:
        is_file = None
    if is_file is None:
        message = f"there is no such file or name; known: {', '.join(shipped())}"
        raise ValueError(message)
    if not is_file:
        message = "it is no regular file"
        raise ValueError(message)
    with path.open("rb") as file:
        return file.read(LARGEST + 1)


def as_file(table: RcpTable, host: str) -> str:
    """Return the text of a file that `load` takes.

    Args:
        table: what to write.
        host: the processor it was read from, for people.
    """
    entry = _Table(name=table.name, host=host, sha256=table.sha256, bits=table.bits.tolist())
    return _File(tables=[entry]).model_dump_json() + "\n"


def check_host() -> Check:
    """Read this processor's table and hold it against the instruction: 9 437 184 inputs.

    Every mantissa of [1, 2), then every sign and exponent at 2 048 mantissas.

    Raises:
        Refused: there is no RCPSS here.
    """
    from backends import _reciprocal  # noqa: PLC0415 - only the rcpss dialects need it

    if not _reciprocal.HAS_RCPSS:
        message = "this processor lacks the x86 instruction RCPSS"
        raise Refused(message)
    began = perf_counter()
    bits = np.empty(ENTRIES, np.uint32)
    _reciprocal.read_table(bits)
    checked, different = _reciprocal.check_table(bits)
    seconds = perf_counter() - began
    bits.setflags(write=False)
    unnamed = RcpTable("", bits)
    names = {table.sha256: table.name for table in shipped().values()}
    return Check(RcpTable(names.get(unnamed.sha256, ""), bits), checked, different, seconds)


@functools.cache
def host_table() -> RcpTable:
    """Return this processor's table, read and checked once per process.

    Raises:
        Refused: there is no RCPSS here, or it is not the table with exponent arithmetic.
    """
    check = check_host()
    if check.different:
        message = (
            f"this processor's RCPSS is not a 4096-entry table: {check.different} of "
            f"{check.checked} inputs differ"
        )
        raise Refused(message)
    return check.table


def estimate(replayed: RcpTable | None) -> Estimate:
    """Return where 1/x comes from: the replayed table, this processor, or else the IEEE quotient.

    Args:
        replayed: another processor's table, in place of this processor's instruction.
    """
    if replayed is not None:
        note = f"reciprocal table replayed: {replayed}"
        return Estimate("table", replayed, note, note)
    try:
        table = host_table()
    except Refused as refusal:
        note = f"no reciprocal estimate: {refusal}; the rcpss dialects use the IEEE quotient 1/x"
        return Estimate("quotient", None, note, note)
    return Estimate("instruction", table, f"this processor's, table {table}")


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place or 'content'}: {first['msg'].removeprefix('Value error, ')}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
