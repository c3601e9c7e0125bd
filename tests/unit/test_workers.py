"""What becomes of a cell, and of those after it, when the process of a backend fails."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import planted_worker
import pytest
from planted_worker import FATAL
from stills import noise

from backends import reciprocal, registry
from backends.base import Arithmetic, Scores, Unavailable
from backends.reciprocal import RcpTable
from gate.asking import AGAIN, WAYS, Ask, Pending
from gate.errors import FixtureError
from gate.model import Status
from gate.opening import Reported, Trouble
from gate.workers import AHEAD, Worker

PROGRAM = (planted_worker.__file__,)
GOOD, BAD = noise(17, 17, 3), noise(FATAL, 17, 1)


@pytest.fixture
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    opened = Worker(request.param, PROGRAM)
    yield opened
    opened.close()


def asked(
    worker: Worker,
    clip: object = GOOD,
    timeout: float = 60,
    way: str = AGAIN,
    table: RcpTable | None = None,
) -> Pending:
    feature = registry.features()["float_adm"]
    arithmetic = Arithmetic("ieee-single", rcp_table=table)
    return worker.begin(Ask(feature, arithmetic, feature.options(), clip, timeout, way))  # type: ignore[arg-type]


def computed(worker: Worker, clip: object = GOOD) -> Scores:
    return asked(worker, clip).scores()


def trouble(worker: Worker, timeout: float = 60) -> Trouble:
    with pytest.raises(Reported) as told:
        asked(worker, BAD, timeout).scores()
    return told.value.trouble


def gone(process: int) -> bool:
    """Return whether a process that was told to end does so, within a minute."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    ended, _, _ = select.select([watched], [], [], 60)  # readable when it has ended
    os.close(watched)
    return bool(ended)


def process_of(scores: Scores) -> int:
    return int(scores.values[0, 2])


@pytest.mark.parametrize("worker", ["sound"], indirect=True)
def test_a_worker_reads_every_frame_and_is_started_once(worker: Worker) -> None:
    first, second = computed(worker), computed(worker)
    assert first.names == ("ref", "dist", "process", "asked", "table")
    expected = [[GOOD.ref[frame].sum(), GOOD.dist[frame].sum()] for frame in range(3)]
    assert np.array_equal(first.values[:, :2], expected)
    assert not first.unset.any()
    assert process_of(first) == process_of(second) != os.getpid()
    assert [scores.values[0, 3] for scores in (first, second)] == [1, 2]


@pytest.mark.parametrize(
    ("worker", "reason", "words"),
    [
        ("killed", "was ended by signal 9 (SIGKILL)", ""),
        ("crashed", "was ended by signal 11 (SIGSEGV)", "reading at address 0"),
        ("aborted", "was ended by signal 6 (SIGABRT)", "Fatal Python error: Aborted"),
        ("left", "ended with exit code 7", "the driver gives up"),
    ],
    indirect=["worker"],
)
def test_a_process_that_ends_costs_the_cell_it_was_on(
    worker: Worker, reason: str, words: str
) -> None:
    before = computed(worker)
    told = trouble(worker)
    assert (told.status, told.reason) == (Status.ERROR, f"the process of {worker.name} {reason}")
    assert words in told.detail
    after = computed(worker)
    assert process_of(after) != process_of(before)
    assert np.array_equal(after.values[:, :2], before.values[:, :2])


@pytest.mark.parametrize("worker", ["out of memory", "lost"], indirect=True)
def test_after_an_unexpected_error_the_process_is_another_one(worker: Worker) -> None:
    before = computed(worker)
    told = trouble(worker)
    assert told.reason.startswith(("MemoryError: Unable", "RuntimeError: CL_DEVICE_NOT_AVAILABLE"))
    assert "Traceback" in told.detail
    assert process_of(computed(worker)) != process_of(before)


@pytest.mark.parametrize("worker", ["refused"], indirect=True)
def test_after_a_declared_failure_the_process_stays(worker: Worker) -> None:
    before = computed(worker)
    assert trouble(worker).reason == "it declines"
    assert process_of(computed(worker)) == process_of(before)


@pytest.mark.parametrize("worker", ["hung", "hung with a child"], indirect=True)
def test_a_process_that_hangs_is_killed_after_the_cells_time_with_its_children(
    worker: Worker,
) -> None:
    before = computed(worker)
    told = trouble(worker, timeout=1)
    assert told.reason == f"{worker.name} was computing for more than 1 s; its process was killed"
    assert gone(process_of(before))
    if worker.name == "hung":
        assert told.detail == "waiting for the device\n"
    else:
        assert gone(int(told.detail.removeprefix("child ")))
    assert process_of(computed(worker)) != process_of(before)


@pytest.mark.parametrize("worker", ["killed", "lost", "refused"], indirect=True)
def test_cells_that_were_asked_for_ahead_lose_nothing_but_the_one_that_fails(
    worker: Worker,
) -> None:
    clips = [GOOD] * 3 + [BAD] + [GOOD] * (2 * AHEAD)
    pending = [asked(worker, clip) for clip in clips]
    with pytest.raises(Reported):
        pending[3].scores()
    answers = [one.scores() for one in (*pending[:3], *pending[4:])]
    expected = [[GOOD.ref[frame].sum(), GOOD.dist[frame].sum()] for frame in range(3)]
    assert all(np.array_equal(scores.values[:, :2], expected) for scores in answers)
    assert len(set(map(process_of, answers))) == (1 if worker.name == "refused" else 2)
    assert all(one.seconds > 0 for one in pending)


@pytest.mark.parametrize("worker", ["killed"], indirect=True)
def test_an_answer_that_came_before_the_end_of_its_process_counts(worker: Worker) -> None:
    """The process has died, on the second cell, before anybody asks for the first one."""
    process = process_of(computed(worker))
    pending = [asked(worker), asked(worker, BAD)]
    assert gone(process)
    pending += [asked(worker) for _ in range(2 * AHEAD)]  # which it cannot be told any more
    assert process_of(pending[0].scores()) == process
    with pytest.raises(Reported, match="SIGKILL"):
        pending[1].scores()
    assert {process_of(one.scores()) for one in pending[2:]}.isdisjoint({process})


@pytest.mark.parametrize("worker", ["greedy"], indirect=True)
def test_what_goes_wrong_in_the_gate_costs_the_cell_that_it_was_for(worker: Worker) -> None:
    pending = [asked(worker), asked(worker, BAD), asked(worker), asked(worker)]
    assert pending[0].scores().values[0, 3] == 1
    with pytest.raises(AssertionError):  # of the clip, which has no such frame
        pending[1].scores()
    assert [one.scores().values[0, 3] for one in pending[2:]] == [1, 2]  # of another process


def test_a_process_that_cannot_be_started_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        Worker("sound", PROGRAM)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("worker", ["hung"], indirect=True)
def test_the_time_of_a_cell_begins_when_the_one_before_it_has_ended(worker: Worker) -> None:
    pending = [asked(worker, BAD, timeout=1), asked(worker, BAD, timeout=1), asked(worker)]
    for one in pending[:2]:
        with pytest.raises(Reported, match="hung was computing for more than 1 s"):
            one.scores()
        assert one.seconds >= 1
    assert pending[2].scores().values[0, 3] == 1


@pytest.mark.parametrize("worker", ["sound"], indirect=True)
def test_what_is_forgotten_is_not_computed_and_not_mixed_up(worker: Worker) -> None:
    first = process_of(computed(worker))
    other = noise(18, 18, 1)
    for clip in (GOOD, GOOD, other):
        asked(worker, clip)
    worker.forget()
    assert gone(first)
    assert computed(worker, other).values[0, 0] == other.ref[0].sum()
    worker.forget()  # nothing is left to forget
    assert computed(worker).values[0, 3] == 2


@pytest.mark.parametrize("worker", ["sound"], indirect=True)
def test_a_fixture_that_cannot_be_read_ends_what_was_asked_for(worker: Worker) -> None:
    class Unreadable:
        width = height = 17
        bit_depth, frames = 8, 1

        def read(self, first: int, count: int) -> None:
            message = f"frames {first} and {count}"
            raise FixtureError(message)

    with pytest.raises(FixtureError, match="frames 0 and 1"):
        computed(worker, Unreadable())
    worker.forget()
    assert computed(worker).values[0, 3] == 1


@pytest.mark.parametrize("worker", ["sound"], indirect=True)
def test_the_table_of_each_cell_reaches_the_process_ahead(worker: Worker) -> None:
    tables = [None, *reciprocal.shipped().values()]
    assert len(tables) > 2
    used = [tables[number % len(tables)] for number in range(2 * AHEAD)]
    pending = [asked(worker, table=table) for table in used]
    expected = [table.bits.sum() if table else 0 for table in used]
    assert [one.scores().values[0, 4] for one in pending] == expected


@pytest.mark.parametrize("worker", ["careless"], indirect=True)
def test_memory_that_nobody_wrote_shows_in_dirty_memory(worker: Worker) -> None:
    found = {way: asked(worker, way=way).scores().values[0, 3] for way in (*WAYS, AGAIN)}
    assert found["in dirty memory"] == 0x7F
    assert found[AGAIN] != 0x7F


@pytest.mark.parametrize("worker", ["counting"], indirect=True)
def test_a_side_sees_one_processor_on_one_thread(worker: Worker) -> None:
    found = [asked(worker, way=way).scores().values[0, 3] for way in (*WAYS, AGAIN)]
    here = len(os.sched_getaffinity(0))
    assert found == [here, 1, here, here]


@pytest.mark.parametrize("worker", ["changing"], indirect=True)
def test_a_device_that_comes_back_as_another_one_computes_no_more(worker: Worker) -> None:
    trouble(worker)
    for _ in range(2):
        with pytest.raises(Reported, match="changing came back as another one: "):
            computed(worker)


@pytest.mark.parametrize("worker", ["vanishing"], indirect=True)
@pytest.mark.usefixtures("mark")
def test_a_device_that_does_not_come_back_computes_no_more(worker: Worker) -> None:
    trouble(worker)
    for _ in range(2):
        with pytest.raises(Reported, match="vanishing did not come back: no device any more"):
            computed(worker)


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_MARK", str(tmp_path / "mark"))


def test_an_absent_backend_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no such device"):
        _ = Worker("absent", PROGRAM).name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("broken", "ImportError: no symbol in the driver"),
        ("dies at once", "the process of dies at once ended with exit code 3"),
    ],
)
def test_a_backend_that_cannot_be_opened_says_why(name: str, reason: str) -> None:
    with pytest.raises(Reported) as told:
        _ = Worker(name, PROGRAM).name
    assert told.value.trouble.reason == reason


def test_what_a_sound_backend_printed_is_shown_when_it_closes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    opened = Worker("sound", PROGRAM)
    assert opened.facts() == {"device": "planted"}
    opened.close()
    assert capsys.readouterr().err == "sound closes\n"


def test_a_backend_that_does_not_close_says_why() -> None:
    opened = Worker("stubborn", PROGRAM)
    assert opened.name == "stubborn"
    with pytest.raises(Reported, match="OSError: the device cannot be released"):
        opened.close()


def test_a_process_that_nobody_waited_for_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened = Worker("sound", PROGRAM)
    opened.close()
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_go_with_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened = Worker("killed", PROGRAM)
    assert len(list(tmp_path.iterdir())) == 1
    trouble(opened)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_ends_with_its_gate() -> None:
    """However that ends: here by SIGKILL, with the worker in the middle of a cell."""
    text = (
        "import sys; sys.path[:0] = sys.argv[1:]; import test_workers as t;"
        "w = t.Worker('hung', t.PROGRAM); print(t.process_of(t.computed(w)), flush=True);"
        "t.computed(w, t.BAD)"
    )
    paths = [str(Path(__file__).parent), str(Path(planted_worker.__file__).parent)]
    with subprocess.Popen(
        [sys.executable, "-c", text, *paths], stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        process = int(started.stdout.readline())
        watched = os.pidfd_open(process)
        started.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
        ended, _, _ = select.select([watched], [], [], 60)  # readable when it has ended
        os.close(watched)
    assert ended
