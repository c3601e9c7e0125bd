"""NVIDIA devices through CuPy; the kernels are compiled by NVRTC."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from backends.base import Buffer, CompilationFailed, Unavailable
from backends.device import DeviceBackend
from backends.evidence import Owed
from backends.exactness import prelude, prelude_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from backends.base import Number

NAMES = ("cuda",)
OWED = {"cuda": Owed(launches=True, facts={"device UUID": "", "PCI bus": ""})}

GIB = 1 << 30
ABSENT = (35, 100)  # cudaErrorInsufficientDriver, which also means none; cudaErrorNoDevice


class Flags(NamedTuple):
    """NVRTC's options; every one but the language is here for exactness."""

    language: str = "--std=c++17"
    # a*b+c stays two operations.
    contraction: str = "--fmad=false"
    # Denormals are kept.
    flush_to_zero: str = "--ftz=false"
    # Float quotients and roots are correctly rounded.
    division: str = "--prec-div=true"
    roots: str = "--prec-sqrt=true"


FLAGS = Flags()


class CudaKernels:
    """A loaded module."""

    def __init__(
        self,
        cupy: Any,  # noqa: ANN401 - CuPy has no types
        module: Any,  # noqa: ANN401
        work_group: tuple[int, int, int],
        ran: set[int],
    ) -> None:
        """Wrap a cupy.cuda.function.Module; each launch adds the current device to `ran`."""
        self._cupy = cupy
        self._module = module
        self._work_group = work_group
        self._ran = ran

    def launch(
        self, kernel: str, size: tuple[int, int, int], *arguments: Buffer | np.generic
    ) -> object:
        """Launch `kernel` over `size` rounded up to whole blocks, between two events."""
        grid = tuple(-(-n // g) for n, g in zip(size, self._work_group, strict=True))
        values = tuple(a.address if isinstance(a, CudaBuffer) else a for a in arguments)
        self._ran.add(self._cupy.cuda.runtime.getDevice())
        before, after = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        before.record()  # on the current stream, as the launch
        self._module.get_function(kernel)(grid, self._work_group, values)
        after.record()
        return before, after


class CudaBuffer:
    """Device memory; freed when the last reference goes."""

    def __init__(self, memory: Any, nbytes: int) -> None:  # noqa: ANN401 - CuPy has no types
        """Wrap a cupy.cuda.MemoryPointer."""
        self.memory = memory
        self.address = np.uint64(memory.ptr)
        self.nbytes = nbytes


class CudaDevice:
    """The current CUDA device; launches and copies follow each other on one stream."""

    def __init__(self, cupy: Any, work_group: tuple[int, int, int] = (64, 4, 1)) -> None:  # noqa: ANN401 - CuPy has no types
        """Measure the free memory; a batch may take a quarter of it, at most 2 GiB.

        That is five frames of 3840x2160.
        """
        self._cupy = cupy
        self._work_group = work_group
        self._ran: set[int] = set()
        free, _total = cupy.cuda.runtime.memGetInfo()
        self.memory_budget = min(free // 4, 2 * GIB)

    def compile(self, source: str) -> CudaKernels:
        """Compile prelude + source with NVRTC for this device.

        Raises:
            CompilationFailed: with the compiler's log.
        """
        capability = self._cupy.cuda.Device().compute_capability
        module = self._cupy.cuda.function.Module()
        module.load(_compile(self._cupy.cuda.nvrtc, source, f"sm_{capability}", FLAGS))
        return self.kernels(module)

    def kernels(self, module: Any) -> CudaKernels:  # noqa: ANN401 - CuPy has no types
        """Return the kernels of a module that was loaded on this device."""
        return CudaKernels(self._cupy, module, self._work_group, self._ran)

    def upload(self, array: NDArray[np.generic]) -> CudaBuffer:
        """Copy an array to the device."""
        ordered = np.ascontiguousarray(array)
        memory = self._cupy.cuda.alloc(ordered.nbytes)
        memory.copy_from_host(ctypes.c_void_p(ordered.ctypes.data), ordered.nbytes)
        return CudaBuffer(memory, ordered.nbytes)

    def empty(self, nbytes: int) -> CudaBuffer:
        """Allocate poisoned memory."""
        buffer = CudaBuffer(self._cupy.cuda.alloc(nbytes), nbytes)
        self.poison(buffer, nbytes)
        return buffer

    def poison(self, buffer: Buffer, nbytes: int) -> None:
        """Fill the first `nbytes` with FF, after every launch so far."""
        _memory(buffer).memset(0xFF, nbytes)

    def download(
        self, buffer: Buffer, shape: Sequence[int], dtype: np.dtype[Number]
    ) -> NDArray[Number]:
        """Copy a buffer back; the copy waits for every launch before it."""
        array = np.empty(shape, dtype)
        _memory(buffer).copy_to_host(ctypes.c_void_p(array.ctypes.data), array.nbytes)
        return array

    def spans(self, launches: Sequence[Any]) -> list[tuple[int, int]]:
        """Return when launches began and ended, in nanoseconds since the first of them began.

        CUDA tells how far events are apart, in float32 milliseconds: the time of a launch is asked
        for alone, so that it keeps its digits. It is the stream's, with what the host took to
        launch; events with nothing between them are apart, too.
        """
        found = []
        for before, after in launches:
            after.synchronize()
            start = round(1e6 * self._cupy.cuda.get_elapsed_time(launches[0][0], before))
            took = round(1e6 * self._cupy.cuda.get_elapsed_time(before, after))
            found.append((start, start + took))
        return found

    def facts(self) -> dict[str, str]:
        """Return what ran since the last call; the current device, where nothing did."""
        runtime = self._cupy.cuda.runtime
        devices = sorted(self._ran) or [runtime.getDevice()]
        self._ran.clear()
        told = [_identity(runtime, device) for device in devices]
        return {name: " and ".join(one[name] for one in told) for name in told[0]}

    def release(self) -> None:
        """Give pooled memory back to the driver; a device that has died keeps its memory."""
        with contextlib.suppress(self._cupy.cuda.runtime.CUDARuntimeError):
            self._cupy.cuda.runtime.deviceSynchronize()
            self._cupy.get_default_memory_pool().free_all_blocks()


@functools.cache
def _properties(runtime: Any, device: int) -> Any:  # noqa: ANN401 - CuPy has no types
    """Return what takes a driver long to tell and never changes."""
    return runtime.getDeviceProperties(device)


@functools.cache
def _identity(runtime: Any, device: int) -> dict[str, str]:  # noqa: ANN401 - CuPy has no types
    properties = _properties(runtime, device)
    return {
        "device": properties["name"].decode(),
        # CuPy takes its bytes for a text, which ends at a zero or goes on behind it.
        "device UUID": properties["uuid"][:16].ljust(16, b"\0").hex(),
        "PCI bus": runtime.deviceGetPCIBusId(device),
    }


def _memory(buffer: Buffer) -> Any:  # noqa: ANN401 - CuPy has no types
    """Return the cupy.cuda.MemoryPointer behind a buffer of this module."""
    if not isinstance(buffer, CudaBuffer):
        message = f"a buffer of another device: {type(buffer).__name__}"
        raise TypeError(message)
    return buffer.memory


def _import_cupy() -> Any:  # noqa: ANN401 - CuPy has no types
    """Import CuPy and find NVRTC, which comes apart from it."""
    try:
        import cupy  # noqa: PLC0415 - lazily, like every driver
    except ModuleNotFoundError as error:  # any other ImportError is a broken installation
        message = (
            f"CuPy is not installed ({error}); "
            "pip install parity-gate[cuda12] or parity-gate[cuda13], as the driver needs"
        )
        raise Unavailable(message) from error
    try:
        cupy.cuda.nvrtc.getVersion()
    except (ImportError, OSError, RuntimeError) as error:
        message = (
            f"CuPy finds no NVRTC ({str(error).partition(chr(10))[0]}); "
            "pip install parity-gate[cuda12] or parity-gate[cuda13], as the driver needs"
        )
        raise Unavailable(message) from error
    return cupy


def ptx(source: str, architecture: str, flags: Sequence[str] = FLAGS) -> str:
    """Compile prelude + source for an architecture such as `compute_90`; needs no GPU.

    Raises:
        Unavailable: CuPy or NVRTC is not installed.
        CompilationFailed: with the compiler's log.
    """
    return _compile(_import_cupy().cuda.nvrtc, source, architecture, flags).decode()


def _compile(nvrtc: Any, source: str, architecture: str, flags: Sequence[str]) -> bytes:  # noqa: ANN401 - CuPy has no types
    """Return machine code for an `sm_` architecture, PTX for a `compute_` one.

    CuPy's own RawModule appends -ftz=true to every build, which the exactness probe shows as lost
    denormals; so NVRTC is called here, with the flags of this module and no others.
    """
    program = nvrtc.createProgram(prelude("cuda.h") + source, "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*flags, f"--gpu-architecture={architecture}"))
        machine = architecture.startswith("sm_")
        code = nvrtc.getCUBIN(program) if machine else nvrtc.getPTX(program)
    except nvrtc.NVRTCError as error:
        message = f"the kernels do not compile under NVRTC for {architecture}"
        raise CompilationFailed(message, nvrtc.getProgramLog(program)) from error
    finally:
        nvrtc.destroyProgram(program)
    return code if isinstance(code, bytes) else code.encode()


def _kernel_driver() -> str:
    """Return the driver's own version line, where the system shows one."""
    with contextlib.suppress(OSError):
        return Path("/proc/driver/nvidia/version").read_text("utf-8").splitlines()[0]
    return "version not shown by this system"


def open_backend(name: str) -> DeviceBackend:
    """Open CUDA's current device, the first of CUDA_VISIBLE_DEVICES.

    Raises:
        Unavailable: CuPy, the driver or a device is missing.
        Inexact: the device fails the exactness probe.
    """
    cupy = _import_cupy()
    runtime = cupy.cuda.runtime
    try:
        properties = _properties(runtime, runtime.getDevice())
    except runtime.CUDARuntimeError as error:
        if error.status not in ABSENT:
            raise
        message = f"no CUDA driver or no device here ({error})"
        raise Unavailable(message) from error
    version = runtime.driverGetVersion()
    device = CudaDevice(cupy)
    facts = {
        **device.facts(),
        "compute capability": f"{properties['major']}.{properties['minor']}",
        "driver": f"CUDA {version // 1000}.{version % 1000 // 10}; {_kernel_driver()}",
        "runtime": f"CUDA {runtime.runtimeGetVersion()}",
        "compiler": "NVRTC {}.{}".format(*cupy.cuda.nvrtc.getVersion()),
        "CuPy": cupy.__version__,
        "exactness flags": " ".join(FLAGS),
        "prelude": prelude_hash("cuda.h"),
    }
    return DeviceBackend(name, device, facts, release=device.release)
