"""Scores of the compiled reference, kept from one run to the next.

Whatever may decide their bits is part of an entry's key: doubt costs time, never a verdict.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from backends.base import Scores
from gate.identity import Identity
from gate.model import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gate.model import Cell

    Facts = Mapping[str, Mapping[str, str]]

LIMIT = 256 << 20  # bytes of all entries
REPLAYED = "replayed table"
"""The section of facts with the reciprocal table's sha256, `none` where none is replayed."""

# Others are under test themselves, and depend on more than facts name: drivers, kernels, devices.
REFERENCE = "cpu"
OF_CELL = (
    *("feature", "dialect", "conclusion", "options", "outputs", "reference"),
    *("width", "height", "bit_depth", "frames"),
)
OF_OTHERS = (  # sections by the first word of their titles; the cell's own still count
    *("matrix", "warnings", "names", "feature", "kernels"),
    *("reference", "candidate", "required", "fixtures"),
)
DIGEST = hashlib.sha256().digest_size
SCORE = np.dtype("<f8")


def wanted_by_default() -> bool:
    """Return whether this is a desk: a CI sets the variable CI."""
    return os.environ.get("CI", "").lower() in ("", "0", "false")


def default_folder() -> Path:
    """Return the folder of this user's cache.

    Raises:
        RuntimeError: the user has no home.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    root = named if named.is_absolute() else Path.home() / ".cache"
    return root / "parity-gate" / "reference"


class ReferenceCache:
    """Entries in a folder of this user's own.

    Attributes:
        loaded, stored: number of results.
        damaged: number of results that were there and not believed.
        problem: why results are not kept or not found, one sentence; empty where all are.
    """

    def __init__(self, folder: Path) -> None:
        """Note which program this is, before workers load it; nothing is created yet."""
        self.loaded = self.stored = self.damaged = 0
        self.problem = ""
        self._folder = folder
        self._identity = Identity()

    def key(self, cell: Cell, clip_sha256: Mapping[str, str], facts: Facts) -> str | None:
        """Return the text of all that decides a reference's scores, None if some is not known.

        Args:
            cell: what is computed.
            clip_sha256: of ref and dist.
            facts: the run's environment, and REPLAYED.
        """
        if cell.reference != REFERENCE:
            self.problem = f"results of {cell.reference} are not kept, only those of {REFERENCE}"
            return None
        own = f"feature {cell.feature}", f"reference {cell.reference}"
        told = {title: dict(section) for title, section in facts.items() if _decides(title, own)}
        # Of its sources, those of reports and of kernels' host code decide nothing here.
        told["gate"] = {k: v for k, v in told.get("gate", {}).items() if k != "sources"}
        told |= {"clip": dict(clip_sha256), "here": dict(self._identity.facts())}
        unknown = _unknown(told, ("gate", "host", own[0], REPLAYED, "clip"))
        if unknown:
            self.problem = f"{unknown} is unknown, so results are not kept"
            return None
        asked = {name: getattr(cell, name) for name in OF_CELL} | {"options": dict(cell.options)}
        return json.dumps({"cell": asked, "facts": told}, sort_keys=True)

    def load(self, key: str) -> Scores | None:
        """Return the scores of a key; None where they are not there, or not to be believed."""
        path = self._path(key)
        try:
            entry = _read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.problem = f"{path} cannot be read: {error.strerror}; remove it"
            return None
        scores = _decoded(entry, key)
        self.damaged += scores is None
        self.loaded += scores is not None
        return scores

    def store(self, key: str, scores: Scores) -> None:
        """Keep the scores of a key's cell; where that fails, `problem` tells."""
        path = self._path(key)
        try:
            if self._identity.changed():
                self.problem = "the program changed since the run began, so results are not kept"
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _write(path, _encoded(key, scores))
        except OSError as error:
            self.problem = f"results are not kept: {error.strerror}; mend that or use --no-cache"
        else:
            self.stored += 1

    def forget(self, key: str) -> None:
        """Remove the result of a key, for its reference gave other bits when it was asked again."""
        path = self._path(key)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.problem = f"{path} cannot be removed: {error.strerror}; remove it"

    def trim(self) -> None:
        """Remove the oldest entries where all take more than LIMIT bytes, if any was stored."""
        total = 0
        try:
            for _, size, path in sorted(self._entries(), reverse=True) if self.stored else ():
                total += size
                if total > LIMIT:
                    path.unlink(missing_ok=True)
        except OSError as error:
            self.problem = f"{error.filename} cannot be removed: {error.strerror}; remove it"

    def told(self) -> str:
        """Return what became of this run's results, as one line."""
        parts = [f"{counted(self.loaded, 'result')} loaded", f"{self.stored} stored"]
        if self.damaged:
            parts.append(f"{self.damaged} damaged and computed again")
        line = f"reference cache {self._folder}: {', '.join(parts)}"
        return f"{line}; {self.problem}" if self.problem else line

    def facts(self) -> Mapping[str, str]:
        """Return where the cache is and how large, for people."""
        sizes = [size for _, size, _ in self._entries()]
        held = f"{counted(len(sizes), 'result')}, {sum(sizes) / (1 << 20):.1f} MiB"
        return {"folder": str(self._folder), "holds": f"{held} of at most {LIMIT >> 20}"}

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / name[:2] / name

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """Yield of each entry when it was stored, its bytes and its path."""
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            try:
                found = path.lstat()
            except FileNotFoundError:  # another process removes old ones too
                continue
            if stat.S_ISREG(found.st_mode):
                yield found.st_mtime_ns, found.st_size, path


def _decides(title: str, own: tuple[str, ...]) -> bool:
    return title in own or title.partition(" ")[0] not in OF_OTHERS


def _unknown(told: Facts, required: Iterable[str]) -> str:
    """Return which section or fact is not known, empty if all are."""
    for title in required:
        if not told.get(title):
            return title
    for title, section in told.items():
        for name, text in section.items():
            if not text.strip() or "unknown" in (name, text.partition(" ")[0].rstrip(":")):
                return f"{title}: {name}"
    return ""


def _encoded(key: str, scores: Scores) -> bytes:
    """Return sha256, key, values (float64, little endian) and what is unset (bytes)."""
    body = key.encode() + scores.values.astype(SCORE).tobytes() + scores.unset.tobytes()
    return hashlib.sha256(body).digest() + body


def _decoded(entry: bytes, key: str) -> Scores | None:
    """Return the scores of an entry that is whole and of this key."""
    digest, body, text = entry[:DIGEST], entry[DIGEST:], key.encode()
    if hashlib.sha256(body).digest() != digest or not body.startswith(text):
        return None
    asked = json.loads(key)["cell"]
    shape = asked["frames"], len(asked["outputs"])
    count = math.prod(shape)
    if len(body) != len(text) + count * (SCORE.itemsize + 1):
        return None
    values = np.frombuffer(body, SCORE, count, len(text)).astype(np.float64)
    unset = np.frombuffer(body, np.uint8, count, len(text) + count * SCORE.itemsize) != 0
    return Scores(tuple(asked["outputs"]), values.reshape(shape), unset.reshape(shape))


def _read(path: Path) -> bytes:
    """Return an entry's bytes; none of what is no file of this user's alone.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    with open(path, "rb", opener=_open) as file:
        found = os.fstat(file.fileno())
        own = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        sound = own and stat.S_ISREG(found.st_mode) and found.st_size <= LIMIT
        return file.read() if sound else b""


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe must not block


def _write(path: Path, entry: bytes) -> None:
    """Put an entry in place as a whole; what a power cut makes of it, its sha256 shows."""
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(entry)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
