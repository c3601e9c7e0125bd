"""Draws cells at random, from what features and generators declare about themselves."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from backends import registry
from backends.base import CONCLUSIONS, Arithmetic, Refused
from gate.fixtures import generators

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

    from backends.base import Feature, Options
    from gate.fixtures import GeneratedFixture

Values: TypeAlias = "Mapping[str, Any]"

SMALL, LARGE = 100, 700  # samples; small pictures show edges and cost nothing
MOST_HALVINGS = 9  # 2**9 is the last power of two below LARGE
FRAMES = (1, 1, 2, 3)  # mostly one, for a difference needs no more
UNLIMITED = 65535  # the largest luma value, where a field declares no bound

# Of the options that are set in a cell: in some hardly any, for one may hide another.
OPTION_SHARES = (0.05, 0.1, 0.2, 0.5)
FIELD_SHARE = 0.5  # of a generator's own fields
CONCLUSION_SHARE = 0.2  # of the cells have any conclusion, the others the default
MOST_REDRAWS = 1000  # of values that a model refuses, each time a few


@dataclass(frozen=True, slots=True)
class Draw:
    """A fixture and what is computed on it, each as a matrix file spells it.

    Attributes:
        index: which cell of its seed.
        fixture: keys of a generated fixture.
        feature, dialect, conclusion: names.
        options: those that are set.
    """

    index: int
    fixture: Values
    feature: str
    dialect: str
    conclusion: str
    options: Values

    @property
    def fixture_name(self) -> str:
        """Return for example `f0017_noise_63x65_10`."""
        size = "{generator}_{width}x{height}_{bit_depth}".format_map(self.fixture)
        return f"f{self.index:04}_{size}"

    def declared(self) -> GeneratedFixture:
        """Return the fixture as the plan and the runner want it.

        Raises:
            ValidationError: there is no such fixture.
        """
        return generators()[self.fixture["generator"]].model_validate(self.fixture)

    def chosen(self) -> Options:
        """Return the options as the feature wants them.

        Raises:
            ValidationError: the feature refuses a value.
        """
        return registry.features()[self.feature].options.model_validate(self.options)

    def is_allowed(self) -> bool:
        """Return whether there is such a cell: every part, and all of them together."""
        feature = registry.features()[self.feature]
        arithmetic = Arithmetic(self.dialect, self.conclusion)
        try:
            feature.require(arithmetic, self.declared())
            feature.require_options(arithmetic, self.chosen())
        except (ValidationError, Refused):
            return False
        return True


def draw(seed: int, index: int) -> Draw:
    """Return cell `index` of a seed; it depends on nothing else but the program."""
    chance = random.Random(f"{seed} {index}")  # noqa: S311 - repeatable, not secret
    feature = chance.choice(list(registry.features().values()))
    dialect = chance.choice(feature.dialects)
    name, model = chance.choice(list(generators().items()))
    shape = {"generator": name, **_format(chance, feature, dialect)}
    any_conclusion = chance.random() < CONCLUSION_SHARE
    drawn = Draw(
        index=index,
        fixture=values_of(chance, model, shape, FIELD_SHARE),
        feature=feature.name,
        dialect=dialect,
        conclusion=chance.choice(CONCLUSIONS) if any_conclusion else CONCLUSIONS[0],
        options={},
    )
    return _with_options(chance, drawn, feature)


def _with_options(chance: random.Random, drawn: Draw, feature: Feature) -> Draw:
    share = chance.choice(OPTION_SHARES)
    for _ in range(MOST_REDRAWS):
        options = values_of(chance, feature.options, _everything(feature), share)
        complete = replace(drawn, options=options)
        if complete.is_allowed():
            return complete
    message = f"{feature.name} refuses every option set that was drawn in {drawn.dialect}"
    raise RuntimeError(message)


def _everything(feature: Feature) -> Values:
    """Return libvmaf's option for all outputs that a feature has."""
    return {"debug": True} if "debug" in feature.options.model_fields else {}


def _format(chance: random.Random, feature: Feature, dialect: str) -> Values:
    return {
        "width": _extent(chance, feature.smallest(dialect)),
        "height": _extent(chance, feature.smallest(dialect)),
        "bit_depth": chance.choice(feature.bit_depths),
        "frames": chance.choice(FRAMES),
    }


def _extent(chance: random.Random, smallest: int) -> int:
    """Return a width or height: smallest, small, around a power of two, or any."""
    halvings = chance.randint(smallest.bit_length(), MOST_HALVINGS)
    kinds = (
        smallest + chance.randint(0, 1),
        chance.randint(smallest, SMALL),
        (1 << halvings) + chance.randint(-1, 1),
        chance.randint(smallest, LARGE),
    )
    return chance.choices(kinds, weights=(1, 5, 2, 3))[0]


def values_of(
    chance: random.Random, model: type[BaseModel], given: Values, share: float
) -> dict[str, Any]:
    """Return values that `model` takes.

    Fields that are neither numbers, flags, text nor one of some words keep their defaults.

    Args:
        chance: decides.
        model: declares the fields and their ranges.
        given: values that are no matter of chance.
        share: of the other fields that have a default, how many are set.

    Raises:
        RuntimeError: the model goes on refusing what is drawn.
    """
    fields = {name: field for name, field in model.model_fields.items() if name not in given}
    drawn = {
        name: _value(chance, field)
        for name, field in fields.items()
        if _can_be_drawn(field) and (field.is_required() or chance.random() < share)
    }
    for _ in range(MOST_REDRAWS):
        refused = list(_refused(model, {**given, **drawn}))
        if not refused:
            return {**given, **drawn}
        drawn |= {name: _value(chance, fields[name]) for name in refused}
    message = f"{model.__name__} refuses every value that was drawn for {', '.join(refused)}"
    raise RuntimeError(message)


def _refused(model: type[BaseModel], values: Values) -> Iterator[str]:
    try:
        model.model_validate(values)
    except ValidationError as errors:
        yield from (str(error["loc"][0]) for error in errors.errors(include_url=False))


def _can_be_drawn(field: FieldInfo) -> bool:
    kind = field.annotation
    return kind in (bool, int, float) or get_origin(kind) is Literal or _is_text(kind)


def _is_text(kind: object) -> bool:
    """Return whether a field takes text, for example `Annotated[str, ...] | None`."""
    if get_origin(kind) in (Annotated, Union, UnionType):
        return any(map(_is_text, get_args(kind)))
    return kind is str


def _value(chance: random.Random, field: FieldInfo) -> object:
    if field.annotation is bool:
        return chance.random() < 1 / 2
    if get_origin(field.annotation) is Literal:
        return chance.choice(get_args(field.annotation))
    if _is_text(field.annotation):
        return f"{chance.getrandbits(32):08x}"
    whole = field.annotation is int
    number = _number(chance, field, whole=whole)
    # libvmaf reads six significant digits; more would be another value to it.
    return round(number) if whole else float(f"{number:g}")


def _number(chance: random.Random, field: FieldInfo, *, whole: bool) -> float:
    """Return a number in the declared range: a telling one, any, or one near an end."""
    low, high = _range(field)
    telling = [low, high, 0, 1, field.default]
    if whole:
        telling.append(1 << chance.randrange(16))  # mid grey of some bit depth, or a power of two
    inside = {v: None for v in telling if isinstance(v, int | float) and low <= v <= high}
    near = (high - low) * 10 ** chance.uniform(-6, 0)  # of any magnitude that six digits hold
    kinds = (chance.choice(list(inside)), chance.uniform(low, high), low + near, high - near)
    return chance.choices(kinds, weights=(3, 3, 3, 1))[0]


def _range(field: FieldInfo) -> tuple[float, float]:
    limits = {
        name: getattr(item, name)
        for item in field.metadata
        for name in ("gt", "ge", "lt", "le")
        if hasattr(item, name)
    }
    low, high = limits.get("gt", limits.get("ge")), limits.get("lt", limits.get("le"))
    return (-UNLIMITED if low is None else low), (UNLIMITED if high is None else high)
