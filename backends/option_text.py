"""How libvmaf takes the text of a numeric option, which may change the number.

Source: float_adm.md, section 3, the notes on value parsing; measured on real libvmaf.
"""

from __future__ import annotations

import ctypes
import math
import re
from typing import Self

from pydantic_core import PydanticCustomError

# Rounds the text itself: by way of a float64 a number would be rounded twice.
_strtof = ctypes.CDLL(None).strtof
_strtof.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
_strtof.restype = ctypes.c_float


class Spelled(float):
    """A number that keeps the text from which it was read."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Read a decimal number; `text` is all of it."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    @property
    def vanished(self) -> bool:
        """Whether the number is 0 although its text is not: too small for a float64."""
        digits = self.text.lower().partition("e")[0]
        return not self and any(digit in "123456789" for digit in digits)


def taken(value: float, kind: type[int | float]) -> int | float:
    """Return the number with which libvmaf computes where an option is given as `value`.

    libvmaf reads the text as float32 and prints that with six significant digits; of this text a
    double option takes all (C's atof), an int option the digits before any other character (atoi).

    Args:
        value: an int, a Spelled, or a float, whose text is the shortest that reads back to it.
        kind: the option's type, int or float.

    Returns:
        A `kind`; for a value that is not finite as float32 that infinity or NaN.

    Raises:
        PydanticCustomError: libvmaf refuses a 0 whose text does not start with the character 0,
            which after that printing is one with a sign.
    """
    text = value.text if isinstance(value, Spelled) else str(value)
    normalised = f"{_strtof(text.encode(), None):g}"
    number: int | float = float(normalised)
    if kind is int and math.isfinite(number):
        number = int(re.split("[.e]", normalised)[0])
    if number == 0 and not normalised.startswith("0"):
        error = PydanticCustomError("refused", "is a 0 that libvmaf refuses for its sign; write 0")
        raise error
    return number
