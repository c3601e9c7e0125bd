"""Which cells an entry for known deviations names, and how it is written."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runner_desk import make_cell

from gate.deviations import DeviationsFile, Entry
from gate.document import Document
from gate.entries import entry_text, few_globs, grouped, outputs_of
from gate.model import Comparison, Mismatch, Result, Status

NAMES = [
    f"{feature}/ieee/{options}/{fixture}/{candidate}"
    for fixture in ("a", "a-8", "b")
    for feature in ("float_adm", "integer_adm")
    for options in ("default", "debug")
    for candidate in ("cuda", "opencl:pocl")
]


def chosen(*globs: str) -> list[str]:
    return [name for name in NAMES if any(fnmatchcase(name, glob) for glob in globs)]


@given(st.sets(st.sampled_from(NAMES), min_size=1))
def test_globs_match_exactly_the_wanted_cells(wanted: set[str]) -> None:
    globs = few_globs([name for name in NAMES if name in wanted], NAMES)
    assert set(chosen(*globs)) == wanted
    assert len(globs) <= len(wanted)


@pytest.mark.parametrize(
    ("wanted", "globs"),
    [
        (["*/a/cuda"], ["*/ieee/*/a/cuda"]),
        (["float_adm/*/debug/a-8/cuda"], ["float_adm/ieee/debug/a-8/cuda"]),
        (["float_adm/*/cuda"], ["float_adm/ieee/*/*/cuda"]),
        (["*"], ["*/ieee/*/*/*"]),
        (
            ["*/debug/*", "float_adm/ieee/default/b/cuda"],
            ["*/ieee/debug/*/*", "float_adm/ieee/default/b/cuda"],
        ),
        (
            ["float_adm/ieee/debug/a/*", "float_adm/ieee/debug/b/*"],
            ["float_adm/ieee/debug/a/*", "float_adm/ieee/debug/b/*"],
        ),
        (
            ["float_adm/ieee/debug/b/cuda", "integer_adm/ieee/default/a/cuda"],
            ["integer_adm/ieee/default/a/cuda", "float_adm/ieee/debug/b/cuda"],
        ),
    ],
)
def test_globs_are_few_literal_and_in_plan_order(wanted: list[str], globs: list[str]) -> None:
    assert few_globs(chosen(*wanted), NAMES) == globs


def test_the_same_cells_give_the_same_globs_whatever_the_plan_holds_first() -> None:
    wanted = chosen("*/debug/a*/cuda", "float_adm/*")
    assert few_globs(wanted, NAMES) == few_globs(wanted, NAMES[::-1])


def result(fixture: str, *scores: str, candidate: float | None = 5.0) -> Result:
    cell = make_cell(fixture=fixture, outputs=("one", "two", "three"))
    pairs = [Mismatch(0, score, 4.0, candidate, None, "") for score in scores]
    return Result(cell, Status.FAIL, comparison=Comparison(9, 0, 0, len(pairs), tuple(pairs)))


def test_cells_that_differ_in_the_same_outputs_are_one_entry() -> None:
    failed = [
        result("a", "two", "one", "two"),
        result("b", "one"),
        result("c", "one", "two"),
        result("d", "one", candidate=None),
        result("e", "one", candidate=math.nan),
    ]
    blessings = grouped(failed, [one.cell for one in failed], "why", "who", "2031-02-28")
    told = [(b.entry.cells, b.entry.outputs, b.entry.not_finite) for b in blessings]
    ids = [one.cell.id for one in failed]
    assert told == [
        ([ids[0], ids[2]], ["one", "two"], False),
        ([ids[1]], ["one"], False),
        ([ids[3], ids[4]], ["one"], True),
    ]
    assert [blessing.cells for blessing in blessings] == [
        (ids[0], ids[2]),
        (ids[1],),
        (ids[3], ids[4]),
    ]
    for entry, _ in blessings:
        assert (entry.reason, entry.owner, entry.expires) == ("why", "who", "2031-02-28")


def test_a_cell_that_nothing_tells_of_has_no_outputs() -> None:
    assert outputs_of(result("a")) == ()
    assert outputs_of(result("a", "unknown", "three")) == ("three",)


ENTRY = Entry(
    cells=["float_adm/ieee/*/a/cuda", "*/ieee/debug/b/opencl:pocl"],
    outputs=["adm2_egl_1.2", "aim"],
    reason="rounds the limited product",
    owner="kernels",
    expires="2031-02-28",
)


def test_an_entry_is_written_as_a_person_writes_it() -> None:
    assert entry_text(ENTRY, "  ") == (
        "  - cells:\n"
        "      - float_adm/ieee/*/a/cuda\n"
        '      - "*/ieee/debug/b/opencl:pocl"\n'
        "    outputs:\n"
        "      - adm2_egl_1.2\n"
        "      - aim\n"
        "    reason: rounds the limited product\n"
        "    owner: kernels\n"
        "    expires: 2031-02-28\n"
    )


def test_what_is_not_finite_is_said_and_a_long_reason_is_folded() -> None:
    words = " ".join(["rounds"] * 20)
    text = entry_text(with_reason(words, not_finite=True), "")
    assert text.splitlines()[5:9] == [
        "    - aim",
        "  not_finite: true",
        "  reason: >-",
        "    " + " ".join(["rounds"] * 13),
    ]
    assert max(map(len, text.splitlines())) <= 100


def with_reason(reason: str, *, not_finite: bool = False) -> Entry:
    return ENTRY.model_copy(update={"reason": reason, "not_finite": not_finite})


@pytest.mark.parametrize(("length", "lines"), [(85, 1), (86, 1), (87, 2)])
def test_a_reason_is_folded_where_it_leaves_100_columns(length: int, lines: int) -> None:
    text = entry_text(with_reason("x" * (length - 2) + " y"), "    ")
    told = text[text.index("reason:") : text.index("owner:")]
    assert told.count("\n") == lines
    assert max(map(len, text.splitlines())) <= 100


@given(
    text=st.text(
        st.characters(exclude_categories=["C", "Zl", "Zp"]) | st.sampled_from("#:-'\"&*@%"),
        min_size=1,
    )
    .map(lambda text: " ".join(text.split()))
    .filter(lambda text: text.isprintable() and text),
    indent=st.sampled_from(["", "  ", "      "]),
    times=st.sampled_from([1, 60]),
)
def test_whatever_stands_in_an_entry_is_read_back(
    text: str, indent: str, times: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    entry = ENTRY.model_copy(update={"reason": " ".join([text] * times), "owner": text})
    path = tmp_path_factory.getbasetemp() / "deviations.yaml"
    path.write_text(f"version: 1\ndeviations:\n{entry_text(entry, indent)}", "utf-8")
    document = Document(path)
    read = document.check(DeviationsFile, document.value, ())
    assert document.problems == []
    assert read is not None
    assert read.deviations == [entry]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("null", '"null"'),
        ("1", '"1"'),
        ("1.5", '"1.5"'),
        ("true", '"true"'),
        ("@team/gate", '"@team/gate"'),
        ("a: b", '"a: b"'),
        ("a:", '"a:"'),
        ("a #b", '"a #b"'),
        ('say "x"', 'say "x"'),
        ('"x"', '"\\"x\\""'),
        ("a:b#c", "a:b#c"),
        ("Jörg", "Jörg"),
    ],
)
def test_a_text_has_quotes_only_where_it_would_be_something_else(text: str, shown: str) -> None:
    told = entry_text(ENTRY.model_copy(update={"owner": text}), "")
    assert f"  owner: {shown}\n" in told
