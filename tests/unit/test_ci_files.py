"""The files of GitHub and GitLab: sound as they are; what checks them is shown red on plants."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from requirements import absent
from workflow_steps import read

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / "ci" / "action" / "action.yml"
PUBLISH = ROOT / "ci" / "publish.py"
GITLAB = ROOT / ".gitlab-ci.yml"
PROGRAMS = Path(sys.executable).parent

PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
USES = re.compile(r"uses: +(?!\$/)(.+)")
REQUIRED = re.compile(r"opencl:pocl opencl:oclgrind [a-z0-9:+ -]+")


class Plant(NamedTuple):
    """A fault: what is written instead of what, where, and what must be said about that file."""

    path: str
    sound: str
    faulty: str
    finding: str


AUDITED = (
    Plant(
        ".github/workflows/gpu.yml",
        "permissions: {}",
        "permissions: write-all",
        "excessive-permissions",
    ),
    Plant(
        ".github/workflows/publish.yml",
        "@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2",
        "@v4",
        "unpinned-uses",
    ),
    Plant(
        ".github/workflows/pull-request.yml",
        "run: make lint",
        "run: make lint TITLE='${{ github.event.pull_request.title }}'",
        "template-injection",
    ),
    Plant(
        ".github/workflows/pull-request.yml",
        "  pull_request:\n",
        "  pull_request_target:\n",
        "dangerous-triggers",
    ),
    Plant(
        ".github/workflows/sweep.yml",
        "persist-credentials: false",
        "clean: true",
        "artipacked",
    ),
    Plant(
        "ci/action/action.yml",
        "run: sh ",
        "run: echo ${{ inputs.matrix }}; sh ",
        "template-injection",
    ),
)
AGAINST_SCHEMA = (
    Plant(".github/workflows/nightly.yml", "    name: pocl", "    nam: pocl", "$.jobs.pocl"),
    Plant(".github/workflows/sweep.yml", "    timeout-minutes: 120\n", "", "$.jobs.shard"),
    Plant("ci/action/action.yml", "using: composite", "using: composit", "$.runs"),
    Plant(".gitlab-ci.yml", "parallel: 2", "parallel: -2", "$.gate.parallel"),
)


def checked(root: Path) -> subprocess.CompletedProcess[str]:
    """Hold the files under `root` against schemas and audits, as `make lint` does."""
    for name in ("check-jsonschema", "zizmor"):
        if not (PROGRAMS / name).exists():
            absent(name, "not installed; `make lint` installs it")
    command = ["sh", str(ROOT / "ci" / "check-workflows.sh"), str(PROGRAMS), str(root)]
    # Both programs colour what they print where `CI` is set; the patterns here are of plain text.
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def runs(path: Path) -> Iterator[str]:
    """Yield every run step of a workflow or an action."""
    declared = read(path)
    steps = [step for job in declared.get("jobs", {}).values() for step in job.get("steps", [])]
    steps += declared.get("runs", {}).get("steps", [])
    yield from (step["run"] for step in steps if "run" in step)


def test_the_files_fit_their_schemas_and_pass_the_audits() -> None:
    finished = checked(ROOT)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def planted(folder: Path, plants: tuple[Plant, ...]) -> str:
    """Return what is said about a copy of the files with these faults, which must be red."""
    for path in (*WORKFLOWS, ACTION, GITLAB):
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    for plant in plants:
        text = (folder / plant.path).read_text("utf-8")
        assert plant.sound in text, plant
        (folder / plant.path).write_text(text.replace(plant.sound, plant.faulty, 1), "utf-8")
    finished = checked(folder)
    assert finished.returncode == 1
    return finished.stdout + finished.stderr


def test_planted_faults_are_found_by_the_audits(tmp_path: Path) -> None:
    found = planted(tmp_path, AUDITED)
    named = [rf"\[{plant.finding}\].*\n *--> \S*/{plant.path}:" for plant in AUDITED]
    assert [pattern for pattern in named if not re.search(pattern, found)] == [], found


def test_planted_faults_are_found_by_the_schemas(tmp_path: Path) -> None:
    found = planted(tmp_path, AGAINST_SCHEMA)
    named = [f"/{plant.path}::{plant.finding}" for plant in AGAINST_SCHEMA]
    assert [text for text in named if text not in found] == [], found


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_a_step_that_runs_text_has_no_expression_in_it(path: Path) -> None:
    assert [text for text in runs(path) if "${{" in text] == []


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_an_action_of_others_is_pinned_by_hash_beside_its_version(path: Path) -> None:
    used = USES.findall(path.read_text("utf-8"))
    assert [name for name in used if not PINNED.fullmatch(name)] == []


def test_the_same_version_of_an_action_is_used_everywhere() -> None:
    texts = [path.read_text("utf-8") for path in (*WORKFLOWS, ACTION)]
    used = {name for text in texts for name in USES.findall(text)}
    assert len(used) == len({name.partition("@")[0] for name in used})


def test_what_may_not_be_skipped_is_the_same_in_each_place() -> None:
    places = (ROOT / ".ci/run", ROOT / ".github/workflows/pull-request.yml", GITLAB)
    named = [REQUIRED.findall(path.read_text("utf-8")) for path in places]
    assert [len(names) for names in named] == [1, 1, 1]
    assert len({names[0].strip() for names in named}) == 1


def test_what_is_published_is_the_report_of_the_gate_of_a_pull_request() -> None:
    pull, publish = (
        read(ROOT / f".github/workflows/{name}.yml") for name in ("pull-request", "publish")
    )
    assert publish["on"]["workflow_run"]["workflows"] == [pull["name"]]
    kept = [
        step["with"]["artifact"] for step in pull["jobs"]["gate"]["steps"] if "$/" in step["uses"]
    ]
    assert [f'ARTIFACT = "{name}"\n' in PUBLISH.read_text("utf-8") for name in kept] == [True]


def test_no_pull_request_starts_a_machine_of_our_own() -> None:
    events = {
        path.name: set(read(path)["on"])
        for path in WORKFLOWS
        if "self-hosted" in path.read_text("utf-8")
    }
    assert events == {
        "gpu.yml": {"push", "workflow_dispatch"},
        "nightly.yml": {"schedule", "workflow_dispatch"},
    }
    pull = (ROOT / ".github/workflows/pull-request.yml").read_text("utf-8")
    assert "sweep.yml" not in pull


def test_gitlab_runs_the_gpu_job_on_protected_refs_only_and_shows_a_lane_that_is_off() -> None:
    refused, on, off = read(GITLAB)["gpu"]["rules"]
    assert refused["when"] == "never"
    assert '"merge_request_event"' in refused["if"]
    assert '$CI_COMMIT_REF_PROTECTED != "true"' in refused["if"]
    assert on == {"if": '$PARITY_GATE_GPU_LANE == "on"'}
    assert off == {"when": "manual", "allow_failure": True}


def test_every_gitlab_job_that_makes_reports_keeps_them_when_red() -> None:
    jobs: dict[str, Any] = {name: job for name, job in read(GITLAB).items() if "artifacts" in job}
    assert set(jobs) == {"fuzz", "gate", "merge", "gpu"}
    assert {job["artifacts"]["when"] for job in jobs.values()} == {"always"}
