"""The journal of a run: one line a finished cell, written at once and soon synced to the disk."""

from __future__ import annotations

import fcntl
import json
import os
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

NAME = "journal.jsonl"
PAUSE = 0.02  # seconds from one sync to the next: each holds up the thread that appends

_encoded = json.JSONEncoder(allow_nan=False).encode  # `json.dumps` would make one for each line


class Journal:
    """Appends lines; whole ones only, whatever becomes of the disk.

    Attributes:
        problem: why lines are missing from the file; empty where none is.
        unsynced: why lines may not survive a power cut; empty where all do.
    """

    def __init__(self, path: Path, run: str) -> None:
        """Begin or go on with the journal of a run.

        Args:
            path: of the file.
            run: the run's id, which every line holds.

        Raises:
            OSError: it cannot be opened, or another process writes it.
        """
        self.problem = self.unsynced = ""
        self._run = run
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one run writes it
        self._size = path.read_bytes().rfind(b"\n") + 1  # what a kill has cut off goes
        os.ftruncate(self._file, self._size)
        self._waiting = b""
        self._written, self._closed = Event(), Event()
        self._syncs = Thread(target=self._sync, daemon=True)
        self._syncs.start()

    def append(self, *entries: dict[str, Any]) -> None:
        """Write a line each, all at once; where there is no room they wait for the next ones."""
        for entry in entries:
            self._waiting += _encoded({"run": self._run, **entry}).encode() + b"\n"
        try:
            if self.problem:  # half a line would spoil the one behind it
                os.ftruncate(self._file, self._size)
            if os.write(self._file, self._waiting) < len(self._waiting):
                self.problem = "no room for the whole line"
                os.ftruncate(self._file, self._size)
                return
        except OSError as error:
            self.problem = error.strerror or str(error)
            return
        self._size += len(self._waiting)
        self._waiting, self.problem = b"", ""
        self._written.set()

    def close(self) -> None:
        """Sync what is written and let go of the file."""
        self._closed.set()
        self._written.set()
        self._syncs.join()
        self._sync_now()
        os.close(self._file)

    def _sync(self) -> None:
        """Sync in a thread, since a disk takes longer than a small cell."""
        while not self._closed.wait(PAUSE):
            self._written.wait()
            self._written.clear()
            self._sync_now()

    def _sync_now(self) -> None:
        try:
            os.fdatasync(self._file)
        except OSError as error:
            self.unsynced = error.strerror or str(error)


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
