"""What a gate and the process of a backend tell each other: JSON with arrays behind it."""

from __future__ import annotations

import json
import math
import select
import socket
import struct
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Arrays = Sequence[NDArray[Any]]
    Message = tuple[dict[str, Any], list[NDArray[Any]]]

Read = TypeVar("Read", bytes, int)

SIZE = struct.Struct("=Q")  # of a message, in bytes; it stands in front
ALIGNED = 64  # bytes, so that arrays begin where their elements may
CHUNK = 1 << 16  # bytes that are read at once: many small messages


class Channel:
    """One end of a connection between two processes."""

    def __init__(self, connection: socket.socket) -> None:
        """Take a connected stream socket, which is closed with the channel."""
        self._socket = connection
        self._read = bytearray()  # beyond the last message
        self._news = select.poll()
        self._news.register(connection, select.POLLIN)

    def send(self, message: Mapping[str, Any], arrays: Arrays = ()) -> None:
        """Send a message and its arrays in one piece, for each piece may wait for a processor.

        Raises:
            OSError: the other side is gone.
        """
        kinds = [(array.dtype.str, array.shape) for array in arrays]
        text = json.dumps({**message, "arrays": kinds}).encode()
        text += b" " * (-(len(text) + 1) % ALIGNED) + b"\n"
        size = len(text) + sum(array.nbytes for array in arrays)
        whole = b"".join([SIZE.pack(size), text, *(array.tobytes() for array in arrays)])
        self._socket.sendall(whole)

    def receive(self, until: float = math.inf) -> Message:
        """Wait for a message and its arrays, which cannot be written to.

        Args:
            until: when to give up, on the clock of `time.monotonic`; what has come by then is lost.

        Raises:
            TimeoutError: it was not there in time.
            EOFError, OSError: the other side is gone.
        """
        while len(self._read) < SIZE.size:
            self._wait(until)
            self._read += _some(self._socket.recv(CHUNK))
        (size,) = SIZE.unpack_from(self._read)
        piece = self._read[SIZE.size : SIZE.size + size]
        del self._read[: SIZE.size + size]
        if len(piece) < size:
            piece = self._rest(piece, size, until)
        end = piece.index(b"\n") + 1
        message: dict[str, Any] = json.loads(piece[:end])
        arrays = []
        fixed = memoryview(piece).toreadonly()
        for dtype, shape in message.pop("arrays"):
            array = np.frombuffer(fixed, dtype, math.prod(shape), end).reshape(shape)
            end += array.nbytes
            arrays.append(array)
        return message, arrays

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _wait(self, until: float) -> None:
        if until < math.inf and not self._news.poll(max(0, 1e3 * (until - monotonic()))):
            raise TimeoutError

    def _rest(self, begun: bytearray, size: int, until: float) -> bytearray:
        """Return a message of which some has come; large ones are not copied again."""
        piece, have = bytearray(size), len(begun)
        piece[:have] = begun
        with memoryview(piece) as view:
            while have < size:
                self._wait(until)
                have += _some(self._socket.recv_into(view[have:]))
        return piece


def _some(read: Read) -> Read:
    if not read:
        raise EOFError
    return read
