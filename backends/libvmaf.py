"""Real libvmaf, through the ffmpeg that the PyPI package imageio-ffmpeg ships.

libvmaf's log prints six decimals. So each metric is asked for as the prediction of a linear model
that multiplies it by 2**600: then six decimals print every bit.

Source: libvmaf_from_pypi.md.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from backends import interrupts
from backends.base import Extractor, Failed, Refused, Scores, Unavailable
from backends.evidence import Ending, Evidence, Owed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from backends.base import Arithmetic, Clip, Feature, Luma, Options
    from backends.evidence import Nonce

NAMES = ("libvmaf",)
BINARY = "ffmpeg binary"  # the fact that names it
OWED = {"libvmaf": Owed(endings=True, facts={"libvmaf": "", BINARY: "sha256 "})}
INSTALL = "pip install 'parity-gate[libvmaf]'"

# libvmaf takes no luma alone: ffmpeg's gray formats are converted on the way to it, which changes
# samples. So chroma is added, and NO_CONVERSION makes any conversion an error.
PIXEL_FORMATS = {8: "yuv420p", 10: "yuv420p10le", 12: "yuv420p12le", 16: "yuv420p16le"}
NO_CONVERSION = "-noauto_conversion_filters"

BATCH = 64 << 20  # bytes of one run of ffmpeg: its raw files and its log
LOG_BYTES = 8 << 10  # of a frame in the log; measured: 4.3 KB for 18 metrics

# Quotients of two float32 lie between 2**-277 and 2**277 and keep every bit.
SCALE = 600  # as a power of two
WHOLE = 2.0**53  # a float64 from here on is an integer, which six decimals print in full
# NaN and infinities are both logged as null, so models clip infinities to a number.
INFINITE = 2.0**1000

# The prediction is the metric: one support vector 1, coefficient 1, offset 0.
SVM = "svm_type nu_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n1 1:1 \n"

PROBED = Extractor("float_adm", {}, ("VMAF_feature_adm2_score",), ("adm2",))


class _Frame(BaseModel):
    number: Annotated[int, Field(alias="frameNum")]
    metrics: dict[str, float | None]


class Log(BaseModel):
    """What libvmaf logged.

    Attributes:
        version: libvmaf's own.
        frames: by number; metrics by name, None for NaN or an infinity; `m<i>` is the prediction
            of model i, which is never infinite.
    """

    version: str
    frames: list[_Frame]


class Libvmaf:
    """Runs ffmpeg once per batch of frames; a feature has no state between frames."""

    name = NAMES[0]

    def __init__(self, executable: Path, facts: Mapping[str, str]) -> None:
        """Compute one tiny clip, to see that exact values come out and which libvmaf it is.

        Raises:
            Failed: no or wrong values come out.
        """
        self._executable = executable
        self._ended: list[tuple[Ending, str]] = []  # and the version that libvmaf told
        picture = np.arange(17 * 17, dtype=np.uint16).astype(np.uint8).reshape(1, 17, 17)
        log = self.log(PROBED, picture, picture, 8)
        score = exact_values(log, PROBED, 1).item()
        if score != 1:
            message = f"libvmaf gives adm2 {score!r} for two identical pictures; expected 1"
            raise Failed(message)
        self._facts = {**facts, "libvmaf": log.version}

    def facts(self) -> Mapping[str, str]:
        """Return the versions of package, ffmpeg and libvmaf, and the binary's hash."""
        return self._facts

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        """Compute every score of every frame.

        Raises:
            Refused: libvmaf has not this arithmetic.
            Failed: libvmaf refuses an option, or gives less than what was asked for.
        """
        feature.require(arithmetic, clip)
        feature.require_options(arithmetic, options)
        if notes := feature.notes(arithmetic):
            message = f"real libvmaf divides as this processor does, not otherwise ({notes[0]})"
            raise Refused(message)
        extractor = feature.extractor(arithmetic, options)
        self._ended = []
        values = np.empty((clip.frames, len(extractor.metrics)), np.float64)
        batch = _frames_of_a_batch(clip)
        for first in range(0, clip.frames, batch):
            count = min(batch, clip.frames - first)
            ref, dist = clip.read(first, count)
            log = self.log(extractor, ref, dist, clip.bit_depth)
            values[first : first + count] = exact_values(log, extractor, count)
        return feature.extracted(options, values)

    def challenge(self, nonce: Nonce) -> None:
        """Do nothing: libvmaf cannot be asked what it has read."""

    def evidence(self) -> Evidence:
        """Return how the runs of ffmpeg ended, which libvmaf they had, and what ffmpeg is now."""
        versions = dict.fromkeys(version for _, version in self._ended)
        facts = {"libvmaf": " and ".join(versions), BINARY: _digest(self._executable)}
        return Evidence(facts=facts, endings=tuple(ending for ending, _ in self._ended))

    def close(self) -> None:
        """Do nothing; what a run of ffmpeg needs is gone when it ends."""

    def log(self, extractor: Extractor, ref: Luma, dist: Luma, bit_depth: int) -> Log:
        """Run ffmpeg on all frames of `ref` and `dist`.

        Args:
            extractor: what to ask for; model i reads the i-th of its metrics.
            ref: array (frames, height, width), as `Clip.read` returns it.
            dist: array of the same shape and dtype.
            bit_depth: 8, 10, 12 or 16.

        Raises:
            Failed: ffmpeg ends with an error or without a log, or there is no room for its
                files.
        """
        try:
            # An interrupt in the middle of making or clearing the folder would leave it behind.
            with (
                interrupts.held(),
                tempfile.TemporaryDirectory(
                    prefix="parity-gate-libvmaf-", ignore_cleanup_errors=True
                ) as name,
            ):
                folder = Path(name)
                for side, luma in (("ref", ref), ("dist", dist)):
                    _write_pictures(folder / f"{side}.yuv", luma)
                for index, metric in enumerate(extractor.metrics):
                    model = json.dumps(_model(metric, extractor.options))
                    (folder / f"{index}.json").write_text(model, "utf-8")
                _, height, width = ref.shape
                size = f"{width}x{height}"
                command = _command(size, PIXEL_FORMATS[bit_depth], len(extractor.metrics))
                return self._run(command, folder, extractor)
        except OSError as error:
            message = f"ffmpeg cannot be run on temporary files ({error}); free space or set TMPDIR"
            raise Failed(message) from error

    def _run(self, command: list[str], folder: Path, extractor: Extractor) -> Log:
        done = _ran([str(self._executable), *command], folder)
        written = folder / "log.json"
        if done.returncode or not written.is_file():
            # Memory addresses differ from run to run and say nothing.
            told = re.sub(r" @ 0x\w+", "", done.stderr).strip().partition("\n")[0]
            options = " ".join(f"{key}={value}" for key, value in extractor.options.items())
            message = (
                f"ffmpeg ended with status {done.returncode} and no scores of {extractor.name} "
                f"with {options or 'no options'} ({told or 'it gave no reason'})"
            )
            raise Failed(message)
        try:
            # Python's own reader: it rounds numbers of any length correctly.
            log = Log.model_validate(json.loads(written.read_text("utf-8")))
        except (json.JSONDecodeError, UnicodeDecodeError, ValidationError) as error:
            reason = " ".join(str(error).split())
            message = (
                f"libvmaf's log cannot be read ({reason:.200}); expected version and frames: is "
                f"there room for it in '{folder.parent}'?"
            )
            raise Failed(message) from error
        self._ended.append((Ending(done.returncode, len(log.frames)), log.version))
        return log


def exact_values(log: Log, extractor: Extractor, frames: int) -> NDArray[np.float64]:
    """Return the metrics behind the models' predictions, every bit of them.

    A zero comes back as +0: libvmaf's linear model adds to 0.

    Returns:
        float64 array (frames, len(metrics)).

    Raises:
        Failed: the log holds other frames or not all metrics, or lost bits of one.
    """
    numbers = [frame.number for frame in log.frames]
    if numbers != list(range(frames)):
        logged = ", ".join(map(str, numbers[:3])) + (" ..." if numbers[3:] else "")
        message = (
            f"libvmaf logged {len(numbers)} frames ({logged}); expected {frames}, numbered from 0"
        )
        raise Failed(message)
    values = np.empty((frames, len(extractor.metrics)), np.float64)
    for frame in log.frames:
        for name in extractor.logged:
            if name not in frame.metrics:
                message = f"libvmaf logged no {name} in frame {frame.number}; it names it otherwise"
                raise Failed(message)
        for index, metric in enumerate(extractor.metrics):
            where = f"{extractor.name} {metric} of frame {frame.number}"
            if f"m{index}" not in frame.metrics:
                message = f"libvmaf logged no {where}; it computed something else"
                raise Failed(message)
            values[frame.number, index] = _unscaled(frame.metrics[f"m{index}"], where)
    return values


def _unscaled(logged: float | None, where: str) -> float:
    if logged is None:
        return math.nan
    if abs(logged) == INFINITE:
        return math.copysign(math.inf, logged)
    if 0 < abs(logged) < WHOLE:
        message = f"libvmaf's {where} is too small for its log to hold every bit"
        raise Failed(message)
    return math.ldexp(logged, -SCALE)


def _frames_of_a_batch(clip: Clip) -> int:
    sample = 1 if clip.bit_depth == 8 else 2  # noqa: PLR2004 - bits
    picture = clip.width * clip.height * sample * 3 // 2
    return max(1, BATCH // (2 * picture + LOG_BYTES))


def _write_pictures(path: Path, luma: Luma) -> None:
    """Write frames as planar 4:2:0, little endian, chroma 0."""
    _, height, width = luma.shape
    chroma = bytes(2 * (-(-height // 2)) * (-(-width // 2)) * luma.itemsize)
    with path.open("wb") as file:
        for picture in luma:
            file.write(picture.astype(picture.dtype.newbyteorder("<"), copy=False).tobytes())
            file.write(chroma)


def _model(metric: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return a model file's content: the prediction is `metric` * 2**SCALE, infinities clipped."""
    return {
        "param_dict": {"C": 1},
        "model_dict": {
            "model_type": "LIBSVMNUSVR",
            "model": SVM,
            "norm_type": "linear_rescale",
            "slopes": [1, 1],
            "intercepts": [0, 0],
            "feature_names": [metric],
            "feature_opts_dicts": [dict(options)],
            "score_transform": {"enabled": True, "p0": 0, "p1": 2.0**SCALE},
            "score_clip": [-INFINITE, INFINITE],
        },
    }


def _command(size: str, pixel_format: str, models: int) -> list[str]:
    """Return ffmpeg's arguments; all paths are names in its working folder."""
    picture = ("-f", "rawvideo", "-s", size, "-pix_fmt", pixel_format, "-i")
    listed = "|".join(
        rf"path={index}.json\:name=m{index}\:enable_transform=true" for index in range(models)
    )
    graph = f"[0:v][1:v]libvmaf=model='{listed}':log_fmt=json:log_path=log.json"
    quiet = ("-hide_banner", "-nostdin", "-v", "error")
    inputs = (*picture, "dist.yuv", *picture, "ref.yuv")  # libvmaf's order
    return [*quiet, NO_CONVERSION, *inputs, "-lavfi", graph, "-f", "null", "-"]


def _ran(command: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; an exception meanwhile, an interrupt too, kills it."""
    with (
        interrupts.held(),
        subprocess.Popen(  # noqa: S603 - no shell, and only this module's words
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process,
    ):
        try:
            with interrupts.let_through():
                stdout, stderr = process.communicate()
        finally:  # subprocess.run would not wait for the end of what an interrupt killed
            process.kill()
            process.wait()
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _import_imageio_ffmpeg() -> Any:  # noqa: ANN401 - the package has no types
    try:
        import imageio_ffmpeg  # noqa: PLC0415 - lazily, like every driver
    except ModuleNotFoundError as error:  # any other ImportError is a broken installation
        message = f"imageio-ffmpeg is not installed ({error}); {INSTALL}"
        raise Unavailable(message) from error
    return imageio_ffmpeg


def _find_ffmpeg(imageio_ffmpeg: Any) -> Path:  # noqa: ANN401 - the package has no types
    try:
        named: str = imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        message = f"imageio-ffmpeg has no ffmpeg for this machine ({error})"
        raise Unavailable(message) from error
    found = shutil.which(named)
    if found is None:
        message = f"ffmpeg at {named!r} cannot be executed; {INSTALL} brings one"
        raise Unavailable(message)
    return Path(found).resolve()


def _digest(program: Path) -> str:
    """Return the sha256 of a program as it is on disk now."""
    found = program.stat()
    return _digest_of(program, found.st_ino, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _digest_of(program: Path, *stamp: int) -> str:
    """Return it once for each state of the file, for it is large."""
    del stamp
    with program.open("rb") as file:
        return f"sha256 {hashlib.file_digest(file, 'sha256').hexdigest()}"


def deviates(feature: Feature, arithmetic: Arithmetic, options: Options) -> bool:
    """Return whether libvmaf itself has other bits somewhere, so that a difference says nothing.

    Raises:
        Refused: libvmaf has not this arithmetic.
    """
    return not feature.extractor(arithmetic, options).exact


def require(feature: Feature, arithmetic: Arithmetic, options: Options) -> None:
    """Refuse what libvmaf has not, without opening it.

    Raises:
        Refused: libvmaf has not this arithmetic; the text says which it has.
    """
    if arithmetic.rcp_table is not None:
        message = f"real libvmaf cannot replay a reciprocal table ({arithmetic.rcp_table})"
        raise Refused(message)
    feature.extractor(arithmetic, options)


def open_backend(name: str) -> Libvmaf:  # noqa: ARG001 - every backend module opens by name
    """Find ffmpeg and try its libvmaf.

    Raises:
        Unavailable: imageio-ffmpeg is not installed, or its ffmpeg cannot be started or has no
            libvmaf.
        Failed: ffmpeg fails, or libvmaf is there and gives no or wrong values.
    """
    package = _import_imageio_ffmpeg()
    executable = _find_ffmpeg(package)
    try:
        shown = _ran([str(executable), "-h", "filter=libvmaf"])
    except OSError as error:
        message = f"ffmpeg at '{executable}' cannot be executed ({error}); {INSTALL} brings one"
        raise Unavailable(message) from error
    if shown.returncode:
        message = (
            f"ffmpeg at '{executable}' ended with status {shown.returncode} when asked for help"
        )
        raise Failed(message)
    if "Filter libvmaf\n" not in shown.stdout:
        message = f"ffmpeg at '{executable}' has no libvmaf filter; {INSTALL} brings one that has"
        raise Unavailable(message)
    facts = {
        "imageio-ffmpeg": package.__version__,
        "ffmpeg": shown.stderr.partition(" Copyright")[0],
        BINARY: _digest(executable),
        "reciprocal": "this processor's instruction",
    }
    return Libvmaf(executable, facts)
