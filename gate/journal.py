"""The journal of a run: one line a finished cell, on disk as soon as it is finished."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

NAME = "journal.jsonl"


class Journal:
    """Appends lines; whole ones only, whatever becomes of the disk.

    Attributes:
        problem: why lines are missing from the file; empty where none is.
    """

    def __init__(self, path: Path, run: str) -> None:
        """Begin or go on with the journal of a run.

        Args:
            path: of the file.
            run: the run's id, which every line holds.

        Raises:
            OSError: it cannot be opened.
        """
        self.problem = ""
        self._run = run
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._waiting = b""
        self._written, self._closed = Event(), False
        self._syncs = Thread(target=self._sync, daemon=True)
        self._syncs.start()

    def append(self, entry: dict[str, Any]) -> None:
        """Write a line; where there is no room it waits for the next one."""
        line = json.dumps({"run": self._run, **entry}, allow_nan=False)
        self._waiting += line.encode() + b"\n"
        size = os.fstat(self._file).st_size
        try:
            if os.write(self._file, self._waiting) < len(self._waiting):
                os.ftruncate(self._file, size)  # half a line would spoil the one behind it
                self.problem = "no room for the whole line"
                return
        except OSError as error:
            self.problem = error.strerror or str(error)
            return
        self._waiting, self.problem = b"", ""
        self._written.set()

    def close(self) -> None:
        """Sync what is written and let go of the file."""
        self._closed = True
        self._written.set()
        self._syncs.join()
        os.close(self._file)

    def _sync(self) -> None:
        """Sync in a thread, since a disk takes longer than a small cell."""
        while not self._closed:
            self._written.wait()
            self._written.clear()
            with suppress(OSError):  # `append` tells of a disk that takes no more
                os.fdatasync(self._file)


def entries(path: Path, run: str) -> list[dict[str, Any]]:
    """Return the entries of a run, in order; none where there is no journal.

    A last line that a power cut or a kill has cut off counts as not written.

    Raises:
        ValueError: the file is of another run, or holds something else; one sentence.
    """
    if not path.exists():
        return []
    *lines, cut = path.read_bytes().split(b"\n")
    del cut  # empty behind a whole line
    return [_entry(line, run, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def _entry(line: bytes, run: str, where: str) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = json.loads(line)
        of = entry.pop("run")
    except (ValueError, AttributeError, KeyError, TypeError):
        message = f"{where}: this line is no entry of a journal; start a new run"
        raise ValueError(message) from None
    if of != run:
        message = f"{where}: this line is of run {of}, report.json of run {run}; start a new run"
        raise ValueError(message)
    return entry
