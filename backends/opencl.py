"""OpenCL devices through PyOpenCL; a backend is named after its platform."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from backends import interrupts
from backends.base import Buffer, CompilationFailed, Refused, Unavailable
from backends.device import DeviceBackend
from backends.evidence import Owed
from backends.exactness import prelude, prelude_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from backends.base import Number

# What each platform calls itself; a backend never falls back to another one.
PLATFORMS = {
    "opencl:pocl": "Portable Computing Language",
    "opencl:nvidia": "NVIDIA CUDA",
    "opencl:intel": "Intel(R) OpenCL",
    "opencl:oclgrind": "Oclgrind",
}
NAMES = tuple(PLATFORMS)
OWED = {
    name: Owed(launches=True, facts={"platform": f"{platform} ", "device": ""})
    for name, platform in PLATFORMS.items()
}

# A simulator. It does not declare correctly rounded division; the probe, and the ieee dialects of
# matrices/oclgrind.yaml, hold its quotients against IEEE 754 instead. Measured: none of 1 048 576
# random quotients was wrong, 22 626 of them denormal.
OCLGRIND = "opencl:oclgrind"

MIB = 1 << 20
MEMORY_BUDGET = 256 * MIB  # a batch; enough to keep a CPU busy, small beside any device


class Flags(NamedTuple):
    """The build options; every one is here for exactness."""

    # Without it a float quotient may be 2.5 steps off.
    division: str = "-cl-fp32-correctly-rounded-divide-sqrt"
    # C99 hex literals, arrays in private memory and doubles, on every platform.
    language: str = "-cl-std=CL1.2"


FLAGS = Flags()
# For Oclgrind: it knows few of LLVM's intrinsics, optimisation makes others (an absolute value out
# of `if (i < 0) i = -i`), and a process that launches such a kernel dies.
UNOPTIMISED = "-cl-opt-disable"
CONTRACTION = "#pragma OPENCL FP_CONTRACT OFF"  # stands in the prelude; no option does it


class OpenClBuffer:
    """Device memory."""

    def __init__(self, memory: Any) -> None:  # noqa: ANN401 - PyOpenCL has no types
        """Wrap a pyopencl.Buffer."""
        self.memory = memory
        self.nbytes: int = memory.size


class OpenClKernels:
    """A built program; a kernel keeps its object, because creating one is slow."""

    def __init__(self, queue: Any, program: Any, work_group: tuple[int, int, int]) -> None:  # noqa: ANN401 - PyOpenCL has no types
        """Take one object per kernel of the program."""
        self._queue = queue
        self._kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}
        self._work_group = work_group

    def launch(
        self, kernel: str, size: tuple[int, int, int], *arguments: Buffer | np.generic
    ) -> object:
        """Enqueue `kernel` over `size` rounded up to whole work groups; return its event."""
        import pyopencl  # noqa: PLC0415 - lazily, like every driver

        group = self._work_group
        rounded = tuple(-(-n // g) * g for n, g in zip(size, group, strict=True))
        entry = self._kernels[kernel]
        entry.set_args(*(a.memory if isinstance(a, OpenClBuffer) else a for a in arguments))
        return pyopencl.enqueue_nd_range_kernel(self._queue, entry, rounded, group)


class OpenClDevice:
    """One OpenCL device with one in-order queue."""

    memory_budget = MEMORY_BUDGET

    def __init__(
        self,
        device: Any,  # noqa: ANN401 - PyOpenCL has no types
        work_group: tuple[int, int, int] = (64, 4, 1),
        flags: tuple[str, ...] = FLAGS,
    ) -> None:
        """Create the context and the queue."""
        import pyopencl  # noqa: PLC0415 - lazily, like every driver

        self._cl = pyopencl
        self._context = pyopencl.Context([device])
        profiling = pyopencl.command_queue_properties.PROFILING_ENABLE
        self._queue = pyopencl.CommandQueue(self._context, properties=profiling)
        self._work_group = work_group
        self._flags = flags

    def compile(self, source: str) -> OpenClKernels:
        """Build prelude + source.

        Raises:
            CompilationFailed: with the compiler's log.
        """
        program = self._cl.Program(self._context, prelude("opencl.h") + source)
        try:
            with warnings.catch_warnings(), interrupts.held():
                # A log with mere warnings of the compiler; errors raise.
                warnings.simplefilter("ignore", self._cl.CompilerWarning)
                program.build(list(self._flags))
        except self._cl.RuntimeError as error:
            message = "the kernels do not compile under OpenCL"
            raise CompilationFailed(message, str(error)) from error
        return OpenClKernels(self._queue, program, self._work_group)

    def upload(self, array: NDArray[np.generic]) -> OpenClBuffer:
        """Copy an array to the device."""
        flags = self._cl.mem_flags.READ_ONLY | self._cl.mem_flags.COPY_HOST_PTR
        ordered = np.ascontiguousarray(array)
        return OpenClBuffer(self._cl.Buffer(self._context, flags, hostbuf=ordered))

    def empty(self, nbytes: int) -> OpenClBuffer:
        """Allocate poisoned memory."""
        memory = self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, nbytes)
        buffer = OpenClBuffer(memory)
        self.poison(buffer, nbytes)
        return buffer

    def poison(self, buffer: Buffer, nbytes: int) -> None:
        """Fill the first `nbytes` (a multiple of 4) with FF, after every launch so far."""
        pattern = np.array(0xFFFFFFFF, np.uint32)
        self._cl.enqueue_fill_buffer(self._queue, _memory(buffer), pattern, 0, nbytes)

    def download(
        self, buffer: Buffer, shape: Sequence[int], dtype: np.dtype[Number]
    ) -> NDArray[Number]:
        """Copy a buffer back; the queue is in order, so every launch before has finished."""
        array = np.empty(shape, dtype)
        self._cl.enqueue_copy(self._queue, array, _memory(buffer))
        return array

    def spans(self, launches: Sequence[Any]) -> list[tuple[int, int]]:
        """Return when launches began and ended, in nanoseconds."""
        if launches:
            self._cl.wait_for_events(launches)
        started, ended = self._cl.profiling_info.START, self._cl.profiling_info.END
        told = (
            (one.get_profiling_info(started), one.get_profiling_info(ended)) for one in launches
        )
        return list(told)

    def facts(self) -> dict[str, str]:
        """Return the device behind the queue, and its platform."""
        device = self._queue.device
        platform = f"{device.platform.name} {device.platform.version}"
        return {"device": device.name, "platform": platform}


def _memory(buffer: Buffer) -> Any:  # noqa: ANN401 - PyOpenCL has no types
    """Return the pyopencl.Buffer behind a buffer of this module."""
    if not isinstance(buffer, OpenClBuffer):
        message = f"a buffer of another device: {type(buffer).__name__}"
        raise TypeError(message)
    return buffer.memory


@functools.cache
def _private_cache() -> None:
    """Keep compiled kernels out of every cache that outlives this process."""
    try:
        cache = tempfile.mkdtemp(prefix="parity-gate-opencl-")
    except OSError as error:
        message = f"no temporary folder for compiled kernels ({error}); set TMPDIR to one"
        raise Refused(message) from error
    atexit.register(shutil.rmtree, cache, ignore_errors=True)
    os.environ.update(PYOPENCL_NO_CACHE="1", POCL_CACHE_DIR=cache)


def _import_pyopencl() -> Any:  # noqa: ANN401 - PyOpenCL has no types
    """Import PyOpenCL with every binary cache private to this process."""
    _private_cache()
    try:
        import pyopencl  # noqa: PLC0415 - lazily, like every driver
    except ModuleNotFoundError as error:  # any other ImportError is a broken installation
        message = f"PyOpenCL is not installed ({error}); pip install parity-gate[opencl]"
        raise Unavailable(message) from error
    return pyopencl


def _find_device(pyopencl: Any, name: str) -> Any:  # noqa: ANN401 - PyOpenCL has no types
    """Return the one device of the platform called `name`."""
    try:
        platforms = pyopencl.get_platforms()
    except pyopencl.LogicError as error:
        message = f"no OpenCL platform is installed ({error})"
        raise Unavailable(message) from error
    devices = [
        device
        for platform in platforms
        if platform.name == PLATFORMS[name]
        for device in platform.get_devices()
    ]
    if not devices:
        present = ", ".join(platform.name for platform in platforms) or "none"
        message = f"no device of the OpenCL platform '{PLATFORMS[name]}'; platforms here: {present}"
        raise Unavailable(message)
    if len(devices) > 1:
        listed = ", ".join(f"{d.name} ({d.platform.version})" for d in devices)
        message = (
            f"{name} matches {len(devices)} devices: {listed}; "
            "leave one visible (OCL_ICD_VENDORS, CUDA_VISIBLE_DEVICES)"
        )
        raise Refused(message)
    return devices[0]


def open_backend(name: str) -> DeviceBackend:
    """Open the device of the platform that `name` stands for.

    Raises:
        Unavailable: PyOpenCL, the platform or a device is missing.
        Inexact: the device fails the exactness probe.
        Refused: the name matches more than one device.
    """
    # PoCL's threads start here, and later start linkers, which must not die of an interrupt.
    with interrupts.held():
        return _opened(name)


def _opened(name: str) -> DeviceBackend:
    pyopencl = _import_pyopencl()
    device = _find_device(pyopencl, name)
    declared = device.single_fp_config & pyopencl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    floatless = ""
    if not device.double_fp_config:
        floatless = f"{device.name} has no double precision, which float kernels need"
    elif not declared and name != OCLGRIND:
        floatless = f"{device.name} cannot divide with correct rounding, which float kernels need"
    flags: tuple[str, ...] = FLAGS
    if floatless:
        flags = (FLAGS.language,)  # the other one is an error where it is not supported
    elif name == OCLGRIND:
        flags = (*FLAGS, UNOPTIMISED)
    opened = OpenClDevice(device, flags=flags)
    facts = {
        **opened.facts(),
        "driver": device.driver_version,
        "compiler": device.opencl_c_version,
        "PyOpenCL": pyopencl.VERSION_TEXT,
        "exactness flags": " ".join((*flags, CONTRACTION)),
        "correctly rounded division": "declared" if declared else "not declared, probed",
        "prelude": prelude_hash("opencl.h"),
    }
    return DeviceBackend(name, opened, facts, release=lambda: None, floatless=floatless)
