"""A device that counts, times and witnesses what a twin does with it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from backends.evidence import NO_NONCE, WITNESS, Evidence, Launch, Nonce
from backends.exactness import prelude

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from backends.base import Buffer, Kernels, Number, Runtime

COLUMNS, ROWS = 64, 256  # work items at most; enough for the memory of a large GPU
WORDS = 4096  # of a row of items: 64 words for each, as in dialect/witness.cl.h
LONG = 8  # bytes of a word
LUMA = (np.uint8, np.uint16)  # nothing but pictures has so few bits


class Watched:
    """A device, to be given to twins in its place.

    Arrays of 8 and 16 bits are pictures: those of one read, ref before dist, in one upload. Each is
    witnessed on the device before any other kernel reads it.
    """

    def __init__(self, runtime: Runtime) -> None:
        """Watch nothing yet."""
        self._runtime = runtime
        self._sums: list[Buffer] = []  # one for each upload between two downloads
        self.begin()

    @property
    def memory_budget(self) -> int:
        """Return the bytes that one batch may take."""
        return self._runtime.memory_budget

    def begin(self, nonce: Nonce = NO_NONCE) -> None:
        """Forget what was watched; what follows is one computation."""
        self._nonce = nonce
        self._launches: list[Launch] = []
        self._witnesses: list[int] = []
        self._pending: list[tuple[str, object]] = []  # kernels that were launched, and events
        self._items: list[int] = []  # that fill each of the sums

    def evidence(self) -> Evidence:
        """Wait for what was launched, and return what was seen of it."""
        self._collect()
        facts = self._runtime.facts()
        return Evidence((), facts, tuple(self._launches), tuple(self._witnesses))

    def compile(self, source: str) -> Kernels:
        """Compile as the device does; launches are watched."""
        return _Kernels(self, self._runtime.compile(source))

    def upload(self, array: NDArray[np.generic]) -> Buffer:
        """Copy an array to the device, and witness it if it holds pictures."""
        buffer = self._runtime.upload(array)
        if array.dtype.type in LUMA:
            self._launch_witness(buffer, array.nbytes)
        return buffer

    def empty(self, nbytes: int) -> Buffer:
        """Allocate device memory, poisoned."""
        return self._runtime.empty(nbytes)

    def poison(self, buffer: Buffer, nbytes: int) -> None:
        """Set the first `nbytes` to FF."""
        self._runtime.poison(buffer, nbytes)

    def download(
        self, buffer: Buffer, shape: Sequence[int], dtype: np.dtype[Number]
    ) -> NDArray[Number]:
        """Copy a buffer back as an array; only numbers of what led to it are kept beyond it."""
        array = self._runtime.download(buffer, shape, dtype)
        self._collect()
        return array

    def launched(self, kernel: str, event: object) -> None:
        """Note a launch."""
        self._pending.append((kernel, event))

    @functools.cached_property
    def _own(self) -> Kernels:
        return self.compile(prelude(f"{WITNESS}.cl.h"))

    def _launch_witness(self, pictures: Buffer, nbytes: int) -> None:
        rows = min(max(nbytes // (LONG * WORDS), 1), ROWS)
        if len(self._sums) == len(self._items):
            self._sums.append(self._runtime.empty(LONG * COLUMNS * ROWS))
        sums = self._sums[len(self._items)]
        self._items.append(COLUMNS * rows)
        numbers = map(np.uint64, (nbytes, *self._nonce))
        size = np.int32(COLUMNS), np.int32(rows)
        self._own.launch(WITNESS, (COLUMNS, rows, 1), pictures, pictures, sums, *numbers, *size)

    def _collect(self) -> None:
        spans = self._runtime.spans([event for _, event in self._pending])
        named = zip(self._pending, spans, strict=True)
        self._launches += (Launch(kernel, *span) for (kernel, _), span in named)
        for sums, items in zip(self._sums, self._items, strict=False):
            parts = self._runtime.download(sums, (items,), np.dtype(np.uint64))
            self._witnesses.append(int(parts.sum()))  # modulo 2**64
        self._pending, self._items = [], []


class _Kernels:
    """Kernels whose launches are noted."""

    def __init__(self, watched: Watched, kernels: Kernels) -> None:
        self._watched = watched
        self._kernels = kernels

    def launch(
        self, kernel: str, size: tuple[int, int, int], *arguments: Buffer | np.generic
    ) -> object:
        event = self._kernels.launch(kernel, size, *arguments)
        self._watched.launched(kernel, event)
        return event
