"""Folders for temporary files, which a later run removes where a killed one has left them."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "parity-gate-worker-"
LOCK = "lock"  # whoever can lock this file may remove the folder that it is in
FILES = "files"


class Scratch:
    """A folder that belongs to this process for as long as it lives.

    Attributes:
        path: where temporary files go.
    """

    def __init__(self) -> None:
        """Make an empty folder."""
        made = Path(mkdtemp(prefix=f".{PREFIX}"))
        (made / FILES).mkdir()
        self._lock = (made / LOCK).open("x")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Only now does it get a name that `sweep` looks for.
        self._folder = made.rename(made.with_name(made.name.removeprefix(".")))
        self.path = self._folder / FILES

    def cleanup(self) -> None:
        """Remove the folder; what cannot go now is left to a later run."""
        with suppress(OSError), _opened(self._folder, os.O_DIRECTORY) as folder:
            _remove(self._folder, folder)
        self._lock.close()


def sweep() -> None:
    """Remove what processes of this user have left that did not live to do it themselves."""
    for path in Path(gettempdir()).glob(f"{PREFIX}*"):
        # What is in use, is a link or cannot be opened or removed stays.
        with suppress(OSError), _opened(path, os.O_DIRECTORY) as folder:
            if os.fstat(folder).st_uid == os.getuid():
                with _opened(LOCK, os.O_RDWR, folder) as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(path, folder)


def _remove(path: Path, folder: int) -> None:
    """Remove a folder, the lock last, so that a later run can go on with what is left.

    Args:
        path: of the folder.
        folder: its descriptor, for a path may come to lead elsewhere.

    Raises:
        OSError: something stays.
    """
    shutil.rmtree(FILES, ignore_errors=True, dir_fd=folder)
    if os.listdir(folder) == [LOCK]:
        os.unlink(LOCK, dir_fd=folder)
        path.rmdir()


@contextmanager
def _opened(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    """Open a path that is no link, inside of `folder` if given."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
