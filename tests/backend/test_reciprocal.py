"""The reciprocal table is read from this processor and checked against its instruction."""

from __future__ import annotations

import numpy as np
import pytest

from backends import _reciprocal, reciprocal
from backends.base import Refused

rcpss = pytest.mark.skipif(not _reciprocal.HAS_RCPSS, reason="this processor has no RCPSS")


@rcpss
def test_every_checked_input_follows_the_table() -> None:
    checked, different = _reciprocal.check_table(reciprocal.host_table().copy())
    # a whole binade, and 2048 mantissas (rounded up) at 512 signs and exponents
    assert checked == 2**23 + 512 * 2048
    assert different == 0


@rcpss
@pytest.mark.parametrize("entry", [0, 1, 2047, 2048, 4095])
def test_one_wrong_entry_is_seen(entry: int) -> None:
    table = reciprocal.host_table().copy()
    table[entry] ^= 1
    assert _reciprocal.check_table(table)[1] > 0


@rcpss
def test_a_host_that_is_no_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reciprocal, "check_table", lambda _: (9437184, 3))
    reciprocal.host_table.cache_clear()
    with pytest.raises(Refused, match="3 of 9437184 inputs differ; use an ieee dialect"):
        reciprocal.host_table()


def test_a_processor_without_the_instruction_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reciprocal, "HAS_RCPSS", False)
    reciprocal.host_table.cache_clear()
    with pytest.raises(Refused, match="RCPSS"):
        reciprocal.host_table()


@rcpss
def test_the_table_is_read_only_and_names_itself() -> None:
    table = reciprocal.host_table()
    assert table.dtype == np.uint32
    assert table.shape == (4096,)
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 0
    assert len(reciprocal.table_hash(table)) == 64
