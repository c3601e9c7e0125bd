"""Numbers of options against the C library's own strtof, printf, atof and atoi."""

from __future__ import annotations

import ctypes
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from backends.base import Options
from backends.option_text import Spelled, taken

LIBC = ctypes.CDLL(None)
LIBC.strtof.restype = ctypes.c_float
LIBC.atof.restype = ctypes.c_double

# Between the float32 10.0000495910644... and 10.0000505447387..., which print as 10 and 10.0001.
ABOVE_MIDPOINT = "10.000050067901611328125000000001"
MIDPOINT = "10.000050067901611328125"  # to even, the lower
ABOVE_ANOTHER = "10.000250339508056640625000000001"  # its nearest float64 is a midpoint too


def normalised(text: str) -> bytes:
    """Return what libvmaf makes of a text that is one number."""
    buffer = ctypes.create_string_buffer(64)
    number = LIBC.strtof(text.encode(), None)
    LIBC.snprintf(buffer, ctypes.c_size_t(64), b"%g", ctypes.c_double(number))
    return buffer.value


def in_c(text: str, kind: type[int | float]) -> int | float | None:
    """Return what libvmaf computes with, None where it refuses the zero."""
    whole = normalised(text)
    number: int | float = LIBC.atoi(whole) if kind is int else LIBC.atof(whole)
    return None if number == 0 and not whole.startswith(b"0") else number


def here(value: float, kind: type[int | float]) -> int | float | None:
    try:
        return taken(value, kind)
    except PydanticCustomError:
        return None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.123456789", 0.123457),
        ("1.00000001", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.20", 1.2),
        ("100.00001", 100.0),
        ("100.001", 100.001),
        ("-0.5", -0.5),
        ("0.0", 0.0),
        ("1e-50", 0.0),
        ("16777217", 16777200.0),
        (ABOVE_MIDPOINT, 10.0001),
        (MIDPOINT, 10.0),
        (ABOVE_ANOTHER, 10.0003),
    ],
)
def test_a_double_option_is_the_six_digits_of_the_float32(text: str, number: float) -> None:
    value = taken(Spelled(text), float)
    assert (type(value), value) == (float, number)


def test_a_number_without_its_text_has_the_shortest_that_reads_back() -> None:
    assert float(ABOVE_MIDPOINT) == float(MIDPOINT)
    assert str(float(MIDPOINT)) == "10.000050067901611"
    assert taken(float(ABOVE_MIDPOINT), float) == 10.0


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1.7, 1),
        (1.0, 1),
        (2160, 2160),
        (-1, -1),
        (-1.7, -1),
        (0.3, 0),
        (999999, 999999),
        (1000000, 1),  # 1e+06
        (1234567, 1),  # 1.23457e+06
        (Spelled("5e6"), 5),
        (Spelled(".5"), 0),
        (10**30, 1),
        (0.00001, 1),  # 1e-05
    ],
)
def test_an_int_option_is_the_digits_before_any_other_character(value: float, number: int) -> None:
    found = taken(value, int)
    assert (type(found), found) == (int, number)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (-0.0, float),
        (Spelled("-0"), float),
        (Spelled("-1e-50"), float),
        (-0.0, int),
        (-0.3, int),
        (Spelled("-.9"), int),
    ],
)
def test_a_zero_with_a_sign_is_refused(value: float, kind: type[int | float]) -> None:
    with pytest.raises(PydanticCustomError, match=r"^is a 0 that libvmaf refuses for its sign"):
        taken(value, kind)


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e39, Spelled("-3.5e38")])
def test_what_is_not_finite_as_float32_stays_so(value: float, kind: type[int | float]) -> None:
    assert not math.isfinite(taken(value, kind))


TEXTS = st.from_regex(
    r"-?([0-9]{1,40}|[0-9]{0,20}\.[0-9]{1,40})(e[-+]?[0-9]{1,2})?", fullmatch=True
)


@given(TEXTS)
@example(ABOVE_MIDPOINT)
@example(MIDPOINT)
@example("-0")
@example("1.401298464324817e-45")
@example("7.006492321624085e-46")  # half of the smallest float32
@example("3.4028235677973366e38")  # half way from the largest float32 to infinity
def test_every_text_is_taken_as_c_takes_it(text: str) -> None:
    found = here(Spelled(text), float)
    assert found == in_c(text, float)
    if found is None or math.isfinite(found):
        assert here(Spelled(text), int) == in_c(text, int)


@given(st.floats(allow_nan=False))
def test_every_float_is_taken_as_c_takes_its_text(value: float) -> None:
    assert here(value, float) == in_c(repr(value), float)


@given(st.floats(allow_nan=False, width=32))
def test_what_libvmaf_takes_is_taken_unchanged(value: float) -> None:
    once = here(value, float)
    assert once is None or taken(once, float) == once


@given(st.integers(-(10**6), 10**6))
def test_every_int_is_taken_as_c_takes_its_text(value: int) -> None:
    assert here(value, int) == in_c(str(value), int)


class Some(Options):
    real: float = 0.5
    whole: int = -1
    flag: bool = False


def test_a_model_of_options_takes_numbers_so() -> None:
    some = Some.model_validate({"real": 0.123456789, "whole": 1.7, "flag": True})
    assert some.model_dump() == {"real": 0.123457, "whole": 1, "flag": True}
    assert Some.model_validate(some.model_dump()) == some


@pytest.mark.parametrize(
    "options",
    [
        {"flag": 1},
        {"flag": 0},
        {"flag": 1.0},
        {"flag": "true"},
        {"whole": True},
        {"real": True},
        {"real": "1"},
        {"real": -0.0},
        {"whole": -0.3},
        {"whole": math.inf},
        {"real": math.nan},
        {"real": 1e39},
        {"whole": None},
    ],
)
def test_a_model_of_options_refuses_what_libvmaf_refuses(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Some.model_validate(options)


def test_a_default_is_not_taken_from_any_text() -> None:
    assert Some().whole == -1
