"""The reference cache believes only what is whole and of this user, and breaks no run."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cache_desk import believed, key_of, make_scores
from runner_desk import make_cell

from gate import cache
from gate.cache import ReferenceCache

ROOT = Path(__file__).parents[2]


@pytest.fixture
def kept(tmp_path: Path) -> ReferenceCache:
    """A cache that has nothing."""
    return ReferenceCache(tmp_path / "parity-gate" / "reference")


@pytest.fixture
def entry(kept: ReferenceCache, tmp_path: Path) -> Path:
    """The file of one result."""
    kept.store(key_of(kept), make_scores())
    assert kept.problem == ""
    (found,) = files(tmp_path)
    return found


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]


def test_what_is_stored_comes_back_bit_for_bit(kept: ReferenceCache, tmp_path: Path) -> None:
    key = key_of(kept)
    kept.store(key, make_scores())
    another = ReferenceCache(tmp_path / "parity-gate" / "reference")
    assert believed(another.load(key), make_scores())
    assert (kept.stored, another.loaded, another.damaged, another.problem) == (1, 1, 0, "")


def test_nothing_is_created_before_something_is_stored(
    kept: ReferenceCache, tmp_path: Path
) -> None:
    assert kept.load(key_of(kept)) is None
    kept.trim()
    assert list(tmp_path.iterdir()) == []
    assert (kept.loaded, kept.stored, kept.damaged, kept.problem) == (0, 0, 0, "")


def test_the_folder_is_private_and_no_part_of_a_file_stays(entry: Path, tmp_path: Path) -> None:
    assert files(tmp_path) == [entry]
    modes = [path.stat().st_mode & 0o777 for path in (entry, *entry.parents[:2])]
    assert modes == [0o600, 0o700, 0o700]


def test_another_result_replaces_the_first(kept: ReferenceCache, entry: Path) -> None:
    kept.store(key_of(kept), make_scores(0.2))
    assert entry.exists()
    assert believed(kept.load(key_of(kept)), make_scores(0.2))


def test_a_forgotten_result_is_computed_again(kept: ReferenceCache, entry: Path) -> None:
    kept.forget(key_of(kept))
    assert not entry.exists()
    assert kept.load(key_of(kept)) is None
    kept.forget(key_of(kept))
    assert (kept.damaged, kept.problem) == (0, "")
    entry.mkdir()
    kept.forget(key_of(kept))
    assert kept.problem == f"{entry} cannot be removed: Is a directory; remove it"


def test_a_flipped_bit_anywhere_is_detected(kept: ReferenceCache, entry: Path) -> None:
    whole, key = entry.read_bytes(), key_of(kept)
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        entry.write_bytes(damaged)
        assert kept.load(key) is None, place
    assert (kept.damaged, kept.loaded) == (len(whole), 0)
    kept.store(key, make_scores())
    assert believed(kept.load(key), make_scores())


def test_a_file_that_is_cut_or_longer_is_detected(kept: ReferenceCache, entry: Path) -> None:
    whole, key = entry.read_bytes(), key_of(kept)
    for length in range(len(whole)):
        entry.write_bytes(whole[:length])
        assert kept.load(key) is None, length
    entry.write_bytes(whole + b"\0")
    assert kept.load(key) is None
    assert kept.damaged == len(whole) + 1
    entry.write_bytes(whole)
    assert believed(kept.load(key), make_scores())


def sealed(body: bytes) -> bytes:
    """Return an entry whose sha256 is right."""
    return hashlib.sha256(body).digest() + body


@pytest.mark.parametrize("change", [-1, 1, -9, 9])
def test_another_number_of_scores_is_detected_though_the_sha256_is_right(
    change: int, kept: ReferenceCache, entry: Path
) -> None:
    body = entry.read_bytes()[32:]
    entry.write_bytes(sealed(body[:change] if change < 0 else body + bytes(change)))
    assert kept.load(key_of(kept)) is None
    assert kept.damaged == 1


def test_an_entry_of_another_key_in_its_place_is_detected(
    kept: ReferenceCache, entry: Path, tmp_path: Path
) -> None:
    other = key_of(kept, make_cell(gain=2.0))
    kept.store(other, make_scores(0.2))
    (second,) = (path for path in files(tmp_path) if path != entry)
    shutil.copy(second, entry)
    assert kept.load(key_of(kept)) is None
    assert kept.damaged == 1
    assert believed(kept.load(other), make_scores(0.2))


def test_an_entry_of_another_version_is_detected(kept: ReferenceCache, entry: Path) -> None:
    body = entry.read_bytes()[32:]
    entry.write_bytes(sealed(body.replace(b'"parity-gate": "1"', b'"parity-gate": "0"')))
    assert kept.load(key_of(kept)) is None
    assert kept.damaged == 1


def test_an_entry_of_somebody_else_is_not_read(
    kept: ReferenceCache, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert entry.stat().st_uid == os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert kept.load(key_of(kept)) is None
    assert kept.damaged == 1


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_entry_that_others_may_write_is_not_read(
    mode: int, kept: ReferenceCache, entry: Path
) -> None:
    entry.chmod(mode)
    assert kept.load(key_of(kept)) is None
    entry.chmod(0o644)
    assert believed(kept.load(key_of(kept)), make_scores())


def test_a_link_or_a_pipe_is_not_read_and_replaced(
    kept: ReferenceCache, entry: Path, tmp_path: Path
) -> None:
    moved = entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(moved)
    assert kept.load(key_of(kept)) is None
    assert kept.problem == (f"{entry} cannot be read: Too many levels of symbolic links; remove it")
    entry.unlink()
    os.mkfifo(entry)
    assert kept.load(key_of(kept)) is None
    kept.store(key_of(kept), make_scores())
    assert entry.is_file()
    assert believed(kept.load(key_of(kept)), make_scores())


def test_a_folder_in_the_place_of_an_entry_is_told(kept: ReferenceCache, entry: Path) -> None:
    entry.unlink()
    entry.mkdir()
    assert kept.load(key_of(kept)) is None
    assert kept.problem == f"{entry} cannot be read: Is a directory; remove it"
    kept.store(key_of(kept), make_scores())
    assert kept.problem == "results are not kept: Is a directory; mend that or use --no-cache"
    assert list(entry.parent.iterdir()) == [entry]


@pytest.mark.parametrize("more", [0, 1])
def test_an_entry_above_the_limit_is_not_read(
    more: int, kept: ReferenceCache, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LIMIT", entry.stat().st_size - more)
    assert (kept.load(key_of(kept)) is None) == bool(more)


@contextmanager
def largest(size: int) -> Iterator[None]:
    """Let no file become larger, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_costs_the_entry_and_leaves_nothing(
    kept: ReferenceCache, tmp_path: Path
) -> None:
    key = key_of(kept)
    with largest(100):
        kept.store(key, make_scores())
    assert (kept.stored, files(tmp_path)) == (0, [])
    assert kept.problem == "results are not kept: File too large; mend that or use --no-cache"
    kept.store(key, make_scores())
    assert believed(kept.load(key), make_scores())


def test_a_full_disk_leaves_the_entry_that_was_there(kept: ReferenceCache, entry: Path) -> None:
    with largest(entry.stat().st_size - 1):
        kept.store(key_of(kept), make_scores(0.2))
    assert list(entry.parent.iterdir()) == [entry]
    assert believed(kept.load(key_of(kept)), make_scores())


def test_a_read_only_folder_still_gives_what_it_has(
    kept: ReferenceCache, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(**_: object) -> tuple[int, str]:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(entry))

    monkeypatch.setattr(tempfile, "mkstemp", read_only)
    kept.store(key_of(kept), make_scores(0.2))
    assert kept.problem.startswith("results are not kept: Read-only file system; ")
    assert believed(kept.load(key_of(kept)), make_scores())


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = ReferenceCache(tmp_path / "file" / "reference")
    assert kept.load(key_of(kept)) is None
    assert "cannot be read: Not a directory" in kept.problem
    kept.store(key_of(kept), make_scores())
    assert kept.problem.startswith("results are not kept: Not a directory; ")
    kept.trim()
    assert (kept.stored, kept.loaded, kept.damaged) == (0, 0, 0)


TWO_PROCESSES = """
import sys
from pathlib import Path
import numpy as np
from backends.base import Scores
from gate.cache import ReferenceCache
kept, value = ReferenceCache(Path(sys.argv[1])), float(sys.argv[2])
key = sys.argv[3]
mine = Scores(("one", "two"), np.full((3, 2), value), np.zeros((3, 2), np.bool_))
print(flush=True)
sys.stdin.readline()
for _ in range(300):
    kept.store(key, mine)
    found = kept.load(key)
    assert found is not None and len(set(found.values.flat)) == 1
print(kept.stored, kept.loaded, kept.damaged, kept.problem)
"""


def test_two_processes_store_one_result_at_once(kept: ReferenceCache, tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_PROCESSES, str(tmp_path), value, key_of(kept)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for value in ("1", "2")
    ]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    assert all(process.stdin is not None for process in started)
    for process in started:
        print(file=process.stdin, flush=True)
    told = [process.communicate()[0] for process in started]
    assert told == ["300 300 0 \n"] * 2
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize(
    ("spare", "left"), [(1, [1, 2, 3]), (0, [1, 2, 3]), (-1, [2, 3]), (-10_000, [])]
)
def test_the_oldest_go_where_all_are_above_the_limit(
    spare: int,
    left: list[int],
    kept: ReferenceCache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = {age: key_of(kept, make_cell(gain=float(age))) for age in (3, 1, 2)}
    for age, key in keys.items():
        kept.store(key, make_scores())
        for path in files(tmp_path):
            if path.stat().st_mtime > 1000:
                os.utime(path, (age, age))
    total = sum(path.stat().st_size for path in files(tmp_path))
    monkeypatch.setattr(cache, "LIMIT", max(0, total + spare))
    kept.trim()
    assert sorted(path.stat().st_mtime for path in files(tmp_path)) == left
    assert kept.problem == ""


def test_a_run_that_stored_nothing_removes_nothing(
    entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LIMIT", 0)
    ReferenceCache(entry.parents[1]).trim()
    assert files(tmp_path) == [entry]


def test_files_of_others_in_the_folder_stay(
    kept: ReferenceCache, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = [entry.parents[1] / "notes", entry.parents[1] / "notes.d" / "a"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    monkeypatch.setattr(cache, "LIMIT", 0)
    kept.trim()
    assert files(entry.parents[1]) == mine


def test_an_entry_that_cannot_be_removed_is_told(
    kept: ReferenceCache, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(cache, "LIMIT", 0)
    monkeypatch.setattr(Path, "unlink", refuse)
    kept.trim()
    assert kept.problem == f"{entry} cannot be removed: Permission denied; remove it"


def test_the_cache_tells_what_it_did(kept: ReferenceCache, entry: Path) -> None:
    kept.load(key_of(kept))
    folder = entry.parents[1]
    assert kept.told() == f"reference cache {folder}: 1 result loaded, 1 stored"
    entry.write_bytes(b"")
    kept.load(key_of(kept))
    kept.problem = "why"
    told = "1 result loaded, 1 stored, 1 damaged and computed again; why"
    assert kept.told() == f"reference cache {folder}: {told}"
    assert kept.facts() == {"folder": str(folder), "holds": "1 result, 0.0 MiB of at most 256"}


@pytest.mark.parametrize("value", ["", "0", "false", "False"])
def test_a_desk_has_the_cache_by_default(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", value)
    assert cache.wanted_by_default()
    monkeypatch.delenv("CI")
    assert cache.wanted_by_default()


@pytest.mark.parametrize("value", ["1", "true", "woodpecker"])
def test_a_ci_does_without_by_default(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", value)
    assert not cache.wanted_by_default()


@pytest.mark.parametrize(
    ("named", "root"),
    [("/caches", "/caches"), ("", "/somebody/.cache"), ("relative", "/somebody/.cache")],
)
def test_the_folder_is_where_a_user_keeps_caches(
    named: str, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert cache.default_folder() == Path(root, "parity-gate", "reference")
