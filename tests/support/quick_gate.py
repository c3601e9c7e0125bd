"""The program with backends that need no process and no device: all are the reference.

Run as `quick_gate.py [--largest BYTES] ARGUMENTS...`; no file may become larger than BYTES.
"""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING

from forging import Forger

from backends.base import Unavailable
from backends.cpu import Cpu
from gate import cli, workers

if TYPE_CHECKING:
    from backends.base import Backend


def open_quickly(name: str) -> Backend:
    if name not in ("cpu", "opencl:pocl"):
        message = f"{name} is not here"
        raise Unavailable(message)
    return Cpu() if name == "cpu" else Forger(name)


if __name__ == "__main__":
    if sys.argv[1] == "--largest":
        largest = int(sys.argv[2])
        del sys.argv[1:3]
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    workers.open_worker = open_quickly  # type: ignore[assignment]  # a backend of the same kind
    cli.main()
