"""What a killed gate has left in the folder for temporary files, and who may remove it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gate.scratch import FILES, LOCK, PREFIX, Scratch, sweep

OWNER = """\
import subprocess, sys
from gate.scratch import Scratch
scratch = Scratch()
(scratch.path / "kernels").mkdir()
(scratch.path / "kernels" / "cache").write_text("binary")
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.readline()"])
print(scratch.path, flush=True)
sys.stdin.readline()  # ends with the input, too: the child may have taken the line
scratch.cleanup()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files, of this process and of those that it starts."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@contextmanager
def owner() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process with a folder and a child; both end with their input."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        yield started, Path(started.stdout.readline().rstrip("\n"))


def left() -> Path:
    """Return the folder of a process that was killed."""
    scratch = Scratch()
    (scratch.path / "file").write_text("left")
    folder = scratch.path.parent
    scratch._lock.close()  # noqa: SLF001 - as its end would
    return folder


def test_a_folder_is_empty_and_goes_with_all_that_is_in_it(temporary: Path) -> None:
    scratch = Scratch()
    assert list(scratch.path.iterdir()) == []
    (scratch.path / "a/b").mkdir(parents=True)
    (scratch.path / "a/b/c").write_text("c")
    scratch.cleanup()
    assert list(temporary.iterdir()) == []


def test_a_folder_that_has_gone_needs_no_cleanup(temporary: Path) -> None:
    scratch = Scratch()
    scratch.path.parent.rename(temporary / "elsewhere")
    scratch.cleanup()
    scratch.cleanup()
    assert (temporary / "elsewhere").is_dir()


def test_two_folders_of_one_process_stay_until_it_removes_them(temporary: Path) -> None:
    one, other = Scratch(), Scratch()
    sweep()
    assert (one.path.is_dir(), other.path.is_dir()) == (True, True)
    one.cleanup()
    assert other.path.is_dir()
    other.cleanup()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_goes_while_its_child_lives(temporary: Path) -> None:
    with owner() as (started, path):
        sweep()
        assert (path / "kernels/cache").read_text() == "binary"
        started.kill()
        started.wait()
        assert (path / "kernels/cache").read_text() == "binary"
        sweep()
        assert list(temporary.iterdir()) == []


def test_the_folder_of_a_living_process_stays_whoever_else_is_killed(temporary: Path) -> None:
    with owner() as (living, path), owner() as (dying, _):
        dying.kill()
        dying.wait()
        sweep()
        assert list(temporary.iterdir()) == [path.parent]
        assert (path / "kernels/cache").is_file()
        living.communicate("\n")
    assert list(temporary.iterdir()) == []


def test_several_sweeps_at_once_remove_everything(temporary: Path) -> None:
    for _ in range(20):
        left()
    text = "from gate.scratch import sweep; input(); sweep()"
    sweeps = [
        subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for started in sweeps:
        assert started.stdin is not None
        started.stdin.write("\n")
        started.stdin.flush()
    for started in sweeps:
        started.communicate()
        assert started.returncode == 0
    assert list(temporary.iterdir()) == []


def lock_is_a_link(folder: Path) -> None:
    (folder / LOCK).rename(folder.parent / "target")
    (folder / LOCK).symlink_to(folder.parent / "target")


def lock_has_gone(folder: Path) -> None:
    (folder / LOCK).unlink()


def folder_is_a_link(folder: Path) -> None:
    folder.rename(folder.parent / "target")
    folder.symlink_to(folder.parent / "target")


def name_is_another(folder: Path) -> None:
    folder.rename(folder.parent / "another")


@pytest.mark.parametrize(
    "change", [lock_is_a_link, lock_has_gone, folder_is_a_link, name_is_another]
)
def test_what_is_no_such_folder_stays(change: Callable[[Path], None], temporary: Path) -> None:
    change(left())
    before = sorted(temporary.rglob("*"))
    sweep()
    assert sorted(temporary.rglob("*")) == before
    assert any(path.name == "file" for path in temporary.rglob("*"))


def test_a_folder_of_another_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = left()
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    sweep()
    assert (folder / FILES / "file").read_text() == "left"


def test_links_are_not_followed(temporary: Path) -> None:
    target = temporary / "target"
    target.mkdir()
    (target / "file").write_text("mine")
    folder = left()
    (folder / FILES / "link").symlink_to(target)
    another = left()
    (another / FILES / "file").unlink()
    (another / FILES).rmdir()
    (another / FILES).symlink_to(target)
    sweep()
    assert not folder.exists()
    assert (target / "file").read_text() == "mine"


def test_a_file_of_that_name_stays(temporary: Path) -> None:
    (temporary / f"{PREFIX}x").write_text("mine")
    sweep()
    assert (temporary / f"{PREFIX}x").read_text() == "mine"


def test_what_cannot_be_removed_now_is_left_to_a_later_run() -> None:
    folder = left()
    (folder / "another").write_text("of nobody that is known")
    sweep()
    assert sorted(path.name for path in folder.iterdir()) == ["another", LOCK]
    (folder / "another").unlink()
    sweep()
    assert not folder.exists()
