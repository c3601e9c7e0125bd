"""The tables of the float power are what they are said to be, recomputed in decimals."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext

import pytest

from backends.features.float_adm import FEATURE


def table(name: str) -> list[float]:
    """Return a table of the kernel source."""
    (text,) = re.findall(rf"CONSTANT double {name}\[\d+\] = {{([^}}]*)}};", FEATURE.kernel_source())
    return [float.fromhex(entry) for entry in text.split(",")]


def test_logarithms_are_those_of_the_reciprocals_rounded_correctly() -> None:
    with localcontext(prec=60):
        exact = [-Decimal(entry).ln() / Decimal(2).ln() for entry in table("RECIPROCALS")]
        assert table("LOGARITHMS") == [float(logarithm) for logarithm in exact]


def test_powers_of_two_are_rounded_correctly() -> None:
    with localcontext(prec=60):
        exact = [(Decimal(2).ln() * j / 32).exp() for j in range(32)]
        assert table("POWERS_OF_TWO") == [float(power) for power in exact]


def test_every_reciprocal_is_that_of_a_point_in_its_bucket() -> None:
    """A bucket is a sixteenth of a binade; the first starts at the float 3F330000, 0.699."""
    first = 0x3F330000
    edges = [first + (i << 19) for i in range(17)]
    bounds = [(1 + (e & 0x7FFFFF) / 2**23) * 2.0 ** ((e >> 23) - 127) for e in edges]
    points = [1 / reciprocal for reciprocal in table("RECIPROCALS")]
    assert len(points) == 16
    for low, point, high in zip(bounds, points, bounds[1:], strict=False):
        assert low <= point < high


def test_one_step_in_one_entry_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    source = FEATURE.kernel_source()
    assert source.count("0x1.6247eb03a5585p+0") == 1
    faulty = source.replace("0x1.6247eb03a5585p+0", "0x1.6247eb03a5586p+0")
    monkeypatch.setattr(type(FEATURE), "kernel_source", lambda _: faulty)
    with pytest.raises(AssertionError):
        test_powers_of_two_are_rounded_correctly()
