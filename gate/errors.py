"""What can be wrong with the input; every text is one sentence for the person at the desk."""

from __future__ import annotations


class MatrixError(Exception):
    """A matrix file is wrong; `problems` holds every `file:line:col: sentence` found in it."""

    def __init__(self, problems: list[str]) -> None:
        """Keep all problems; the message is one per line."""
        super().__init__("\n".join(problems))
        self.problems = problems


class FixtureError(Exception):
    """A fixture cannot be read as the matrix declares it (missing, short, other bytes, depth)."""
