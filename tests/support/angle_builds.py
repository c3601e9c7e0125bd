"""The angle flag and its corpora built without Python, with any compiler and flags.

Run as a program, it prints what `digests` says of a library: `angle_builds.py LIBRARY`.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from backends.features.integer_adm import FEATURE
from backends.features.integer_adm._reference import (
    BLOCK_SAMPLES,
    EDGE_SAMPLES,
    Source,
    Spelling,
)
from backends.features.integer_adm.angle import Spelled
from backends.predicate import Corpus

SOURCES = Path(__file__).parents[2] / "backends/features/integer_adm/reference"
FILES = ("angle.cpp", "corpus.cpp", "angle.hpp", "corpus.hpp")

# (source, parameter, block, samples): the second block, so that a generator has to reach it.
PARTS = (
    (Source.near_parallel, 1, 1, 100_000),
    (Source.band, 0, 1, 100_000),
    (Source.width, 2, 1, 20_000),
    (Source.width, 31, 1, 20_000),
    (Source.walk, 0, 1, 50_000),
    (Source.edges, 0, 0, EDGE_SAMPLES),
)


def compiled(folder: Path, compiler: str, *flags: str, swap: tuple[str, str] | None = None) -> Path:
    """Compile the two files, after an optional planted swap of text."""
    texts = {name: (SOURCES / name).read_text("utf-8") for name in FILES}
    if swap is not None:
        assert sum(text.count(swap[0]) for text in texts.values()) == 1, "the source has changed"
        texts = {name: text.replace(*swap) for name, text in texts.items()}
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    library = folder / "angle.so"
    sources = [str(folder / name) for name in FILES if name.endswith(".cpp")]
    command = [compiler, "-std=c++17", *flags, "-shared", "-fPIC", "-o", str(library), *sources]
    subprocess.run(command, check=True)
    return library


def digests(library: Path) -> dict[str, str]:
    """Return the hash of the samples, operands and flags of each part, by what it is of."""
    build, found = ctypes.CDLL(str(library)), {}
    for source, parameter, block, count in PARTS:
        columns = 4 if source.value <= Source.width.value else 3
        samples, operands = np.empty((count, columns), np.int64), np.empty((count, 3), np.int64)
        build.angle_samples(
            source.value,
            ctypes.c_uint64(parameter),
            ctypes.c_uint64(block),
            ctypes.c_int64(count),
            _address(samples),
        )
        name = f"{source.name} {parameter}"
        found[f"{name} samples"] = _digest(samples)
        if columns == 4:
            build.angle_operands(ctypes.c_int64(count), _address(samples), _address(operands))
            found[f"{name} operands"] = _digest(operands)
        for spelling in spellings(source):
            flags = np.empty(count, np.uint8)
            build.angle_flags(
                spelling.value, columns, ctypes.c_int64(count), _address(samples), _address(flags)
            )
            found[f"{name} {spelling.name}"] = _digest(flags)
    return found


def spellings(source: Source) -> tuple[Spelling, ...]:
    """Return the spellings that a corpus is for: the wrong ones are for int16 components."""
    narrow = source in (Source.near_parallel, Source.band)
    return tuple(Spelling) if narrow else (Spelling.golden, Spelling.int64)


def installed() -> dict[str, str]:
    """Return what `digests` should say, by the installed module."""
    (angle,) = FEATURE.predicates
    found = {}
    for source, parameter, block, count in PARTS:
        name = f"{source.name} {parameter}"
        corpus = Corpus(name, source.name, parameter, block * BLOCK_SAMPLES + count)
        part = angle.block(corpus, block)
        found[f"{name} samples"] = _digest(part.samples)
        if part.samples is not part.operands:
            found[f"{name} operands"] = _digest(part.operands)
        for spelling in spellings(source):
            found[f"{name} {spelling.name}"] = _digest(Spelled(spelling.name).flags(part))
    return found


def _address(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _digest(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


if __name__ == "__main__":
    print(json.dumps(digests(Path(sys.argv[1]))))  # noqa: T201 - what the caller reads
