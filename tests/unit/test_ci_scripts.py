"""The scripts that the lanes call, with an nvidia-smi and a gh that answer as a test says."""

from __future__ import annotations

import fcntl
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

CI = Path(__file__).parents[2] / "ci"

ONE, TWO = "GPU-11111111-aaaa", "GPU-22222222-bbbb"


class Host(NamedTuple):
    """A folder of programs that come first, and one for what they leave."""

    programs: Path
    place: Path

    def has(self, program: str, text: str) -> None:
        path = self.programs / program
        path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
        path.chmod(0o755)

    def has_gpus(self, *uuids: str) -> None:
        shown = "".join(f"echo {uuid}\n" for uuid in uuids)
        self.has("nvidia-smi", shown or "echo no driver; exit 9")

    def lock_of(self, uuid: str) -> Path:
        return self.place / f"parity-gate-{uuid}.lock"

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        inherited = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "PARITY_GATE_LOCKS": str(self.place), "PARITY_GATE_LOCK_TIMEOUT": "0"}
        environment = {**inherited, **own, **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def with_device(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(CI / "with-device.sh"), *command, **variables)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path / "programs", tmp_path / "place")
    for folder in made:
        folder.mkdir()
    return made


def test_a_command_gets_a_free_device_and_its_exit_code_comes_back(host: Host) -> None:
    host.has_gpus(ONE, TWO)
    finished = host.with_device("sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exit 5")
    assert finished.stdout == f"{ONE}\n"
    assert finished.returncode == 5


def test_a_device_is_locked_while_the_command_runs_and_free_after_it(host: Host) -> None:
    host.has_gpus(ONE)
    attempt = f"flock --nonblock {host.lock_of(ONE)} echo free"
    assert host.with_device("sh", "-c", f"{attempt} || echo locked").stdout == "locked\n"
    assert host.run("sh", "-c", attempt).stdout == "free\n"


def test_a_device_of_another_job_is_left_alone(host: Host) -> None:
    host.has_gpus(ONE, TWO)
    with host.lock_of(ONE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        finished = host.with_device("printenv", "CUDA_VISIBLE_DEVICES")
    assert finished.stdout == f"{TWO}\n"


def test_a_host_whose_devices_are_all_taken_is_red_after_the_timeout(host: Host) -> None:
    host.has_gpus(ONE)
    with host.lock_of(ONE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        finished = host.with_device("echo", "ran")
    assert (finished.returncode, finished.stdout) == (4, "")
    assert f"no GPU became free in 0 s: {ONE} are locked in {host.place}" in finished.stderr


def test_only_the_devices_that_the_runner_shows_are_asked_for(host: Host) -> None:
    host.has("nvidia-smi", f'[ "$1 $2" = "-i 1" ] && echo {TWO}')
    finished = host.with_device("printenv", "CUDA_VISIBLE_DEVICES", CUDA_VISIBLE_DEVICES="1")
    assert finished.stdout == f"{TWO}\n"


@pytest.mark.parametrize("smi", ["exit 9", "true"])
def test_a_host_without_a_device_is_red(host: Host, smi: str) -> None:
    host.has("nvidia-smi", smi)
    finished = host.with_device("echo", "ran")
    assert (finished.returncode, finished.stdout) == (3, "")
    assert "nvidia-smi names no GPU" in finished.stderr


@pytest.mark.parametrize("backend", ["cuda", "opencl:nvidia"])
def test_the_probe_is_red_where_a_required_device_is_not_there(host: Host, backend: str) -> None:
    host.has_gpus()
    finished = host.run("sh", str(CI / "probe-runner.sh"), "opencl:pocl", backend)
    assert finished.returncode == 3
    assert f"{backend} is required, but this runner shows no NVIDIA GPU: 'no driver'" in (
        finished.stderr
    )


def test_the_probe_shows_the_device_that_is_there(host: Host) -> None:
    host.has_gpus(ONE)
    finished = host.run("sh", str(CI / "probe-runner.sh"), "opencl:pocl", "cuda")
    assert (finished.returncode, finished.stdout) == (0, f"{ONE}\n")


def test_the_probe_asks_for_no_device_that_nobody_requires(host: Host) -> None:
    host.has_gpus()
    finished = host.run("sh", str(CI / "probe-runner.sh"), "opencl:pocl", "libvmaf")
    assert (finished.returncode, finished.stderr) == (0, "")


def switched(host: Host, switch: str) -> tuple[subprocess.CompletedProcess[str], str, str]:
    output, summary = host.place / "output", host.place / "summary"
    output.touch()
    summary.touch()
    command = ("sh", str(CI / "lane-switch.sh"), "gpu", switch)
    finished = host.run(*command, GITHUB_OUTPUT=str(output), GITHUB_STEP_SUMMARY=str(summary))
    return finished, output.read_text("utf-8"), summary.read_text("utf-8")


def test_a_lane_that_is_on_is_told_to_the_workflow(host: Host) -> None:
    finished, output, summary = switched(host, "on")
    assert (finished.returncode, finished.stdout) == (0, "")
    assert (output, summary) == ("lane=on\n", "")


@pytest.mark.parametrize("switch", ["off", ""])
def test_a_lane_that_is_off_is_shown_and_proves_nothing(host: Host, switch: str) -> None:
    finished, output, summary = switched(host, switch)
    assert finished.returncode == 0
    assert finished.stdout.startswith("::notice title=lane off::Lane gpu is off")
    assert output == "lane=off\n"
    assert "nothing was run, nothing proved" in summary


@pytest.mark.parametrize("switch", ["On", "true", "on "])
def test_a_switch_that_is_neither_on_nor_off_is_red(host: Host, switch: str) -> None:
    finished, output, _ = switched(host, switch)
    assert (finished.returncode, output) == (2, "")
    assert f"'{switch}' is not supported; allowed: on, off" in finished.stderr


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)
    return file.getvalue()


def artifact(number: int, size: int = 1, name: str = "gate") -> dict[str, object]:
    return {"id": number, "size_in_bytes": size, "name": name}


class Published(NamedTuple):
    code: int
    err: str
    check: dict[str, object]

    @property
    def summary(self) -> str:
        output = self.check["output"]
        assert isinstance(output, dict)
        return str(output["summary"])


def published(host: Host, archive: bytes, *artifacts: dict[str, object]) -> Published:
    """Publish the artifact that a fake `gh` serves; the last of `artifacts` has that archive."""
    listed = list(artifacts) or [artifact(7)]
    (host.place / "list").write_text(json.dumps({"artifacts": listed}), "utf-8")
    (host.place / "zip").write_bytes(archive)
    host.has(
        "gh",
        f"""cd {host.place}
        case $2 in
        repos/o/r/actions/runs/42/artifacts) cat list ;;
        repos/o/r/actions/artifacts/{listed[-1]["id"]}/zip) cat zip ;;
        repos/o/r/check-runs) cat >check ;;
        *) echo "gh: Not Found" >&2; exit 1 ;;
        esac""",
    )
    finished = host.run(
        sys.executable,
        str(CI / "publish.py"),
        GITHUB_REPOSITORY="o/r",
        GITHUB_SERVER_URL="https://github.com",
        RUN_ID="42",
        HEAD_SHA="c0ffee",
    )
    check = host.place / "check"
    shown = json.loads(check.read_text("utf-8")) if check.exists() else {}
    return Published(finished.returncode, finished.stderr, shown)


def test_a_report_becomes_a_neutral_check_of_its_commit(host: Host) -> None:
    done = published(host, zipped(report_md=b"**PASS**: 3 cells\n", junit_xml=b"<x/>"))
    assert (done.code, done.err) == (0, "")
    assert {name: done.check[name] for name in ("head_sha", "status", "conclusion")} == {
        "head_sha": "c0ffee",
        "status": "completed",
        "conclusion": "neutral",
    }
    assert done.check["details_url"] == "https://github.com/o/r/actions/runs/42"
    assert done.summary == f"{'`' * 20}text\n**PASS**: 3 cells\n\n{'`' * 20}"


def test_the_artifact_of_the_last_attempt_is_shown(host: Host) -> None:
    others = (artifact(9, name="fuzz"), artifact(3))
    assert published(host, zipped(report_md=b"new"), *others, artifact(8)).code == 0


def test_text_of_a_stranger_cannot_leave_its_block(host: Host) -> None:
    fence = "`" * 20
    text = f"a\n{fence}\n@everyone <img src=x> {fence}`` \x1b[31m \u202e ```\n"
    summary = published(host, zipped(report_md=text.encode())).summary
    opening, *inside, closing = summary.splitlines()
    assert (opening, closing) == (f"{fence}text", fence)
    assert not any(fence in line for line in inside)
    assert not any(character in summary for character in "\x1b\u202e")


@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("letter", ["x", "é", "\N{OLD HUNGARIAN CAPITAL LETTER A}"])
def test_a_long_report_is_cut_to_what_a_check_takes_and_says_so(
    host: Host, extra: int, letter: str
) -> None:
    room = 65_535 - len("text\n\n") - 40
    text = letter * (room // len(letter.encode()) + extra)
    summary = published(host, zipped(report_md=text.encode())).summary
    assert len(summary.encode()) <= 65_535
    assert ("cut here" in summary) == (extra > 0)


def test_a_zip_bomb_is_read_no_further_than_a_check_takes(host: Host) -> None:
    done = published(host, zipped(report_md=b"\n" * (200 << 20)))
    assert done.code == 0
    assert len(done.summary.encode()) <= 65_535


def test_an_artifact_that_is_too_large_is_not_fetched(host: Host) -> None:
    at_most = 64 << 20
    report = zipped(report_md=b"x")
    assert published(host, report, artifact(7, at_most)).code == 0
    (host.place / "check").unlink()
    done = published(host, report, artifact(7, at_most + 1))
    assert (done.code, done.check) == (1, {})
    assert f"{at_most + 1} bytes; allowed: at most {at_most}" in done.err


@pytest.mark.parametrize(
    "archive",
    [b"", b"no zip", zipped(other_md=b"x"), zipped(report_md=b"x" * 5_000)[:60]],
    ids=["empty", "text", "without report", "cut"],
)
def test_an_artifact_without_a_readable_report_is_red(host: Host, archive: bytes) -> None:
    done = published(host, archive)
    assert (done.code, done.check) == (1, {})
    assert "artifact 'gate' has no report.md that can be read" in done.err


def test_bytes_that_are_damaged_inside_the_zip_are_red(host: Host) -> None:
    archive = bytearray(zipped(report_md=os.urandom(5_000)))
    archive[2_000] ^= 0xFF
    done = published(host, bytes(archive))
    assert (done.code, done.check) == (1, {})
    assert "that can be read" in done.err


def test_a_run_without_the_artifact_is_red(host: Host) -> None:
    done = published(host, b"", artifact(1, name="fuzz"))
    assert (done.code, done.check) == (1, {})
    assert "the run has no artifact 'gate'" in done.err


def test_what_github_refuses_is_red(host: Host) -> None:
    host.has("gh", "echo 'gh: Forbidden (HTTP 403)' >&2; exit 1")
    variables = dict.fromkeys(("GITHUB_REPOSITORY", "RUN_ID", "HEAD_SHA"), "x")
    finished = host.run(sys.executable, str(CI / "publish.py"), **variables)
    assert finished.returncode == 1
    assert "HTTP 403" in finished.stderr
