"""Signals, encodings and full disks decide nothing about a verdict, and lose no report."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from junit_structure import require_structure
from planting import CANDIDATE
from report_schema import require_valid

from backends import interrupts
from gate import cli, publish, runner
from gate.arguments import run_command
from gate.terminal import one_interrupt

if TYPE_CHECKING:
    from collections.abc import Callable

    from gate.model import Run

ROOT = Path(__file__).parents[2]
SMOKE = str(ROOT / "matrices" / "smoke.yaml")
CELL = f"float_adm/ieee-single/default/noise_17x17_8/{CANDIDATE}"
REPORTS = {"journal.jsonl", "junit.xml", "report.json", "report.md"}


def gate(*arguments: str, folder: Path, **streams: Any) -> subprocess.CompletedProcess[bytes]:  # noqa: ANN401 - what a test redirects
    command = [sys.executable, "-m", "gate", *arguments]
    return subprocess.run(command, cwd=folder, check=False, **streams)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_with_every_report(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gate", "run", str(ROOT / "matrices" / "pr.yaml")]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        while not any(temporary.iterdir()) and process.poll() is None:
            time.sleep(0.01)  # the first backend makes a folder there
        process.send_signal(number)
        process.send_signal(number)  # an impatient person
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert {path.name for path in (tmp_path / "out").iterdir()} == REPORTS
    require_valid(tmp_path / "out" / "report.json")
    require_structure(tmp_path / "out" / "junit.xml")
    assert out.splitlines()[-1].startswith("INTERRUPTED: ")


def test_an_interrupt_while_reports_are_written_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def interrupted(render: Callable[[Run], str]) -> Callable[[Run], str]:
        def inner(run: Run) -> str:
            if not run.unfinished:  # the last time
                os.kill(os.getpid(), signal.SIGINT)
                written.append(run.exit_code)
            return render(run)

        return inner

    reports = {name: interrupted(render) for name, render in publish.REPORTS.items()}
    monkeypatch.setattr(publish, "REPORTS", reports)
    out = str(tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["parity-gate", "run", SMOKE, "--cell", CELL, "--out", out])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, written) == (0, [0, 0, 0])
    assert {path.name for path in (tmp_path / "out").iterdir()} == REPORTS


def test_signals_have_their_handlers_back_after_a_run() -> None:
    before = signal.getsignal(signal.SIGINT)
    with one_interrupt() as ignore:
        assert signal.getsignal(signal.SIGINT) is not before
        ignore()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before


def held_through_an_interrupt(taker: threading.Thread, reached: list[bytes]) -> None:
    """Interrupt `taker` in the middle of what is held, and note that this thread goes on."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    with one_interrupt(), interrupts.held():
        signal.pthread_kill(taker.ident or 0, signal.SIGINT)
        reached.append(os.read(told, 1))  # returns when the signal has been taken
        reached.append(b"after")


def test_an_interrupt_that_another_thread_takes_waits_for_what_is_held() -> None:
    """numpy and rich start threads that hold nothing back, and the system may pick one of them."""
    done, reached = threading.Event(), list[bytes]()
    other = threading.Thread(target=done.wait)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        held_through_an_interrupt(other, reached)
    signal.set_wakeup_fd(-1)
    done.set()
    other.join()
    assert reached == [bytes([signal.SIGINT]), b"after"]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def interrupted_where_it_is_let_through(reached: list[str]) -> None:
    with one_interrupt(), interrupts.held(), interrupts.let_through():
        signal.raise_signal(signal.SIGINT)
        reached.append("after")


def test_an_interrupt_comes_at_once_where_it_is_let_through() -> None:
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_where_it_is_let_through(reached)
    assert reached == []
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_a_narrow_encoding_leaves_the_exit_code_alone(tmp_path: Path) -> None:
    narrow = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ended = gate("run", SMOKE, "--cell", CELL, folder=tmp_path, env=narrow, stdout=subprocess.PIPE)
    assert ended.returncode == 0
    assert b"\\u2713 1" in ended.stdout  # the mark, spelled out


def test_a_full_disk_behind_stdout_leaves_the_exit_code_alone(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = gate("run", SMOKE, "--cell", CELL, folder=tmp_path, stdout=full)
        assert ended.returncode == 0
        missing = gate("run", "none.yaml", folder=tmp_path, stderr=full)
        assert missing.returncode == 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == set()


@pytest.mark.parametrize("closed", ["1>&-", "2>&-"])
def test_a_closed_stream_leaves_the_exit_code_alone(closed: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m gate run {SMOKE} --cell {CELL} {closed}"
    ended = subprocess.run(command, cwd=tmp_path, shell=True, check=False)  # noqa: S602 - the shell closes it
    assert ended.returncode == 0


def test_a_report_folder_that_went_during_the_run_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runner.run

    def removing(*arguments: Any, **named: Any) -> Run:  # noqa: ANN401 - passed on as they are
        run = real(*arguments, **named)
        shutil.rmtree(tmp_path / "out")
        return run

    monkeypatch.setattr(runner, "run", removing)
    monkeypatch.setattr(
        sys, "argv", ["x", "run", SMOKE, "--cell", CELL, "--out", str(tmp_path / "out")]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == REPORTS - {"journal.jsonl"}


def test_the_command_that_repeats_a_cell_is_the_one_that_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def typed(program: str) -> str:
        monkeypatch.setattr(sys, "argv", [program, "run", "m.yaml"])
        return run_command(Path("m y.yaml"), Path("out"))

    assert typed(".venv/bin/parity-gate") == (
        ".venv/bin/parity-gate run 'm y.yaml' --out out/repeat"
    )
    assert typed("/x/gate/__main__.py") == "python -m gate run 'm y.yaml' --out out/repeat"
    program = tmp_path / "parity-gate"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert typed(str(program)) == "parity-gate run 'm y.yaml' --out out/repeat"
