"""Which program computes references here, and on what: what decides bits and no report tells."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import backends
import gate
from gate import environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

TWINS = ("twin.py", "weights.py", "conclusion.py")
"""Host code of kernels, of which the reference shares nothing; people change it all day."""

MAPS = Path("/proc/self/maps")
LIBRARY = re.compile(
    r"(/.*/(?:ld-|lib(?:c|m|imf|svml|gcc_s|stdc\+\+|c\+\+)[.-])[^/\n]*)$", re.MULTILINE
)
FLAGS = re.compile(r"^(?:flags|Features)\s*: (.+)$", re.MULTILINE)


class Identity:
    """The program as it was when a run began."""

    def __init__(self) -> None:
        """Read the code, before a worker loads it."""
        self._code = _Files(_code())
        self._libraries = _Files(())
        self._facts: dict[str, str] = {}

    def facts(self) -> Mapping[str, str]:
        """Return code, C libraries, and what libraries choose routines by; `unknown` by name.

        The reference is loaded by then, and its libraries with it.
        """
        if not self._facts:
            flags = None
            try:
                self._libraries = _Files(
                    map(Path, LIBRARY.findall(MAPS.read_text("utf-8", "surrogateescape")))
                )
                flags = FLAGS.search(environment.CPUINFO.read_text("utf-8", "replace"))
            except OSError:
                pass
            preloaded = os.environ.get("LD_PRELOAD") or os.environ.get("LD_AUDIT")
            self._facts = {
                "code": self._code.sha256,
                "C libraries": self._libraries.sha256,
                "flags of the processor": flags[1] if flags else "unknown",
                "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES") or "none",
                "effect of LD_PRELOAD": "unknown" if preloaded else "none",
            }
        return self._facts

    def changed(self) -> bool:
        """Return whether a file is another one now, so that a worker may have loaded either.

        Raises:
            OSError: one is gone.
        """
        return self._code.changed() or self._libraries.changed()


class _Files:
    """Files as they are now.

    Attributes:
        sha256: of their paths and contents; `unknown` where there are none.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        listed = sorted(set(paths))
        self.sha256, self._stamps = "unknown", list[tuple[Path, tuple[int, ...]]]()
        try:
            self._stamps = [(path, _stamp(path)) for path in listed]
            contents = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in listed}
        except OSError:  # it is being built, or was replaced after it had been loaded
            return
        if contents:
            self.sha256 = hashlib.sha256(json.dumps(contents).encode()).hexdigest()

    def changed(self) -> bool:
        return any(_stamp(path) != stamp for path, stamp in self._stamps)


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _code() -> Iterator[Path]:
    """Yield the files of the program, compiled ones too, but for what is the kernels'."""
    for root in (*backends.__path__, *gate.__path__):
        for suffix in ("py", "so"):
            yield from (p for p in Path(root).rglob(f"*.{suffix}") if p.name not in TWINS)
