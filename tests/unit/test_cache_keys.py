"""A key of the reference cache has all that decides the bits, and nothing that does not."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
from cache_desk import CLIP, FACTS, believed, key_of, make_scores
from runner_desk import make_cell

import backends
import gate
from gate import cache, environment, identity
from gate.cache import REPLAYED, ReferenceCache
from gate.model import Cell

ROOT = Path(__file__).parents[2]


@pytest.fixture
def kept(tmp_path: Path) -> ReferenceCache:
    """A cache that has nothing."""
    return ReferenceCache(tmp_path / "parity-gate" / "reference")


OTHERS = {
    "feature": "else",
    "dialect": "else",
    "conclusion": "vmafx",
    "options": {"gain": 1},  # another type, and so another text
    "outputs": ("two", "one"),
    "width": 18,
    "height": 18,
    "bit_depth": 10,
    "frames": 4,
}
ALIKE = {
    "options_name": "else",  # a name; the options themselves count
    "fixture": "else",
    "candidate": "else",
    "line": 2,
    "skip": "else",
    "deviation": None,
    "timeout": 1.0,
}


def test_every_field_of_a_cell_is_in_a_key_or_is_not_for_a_reason() -> None:
    assert {field.name for field in fields(Cell)} == {*OTHERS, *ALIKE, "reference"}
    assert {*OTHERS, "reference"} == set(cache.OF_CELL)


@pytest.mark.parametrize("name", OTHERS)
def test_a_cell_that_computes_something_else_has_another_key(
    name: str, kept: ReferenceCache
) -> None:
    facts = {**FACTS, "feature else": FACTS["feature fake"]}
    other = key_of(kept, replace(make_cell(), **{name: OTHERS[name]}), facts=facts)  # type: ignore[arg-type]
    assert other != key_of(kept, facts=facts)


@pytest.mark.parametrize("name", ALIKE)
def test_who_else_uses_a_result_does_not_matter(name: str, kept: ReferenceCache) -> None:
    other = replace(make_cell(), **{name: ALIKE[name]})  # type: ignore[arg-type]
    assert key_of(kept, other) == key_of(kept)


def test_each_picture_is_in_the_key_and_so_is_their_order(kept: ReferenceCache) -> None:
    clips = [
        CLIP,
        {**CLIP, "ref": "x"},
        {**CLIP, "dist": "x"},
        {"ref": CLIP["dist"], "dist": CLIP["ref"]},
        {**CLIP, "read as": "4:2:0"},
    ]
    assert len({key_of(kept, clip=clip) for clip in clips}) == len(clips)


PLACES = [(title, name) for title, section in FACTS.items() for name in section]


@pytest.mark.parametrize(("title", "name"), PLACES)
def test_another_fact_has_another_key(title: str, name: str, kept: ReferenceCache) -> None:
    changed = {**FACTS, title: {**FACTS[title], name: "else"}}
    assert key_of(kept, facts=changed) != key_of(kept)


def test_a_fact_or_a_section_more_has_another_key(kept: ReferenceCache) -> None:
    more = {**FACTS, "host": {**FACTS["host"], "microcode": "7"}}
    section = {**FACTS, "something new": {"that": "decides"}}
    assert len({key_of(kept, facts=facts) for facts in (FACTS, more, section)}) == 3


def test_what_decides_about_others_does_not_matter(kept: ReferenceCache) -> None:
    titles = (
        *("matrix", "warnings", "names shared by option sets", "kernels", "fixtures"),
        *("feature other", "reference opencl:pocl", "candidate cuda", "required cuda"),
    )
    others = {title: {"a": "unknown: b"} for title in titles}
    sources = {"gate": {**FACTS["gate"], "sources": "of reports and twins too"}}
    assert key_of(kept, facts={**others, **FACTS, **sources}) == key_of(kept)


@pytest.mark.parametrize("title", ["gate", "host", "feature fake", REPLAYED])
def test_nothing_is_kept_where_a_section_is_missing(title: str, kept: ReferenceCache) -> None:
    less = {name: section for name, section in FACTS.items() if name != title}
    for facts in (less, {**less, title: {}}):
        assert kept.key(make_cell(), CLIP, facts) is None
        assert kept.problem == f"{title} is unknown, so results are not kept"
    assert kept.key(make_cell(), {}, FACTS) is None


@pytest.mark.parametrize("text", ["", " ", "unknown", "unknown: why", "unknown (family 6)"])
@pytest.mark.parametrize(("title", "name"), PLACES)
def test_nothing_is_kept_where_a_fact_is_unknown(
    title: str, name: str, text: str, kept: ReferenceCache
) -> None:
    assert kept.key(make_cell(), CLIP, {**FACTS, title: {**FACTS[title], name: text}}) is None
    assert kept.problem == f"{title}: {name} is unknown, so results are not kept"


def test_a_feature_without_facts_is_not_kept(kept: ReferenceCache) -> None:
    facts = {**FACTS, "feature fake": {"unknown": "the compiled reference is missing"}}
    assert kept.key(make_cell(), CLIP, facts) is None


def test_only_the_compiled_reference_is_kept(kept: ReferenceCache) -> None:
    cell = replace(make_cell(), reference="libvmaf")
    assert kept.key(cell, CLIP, {**FACTS, "reference libvmaf": {"a": "b"}}) is None
    assert kept.problem == "results of libvmaf are not kept, only those of cpu"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for this program and its machine."""
    texts = {
        "backends/reference.py": "1",
        "backends/_reference.so": "1",
        "backends/kernels/dwt.cl.h": "1",
        "backends/twin.py": "1",
        "gate/worker.py": "1",
        "lib/libm.so.6": "1",
        "lib/libz.so.1": "1",
        "maps": f"7f00-7f01 r-xp 0 08:01 9   {tmp_path}/lib/libm.so.6\n"
        f"7f02-7f03 r-xp 0 08:01 9   {tmp_path}/lib/libz.so.1\n7f04-7f05 rw-p 0 00:00 0 [heap]\n",
        "cpuinfo": "processor : 0\nflags\t\t: fpu fma\n\nprocessor : 1\nflags\t\t: fpu fma\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(backends, "__path__", [str(tmp_path / "backends")])
    monkeypatch.setattr(gate, "__path__", [str(tmp_path / "gate")])
    monkeypatch.setattr(identity, "MAPS", tmp_path / "maps")
    monkeypatch.setattr(environment, "CPUINFO", tmp_path / "cpuinfo")
    for name in ("GLIBC_TUNABLES", "LD_PRELOAD", "LD_AUDIT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def here(program: Path) -> str:
    return key_of(ReferenceCache(program / "kept"))


@pytest.mark.parametrize(
    "name",
    ["backends/reference.py", "backends/_reference.so", "gate/worker.py", "lib/libm.so.6"],
)
def test_a_file_that_decides_is_in_the_key(name: str, program: Path) -> None:
    before = here(program)
    assert here(program) == before
    (program / name).write_text("2")
    assert here(program) != before


def test_a_new_module_is_in_the_key(program: Path) -> None:
    before = here(program)
    (program / "backends/new.py").write_text("")
    assert here(program) != before


@pytest.mark.parametrize("name", ["backends/twin.py", "backends/kernels/dwt.cl.h", "lib/libz.so.1"])
def test_a_kernel_and_its_host_code_may_change(name: str, program: Path) -> None:
    before = here(program)
    (program / name).write_text("2")
    assert here(program) == before


def test_another_choice_of_routines_is_in_the_key(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [here(program)]
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-FMA")
    keys.append(here(program))
    (program / "cpuinfo").write_text("flags : fpu\n")
    keys.append(here(program))
    assert len(set(keys)) == 3


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("maps", "C libraries"),
        ("lib/libm.so.6", "C libraries"),
        ("cpuinfo", "flags of the processor"),
        ("LD_PRELOAD", "effect of LD_PRELOAD"),
        ("LD_AUDIT", "effect of LD_PRELOAD"),
    ],
)
def test_nothing_is_kept_where_this_machine_does_not_tell(
    place: str, what: str, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place.startswith("LD_"):
        monkeypatch.setenv(place, "some.so")
    else:
        (program / place).unlink()
    kept = ReferenceCache(program / "kept")
    assert kept.key(make_cell(), CLIP, FACTS) is None
    assert f"here: {what} is unknown" in kept.problem


@pytest.mark.parametrize("name", ["backends/_reference.so", "gate/worker.py", "lib/libm.so.6"])
def test_nothing_is_kept_of_a_program_that_changes_while_it_runs(name: str, program: Path) -> None:
    kept = ReferenceCache(program / "kept")
    key = key_of(kept)
    kept.store(key, make_scores())
    (program / name).write_text("23")
    kept.store(key, make_scores(0.2))
    assert kept.problem == "the program changed since the run began, so results are not kept"
    (program / name).unlink()
    kept.store(key, make_scores(0.2))
    assert kept.problem.startswith("results are not kept: No such file or directory; ")
    assert kept.stored == 1
    assert believed(kept.load(key), make_scores())


EXECUTED = """
import json, sys
import numpy as np
from backends import registry
from backends.base import Arithmetic
class Clip:
    width = height = 33
    bit_depth = 8
    frames = 1
    def read(self, first, count):
        picture = np.arange(33 * 33, dtype=np.uint32).astype(np.uint8).reshape(1, 33, 33)
        return picture, picture // 2
cpu = registry.open_backend("cpu")
for feature in registry.features().values():
    for dialect in feature.dialects:
        cpu.compute(feature, Arithmetic(dialect), feature.options(), Clip())
    feature.reference_facts()
named = [m for n, m in sys.modules.items() if n.partition(".")[0] in ("backends", "gate")]
from gate import identity
print(json.dumps([[m.__file__ for m in named], [str(path) for path in identity._code()]]))
"""


def test_all_that_runs_when_a_reference_computes_is_in_the_key() -> None:
    command = [sys.executable, "-c", EXECUTED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    executed, told = json.loads(done.stdout)
    assert set(executed) <= set(told)
    names = [Path(path).name for path in executed]
    assert sum(name.startswith("_reference.") for name in names) == 2
    assert not [name for name in told if "twin" in name or "kernels" in name]


def test_the_libraries_of_this_process_are_in_the_key() -> None:
    found = identity.LIBRARY.findall(identity.MAPS.read_text("utf-8"))
    assert [path for path in found if Path(path).name.startswith(("libm.", "libm-", "ld-musl"))]
