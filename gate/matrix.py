"""The matrix file, version 1: its models, its validation, its JSON schema."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from backends import registry
from backends.base import CONCLUSIONS, Feature
from backends.option_text import Spelled
from gate import deviations, plan
from gate.deviations import Deviations
from gate.document import Document, Loc, unknown
from gate.errors import MatrixError
from gate.fixtures import (
    FileFixture,
    FixtureSpec,
    GeneratedFixture,
    InsideFolder,
    generators,
)
from gate.model import Cell
from gate.plan import Product

NAME = re.compile(r"[A-Za-z0-9_.-]+")

Part = TypeVar("Part", dict[str, Any], list[Any])


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix file without mistakes.

    Attributes:
        path: as the caller gave it; fixtures' files are relative to its folder.
        sha256: of the file's bytes.
        version: of the file's format.
        fixtures: by name, in the order of the file.
        products: the entries under `matrix`.
        include: the single cells.
        expect: what the file says about the whole plan.
        deviations: what the file's list of known deviations holds, if it names one.
        warnings: what is not taken as the file has it, sentences by `path:line:col`.
        drawn: what draws the cells again, by name; empty where a file has them.
    """

    path: Path
    sha256: str
    version: int
    fixtures: Mapping[str, FixtureSpec]
    products: tuple[Product, ...]
    include: tuple[Product, ...]
    expect: Expect
    deviations: Deviations | None = None
    warnings: Mapping[str, str] = field(default_factory=dict)
    drawn: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Annotation of text that must be one of `names()`, which is asked when needed."""

    kind: str
    names: Callable[[], Iterable[str]]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check the name after the type."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """List the names for editors."""
        return handler(schema) | {"enum": list(self.names())}

    def check(self, value: str) -> str:
        """Return `value`.

        Raises:
            PydanticCustomError: it is none of the names.
        """
        if value not in self.names():
            raise _mistake(unknown(self.kind, value, self.names()))
        return value


def _mistake(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("mistake", "{sentence}", {"sentence": sentence})


def _is_fixture_name(name: str) -> str:
    if not NAME.fullmatch(name):
        sentence = f"fixture name {name!r} is not allowed; use letters, digits, '_', '.', '-'"
        raise _mistake(sentence)
    return name


def _is_fixture(name: str, info: ValidationInfo) -> str:
    names: tuple[str, ...] = info.context or ()
    if names and name not in names:
        raise _mistake(unknown("fixture", name, names))
    return name


def _matches_fixture(glob: str, info: ValidationInfo) -> str:
    names: tuple[str, ...] = info.context or ()
    if names and not any(fnmatchcase(name, glob) for name in names):
        raise _mistake(unknown("fixture", glob, names))
    return glob


def _is_not_reference(candidate: str, info: ValidationInfo) -> str:
    if candidate == info.data.get("reference"):
        sentence = f"candidate {candidate!r} is the reference itself; name another backend"
        raise _mistake(sentence)
    return candidate


FixtureName = Annotated[
    str, AfterValidator(_is_fixture_name), Field(json_schema_extra={"pattern": f"^{NAME.pattern}$"})
]
BackendName = Annotated[str, OneOf("backend", registry.backend_names)]
Candidate = Annotated[BackendName, AfterValidator(_is_not_reference)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Expect(_Strict):
    """What the whole plan has, so that a cell cannot get lost."""

    cells: int | None = Field(default=None, description="number of cells")
    scores: int | None = Field(default=None, description="number of scores, skipped cells too")


class Skip(_Strict):
    """Cells that stay in the plan and in the reports, but do not run."""

    cells: str = Field(description="glob over cell ids")
    reason: Text = Field(description="one sentence for the reports")


class _Entry(_Strict):
    feature: Annotated[str, OneOf("feature", registry.features)]
    reference: BackendName = Field(default="cpu", description="backend whose answer is trusted")
    timeout: float = Field(
        default=0,
        ge=0,
        le=86_400,
        allow_inf_nan=False,
        description="seconds that each side of a cell may take; 0: the pictures' size decides",
    )


class ProductEntry(_Entry):
    """A product of axes; each feature has a subclass with its dialects and options."""

    candidates: list[Candidate] = Field(min_length=1, description="backends under test")
    dialects: list[str] = []
    conclusions: list[Annotated[str, OneOf("conclusion", lambda: CONCLUSIONS)]] = Field(
        default=[CONCLUSIONS[0]], min_length=1, description="rules for the end of a frame"
    )
    options: list[Any] = []
    fixtures: list[Annotated[str, AfterValidator(_matches_fixture)]] = Field(
        min_length=1, description="globs over fixture names"
    )
    exclude: list[str] = Field(default=[], description="globs over cell ids; cells to leave out")
    skip: list[Skip] = Field(default=[], description="cells that do not run, with the reason")

    def product(self, loc: Loc, line: int, names: tuple[str, ...]) -> Product:
        """Return the axes, with the fixtures among `names` that the globs match."""
        return Product(
            loc,
            line,
            self.feature,
            self.reference,
            tuple(self.candidates),
            tuple(self.dialects),
            tuple(self.conclusions),
            tuple(self.options),
            tuple(name for name in names if any(fnmatchcase(name, g) for g in self.fixtures)),
            tuple(self.exclude),
            tuple(self.skip),
            self.timeout,
        )


class CellEntry(_Entry):
    """A single cell; each feature has a subclass with its dialects and options."""

    candidate: Candidate = Field(description="backend under test")
    dialect: str = ""
    conclusion: Annotated[str, OneOf("conclusion", lambda: CONCLUSIONS)] = Field(
        default=CONCLUSIONS[0], description="rules for the end of a frame"
    )
    options: Any = None
    fixture: Annotated[str, AfterValidator(_is_fixture)] = Field(description="its name")

    def product(self, loc: Loc, line: int, _: tuple[str, ...]) -> Product:
        """Return axes of one value each."""
        return Product(
            loc,
            line,
            self.feature,
            self.reference,
            (self.candidate,),
            (self.dialect,),
            (self.conclusion,),
            (self.options,),
            (self.fixture,),
            timeout=self.timeout,
        )


class MatrixFile(_Strict):
    """What stands at the top of a matrix file; the parts are checked one by one."""

    version: int = Field(ge=1, le=1, description="of the format of matrix files")
    expect: Expect = Field(default=Expect(), description="what the whole plan has")
    fixtures: dict[FixtureName, Any] = Field(min_length=1, description="picture pairs by name")
    matrix: list[Any] = Field(default=[], min_length=1, description="products of axes")
    include: list[Any] = Field(default=[], min_length=1, description="single cells")
    deviations: InsideFolder = Field(
        default="", description="path of the list of known deviations, relative to the matrix"
    )

    @model_validator(mode="after")
    def _has_cells(self) -> MatrixFile:
        if not self.matrix and not self.include:
            message = "has no cells; add a product under 'matrix'"
            raise ValueError(message)
        return self


class _UnknownGenerator(GeneratedFixture):
    """Never valid: says what is wrong with the generator and with what all fixtures have."""

    model_config = ConfigDict(extra="allow")
    generator: Annotated[str, OneOf("generator", generators)]


def load(path: Path) -> Matrix:
    """Read and check a matrix file.

    Raises:
        MatrixError: all its mistakes, each as `path:line:col: sentence`.
    """
    document = Document(path)
    file = document.check(MatrixFile, document.value, ())
    fixtures = _fixtures(document)
    products, include = _products(document, "matrix"), _products(document, "include")
    # A product of a fixture that is wrong waits: its globs would be said to match nothing.
    complete = [
        p for p in (*products, *include) if p.fixtures and fixtures.keys() >= set(p.fixtures)
    ]
    cells, mistakes = plan.expand(complete, fixtures)
    for loc, sentence in mistakes:
        document.report(loc, sentence)
    if file and len(file.matrix) + len(file.include) == len(products) + len(include):
        for name in plan.unused((*products, *include), cells, file.fixtures):
            sentence = f"fixture {name!r} is used by no cell; list it in a product or delete it"
            document.report_key(("fixtures", name), sentence)
    if file and not document.problems:
        _compare(
            document, file.expect, Expect(cells=len(cells), scores=sum(c.scores for c in cells))
        )
    listed, problems = _deviations(document, file, cells)
    if not file or document.problems or problems:
        raise MatrixError([*document.problems, *problems])
    return Matrix(
        path,
        document.sha256,
        file.version,
        fixtures,
        products,
        include,
        expect=file.expect,
        deviations=listed,
        warnings=document.warnings,
    )


def schema() -> dict[str, Any]:
    """Return the JSON schema of matrix files, with every feature's options, for editors."""
    features = registry.features().values()
    products = [_product_of(feature) for feature in features]
    cells = [_cell_of(feature) for feature in features]
    file = create_model(
        "MatrixFile",
        __base__=MatrixFile,
        fixtures=(dict[FixtureName, FixtureSpec], MatrixFile.model_fields["fixtures"]),
        matrix=(_list_of(reduce(or_, products)), MatrixFile.model_fields["matrix"]),
        include=(_list_of(reduce(or_, cells)), MatrixFile.model_fields["include"]),
    )
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **file.model_json_schema()}


def _fixtures(document: Document) -> dict[str, FixtureSpec]:
    found: dict[str, FixtureSpec] = {}
    for name, value in _part(document, "fixtures", {}).items():
        model: type[FileFixture | GeneratedFixture] = FileFixture
        if isinstance(value, dict) and "generator" in value:
            model = generators().get(str(value["generator"]), _UnknownGenerator)
        fixture = document.check(model, value, ("fixtures", name))
        if fixture:
            found[name] = fixture
    return found


def _deviations(
    document: Document, file: MatrixFile | None, cells: tuple[Cell, ...]
) -> tuple[Deviations | None, list[str]]:
    """Return the list that the matrix names, and what is wrong inside it."""
    if file is None or not file.deviations:
        return None, []
    path = document.path.parent / file.deviations
    folder, target = (Path(os.path.realpath(place)) for place in (document.path.parent, path))
    if not target.is_relative_to(folder):
        sentence = f"leads to {target}; only files inside {folder} are read"
    elif not target.is_file():
        sentence = "is no file; put one there or correct the path"
    else:
        try:
            # The plan of a matrix with mistakes lacks cells.
            return deviations.load(path, None if document.problems else cells), []
        except MatrixError as error:
            return None, error.problems
    document.report(("deviations",), f"deviations {file.deviations!r} {sentence}")
    return None, []


def _products(document: Document, key: Literal["matrix", "include"]) -> tuple[Product, ...]:
    names = tuple(_part(document, "fixtures", {}))
    found = []
    for index, value in enumerate(_part(document, key, [])):
        name = value.get("feature") if isinstance(value, dict) else None
        feature = registry.features().get(str(name))
        loc = (key, index)
        entry = document.check(_entry_model(key, feature), value, loc, names)
        if entry:
            found.append(entry.product(loc, document.place(loc)[0], names))
            _warn(document, value, found[-1])
    return tuple(found)


def _warn(document: Document, entry: Mapping[str, Any], product: Product) -> None:
    """Warn of every option that libvmaf takes as another number than the file says."""
    given, loc = entry.get("options", {}), (*product.loc, "options")
    whole = [((*loc, i), one) for i, one in enumerate(given)] if isinstance(given, list) else []
    for (place, values), options in zip(whole or [(loc, given)], product.options, strict=True):
        for name, value in values.items():
            taken = getattr(options, name)
            if taken != value or (isinstance(value, Spelled) and value.vanished):
                document.warn((*place, name), value, f"becomes {taken:g}, as libvmaf takes it")


def _part(document: Document, key: str, empty: Part) -> Part:
    """Return a part of the file, or `empty` where it is missing or of another type."""
    part = document.value.get(key) if isinstance(document.value, dict) else None
    return part if isinstance(part, type(empty)) else empty


def _entry_model(
    key: Literal["matrix", "include"], feature: Feature | None
) -> type[ProductEntry | CellEntry]:
    if key == "matrix":
        return ProductEntry if feature is None else _product_of(feature)
    return CellEntry if feature is None else _cell_of(feature)


@cache
def _product_of(feature: Feature) -> type[ProductEntry]:
    return create_model(
        f"{feature.name} product",
        __base__=ProductEntry,
        feature=_one_of("feature", feature.name),
        dialects=(
            _list_of(_one_of(f"dialect of {feature.name}", *feature.dialects)),
            Field(
                default=[feature.dialects[0]], min_length=1, description="variants of arithmetic"
            ),
        ),
        options=(
            _list_of(feature.options),
            Field(
                default_factory=lambda: [feature.options()],
                min_length=1,
                description="option sets; by default one with all defaults",
            ),
        ),
    )


@cache
def _cell_of(feature: Feature) -> type[CellEntry]:
    return create_model(
        f"{feature.name} cell",
        __base__=CellEntry,
        feature=_one_of("feature", feature.name),
        dialect=(_one_of(f"dialect of {feature.name}", *feature.dialects), feature.dialects[0]),
        options=(feature.options, Field(default_factory=feature.options)),
    )


def _one_of(kind: str, *names: str) -> Any:  # noqa: ANN401 - a type made while running
    return Annotated[str, OneOf(kind, lambda: names)]


def _list_of(item: object) -> Any:  # noqa: ANN401 - a type made while running
    return GenericAlias(list, (item,))


def _compare(document: Document, expected: Expect, planned: Expect) -> None:
    for key in Expect.model_fields:
        said, real = getattr(expected, key), getattr(planned, key)
        if said not in {None, real}:
            sentence = f"{key} {said} is not the plan's number; the plan has {real} {key}"
            document.report(("expect", key), sentence)
