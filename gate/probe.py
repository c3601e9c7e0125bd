"""The command `probe`: what this machine makes of the two functions whose bits are its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backends import reciprocal
from backends.base import Refused
from gate import environment
from gate.model import ExitCode
from gate.terminal import say, section, stop
from reports.wording import printable

app = typer.Typer(
    help="Show what this machine does to 1/x (RCPSS) and to x^p (powf), input by input.",
    no_args_is_help=True,
)

TableFile = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", help="write the table, for `run --rcp-table FILE` elsewhere"
    ),
]


@app.command(epilog="Example: parity-gate probe rcp --out this-host.json")
def rcp(out: TableFile = None) -> None:
    """Read this processor's reciprocal estimate, check and name its table."""
    try:
        check = reciprocal.check_host()
    except Refused as refusal:
        stop(ExitCode.NOTHING, f"no reciprocal estimate: {refusal}")
    host = environment.processor()
    verdict = f"{check.different} of {check.checked} inputs differ from the table's model"
    section(
        "reciprocal estimate (RCPSS)",
        {
            "processor": host,
            "table": str(check.table),
            "check": f"{verdict}, in {check.seconds * 1e3:.1f} ms",
        },
    )
    if check.different:
        stop(ExitCode.ERROR, f"this processor's RCPSS is not a table of 4096 entries: {verdict}")
    if out is not None:
        _write(out, reciprocal.as_file(check.table, host))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        stop(ExitCode.USAGE, f"--out {str(path)!r} cannot be written: {error.strerror}")
    say(printable(f"wrote {path}"))
