"""The command `probe`: what this machine makes of the two functions whose bits are its own."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from backends import reciprocal, registry
from backends.base import Refused, Unavailable
from gate import environment, tasks, workers
from gate.document import unknown
from gate.model import ExitCode, Status
from gate.opening import Trouble, attempt
from gate.terminal import counting, one_interrupt, say, section, stop, write_whole
from reports.wording import printable

MOST = 20.0  # the largest adm_p_norm
PATTERNS = 1 << 31  # floats without a sign

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
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():
            raise FileExistsError(None, "it is no regular file")
        write_whole(target, text)
    except OSError as error:
        stop(ExitCode.USAGE, f"--out {str(path)!r} cannot be written: {error.strerror}")
    say(printable(f"wrote {path}"))


Exponents = Annotated[
    list[str] | None,
    typer.Option(
        "--exponent",
        metavar="P",
        help="for example 4.5 or 1/3; may be repeated (default: 1, 2, 4.5, 20, 1/3)",
    ),
]
Backends = Annotated[
    list[str] | None,
    typer.Option(
        "--backend", metavar="NAME", help="a device; may be repeated (default: all that are here)"
    ),
]
Exhaustive = Annotated[
    bool, typer.Option("--exhaustive", help="all 2 147 483 648 floats without a sign, not a sample")
]


@app.command(epilog="Example: parity-gate probe powf --exhaustive --exponent 20 --backend cuda")
def powf(
    exponent: Exponents = None,
    backend: Backends = None,
    exhaustive: Exhaustive = False,  # noqa: FBT002 - typer reads it so
) -> None:
    """Hold each device's x^p, of adm_p_norm other than 3, against the C library's powf."""
    exponents = [_exponent(text) for text in exponent or ("1", "2", "4.5", "20", "1/3")]
    devices = [name for name in registry.backend_names() if registry.owed(name).launches]
    for name in backend or ():
        if name not in registry.backend_names():
            stop(ExitCode.USAGE, f"--backend: {unknown('backend', name, registry.backend_names())}")
        if name not in devices:
            stop(ExitCode.USAGE, f"--backend {name}: it is no device")
    section("powf of the C library", {"build": _described()})
    probe = _Probe(exponents, exhaustive)
    troubles: list[Status] = []
    with one_interrupt():
        for name in dict.fromkeys(backend or devices):
            trouble = attempt(partial(probe.on, name))
            if trouble is not None and (backend or trouble.status is not Status.SKIP):
                say(printable(f"{name}: {trouble.reason}\n{trouble.detail}".strip()), err=True)
                troubles.append(trouble.status)
    if probe.different:
        stop(ExitCode.FAIL, f"{probe.different} results differ from the C library's")
    if troubles:
        raise typer.Exit(ExitCode.NOTHING if Status.SKIP in troubles else ExitCode.ERROR)
    if not probe.devices:
        stop(ExitCode.NOTHING, "nothing compared: no device is here; `parity-gate doctor` says why")


def _described() -> str:
    # Imported late, lest a feature that does not import ends every other command.
    try:
        from backends.features.float_adm import powers  # noqa: PLC0415 - see above
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        problem = f"{type(error).__name__}: {error}"
        stop(ExitCode.ERROR, f"powf is float_adm's, which cannot be imported: {problem}")
    return powers.described()


@dataclass
class _Probe:
    """What is asked of each device, and what has come of it so far, whatever happens then."""

    exponents: list[float]
    exhaustive: bool
    devices: int = 0
    different: int = 0

    def on(self, name: str) -> Trouble | None:
        """Compare each exponent on one device, print what came of it; return why it is absent."""
        try:
            with closing(workers.open_worker(name)) as backend:
                name = backend.name  # which waits until it is open
                self.devices += 1
                for exponent in self.exponents:
                    self._compare(name, tasks.asking(backend), exponent)
        except Unavailable as absence:
            return Trouble(Status.SKIP, str(absence))
        return None

    def _compare(self, name: str, device: tasks.Tasks, exponent: float) -> None:
        began = perf_counter()
        with counting(f"{name}, p = {exponent:g}", PATTERNS) as progress:
            found = device.powers(exponent, progress, exhaustive=self.exhaustive)
        seconds = perf_counter() - began
        self.different += found.different
        say(
            f"{name} p = {exponent:.9g}: {found.inputs} inputs, {found.different} different, "
            f"{seconds:.1f} s"
        )
        for difference in found.told:
            say(printable(f"  {difference}"))


def _exponent(text: str) -> float:
    above, slash, below = text.partition("/")
    try:
        value = float(above) / (float(below) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        value = 0.0
    if 0 < value <= MOST:
        value = float(np.float32(value))
    if not 0 < value <= MOST:
        sentence = f"{text!r} is no number above 0 and at most {MOST:g}, such as 4.5 or 1/3"
        stop(ExitCode.USAGE, f"--exponent: {sentence}")
    return value
