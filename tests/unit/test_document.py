"""Tests of reading YAML: what values become, and what is said about a file that is none."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from backends.option_text import Spelled
from gate import document
from gate.document import DEEPEST, LARGEST, MOST_NAMES, Document, unknown
from gate.errors import MatrixError

FILE = Path("m.yaml")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str) -> Document:
    FILE.write_text(text, "utf-8", newline="")
    return Document(FILE)


def refusal(data: bytes) -> list[str]:
    FILE.write_bytes(data)
    with pytest.raises(MatrixError) as caught:
        Document(FILE)
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("9999999999999999999", 9999999999999999999),
        ("1e-5", 1e-5),
        ("1E3", 1000.0),
        (".5", 0.5),
        ("-1.", -1.0),
        ("99999999999999999999", 99999999999999999999.0),
        ("yes", "yes"),
        ("on", "on"),
        ("No", "No"),
        ("True", "True"),
        ("NULL", "NULL"),
        ("4:2:0", "4:2:0"),
        ("0777", "0777"),
        ("1_000", "1_000"),
        ("2024-01-02", "2024-01-02"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("=", "="),
        ("'true'", "true"),
        ('"1"', "1"),
        ("|-\n  1", "1"),
    ],
)
def test_a_scalar_is_read_by_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    read_value = read(f"a: {text}\n").value
    assert read_value == {"a": value}
    assert isinstance(read_value, dict)
    assert type(read_value["a"]) is (Spelled if isinstance(value, float) else type(value))


@pytest.mark.parametrize("text", ["1.20", "-0", "1e3", "99999999999999999999"])
def test_a_number_that_is_no_integer_keeps_its_text(text: str) -> None:
    number = document.plain(text)
    assert isinstance(number, Spelled)
    assert (number.text, str(number)) == (text, str(float(text)))


def test_warnings_are_told_by_place_with_the_files_own_spelling() -> None:
    found = read("a: 1.20\nb:\n  - 1e3\n")
    found.warn(("b", 0), 1000.0, "becomes 1")
    found.warn(("a",), 1.2, "becomes 1")
    assert list(found.warnings.items()) == [
        ("m.yaml:1:4", "a 1.20 becomes 1"),
        ("m.yaml:3:5", "b[0] 1e3 becomes 1"),
    ]
    assert found.problems == []


def test_keys_that_yaml_1_1_would_change_stay_text() -> None:
    assert read("on: 1\n'<<': 2\n4:2:0: 3\n").value == {"on": 1, "<<": 2, "4:2:0": 3}


def test_nested_values_know_their_line_and_column() -> None:
    found = read("a:\n  - b: 1\n    c: [x, {d: y}]\n")
    assert found.place(("a",)) == (2, 3)
    assert found.place(("a", 0)) == (2, 5)
    assert found.place(("a", 0, "b")) == (2, 8)
    assert found.place(("a", 0, "c", 1, "d")) == (3, 16)


def test_a_value_that_is_not_there_has_the_place_of_what_is_around_it() -> None:
    assert read("a:\n  b: 1\n").place(("a", "missing", 3)) == (2, 3)


def test_an_empty_file_is_null_at_its_start() -> None:
    found = read("# nothing\n")
    assert found.value is None
    assert found.place(("a",)) == (1, 1)


def test_a_byte_order_mark_moves_no_column() -> None:
    assert read("\ufeffa: 1\n").place(("a",)) == (1, 4)


def test_the_hash_is_that_of_the_bytes() -> None:
    assert read("a: 1\r\n").sha256 == hashlib.sha256(b"a: 1\r\n").hexdigest()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: b: c", "m.yaml:1:5: mapping values are not allowed here"),
        (
            "a: [1,\n  2",
            "m.yaml:2:4: expected ',' or ']', but got '<stream end>' while parsing a flow sequence",
        ),
        ('a: "x', "m.yaml:1:6: found unexpected end of stream while scanning a quoted scalar"),
        (
            "a:\n\t- b",
            (
                "m.yaml:2:1: found character '\\t' that cannot start any token "
                "while scanning for the next token"
            ),
        ),
        ("a: 1\n---\nb: 2", "m.yaml:2:1: a second document starts here; a matrix is one document"),
        (
            'a: "\\UFFFFFFFF"',
            "m.yaml:1:7: not a value of YAML: Python int too large to convert to C int",
        ),
        ("a: 1\nb: \x07", "m.yaml:2:4: character '\\x07' is not allowed in YAML; delete it"),
        (
            f"a: {'[' * DEEPEST}{']' * DEEPEST}",
            f"m.yaml:1:23: nested too deep; allowed: at most {DEEPEST} levels",
        ),
    ],
)
def test_a_file_that_is_no_yaml_is_refused_where_it_goes_wrong(text: str, sentence: str) -> None:
    assert refusal(text.encode()) == [sentence]


def test_a_file_that_is_no_yaml_also_tells_what_came_before() -> None:
    assert refusal(b"a: &x 1\nb: [") == [
        "m.yaml:1:4: anchor &x is not allowed; delete it",
        "m.yaml:2:5: expected the node content, but found '<stream end>' while parsing a flow node",
    ]


@pytest.mark.parametrize("levels", [DEEPEST - 1, DEEPEST])
def test_the_deepest_nesting_is_read(levels: int) -> None:
    assert read("[" * levels + "]" * levels).problems == []


def test_bytes_that_are_not_utf8_are_refused_with_their_place() -> None:
    assert refusal(b"a: 1\n\xc3\xa9: \xff\n") == [
        "m.yaml:2:4: byte 0xff is not UTF-8; save the file as UTF-8"
    ]


def test_a_missing_file_is_one_sentence() -> None:
    with pytest.raises(MatrixError) as caught:
        Document(FILE)
    assert caught.value.problems == [
        "m.yaml: cannot be read: No such file or directory; give a matrix file"
    ]


def test_a_directory_is_one_sentence() -> None:
    FILE.mkdir()
    with pytest.raises(MatrixError) as caught:
        Document(FILE)
    assert caught.value.problems == ["m.yaml: cannot be read: Is a directory; give a matrix file"]


def test_a_matrix_may_have_one_mebibyte() -> None:
    assert LARGEST == 1024 * 1024


@pytest.mark.parametrize("size", [63, 64])
def test_a_file_up_to_the_limit_is_read(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "LARGEST", 64)
    assert read("x" * size).value == "x" * size


def test_a_file_above_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "LARGEST", 64)
    assert refusal(b"x" * 65) == ["m.yaml: file is too large; allowed: at most 64 bytes; split it"]


def test_everything_that_is_yaml_but_not_allowed_is_told_at_once() -> None:
    text = "a: &x 1\nb: *x\nc: !!binary eA==\nd: !own 1\na: 2\n7: x\n? [k]\n: 1\n'e': \"\\ud800\"\n"
    assert read(text).problems == [
        "m.yaml:1:4: anchor &x is not allowed; delete it",
        "m.yaml:2:4: alias *x is not allowed; write the value out",
        "m.yaml:3:4: tag '!!binary' is not allowed; delete it",
        "m.yaml:4:4: tag '!own' is not allowed; delete it",
        "m.yaml:5:1: duplicate key 'a', first in line 1; delete one",
        "m.yaml:6:1: key 7 must be text; put it in quotes",
        "m.yaml:7:3: key must be text, not a list",
        "m.yaml:9:6: '\\ud800' holds half a character; write the whole one",
    ]


def test_an_alias_is_never_expanded() -> None:
    found = read("a: &a [1, 1]\nb: [*a, *a]\n")
    assert found.value == {"a": [1, 1], "b": [None, None]}


def test_a_merge_key_is_one_mistake_and_leaves_its_mapping_unknown() -> None:
    found = read("a: {<<: [*x, {b: &y 1}], b: 1}\nc: *x\n")
    assert found.value == {"a": None, "c": None}
    assert found.problems == [
        "m.yaml:1:5: merge key << is not allowed; write the keys out",
        "m.yaml:2:4: alias *x is not allowed; write the value out",
    ]


def test_what_follows_a_merge_key_is_still_told() -> None:
    assert read("a:\n  <<:\n    - *x\n  b: *y\n").problems == [
        "m.yaml:2:3: merge key << is not allowed; write the keys out",
        "m.yaml:4:6: alias *y is not allowed; write the value out",
    ]


def test_a_key_that_is_no_text_keeps_its_value() -> None:
    assert read("1: 2\nnull: 3\n[4]: 5\n").value == {"1": 2, "null": 3, "a list": 5}


def test_keys_without_text_are_no_duplicates_of_each_other() -> None:
    assert read("? [1]\n: 2\n? [3]\n: 4\n").problems == [
        "m.yaml:1:3: key must be text, not a list",
        "m.yaml:3:3: key must be text, not a list",
    ]


def test_a_duplicate_keeps_the_first_value() -> None:
    assert read("a: 1\na: 2\n").value == {"a": 1}


@settings(deadline=None)
@given(st.text() | st.text(alphabet=" \n-:,?[]{}&*!|>'\"%@#\\ax0U"))
def test_any_text_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.yaml")
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            problems = Document(path).problems
        except MatrixError as error:
            problems = error.problems
            assert problems
        assert all(problem.startswith(f"{path}:") for problem in problems)


class Inner(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    level: Annotated[int, Field(ge=0, le=9)] = 0
    above: Annotated[float, Field(gt=0.5, allow_inf_nan=False)] = 1
    even: Annotated[int, Field(ge=2, le=8, multiple_of=2)] = 2
    one: Annotated[int, Field(ge=1, le=1)] = 1
    word: Annotated[str, Field(min_length=1)] = "x"
    least: Annotated[int, Field(ge=0)] = 0


class Outer(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    inner: list[Inner] = Field(default=[], min_length=1)
    flag: bool = False
    names: dict[Annotated[str, Field(pattern="^[a-z]+$")], int] = {}


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("inner: [{level: 10}]", ["1:17: level 10 is out of range; allowed: 0 to 9"]),
        ("inner: [{above: 0.5}]", ["1:17: above 0.5 is out of range; allowed: more than 0.5"]),
        ("inner: [{above: 1e999}]", ["1:17: above 1e999 must be a finite number"]),
        ("inner: [{above: .inf}]", ["1:17: above '.inf' must be a finite number"]),
        ("inner: [{above: -.Inf}]", ["1:17: above '-.Inf' must be a finite number"]),
        ("inner: [{above: .nan}]", ["1:17: above '.nan' must be a finite number"]),
        ("inner: [{above: NaN}]", ["1:17: above 'NaN' must be a finite number"]),
        ("inner: [{above: nano}]", ["1:17: above 'nano' must be a number"]),
        ("inner: [{level: 0x1F}]", ["1:17: level 0x1F is out of range; allowed: 0 to 9"]),
        ("inner: [{level: +1.50}]", ["1:17: level +1.50 must be an integer"]),
        (
            "inner: [{level: 99999999999999999999}]",
            ["1:17: level 99999999999999999999 is out of range; allowed: 0 to 9"],
        ),
        (
            "names: {a: -99999999999999999999}",
            ["1:12: a -99999999999999999999 is out of range; allowed: at most 19 digits"],
        ),
        (
            "inner: [{least: 99999999999999999999}]",
            [
                (
                    "1:17: least 99999999999999999999 is out of range; "
                    "allowed: at least 0, at most 19 digits"
                )
            ],
        ),
        (
            f"inner: [{{word: {'1' * 64}}}]",
            [f"1:16: word {'1' * 64} must be text; put it in quotes"],
        ),
        ("names: {1: 1}", ["1:9: key 1 must be text; put it in quotes"]),
        ("1: 1", ["1:1: key 1 must be text; put it in quotes"]),
        (
            "inner: [{even: 3}]",
            ["1:16: even 3 is out of range; allowed: 2 to 8, multiples of 2"],
        ),
        ("inner: [{one: 2}]", ["1:15: one 2 is out of range; allowed: 1"]),
        ("inner: [{level: true}]", ["1:17: level true must be an integer"]),
        ("inner: [{level: 1.0}]", ["1:17: level 1.0 must be an integer"]),
        ("inner: [{word: 1}]", ["1:16: word 1 must be text; put it in quotes"]),
        ("inner: [{word: ''}]", ["1:16: word is empty; write something"]),
        ("inner: [1]", ["1:9: inner[0] 1 must be a mapping"]),
        ("inner: {}", ["1:8: inner must be a list, not a mapping"]),
        (
            "inner:\nflag: yes",
            ["1:7: inner must be a list, not null", "2:7: flag 'yes' must be true or false"],
        ),
        ("inner: []", ["1:8: inner is empty; give at least one"]),
        ("flag: 0", ["1:7: flag 0 must be true or false"]),
        ("names: [a]", ["1:8: names must be a mapping, not a list"]),
        ("names: {aB: 1}", ["1:9: aB 'aB' does not have the form ^[a-z]+$"]),
        (
            "names: {'a\\n': x}",
            [
                "1:9: 'a\\\\n' 'a\\\\n' does not have the form ^[a-z]+$",
                "1:16: 'a\\\\n' 'x' must be an integer",
            ],
        ),
        ("- 1", ["1:1: the file must be a mapping, not a list"]),
        (
            "flagg: true",
            ["1:1: unknown key 'flagg'; did you mean 'flag'? allowed: inner, flag, names"],
        ),
        (
            "inner:\n  - zzz: 1",
            ["2:5: unknown key 'zzz'; allowed: level, above, even, one, word, least"],
        ),
        ("'[key]': 1", ["1:1: unknown key '[key]'; allowed: inner, flag, names"]),
    ],
)
def test_what_a_model_refuses_becomes_a_sentence_with_its_place(
    text: str, sentences: list[str]
) -> None:
    found = read(text)
    assert found.check(Outer, found.value, ()) is None
    assert found.problems == [f"m.yaml:{sentence}" for sentence in sentences]


def test_what_a_model_accepts_is_returned() -> None:
    found = read("inner: [{level: 9}]")
    assert found.check(Outer, found.value, ()) == Outer(inner=[Inner(level=9)])
    assert found.problems == []


def test_a_missing_key_has_the_place_of_its_mapping() -> None:
    class Needs(BaseModel):
        level: int

    found = read("a: 1\nb:\n  c: 2\n")
    assert found.check(Needs, {"c": 2}, ("b",)) is None
    assert found.problems == ["m.yaml:3:3: key 'level' is missing; add it"]


def test_nothing_more_is_said_about_an_alias() -> None:
    found = read("flag: &f true\nnames: *f\n")
    assert found.check(Outer, found.value, ()) is None
    assert found.problems == [
        "m.yaml:1:7: anchor &f is not allowed; delete it",
        "m.yaml:2:8: alias *f is not allowed; write the value out",
    ]


def test_half_a_character_in_a_key_is_refused_and_the_key_still_found() -> None:
    found = read('names: {"\\ud800": 1}\n')
    assert found.check(Outer, found.value, ()) is None
    assert found.problems == [
        "m.yaml:1:9: '\\ud800' holds half a character; write the whole one",
        "m.yaml:1:9: '�' '�' does not have the form ^[a-z]+$",
    ]


def test_a_long_value_is_shortened() -> None:
    found = read(f"flag: {'x' * 1000}\n")
    found.check(Outer, found.value, ())
    (problem,) = found.problems
    assert len(problem) < 150


@pytest.mark.parametrize("count", [MOST_NAMES - 1, MOST_NAMES])
def test_all_allowed_names_are_listed(count: int) -> None:
    names = [f"n{index}" for index in range(count)]
    assert unknown("thing", "?", names) == f"unknown thing '?'; allowed: {', '.join(names)}"


def test_of_too_many_allowed_names_the_first_are_listed() -> None:
    names = [f"n{index}" for index in range(MOST_NAMES + 1)]
    listed = ", ".join(names[:MOST_NAMES])
    total = MOST_NAMES + 1
    assert unknown("thing", "?", names) == (
        f"unknown thing '?'; allowed: {listed}, ... ({total} in all)"
    )


def test_an_allowed_name_of_more_than_one_word_is_escaped() -> None:
    assert unknown("thing", "?", ["opencl:pocl", "a\nb"]) == (
        "unknown thing '?'; allowed: opencl:pocl, 'a\\nb'"
    )
