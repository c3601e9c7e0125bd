"""The steps of a GitHub job as a bash script, so that they can be run without GitHub.

Understood is what the workflows of this project use, and nothing is left out quietly: an action, a
condition or an expression that is not known here is an error. Checking out and installing Python
are taken as done; artifacts are folders under $RUNNER_TEMP/artifacts.

Usage: python -m workflow_steps WORKFLOW JOB [NAME=VALUE...] > steps.sh
where a NAME is that of an expression, such as inputs.lane or matrix.shard.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gate.document import Document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]

OWN = "$/"  # an action of this repository
ASSUMED = ("actions/checkout", "actions/setup-python")
UPLOAD, DOWNLOAD = "actions/upload-artifact", "actions/download-artifact"
CONDITIONS = {
    "success()": '[ "$status" = 0 ]',
    "!cancelled()": "true",
    "always()": "true",
}
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
OUTPUT = re.compile(r"steps\.([\w-]+)\.outputs\.([\w-]+)")

# As GitHub starts `shell: bash`, in a folder of the job, with a file for what a step puts out.
PRELUDE = r"""#!/usr/bin/env bash
set -u
export GITHUB_ACTIONS=true CI=true GITHUB_WORKSPACE=$PWD
export GITHUB_STEP_SUMMARY=$RUNNER_TEMP/summary.md
rm -rf "$RUNNER_TEMP/outputs" # of a job before this one
mkdir -p "$RUNNER_TEMP/outputs" "$RUNNER_TEMP/artifacts"
status=0
step() { # ID TEXT
    GITHUB_OUTPUT=$RUNNER_TEMP/outputs/$1 bash --noprofile --norc -eo pipefail -c "$2"
}
output() { # ID NAME
    sed -n "s/^$2=//p" "$RUNNER_TEMP/outputs/$1"
}
upload() { # NAME PATH...: one folder is the artifact, several lie in it
    local name=$1 path
    mkdir -p "$RUNNER_TEMP/artifacts/$name"
    shift
    for path in "$@"; do
        [ -e "$path" ] || { echo "artifact $name: there is no $path" >&2; return 1; }
        [ $# -gt 1 ] || path=$path/.
        cp -r "$path" "$RUNNER_TEMP/artifacts/$name"
    done
}
download() { # PATTERN FOLDER
    mkdir -p "$2"
    cp -r "$RUNNER_TEMP"/artifacts/$1 "$2"
}
"""


def script(
    workflow: Path,
    job: str,
    values: Mapping[str, str] | None = None,
    done: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Return the steps of a job; the script ends with the exit code of the last red one.

    Args:
        workflow: the file.
        job: its key.
        values: of expressions, by name.
        done: outputs by the id of a step that is not run, because somebody has done its work.
    """
    declared = read(workflow)["jobs"][job]
    steps = _Steps({name: shlex.quote(value) for name, value in (values or {}).items()}, done or {})
    environment = steps.exports(declared.get("env", {}))
    return "\n".join([PRELUDE, *environment, *steps.lines(declared["steps"]), 'exit "$status"\n'])


def read(path: Path) -> dict[str, Any]:
    """Return a file of GitHub or GitLab; YAML that the gate's own reader refuses is an error."""
    document = Document(path)
    if document.problems or not isinstance(document.value, dict):
        raise ValueError("\n".join(document.problems) or f"{path} is no mapping")
    return document.value


class _Steps:
    """The steps of a job or of a composite action, with what expressions mean there, as shell."""

    def __init__(
        self, values: Mapping[str, str], done: Mapping[str, Mapping[str, str]], scope: str = ""
    ) -> None:
        self._values, self._done, self._scope = values, done, scope

    def lines(self, steps: list[dict[str, Any]]) -> Iterator[str]:
        for number, step in enumerate(steps, 1):
            name = step.get("name", step.get("uses", step.get("run")))
            action = str(step.get("uses", "")).partition("@")[0]
            if action in ASSUMED:
                continue
            yield f"\n# {str(name).splitlines()[0]}"
            yield f"if {self._condition(step.get('if', 'success()'))}; then"
            if action.startswith(OWN):
                yield from self._composite(step, action, f"{self._scope}{number}-")
            else:
                yield from self._one(step, action, step.get("id", str(number)))
            yield "fi"

    def exports(self, variables: Mapping[str, Any]) -> Iterator[str]:
        for name, value in variables.items():
            yield f"export {name}={self._word(value)}"

    def _one(self, step: dict[str, Any], action: str, key: str) -> Iterator[str]:
        yield "("
        yield from self.exports(step.get("env", {}))
        if key in self._done:
            outputs = "".join(f"{name}={value}\n" for name, value in self._done[key].items())
            yield f'printf %s {shlex.quote(outputs)} >"$RUNNER_TEMP/outputs/{self._scope}{key}"'
        elif action:
            yield self._transfer(action, step["with"])
        else:
            yield f"step {self._scope}{key} {shlex.quote(step['run'])}"
        yield ") || status=$?"

    def _transfer(self, action: str, given: dict[str, Any]) -> str:
        """Return the call that stands for an artifact's way up or down."""
        if action == UPLOAD and given.keys() == {"name", "path", "if-no-files-found"}:
            paths = [self._word(path) for path in given["path"].splitlines()]
            return f"upload {self._word(given['name'])} {' '.join(paths)}"
        if action == DOWNLOAD and given.keys() == {"pattern", "path"}:
            return f"download {self._word(given['pattern'])} {self._word(given['path'])}"
        message = f"{action} with {', '.join(given)} is not known here"
        raise ValueError(message)

    def _composite(self, step: dict[str, Any], action: str, scope: str) -> Iterator[str]:
        """Yield the steps of an action of this repository, which start green as on GitHub."""
        folder = ROOT / action.removeprefix(OWN)
        declared = read(folder / "action.yml")
        given = {name: self._word(value) for name, value in step.get("with", {}).items()}
        if unknown := given.keys() - declared["inputs"].keys():
            message = f"{action} has no input {', '.join(unknown)}"
            raise ValueError(message)
        inputs = {
            f"inputs.{name}": given[name] if name in given else shlex.quote(declaration["default"])
            for name, declaration in declared["inputs"].items()
        }
        yield f"before_{len(scope)}=$status status=0"
        yield f"export GITHUB_ACTION_PATH={shlex.quote(str(folder))}"
        yield from _Steps(inputs, self._done, scope).lines(declared["runs"]["steps"])
        yield f'[ "$status" != 0 ] || status=$before_{len(scope)}'

    def _condition(self, text: str) -> str:
        match = EXPRESSION.fullmatch(text)
        return CONDITIONS[match[1] if match else text]

    def _word(self, text: object) -> str:
        """Return text with its expressions as one word of the shell."""
        parts = EXPRESSION.split(str(text))
        # Literal text and expressions by turns.
        words = [self._meaning(p) if n % 2 else shlex.quote(p) for n, p in enumerate(parts)]
        return "".join(word for word in words if word != "''") or "''"

    def _meaning(self, expression: str) -> str:
        if match := OUTPUT.fullmatch(expression):
            return f'"$(output {self._scope}{match[1]} {match[2]})"'
        return self._values[expression]


if __name__ == "__main__":
    path, key, *named = sys.argv[1:]
    known = dict(name.split("=", 1) for name in named)
    sys.stdout.write(script(Path(path), key, known))
