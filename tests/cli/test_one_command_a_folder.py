"""Two commands do not write into one folder at a time, and the second touches nothing there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import quick_gate
from program import Gate

from gate import record

ROOT = Path(__file__).parents[2]
SMOKE = str(ROOT / "matrices" / "smoke.yaml")
RUN = ("run", SMOKE, "--cell", "*/opencl:pocl")
HALTING = """\
import os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
import quick_gate
from gate import cli, workers
def open_later(name):
    if name == "cpu":
        os.kill(os.getpid(), signal.SIGSTOP)
    return quick_gate.open_quickly(name)
workers.open_worker = open_later
cli.main()
"""


@pytest.fixture
def first(gate: Gate) -> Iterator[subprocess.Popen[bytes]]:
    """A run in the folder `out` that has halted before it opens a backend."""
    del gate
    command = [sys.executable, "-c", HALTING, str(Path(quick_gate.__file__).parent), *RUN]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        yield process
        process.kill()


def files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path("out").iterdir()}


TAKEN = "where another command writes its reports; wait for its end or name another folder"
COMMANDS = (
    RUN,
    ("run", "--resume", "out"),
    ("fuzz", "--cells", "1"),
    ("angle",),
    ("survey", SMOKE),
    ("report", "out"),
    ("merge", "1", "2"),
    ("rerun", "other", "--matrix", SMOKE, "--out", "out"),
    ("run", SMOKE, "--out", "link"),
)


def test_a_second_command_in_a_folder_is_refused_and_the_first_one_goes_on(
    gate: Gate, first: subprocess.Popen[bytes]
) -> None:
    shutil.copytree("out", "other")
    Path("link").symlink_to("out")
    before = files()
    for arguments in COMMANDS:
        ended = gate(*arguments)
        assert (ended.code, ended.out, files()) == (2, "", before), arguments
        name = "link" if "link" in arguments else "out"
        assert ended.err == f"{name!r} is {TAKEN}\n", arguments
    first.send_signal(signal.SIGCONT)
    assert first.wait() == 0
    assert record.load(Path("out", record.NAME)).unfinished == 0
    assert gate("report", "out").code == 0


def test_another_folder_is_free(gate: Gate, first: subprocess.Popen[bytes]) -> None:
    assert first.poll() is None
    assert gate(*RUN, "--out", "out/repeat").code == 0
    assert gate(*RUN, "--out", "out2").code == 0


def test_what_a_killed_command_has_claimed_is_free(
    gate: Gate, first: subprocess.Popen[bytes]
) -> None:
    first.kill()
    first.wait()
    assert gate("run", "--resume", "out").code == 0


@pytest.mark.parametrize("arguments", [("report", "none"), ("run", "--resume", "none")])
def test_a_folder_that_is_not_there_is_not_made(arguments: tuple[str, ...], gate: Gate) -> None:
    ended = gate(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "none: No such file or directory; name the folder of a run's reports\n"
    assert not Path("none").exists()
