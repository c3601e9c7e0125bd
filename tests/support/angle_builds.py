"""The angle flag and its corpora built without Python, with any compiler and flags.

Run as a program, it prints what `digests` says of a library: `angle_builds.py LIBRARY`. With
`--full` instead it holds every build against the installed module on the full corpora.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOURCES = Path(__file__).parents[2] / "backends/features/integer_adm/reference"
FILES = ("angle.cpp", "corpus.cpp", "angle.hpp", "corpus.hpp")
RIGHT = (Spelling.golden, Spelling.int64)

BUILDS = tuple(
    (compiler, flags)
    for compiler in ("g++", "clang++")
    for flags in ("-O0", "-O2 -ffp-contract=off", "-O3 -march=native")
)


class Part(NamedTuple):
    """Samples of one block of a corpus."""

    source: Source
    parameter: int
    block: int
    samples: int


# The second block, so that a generator has to reach it.
PARTS = (
    Part(Source.near_parallel, 1, 1, 100_000),
    Part(Source.band, 0, 1, 100_000),
    Part(Source.width, 2, 1, 20_000),
    Part(Source.width, 31, 1, 20_000),
    Part(Source.walk, 0, 1, 50_000),
    Part(Source.edges, 0, 0, EDGE_SAMPLES),
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
    build = ctypes.CDLL(str(library))
    found: dict[str, str] = {}
    for part in PARTS:
        found |= built(build, part, spellings(part.source))
    return found


def built(build: ctypes.CDLL, part: Part, chosen: Iterable[Spelling]) -> dict[str, str]:
    """Return the hash of what a build makes of a part, by what it is of."""
    count, columns = part.samples, 4 if part.source.value <= Source.width.value else 3
    samples, operands = np.empty((count, columns), np.int64), np.empty((count, 3), np.int64)
    build.angle_samples(
        part.source.value,
        ctypes.c_uint64(part.parameter),
        ctypes.c_uint64(part.block),
        ctypes.c_int64(count),
        _address(samples),
    )
    name = f"{part.source.name} {part.parameter}"
    found = {f"{name} samples": _digest(samples)}
    if columns == 4:
        build.angle_operands(ctypes.c_int64(count), _address(samples), _address(operands))
        found[f"{name} operands"] = _digest(operands)
    for spelling in chosen:
        flags = np.empty(count, np.uint8)
        build.angle_flags(
            spelling.value, columns, ctypes.c_int64(count), _address(samples), _address(flags)
        )
        found[f"{name} {spelling.name}"] = _digest(flags)
    return found


def spellings(source: Source) -> tuple[Spelling, ...]:
    """Return the spellings that a corpus is for: the wrong ones are for int16 components."""
    narrow = source in (Source.near_parallel, Source.band)
    return tuple(Spelling) if narrow else RIGHT


def installed() -> dict[str, str]:
    """Return what `digests` should say, by the installed module."""
    found: dict[str, str] = {}
    for part in PARTS:
        found |= installed_part(part, spellings(part.source))
    return found


def installed_part(part: Part, chosen: Iterable[Spelling]) -> dict[str, str]:
    """Return what `built` should say, by the installed module."""
    (angle,) = FEATURE.predicates
    name = f"{part.source.name} {part.parameter}"
    corpus = Corpus(
        name, part.source.name, part.parameter, part.block * BLOCK_SAMPLES + part.samples
    )
    block = angle.block(corpus, part.block)
    found = {f"{name} samples": _digest(block.samples)}
    if block.samples is not block.operands:
        found[f"{name} operands"] = _digest(block.operands)
    for spelling in chosen:
        found[f"{name} {spelling.name}"] = _digest(Spelled(spelling.name).flags(block))
    return found


def full_parts() -> Iterator[Part]:
    """Yield every block of every full corpus."""
    (angle,) = FEATURE.predicates
    for corpus in angle.corpora(full=True):
        for block in angle.blocks(corpus):
            count = min(BLOCK_SAMPLES, corpus.samples - block * BLOCK_SAMPLES)
            yield Part(getattr(Source, corpus.source), corpus.parameter, block, count)


def hold_full(build: ctypes.CDLL) -> tuple[int, set[str]]:
    """Return how many samples a build was asked, and what differs from the installed module."""

    def differing(part: Part) -> tuple[int, set[str]]:
        expected = installed_part(part, RIGHT)
        found = built(build, part, RIGHT)
        assert found.keys() == expected.keys()
        return part.samples, {name for name in found if found[name] != expected[name]}

    samples, different = 0, set()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for count, names in pool.map(differing, full_parts()):
            samples += count
            different |= names
    return samples, different


def _address(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _digest(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def main(argument: str) -> None:
    """Print JSON of a library, or a line for each build; a difference ends with exit code 1."""
    if argument != "--full":
        print(json.dumps(digests(Path(argument))))  # noqa: T201 - what the caller reads
        return
    red = False
    for compiler, flags in BUILDS:
        with TemporaryDirectory() as folder:
            library = compiled(Path(folder), compiler, *flags.split())
            samples, different = hold_full(ctypes.CDLL(str(library)))
        print(f"{compiler} {flags}: {samples} samples, different: {sorted(different)}", flush=True)  # noqa: T201 - a report
        red |= bool(different)
    sys.exit(red)


if __name__ == "__main__":
    main(sys.argv[1])
