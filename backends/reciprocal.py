"""The reciprocal estimate of this processor (RCPSS) as a table that a device can follow.

Source: float_adm.md, section 6.2; the estimate's bits differ between AMD and Intel.
"""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING

import numpy as np

from backends.base import Refused

if TYPE_CHECKING:
    from numpy.typing import NDArray


@functools.cache
def host_table() -> NDArray[np.uint32]:
    """Read this processor's table and check it against the instruction, once per process.

    Returns:
        uint32 array (4096,), read-only: float bits of the estimates of 3F800000 | i << 11.

    Raises:
        Refused: there is no RCPSS here, or it is not the table with exponent arithmetic.
    """
    from backends import _reciprocal  # noqa: PLC0415 - only the rcpss dialects need it

    if not _reciprocal.HAS_RCPSS:
        message = "the rcpss dialects need the x86 instruction RCPSS; use an ieee dialect here"
        raise Refused(message)
    table = np.empty(4096, np.uint32)
    _reciprocal.read_table(table)
    checked, different = _reciprocal.check_table(table)
    if different:
        message = (
            f"this processor's RCPSS is not a 4096-entry table: {different} of {checked} inputs "
            "differ; use an ieee dialect here"
        )
        raise Refused(message)
    table.setflags(write=False)
    return table


def table_hash(table: NDArray[np.uint32]) -> str:
    """Return the sha256 of the table's 4096 little-endian words, its name in reports."""
    return hashlib.sha256(table.astype("<u4").tobytes()).hexdigest()
