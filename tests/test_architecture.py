"""The rules of DESIGN.md that can be read off the source text; each is shown red on a plant."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("gate", "backends", "reports", "matrices", "ci", ".ci", "tests")
THIS = "tests/test_architecture.py"
NOT_TEXT = {".xz", ".so", ".pyc"}
C_SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".cl"}

MOST_LINES = 500
MOST_C_LINES = 400
MOST_FUNCTION_LINES = 80

# A tolerance has no place in a comparison of bits.
TOLERANCE = re.compile(r"(?<![a-z])(allclose|isclose|approx|rtol|atol)(?![a-z])", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|home|root|Users)/")

DRIVERS = {
    "cupy": "backends/cuda.py",
    "imageio_ffmpeg": "backends/libvmaf.py",
    "pyopencl": "backends/opencl.py",
}
CLI = (
    "gate/again.py",
    "gate/arguments.py",
    "gate/cli.py",
    "gate/probe.py",
    "gate/publish.py",
    "gate/survey.py",
    "gate/terminal.py",
)

Rule: TypeAlias = Callable[[str, str], list[str]]


def imported(path: str, source: str) -> Iterator[str]:
    """Yield the dotted name of everything imported anywhere in a Python file."""
    return imported_by(path, ast.walk(ast.parse(source)))


def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those within it, but for functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from outside_functions(child)


def imported_by(path: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                package = PurePosixPath(path).parts[:-level] if level else ()
                base = ".".join((*package, *([module] if module else [])))
                yield from (f"{base}.{alias.name}" for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__" | "importorskip")
                | ast.Attribute(attr="import_module" | "importorskip"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name


def within(name: str, *modules: str) -> bool:
    return any(f"{name}.".startswith(f"{module}.") for module in modules)


def python_only(path: str) -> bool:
    return path.endswith(".py")


def backends_know_nothing_of_gate_and_reports(path: str, source: str) -> list[str]:
    if not (path.startswith("backends/") and python_only(path)):
        return []
    return [name for name in imported(path, source) if within(name, "gate", "reports")]


def reports_import_only_the_model(path: str, source: str) -> list[str]:
    if not (path.startswith("reports/") and python_only(path)):
        return []
    return [
        name
        for name in imported(path, source)
        if within(name, "gate", "backends") and not within(name, "gate.model")
    ]


def gate_and_reports_meet_only_in_the_cli(path: str, source: str) -> list[str]:
    if not (path.startswith("gate/") and python_only(path)) or path in CLI:
        return []
    return [name for name in imported(path, source) if within(name, "reports")]


def the_gate_needs_no_feature_to_start(path: str, source: str) -> list[str]:
    """One that does not import is shown by name, and costs the cells that need it."""
    if not (path.startswith("gate/") and python_only(path)):
        return []
    names = imported_by(path, outside_functions(ast.parse(source)))
    return [name for name in names if within(name, "backends.features")]


def drivers_are_imported_in_one_module_each(path: str, source: str) -> list[str]:
    if not python_only(path):
        return []
    foreign = [driver for driver, home in DRIVERS.items() if path != home]
    return [name for name in imported(path, source) if within(name, *foreign)]


def nothing_imports_ci_or_tests(path: str, source: str) -> list[str]:
    if not python_only(path):
        return []
    return [name for name in imported(path, source) if within(name, "ci", "tests")]


def no_module_is_called_utils(path: str, source: str) -> list[str]:
    del source
    pure = PurePosixPath(path)
    return [path] if "utils" in (*pure.parts[:-1], pure.name.partition(".")[0]) else []


def files_are_short(path: str, source: str) -> list[str]:
    caps = {".py": MOST_LINES, **dict.fromkeys(C_SUFFIXES, MOST_C_LINES)}
    cap, lines = caps.get(PurePosixPath(path).suffix), len(source.splitlines())
    return [f"{lines} lines; allowed: {cap}"] if cap is not None and lines > cap else []


def functions_are_short(path: str, source: str) -> list[str]:
    if not python_only(path):
        return []
    functions = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [
        f"{node.name} has more than {MOST_FUNCTION_LINES} lines"
        for node in functions
        if node.end_lineno is not None and node.end_lineno - node.lineno >= MOST_FUNCTION_LINES
    ]


def no_word_of_tolerance_appears(path: str, source: str) -> list[str]:
    if not python_only(path) or path == THIS:
        return []
    return [match.group() for match in TOLERANCE.finditer(source)]


def no_path_of_one_machine_appears(path: str, source: str) -> list[str]:
    return [] if path == THIS else [match.group() for match in MACHINE_PATH.finditer(source)]


class Check(NamedTuple):
    """A rule with (path, source) pairs that it must find and must leave alone."""

    rule: Rule
    breaches: tuple[tuple[str, str], ...]
    harmless: tuple[tuple[str, str], ...]


def function(lines: int) -> str:
    return "def f():\n" + "    1\n" * (lines - 1)


CHECKS = (
    Check(
        backends_know_nothing_of_gate_and_reports,
        breaches=(
            ("backends/cpu.py", "import gate"),
            ("backends/cpu.py", "from gate.model import Cell"),
            ("backends/features/x/spec.py", "def f():\n    from reports import junit"),
            ("backends/cpu.py", "import importlib\nimportlib.import_module('gate.plan')"),
        ),
        harmless=(("backends/cpu.py", "from backends import base\nimport gateway"),),
    ),
    Check(
        reports_import_only_the_model,
        breaches=(
            ("reports/html.py", "import gate"),
            ("reports/html.py", "from gate import compare"),
            ("reports/html.py", "from gate.modelling import x"),
            ("reports/html.py", "import backends.base"),
            ("reports/html.py", "from ..gate import compare"),
        ),
        harmless=(("reports/html.py", "from gate import model\nfrom gate.model import Run"),),
    ),
    Check(
        gate_and_reports_meet_only_in_the_cli,
        breaches=(
            ("gate/runner.py", "from reports import junit"),
            ("gate/fixtures/flat.py", "if TYPE_CHECKING:\n    import reports.json as j"),
        ),
        harmless=(("gate/cli.py", "from reports import junit"),),
    ),
    Check(
        the_gate_needs_no_feature_to_start,
        breaches=(
            ("gate/probe.py", "from backends.features.float_adm import powers"),
            ("gate/angle.py", "import backends.features.integer_adm as adm"),
            ("gate/angle.py", "from backends import features"),
            ("gate/angle.py", "if TYPE_CHECKING:\n    from backends.features.x.y import Z"),
            ("gate/angle.py", "class A:\n    from backends.features.x import FEATURE"),
        ),
        harmless=(
            ("gate/probe.py", "def f():\n    from backends.features.float_adm import powers"),
            ("gate/angle.py", "from backends import registry\nregistry.features()"),
            ("tests/unit/test_x.py", "from backends.features.x import FEATURE"),
        ),
    ),
    Check(
        drivers_are_imported_in_one_module_each,
        breaches=(
            ("backends/opencl.py", "import cupy.cuda"),
            ("backends/cuda.py", "import pyopencl as cl"),
            ("tests/backend/test_x.py", "pytest.importorskip('cupy')"),
            ("gate/cli.py", "try:\n    import cupy\nexcept ImportError:\n    pass"),
        ),
        harmless=(("backends/cuda.py", "def f():\n    import cupy"),),
    ),
    Check(
        nothing_imports_ci_or_tests,
        breaches=(
            ("gate/cli.py", "from tests import fakes"),
            ("tests/unit/test_x.py", "import ci.lanes"),
        ),
        harmless=(("gate/cli.py", "import circle\nfrom testsuite import x"),),
    ),
    Check(
        no_module_is_called_utils,
        breaches=(
            ("gate/utils.py", ""),
            ("backends/utils/rows.py", ""),
            ("backends/utils.cl.h", ""),
        ),
        harmless=(("gate/futils.py", ""),),
    ),
    Check(
        files_are_short,
        breaches=(
            ("gate/x.py", "\n" * (MOST_LINES + 1)),
            ("backends/features/x/kernels/dwt.cl.h", "\n" * (MOST_C_LINES + 1)),
            ("backends/features/x/reference/dwt.cpp", "\n" * (MOST_C_LINES + 1)),
        ),
        harmless=(
            ("gate/x.py", "\n" * MOST_LINES),
            ("backends/features/x/kernels/dwt.cl.h", "\n" * MOST_C_LINES),
        ),
    ),
    Check(
        functions_are_short,
        breaches=(
            ("gate/x.py", function(MOST_FUNCTION_LINES + 1)),
            ("gate/x.py", "async " + function(MOST_FUNCTION_LINES + 1)),
        ),
        harmless=(("gate/x.py", function(MOST_FUNCTION_LINES)),),
    ),
    Check(
        no_word_of_tolerance_appears,
        breaches=(
            ("tests/unit/test_x.py", "assert x == pytest.approx(y)"),
            ("gate/x.py", "np.testing.assert_allclose(x, y)"),
            ("gate/x.py", "f(x, y, rtol=0)"),
        ),
        harmless=(("gate/x.py", "# approximately, isclosed, patrol"),),
    ),
    Check(
        no_path_of_one_machine_appears,
        breaches=(
            ("README.md", "see `/home/someone/out`"),
            ("matrices/pr.yaml", "file: /work/data/x.yuv"),
        ),
        harmless=(("README.md", "../work/x, https://example.org/home, out/work/y"),),
    ),
)

BREACHES = [(check.rule, *breach) for check in CHECKS for breach in check.breaches]
HARMLESS = [(check.rule, *text) for check in CHECKS for text in check.harmless]


def sources() -> list[tuple[str, str]]:
    """Return (path, text) of every text file of the project."""
    in_rooms = [path for room in ROOMS for path in (ROOT / room).rglob("*")]
    files = [path for path in (*ROOT.iterdir(), *in_rooms) if path.is_file()]
    return [
        (path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="replace"))
        for path in files
        if path.suffix not in NOT_TEXT
    ]


def yaml_importers(tree: list[tuple[str, str]]) -> list[str]:
    return [
        path
        for path, source in tree
        if python_only(path) and any(within(name, "yaml") for name in imported(path, source))
    ]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.rule.__name__)
def test_the_project_keeps_the_rule(check: Check) -> None:
    problems = {path: found for path, source in sources() if (found := check.rule(path, source))}
    assert problems == {}


@pytest.mark.parametrize(("rule", "path", "source"), BREACHES)
def test_a_planted_breach_is_found(rule: Rule, path: str, source: str) -> None:
    assert rule(path, source) != []


@pytest.mark.parametrize(("rule", "path", "source"), HARMLESS)
def test_the_nearest_harmless_text_is_left_alone(rule: Rule, path: str, source: str) -> None:
    assert rule(path, source) == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.rule.__name__)
def test_every_rule_has_a_planted_breach_and_a_harmless_neighbour(check: Check) -> None:
    assert check.breaches
    assert check.harmless


def test_every_room_with_code_is_read() -> None:
    read = {path for path, _ in sources()}
    assert {"gate/model.py", "backends/base.py", "reports/junit.py", "pyproject.toml", THIS} <= read


def test_yaml_is_imported_in_exactly_one_module() -> None:
    assert len(yaml_importers(sources())) == 1


def test_a_second_module_that_imports_yaml_is_found() -> None:
    planted = [("gate/a.py", "import yaml"), ("gate/b.py", "from yaml import nodes")]
    assert yaml_importers(planted) == ["gate/a.py", "gate/b.py"]
