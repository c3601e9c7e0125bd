"""What a watched device does beside what it is told to, seen by one that only writes down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from notebook import Notebook
from stills import noise

from backends.base import Arithmetic
from backends.evidence import WITNESS, Launch, Nonce
from backends.features.float_adm import FEATURE
from backends.features.float_adm.spec import FloatAdmOptions
from backends.features.float_adm.twin import bytes_per_frame
from backends.witness import COLUMNS, ROWS, WORDS, Watched


class Clock(Notebook):
    """A notebook whose launches take a nanosecond each, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []  # how many launches were asked for at a time
        self.now = 0

    def spans(self, launches: Sequence[object]) -> list[tuple[int, int]]:
        self.asked.append(len(launches))
        self.now += len(launches)
        return [(self.now + number, self.now + number + 1) for number in range(len(launches))]

    def facts(self) -> dict[str, str]:
        return {"device": "a notebook"}


def kernels(device: Notebook) -> list[str]:
    return [kernel for kernel, _ in device.launches]


@pytest.mark.parametrize(
    ("dtype", "witnessed"),
    [("u1", True), ("u2", True), ("i4", False), ("u4", False), ("f4", False), ("u8", False)],
)
def test_pictures_are_witnessed_and_tables_are_not(dtype: str, *, witnessed: bool) -> None:
    device = Clock()
    watched = Watched(device)
    watched.upload(np.zeros((2, 3, 5), dtype))
    assert kernels(device) == [WITNESS] * witnessed
    assert len(watched.evidence().witnesses) == witnessed


def test_pictures_are_witnessed_before_a_kernel_has_them() -> None:
    device = Clock()
    twin = FEATURE.twin(Watched(device), "")
    twin.compute(Arithmetic("ieee-single"), FloatAdmOptions(), noise(17, 17, 1))
    assert kernels(device)[:2] == [WITNESS, "pixels_8"]


@pytest.mark.parametrize(
    ("nbytes", "rows"),
    [
        (1, 1),
        (8 * WORDS * 2 - 1, 1),
        (8 * WORDS * 2, 2),
        (8 * WORDS * ROWS - 1, ROWS - 1),
        (8 * WORDS * ROWS, ROWS),
        (8 * WORDS * (ROWS + 1), ROWS),
    ],
)
def test_larger_pictures_have_more_work_items_to_a_limit(nbytes: int, rows: int) -> None:
    device = Clock()
    watched = Watched(device)
    watched.begin(Nonce(3, 5))
    watched.upload(np.zeros(nbytes, np.uint8))
    assert device.launches == [(WITNESS, (COLUMNS, rows, 1))]
    ((_, (*_, length, run, computation, columns, lines)),) = device.arguments
    told = [length, run, computation, columns, lines]
    assert told == [*map(np.uint64, (nbytes, 3, 5)), *map(np.int32, (COLUMNS, rows))]


def test_a_long_clip_keeps_no_events_and_one_buffer_of_sums() -> None:
    """Each download of a batch's totals also fetches what its launches left."""
    device, frames = Clock(), 5
    clip = noise(17, 17, frames)
    device.memory_budget = bytes_per_frame(clip)
    watched = Watched(device)
    twin = FEATURE.twin(watched, "")
    twin.compute(Arithmetic("ieee-single"), FloatAdmOptions(), clip)
    assert len(device.asked) == frames
    assert len(set(device.asked)) == 1
    sums = {id(arguments[2]) for kernel, arguments in device.arguments if kernel == WITNESS}
    assert len(sums) == 1
    evidence = watched.evidence()
    assert len(evidence.witnesses) == frames
    assert [launch.kernel for launch in evidence.launches] == kernels(device)


def test_what_was_computed_before_is_no_evidence_of_the_next() -> None:
    device = Clock()
    watched = Watched(device)
    compiled = watched.compile("")
    compiled.launch("fold", (1, 1, 1))
    watched.upload(np.zeros(2, np.uint8))
    assert len(watched.evidence().launches) == 2
    watched.begin()
    assert (watched.evidence().launches, watched.evidence().witnesses) == ((), ())
    compiled.launch("csf", (1, 1, 1))
    assert watched.evidence().launches == (Launch("csf", 3, 4),)
    assert watched.evidence().facts == {"device": "a notebook"}
