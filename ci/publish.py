"""Shows the report of a pull request's run as a check on its commit.

Runs on the default branch's files, after the workflow of a pull request that may come from a fork.
Everything in its artifact is text of a stranger: it is never unpacked to a file, never taken as
markdown, and decides nothing; the verdict stays with the workflow that ran the gate.

Variables: GITHUB_REPOSITORY, GITHUB_SERVER_URL, RUN_ID, HEAD_SHA, and GH_TOKEN for `gh`.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import zipfile
import zlib
from typing import Any

ARTIFACT = "gate"
REPORT = "report.md"
LARGEST_ARTIFACT = 64 << 20  # bytes; a report of pr.yaml is a few MiB
LARGEST_SUMMARY = 65_535  # bytes that GitHub takes in a check
REPLACEMENT = (
    "\N{REPLACEMENT CHARACTER}"  # for control characters, and those that turn lines around
)
FENCE = "`" * 20
CUT = "\n... cut here; the artifact holds the rest"


def main() -> None:
    """Read the artifact of the run RUN_ID and write the check."""
    repository, run, commit = (
        os.environ[name] for name in ("GITHUB_REPOSITORY", "RUN_ID", "HEAD_SHA")
    )
    artifact = newest(json.loads(api(f"repos/{repository}/actions/runs/{run}/artifacts")))
    text = report_in(api(f"repos/{repository}/actions/artifacts/{artifact}/zip"))
    check = {
        "name": "parity-gate report",
        "head_sha": commit,
        "status": "completed",
        "conclusion": "neutral",  # a stranger's text must turn nothing green
        "details_url": f"{os.environ['GITHUB_SERVER_URL']}/{repository}/actions/runs/{run}",
        "output": {"title": "What the pull request's own run reported", "summary": fenced(text)},
    }
    api(f"repos/{repository}/check-runs", "--input", "-", data=json.dumps(check).encode())


def api(path: str, *options: str, data: bytes = b"") -> bytes:
    """Ask GitHub; what it refuses ends the program with its words."""
    command = ["gh", "api", path, *options]
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def newest(listed: dict[str, Any]) -> int:
    """Return the id of the artifact to show; a run that was repeated has several."""
    found = [artifact for artifact in listed["artifacts"] if artifact["name"] == ARTIFACT]
    if not found:
        sys.exit(f"the run has no artifact {ARTIFACT!r}; look at why its gate uploaded none")
    last = max(found, key=lambda artifact: int(artifact["id"]))
    if (size := int(last["size_in_bytes"])) > LARGEST_ARTIFACT:
        sys.exit(f"artifact {ARTIFACT!r} has {size} bytes; allowed: at most {LARGEST_ARTIFACT}")
    return int(last["id"])


def report_in(archive: bytes) -> str:
    """Return the beginning of the report in a zip file, as much as a check can show and a bit."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as files, files.open(REPORT) as report:
            return report.read(LARGEST_SUMMARY + 1).decode(errors="replace")
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, RuntimeError) as error:
        sys.exit(f"artifact {ARTIFACT!r} has no {REPORT} that can be read: {error}")


def fenced(text: str) -> str:
    """Return text as a markdown code block that it cannot end, cut to what a check can show."""
    visible = "".join(c if c.isprintable() or c == "\n" else REPLACEMENT for c in text)
    visible = re.sub(FENCE + "+", REPLACEMENT, visible)
    room = LARGEST_SUMMARY - len(f"{FENCE}text\n\n{FENCE}")
    if len(data := visible.encode()) > room:
        visible = data[: room - len(CUT)].decode(errors="ignore") + CUT
    return f"{FENCE}text\n{visible}\n{FENCE}"


if __name__ == "__main__":
    main()
