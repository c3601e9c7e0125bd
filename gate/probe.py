"""The command `probe`: what this machine makes of the two functions whose bits are its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from backends import reciprocal, registry
from backends.base import Device, Failed, Inexact, Refused, Unavailable
from backends.device import DeviceBackend
from gate import environment
from gate.document import unknown
from gate.model import ExitCode
from gate.terminal import counting, one_interrupt, say, section, stop, write_whole
from reports.wording import printable

MOST = 20.0  # the largest adm_p_norm

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
    for name in backend or ():
        if name not in registry.backend_names():
            stop(ExitCode.USAGE, f"--backend: {unknown('backend', name, registry.backend_names())}")
    section("powf of the C library", {"build": _described()})
    devices = 0
    different = 0
    with one_interrupt():
        for name in dict.fromkeys(backend or registry.backend_names()):
            with _opened(name, required=bool(backend)) as device:
                if device is None:
                    continue
                devices += 1
                for value in exponents:
                    different += _compared(name, device, value, exhaustive=exhaustive)
    if not devices:
        stop(ExitCode.NOTHING, "nothing compared: no device is here; `parity-gate doctor` says why")
    if different:
        stop(ExitCode.FAIL, f"{different} results differ from the C library's")


def _described() -> str:
    # Imported late, lest a feature that does not import ends every other command.
    try:
        from backends.features.float_adm import powers  # noqa: PLC0415 - see above
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        problem = f"{type(error).__name__}: {error}"
        stop(ExitCode.ERROR, f"powf is float_adm's, which cannot be imported: {problem}")
    return powers.described()


@contextmanager
def _opened(name: str, *, required: bool) -> Iterator[Device | None]:
    """Open a backend for its device; None where it has none, or is absent and was not named."""
    try:
        backend = registry.open_backend(name)
    except Unavailable as absence:
        if required:
            stop(ExitCode.NOTHING, f"{name}: {absence}")
        yield None
        return
    except (Failed, Inexact, Refused) as error:
        stop(ExitCode.ERROR, f"{name}: {error}")
    with closing(backend):
        if required and not isinstance(backend, DeviceBackend):
            stop(ExitCode.USAGE, f"--backend {name}: it is no device")
        yield backend.device if isinstance(backend, DeviceBackend) else None


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


def _compared(name: str, device: Device, exponent: float, *, exhaustive: bool) -> int:
    """Compare one exponent on one device, print what came of it, return how many differ."""
    from backends.features.float_adm import powers  # noqa: PLC0415 - see _described

    began = perf_counter()
    try:
        with counting(f"{name}, p = {exponent:g}", powers.PATTERNS) as progress:
            compare = powers.exhaustive if exhaustive else powers.sampled
            found = compare(device, exponent, progress)
    except Refused as refusal:
        stop(ExitCode.ERROR, str(refusal))
    seconds = perf_counter() - began
    say(
        f"{name} p = {exponent:.9g}: {found.compared} inputs, {found.different} different, "
        f"{seconds:.1f} s"
    )
    for difference in found.first:
        say(f"  {difference}")
    return found.different
