"""What two processes tell each other arrives whole, in order and aligned."""

from __future__ import annotations

import socket
import threading
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gate.channel import CHUNK, Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

    Ends = tuple[Channel, Channel]


@pytest.fixture
def ends() -> Iterator[Ends]:
    one, other = socket.socketpair()
    left, right = Channel(one), Channel(other)
    yield left, right
    left.close()
    right.close()


def test_messages_that_come_together_are_read_one_by_one(ends: Ends) -> None:
    left, right = ends
    for number in range(5):
        left.send({"number": number}, [np.arange(number, dtype=np.uint16)])
    for number in range(5):
        message, (array,) = right.receive()
        assert message == {"number": number}
        assert array.tolist() == list(range(number))
    with pytest.raises(TimeoutError):
        right.receive(until=0)


@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 3])
def test_a_message_of_any_size_is_followed_by_the_next(ends: Ends, size: int) -> None:
    left, right = ends
    sent = np.random.default_rng(size).integers(0, 256, size, np.uint8)

    def talk() -> None:
        for number in range(3):
            left.send({"n": number}, [sent, sent])

    thread = threading.Thread(target=talk)
    thread.start()
    for number in range(3):
        message, arrays = right.receive()
        assert message == {"n": number}
        assert [array.tobytes() for array in arrays] == [sent.tobytes()] * 2
    thread.join()
    with pytest.raises(TimeoutError):
        right.receive(until=0)


def test_arrays_keep_dtype_and_shape_and_cannot_be_written_to(ends: Ends) -> None:
    left, right = ends
    sent = np.arange(6, dtype=np.float64).reshape(2, 3)
    left.send({}, [sent, sent[:0]])
    _, (whole, none) = right.receive()
    assert (whole.dtype, whole.shape, none.shape) == (sent.dtype, (2, 3), (0, 3))
    assert not whole.flags.writeable


@pytest.mark.parametrize("cut", [0, 3, 8, 20])
def test_an_end_in_the_middle_of_a_message_is_an_end(cut: int) -> None:
    left, right = socket.socketpair()
    whole, reader = socket.socketpair()
    sender, receiver = Channel(whole), Channel(right)
    sender.send({"a": 1}, [np.zeros(9)])
    left.sendall(reader.recv(CHUNK)[:cut])
    left.close()
    with pytest.raises(EOFError):
        receiver.receive()
    for each in (sender, receiver, reader):
        each.close()


@pytest.mark.parametrize("come", [0, 3, 8, 9, 70])
def test_what_comes_in_part_is_waited_for_no_longer_than_asked(come: int) -> None:
    left, right = socket.socketpair()
    whole, reader = socket.socketpair()
    sender, receiver = Channel(whole), Channel(right)
    sender.send({"a": 1}, [np.zeros(9)])
    left.sendall(reader.recv(CHUNK)[:come])
    with pytest.raises(TimeoutError):
        receiver.receive(until=monotonic() + 0.01)
    left.close()
    for each in (sender, receiver, reader):
        each.close()
