"""YAML whose values know their line and column; what is wrong becomes `path:line:col: sentence`."""

from __future__ import annotations

import difflib
import hashlib
import re
import reprlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from backends.option_text import Spelled
from gate.errors import MatrixError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

Loc = tuple[str | int, ...]
"""Keys and list indices that lead to a value, as in pydantic's errors."""

Place = tuple[int, int]
"""Line and column, both from 1."""

Model = TypeVar("Model", bound=BaseModel)

LARGEST = 1 << 20  # bytes
DEEPEST = 20  # levels; a matrix has 6, and PyYAML recurses once a level
MOST_NAMES = 40  # in one sentence; float_adm has 24 options

# YAML 1.2's core schema less what is more often a mistake: True, NULL, 0777, .inf, 20 digits.
# And -0 is no integer, for an option's -0 is another number than its 0.
CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
INTEGER = re.compile(r"\+?0|[-+]?[1-9][0-9]{0,18}|0x[0-9a-fA-F]{1,16}|0o[0-7]{1,21}")
INTEGRAL = re.compile(r"[-+]?[0-9]+")  # an integer to its author, of any length
LONGEST = "at most 19 digits"  # of INTEGER
NOT_FINITE = re.compile(r"[-+]?\.?(inf|infinity|nan)", re.IGNORECASE)
FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

TYPES = {
    "bool_type": "true or false",
    "int_type": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
LIMITS = {
    "ge": "at least",
    "gt": "more than",
    "le": "at most",
    "lt": "less than",
    "multiple_of": "multiples of",
}
SENTENCES = {
    "missing": "key '{label}' is missing; add it",
    "too_short": "{label} is empty; give at least one",
    "string_too_short": "{label} is empty; write something",
    "refused": "{label} {value} {text}",
    "string_pattern_mismatch": "{label} {value} does not have the form {pattern}",
    "literal_error": "{label} {value} is not supported; allowed: {expected}",
    "value_error": "{label} {error}",
}

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = 80


class Document:
    """One YAML file: plain values, their places, and the problems found so far.

    Attributes:
        path: the file, as the caller gave it.
        sha256: of the file's bytes.
        value: dicts with text keys, lists, text, int, Spelled, bool and None.
    """

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            MatrixError: it cannot be read, or is no YAML at all.
        """
        self.path = path
        self._problems: set[tuple[Place, str]] = set()
        self._warnings: dict[Place, str] = {}
        self._values: dict[Loc, Place] = {}
        self._keys: dict[Loc, Place] = {}
        self._sources: dict[Loc, str] = {}  # of numbers, as the file spells them
        self._refused_keys: set[Place] = set()
        self._unknown: set[Place] = set()  # aliases, and mappings with a merge key
        data = self._bytes()
        self.sha256 = hashlib.sha256(data).hexdigest()
        root = self._parse(self._decode(data))
        self.value = None if root is None else self._value(root, ())

    @property
    def problems(self) -> list[str]:
        """Return every problem found so far as `path:line:col: sentence`, by place."""
        return [f"{self.path}:{at[0]}:{at[1]}: {text}" for at, text in sorted(self._problems)]

    @property
    def warnings(self) -> dict[str, str]:
        """Return what is not taken as it stands: sentences by `path:line:col`, by place."""
        return {f"{self.path}:{at[0]}:{at[1]}": text for at, text in sorted(self._warnings.items())}

    def place(self, loc: Loc) -> Place:
        """Return where the value at `loc` is, or else the closest value around it."""
        while loc and loc not in self._values:
            loc = loc[:-1]
        return self._values.get(loc, (1, 1))

    def report(self, loc: Loc, sentence: str) -> None:
        """Note a problem at a value, unless its value is unknown: an alias, a merged mapping."""
        if self.place(loc) not in self._unknown:
            self._problems.add((self.place(loc), sentence))

    def report_key(self, loc: Loc, sentence: str) -> None:
        """Note a problem at the key of a value, unless the key is already refused."""
        if self._keys[loc] not in self._refused_keys:
            self._problems.add((self._keys[loc], sentence))

    def warn(self, loc: Loc, value: float, change: str) -> None:
        """Note what becomes of the number `value` at `loc`."""
        shown = _show(value, self._sources.get(loc))
        self._warnings[self.place(loc)] = f"{_label(loc)} {shown} {change}"

    def check(
        self, model: type[Model], value: object, loc: Loc, context: object = None
    ) -> Model | None:
        """Return `value`, which lies at `loc`, as a `model`; None after noting why it is none."""
        try:
            return model.model_validate(value, context=context)
        except ValidationError as errors:
            for error in errors.errors(include_url=False):
                inner = error["loc"]
                wrong_key = error["type"] == "extra_forbidden"
                if inner[-1:] == ("[key]",) and not wrong_key:
                    inner, wrong_key = inner[:-1], True  # pydantic's way to blame the key
                whole = (*loc, *inner)
                source = None if wrong_key else self._sources.get(whole)
                note = self.report_key if wrong_key else self.report
                note(whole, _sentence(error, model, whole, source))
            return None

    def _bytes(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                data = file.read(LARGEST + 1)
        except OSError as error:
            sentence = f"{self.path}: cannot be read: {error.strerror}; give a matrix file"
            raise MatrixError([sentence]) from None
        if len(data) > LARGEST:
            sentence = f"{self.path}: file is too large; allowed: at most {LARGEST} bytes; split it"
            raise MatrixError([sentence])
        return data

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            sentence = f"byte {data[error.start]:#04x} is not UTF-8; save the file as UTF-8"
            raise self._unreadable(_after(data[: error.start].decode()), sentence) from None

    def _parse(self, text: str) -> yaml.Node | None:
        try:
            loader = _Loader(text, self._problems, self._unknown)
        except yaml.reader.ReaderError as error:
            sentence = f"character {text[error.position]!a} is not allowed in YAML; delete it"
            raise self._unreadable(_after(text[: error.position]), sentence) from None
        try:
            return loader.only_node()
        except yaml.MarkedYAMLError as error:
            place = _place(error.problem_mark or loader.get_mark())
            sentence = " ".join(filter(None, (error.problem, error.context)))
        except (ValueError, OverflowError) as error:  # PyYAML converts "\U99999999" unchecked
            place, sentence = _place(loader.get_mark()), f"not a value of YAML: {error}"
        raise self._unreadable(place, sentence)

    def _unreadable(self, place: Place, sentence: str) -> MatrixError:
        self._problems.add((place, sentence))
        return MatrixError(self.problems)

    def _value(self, node: yaml.Node, loc: Loc) -> object:
        self._values[loc] = _place(node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, loc)
        if isinstance(node, yaml.ScalarNode):
            value = self._scalar(node)
            if isinstance(value, int | float):
                self._sources[loc] = node.value
            return value
        return [self._value(item, (*loc, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, object] | None:
        mapping: dict[str, object] = {}
        for key_node, value_node in node.value:
            place = _place(key_node.start_mark)
            if _merges(key_node):
                self._refuse_merge(place, value_node)
                self._unknown.add(self._values[loc])
                continue
            key = self._key(key_node)
            if key not in mapping:
                self._keys[*loc, key] = place
                mapping[key] = self._value(value_node, (*loc, key))
            elif place not in self._refused_keys:
                first = self._keys[*loc, key][0]
                sentence = f"duplicate key {_SHOWN.repr(key)}, first in line {first}; delete one"
                self._problems.add((place, sentence))
        return None if self._values[loc] in self._unknown else mapping

    def _refuse_merge(self, place: Place, value: yaml.Node) -> None:
        # What is wrong inside the value goes with it.
        start, end = _place(value.start_mark), _place(value.end_mark)
        self._problems -= {p for p in self._problems if p[0] == start or start < p[0] < end}
        self._problems.add((place, "merge key << is not allowed; write the keys out"))

    def _key(self, node: yaml.Node) -> str:
        """Return a key; one that is no text is refused and read as if it were in quotes."""
        key: object = [] if isinstance(node, yaml.SequenceNode) else {}
        if isinstance(node, yaml.ScalarNode):
            key = self._scalar(node)
            if isinstance(key, str):
                return key
        text = node.value if isinstance(node, yaml.ScalarNode) else _show(key)
        place = _place(node.start_mark)
        self._refused_keys.add(place)
        self._problems.add((place, _wrong_type("key", key, _show(key, text), "text")))
        return text

    def _scalar(self, node: yaml.ScalarNode) -> object:
        text, halves = re.subn("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", node.value)
        if halves:
            sentence = f"{_SHOWN.repr(node.value)} holds half a character; write the whole one"
            self._problems.add((_place(node.start_mark), sentence))
        if node.style is not None:  # in quotes, or a block: text whatever it looks like
            return text
        return plain(text)


class _Loader(yaml.SafeLoader):
    """Composes nodes only; scalars are read by `Document`, for PyYAML reads YAML 1.1."""

    def __init__(self, text: str, problems: set[tuple[Place, str]], unknown: set[Place]) -> None:
        super().__init__(text)
        self._problems, self._unknown = problems, unknown
        self._depth = 0

    def only_node(self) -> yaml.Node | None:
        """Return the root of the only document, None if there is none."""
        if not self.check_node():
            return None
        root = self.get_node()
        if self.check_node():
            problem = "a second document starts here; a matrix is one document"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self._next().start_mark)
        return root

    def _next(self) -> Any:  # noqa: ANN401 - PyYAML's events have no common type with a tag
        return self.peek_event()  # type: ignore[no-untyped-call]

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node without its anchor; an alias becomes null, for it may multiply."""
        event = self._next()
        mark, place = event.start_mark, _place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            self._problems.add(
                (place, f"alias *{event.anchor} is not allowed; write the value out")
            )
            self._unknown.add(place)
            self.get_event()  # type: ignore[no-untyped-call]
            return yaml.ScalarNode("", "", mark, mark)
        if event.anchor is not None:
            self._problems.add((place, f"anchor &{event.anchor} is not allowed; delete it"))
            event.anchor = None
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._problems.add((place, f"tag {tag!a} is not allowed; delete it"))
        if self._depth == DEEPEST:
            problem = f"nested too deep; allowed: at most {DEEPEST} levels"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def plain(text: str) -> object:
    """Return what a scalar without quotes means."""
    if text in CONSTANTS:
        return CONSTANTS[text]
    if INTEGER.fullmatch(text):
        return int(text, 0)
    return Spelled(text) if FLOAT.fullmatch(text) else text


def unknown(kind: str, value: str, allowed: Iterable[str]) -> str:
    """Return the sentence about a name that is not one of `allowed`."""
    names = list(allowed)
    close = difflib.get_close_matches(value, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    rest = f", ... ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    listed = ", ".join(map(_word, names[:MOST_NAMES])) + rest
    return f"unknown {kind} {_SHOWN.repr(value)}; {hint}allowed: {listed}"


def _place(mark: yaml.Mark) -> Place:
    return mark.line + 1, mark.column + 1


def _merges(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.style is None and key.value == "<<"


def _after(text: str) -> Place:
    return text.count("\n") + 1, len(text) - text.rfind("\n")


def _sentence(error: ErrorDetails, model: type[BaseModel], loc: Loc, source: str | None) -> str:
    """Return pydantic's finding about the value at `loc` in the house's words.

    Args:
        error: the finding.
        model: what the value should be, or lies in.
        loc: keys and indices from the top of the file.
        source: of a number, as the file spells it.
    """
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    owner, field = _find(model, error["loc"])
    label, shown = _label(loc), _show(value, source)
    if kind == "int_type" and source is not None and INTEGRAL.fullmatch(source):
        return f"{label} {shown} is out of range; allowed: {_range({}, field, LONGEST)}"
    if kind == "float_type" and isinstance(value, str) and NOT_FINITE.fullmatch(value):
        kind = "finite_number"
    if kind in TYPES:
        return _wrong_type(label, value, shown, TYPES[kind])
    if kind == "extra_forbidden":
        return unknown("key", str(loc[-1]), owner.model_fields)
    if context.keys() & LIMITS:
        return f"{label} {shown} is out of range; allowed: {_range(context, field)}"
    words = {**context, "label": label, "value": shown, "text": error["msg"]}
    return SENTENCES.get(kind, "{text}").format_map(words)


def _wrong_type(label: str, value: object, shown: str, wanted: str) -> str:
    if value is None or isinstance(value, dict | list):
        return f"{label} must be {wanted}, not {shown}"
    advice = "; put it in quotes" if wanted == "text" else ""
    return f"{label} {shown} must be {wanted}{advice}"


def _show(value: object, source: str | None = None) -> str:
    """Return a value as YAML would spell it, shortened; a number as `source` spells it."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float) and source is not None:
        return _SHOWN.repr(source)[1:-1]
    return "null" if value is None else _SHOWN.repr(value)


def _label(loc: Loc) -> str:
    """Return the last key of `loc`, with the index if an item of a list is meant."""
    if not loc:
        return "the file"
    if isinstance(loc[-1], int):
        return f"{_label(loc[:-1])}[{loc[-1]}]"
    return _word(loc[-1])


def _word(name: str) -> str:
    """Return a name, in quotes and escaped if it has more than letters, digits and `_.:-`."""
    return name if re.fullmatch(r"[\w.:-]+", name) else _SHOWN.repr(name)


def _find(model: type[BaseModel], loc: Loc) -> tuple[type[BaseModel], FieldInfo | None]:
    """Return the model that owns the last key of `loc`, and the key's field if it has one."""
    owner, field = model, None
    inner: type[BaseModel] | None = model
    for key in loc:
        if isinstance(key, str) and inner is not None:
            owner, field = inner, inner.model_fields.get(key)
            inner = None if field is None else _model_in(field.annotation)
    return owner, field


def _model_in(annotation: object) -> type[BaseModel] | None:
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def _range(context: dict[str, object], field: FieldInfo | None, end: str = "") -> str:
    """Return the range that a value broke; pydantic tells one end, the field has both.

    Args:
        context: what pydantic tells.
        field: that of the value.
        end: the upper end where neither of them has one.
    """
    limits = {name: context[name] for name in LIMITS if name in context}
    for item in field.metadata if field else ():
        limits |= {name: getattr(item, name) for name in LIMITS if hasattr(item, name)}
    parts = []
    ends = [end] if end and "le" not in limits else []
    if {"ge", "le"} <= limits.keys():
        low, high = limits.pop("ge"), limits.pop("le")
        parts.append(f"{low}" if low == high else f"{low} to {high}")
    parts += [f"{LIMITS[name]} {limit}" for name, limit in limits.items()]
    return ", ".join(parts + ends)
