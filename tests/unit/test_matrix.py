"""Tests of the matrix file: everything that can be wrong with it, where, and in which words."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from backends import base, registry
from gate.errors import MatrixError
from gate.fixtures import FileFixture, generators
from gate.matrix import load, schema

FILE = Path("m.yaml")
ROOT = Path(__file__).parents[2]

MATRIX = """\
version: 1
fixtures:
  noise_17: {generator: noise, width: 17, height: 17, bit_depth: 8}
  noise_18:
    generator: noise
    width: 18
    height: 17
    bit_depth: 10
    frames: 2
matrix:
  - feature: float_adm
    candidates: [cuda, "opencl:pocl"]
    dialects: [rcpss-double, ieee-single]
    options: [{}, {adm_enhn_gain_limit: 1.2, debug: false}]
    fixtures: ["noise_*"]
    exclude: ["*/ieee-single/default/*"]
    skip: [{cells: "*/noise_18/cuda", reason: too slow}]
include:
  - {feature: float_adm, candidate: cuda, fixture: noise_17, options: {adm_bypass_cm: 1}}
"""

BACKENDS = ", ".join(registry.backend_names())
FEATURES = ", ".join(registry.features())
FEATURE = registry.features()["float_adm"]
OPTIONS = ", ".join(FEATURE.options.model_fields)
DIALECTS = ", ".join(FEATURE.dialects)
CONCLUSIONS = ", ".join(base.CONCLUSIONS)
PRODUCT_KEYS = (
    "feature, reference, timeout, candidates, dialects, conclusions, options, fixtures, "
    "exclude, skip"
)
CELL_KEYS = "feature, reference, timeout, candidate, dialect, conclusion, options, fixture"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def problems(text: str) -> list[str]:
    FILE.write_text(text, "utf-8")
    with pytest.raises(MatrixError) as caught:
        load(FILE)
    return caught.value.problems


def changed(old: str, new: str) -> str:
    assert MATRIX.count(old) == 1
    return MATRIX.replace(old, new)


def test_a_right_matrix_is_loaded_as_written() -> None:
    FILE.write_text(MATRIX, "utf-8")
    matrix = load(FILE)
    assert matrix.path == FILE
    assert matrix.sha256 == hashlib.sha256(MATRIX.encode()).hexdigest()
    assert matrix.version == 1
    assert list(matrix.fixtures) == ["noise_17", "noise_18"]
    assert matrix.fixtures["noise_18"].frames == 2
    (product,) = matrix.products
    assert product.line == 11
    assert product.reference == "cpu"
    assert product.candidates == ("cuda", "opencl:pocl")
    assert product.dialects == ("rcpss-double", "ieee-single")
    assert [FEATURE.options_name(options) for options in product.options] == ["default", "egl_1.2"]
    assert product.fixtures == ("noise_17", "noise_18")
    assert product.exclude == ("*/ieee-single/default/*",)
    assert [(skip.cells, skip.reason) for skip in product.skip] == [("*/noise_18/cuda", "too slow")]
    (cell,) = matrix.include
    assert (cell.line, cell.dialects, cell.fixtures) == (19, ("rcpss-double",), ("noise_17",))


def test_dialect_and_options_default_to_the_features_own() -> None:
    text = changed("    dialects: [rcpss-double, ieee-single]\n", "")
    text = text.replace("    options: [{}, {adm_enhn_gain_limit: 1.2, debug: false}]\n", "")
    FILE.write_text(text.replace('    exclude: ["*/ieee-single/default/*"]\n', ""), "utf-8")
    (product,) = load(FILE).products
    assert product.dialects == FEATURE.dialects[:1]
    assert product.options == (FEATURE.options(),)
    assert product.conclusions == ("netflix",)


def test_a_file_fixture_is_loaded_as_such() -> None:
    pinned = f"{{file: a.yuv, sha256: {'0' * 64!r}}}"
    spec = f"width: 20, height: 20, bit_depth: 8, subsampling: 4:2:0, ref: {pinned}, dist: {pinned}"
    FILE.write_text(changed("matrix:", f"  noise_real: {{frames: 3, {spec}}}\nmatrix:"), "utf-8")
    real = load(FILE).fixtures["noise_real"]
    assert isinstance(real, FileFixture)
    assert real.ref.file == "a.yuv"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("version: 1", "version: 2", "1:10: version 2 is out of range; allowed: 1"),
        ("version: 1", "version: true", "1:10: version true must be an integer"),
        ("version: 1\n", "", "1:1: key 'version' is missing; add it"),
        (
            "include:",
            "includes:",
            (
                "18:1: unknown key 'includes'; did you mean 'include'? "
                "allowed: version, expect, fixtures, matrix, include, deviations"
            ),
        ),
        (
            "  noise_18:\n",
            '  "noise_18 ":\n',
            (
                "4:3: fixture name 'noise_18 ' is not allowed; use letters, digits, '_', '.', '-'\n"
                "m.yaml:17:20: skip '*/noise_18/cuda' names no cell; correct or delete it"
            ),
        ),
        (
            "    width: 18\n",
            "    width: 0\n",
            "6:12: width 0 is out of range; allowed: 1 to 32768",
        ),
        ("    width: 18\n", "    width: 18.0\n", "6:12: width 18.0 must be an integer"),
        ("    width: 18\n", "", "5:5: key 'width' is missing; add it"),
        (
            "    frames: 2\n",
            "    frames: 0\n",
            "9:13: frames 0 is out of range; allowed: 1 to 1000000",
        ),
        (
            "    frames: 2\n",
            "    frame: 2\n",
            (
                "9:5: unknown key 'frame'; did you mean 'frames'? "
                "allowed: width, height, bit_depth, frames, generator, sha256, label"
            ),
        ),
        (
            "    generator: noise\n",
            "    generator: nois\n",
            (
                "5:16: unknown generator 'nois'; did you mean 'noise'? "
                f"allowed: {', '.join(generators())}"
            ),
        ),
        (
            "    generator: noise\n",
            "    generator: 1\n",
            "5:16: generator 1 must be text; put it in quotes",
        ),
        (
            "  - feature: float_adm",
            "  - feature: float_amd",
            f"11:14: unknown feature 'float_amd'; did you mean 'float_adm'? allowed: {FEATURES}",
        ),
        ("  - feature: float_adm", "  - feature:", "11:13: feature must be text, not null"),
        (
            "  - feature: float_adm\n",
            "  -\n",
            "12:5: key 'feature' is missing; add it",
        ),
        (
            "    fixtures:",
            "    fixture:",
            (
                "11:5: key 'fixtures' is missing; add it\n"
                "m.yaml:15:5: unknown key 'fixture'; did you mean 'fixtures'? "
                f"allowed: {PRODUCT_KEYS}"
            ),
        ),
        (
            "[cuda, ",
            "[cude, ",
            f"12:18: unknown backend 'cude'; did you mean 'cuda'? allowed: {BACKENDS}",
        ),
        ("[cuda, ", "[1, ", "12:18: candidates[0] 1 must be text; put it in quotes"),
        (
            "[cuda, ",
            "[cpu, ",
            "12:18: candidate 'cpu' is the reference itself; name another backend",
        ),
        (
            "    dialects:",
            "    reference: metal\n    dialects:",
            f"13:16: unknown backend 'metal'; allowed: {BACKENDS}",
        ),
        (
            "    dialects:",
            "    reference: cuda\n    dialects:",
            "12:18: candidate 'cuda' is the reference itself; name another backend",
        ),
        ('[cuda, "opencl:pocl"]', "[]", "12:17: candidates is empty; give at least one"),
        ("[rcpss-double, ieee-single]", "[]", "13:15: dialects is empty; give at least one"),
        (
            "[rcpss-double, ieee-single]",
            "[ieee_single, ieee-single]",
            (
                "13:16: unknown dialect of float_adm 'ieee_single'; did you mean 'ieee-single'? "
                f"allowed: {DIALECTS}"
            ),
        ),
        (
            "    options: [{}",
            "    conclusions: []\n    options: [{}",
            "14:18: conclusions is empty; give at least one",
        ),
        (
            "    options: [{}",
            "    conclusions: [vmaf]\n    options: [{}",
            f"14:19: unknown conclusion 'vmaf'; did you mean 'vmafx'? allowed: {CONCLUSIONS}",
        ),
        (
            "fixture: noise_17, ",
            "fixture: noise_17, conclusion: ieee, ",
            f"19:74: unknown conclusion 'ieee'; allowed: {CONCLUSIONS}",
        ),
        (
            "[{}, {adm_enhn_gain_limit: 1.2, debug: false}]",
            "[]",
            "14:14: options is empty; give at least one",
        ),
        ("[{}, {", "[null, {", "14:15: options[0] must be a mapping, not null"),
        (
            "adm_enhn_gain_limit: 1.2",
            "adm_noise_weight: -1",
            "14:38: adm_noise_weight -1 is out of range; allowed: 0 to 1500",
        ),
        (
            "adm_enhn_gain_limit: 1.2",
            "adm_f1s0: 10.5",
            "14:30: adm_f1s0 10.5 is out of range; allowed: -1 to 10",
        ),
        (
            "adm_enhn_gain_limit: 1.2",
            "adm_enhn_gain_limit: 1e999",
            "14:41: adm_enhn_gain_limit 1e999 must be a finite number",
        ),
        (
            "adm_enhn_gain_limit: 1.2",
            "adm_enhn_gain: 1.2",
            (
                "14:20: unknown key 'adm_enhn_gain'; did you mean 'adm_enhn_gain_limit'? "
                f"allowed: {OPTIONS}"
            ),
        ),
        ("debug: false", "debug: yes", "14:53: debug 'yes' must be true or false"),
        ("debug: false", "debug: 1", "14:53: debug 1 must be true or false"),
        (
            '["noise_*"]',
            '["noise_*", "noisy_*"]',
            (
                "15:27: unknown fixture 'noisy_*'; did you mean 'noise_18'? "
                "allowed: noise_17, noise_18"
            ),
        ),
        ('["noise_*"]', "[]", "15:15: fixtures is empty; give at least one"),
        (
            '["*/ieee-single/default/*"]',
            '["*/ieee-single/default/*", "*/zzz/*"]',
            "16:42: exclude '*/zzz/*' removes no cell; correct or delete it",
        ),
        (
            '["*/ieee-single/default/*"]',
            '["*"]',
            (
                "11:5: no cell is left, every one is excluded; delete the product\n"
                "m.yaml:17:20: skip '*/noise_18/cuda' names no cell; correct or delete it"
            ),
        ),
        (
            "*/noise_18/cuda",
            "*/noise_19/cuda",
            "17:20: skip '*/noise_19/cuda' names no cell; correct or delete it",
        ),
        ("reason: too slow", "reason: ' '", "17:47: reason is empty; write something"),
        (", reason: too slow", "", "17:12: key 'reason' is missing; add it"),
        (
            "{adm_bypass_cm: 1}",
            "{adm_bypass_cm: 2}",
            "19:87: adm_bypass_cm 2 is out of range; allowed: 0 to 1",
        ),
        (
            "fixture: noise_17",
            "fixture: noise_*",
            (
                "19:52: unknown fixture 'noise_*'; did you mean 'noise_18'? "
                "allowed: noise_17, noise_18"
            ),
        ),
        (
            "candidate: cuda",
            "candidate: cpu",
            "19:37: candidate 'cpu' is the reference itself; name another backend",
        ),
        (
            "candidate: cuda",
            "candidates: cuda",
            (
                "19:5: key 'candidate' is missing; add it\n"
                "m.yaml:19:26: unknown key 'candidates'; did you mean 'candidate'? "
                f"allowed: {CELL_KEYS}"
            ),
        ),
        (
            "  - {feature: float_adm, ",
            "  - {feature: float, ",
            f"19:15: unknown feature 'float'; did you mean 'float_adm'? allowed: {FEATURES}",
        ),
        (
            "fixture: noise_17, ",
            "fixture: noise_17, dialect: ieee, ",
            f"19:71: unknown dialect of float_adm 'ieee'; allowed: {DIALECTS}",
        ),
        (
            "{adm_bypass_cm: 1}",
            "{adm_enhn_gain_limit: 1.2}",
            (
                "19:5: cell float_adm/rcpss-double/egl_1.2/noise_17/cuda "
                "declared in line 11 and again in line 19; exclude one"
            ),
        ),
        (
            "[cuda, ",
            '["opencl:pocl", cuda, ',
            "12:39: candidates[2] repeats candidates[0] (opencl:pocl); delete one",
        ),
        (
            "    width: 18\n",
            "    width: 16\n",
            "6:12: frame 16x17 is below 17x17: float_adm has no defined result there",
        ),
        (
            "    height: 17\n",
            "    height: 16\n",
            "7:13: frame 18x16 is below 17x17: float_adm has no defined result there",
        ),
        (
            "    bit_depth: 10\n",
            "    bit_depth: 9\n",
            "8:16: bit_depth 9 is not supported; allowed: 8, 10, 12, 16",
        ),
        (
            "version: 1\n",
            "version: 1\nexpect: {cells: 14, scores: 140}\n",
            (
                "2:17: cells 14 is not the plan's number; the plan has 13 cells\n"
                "m.yaml:2:29: scores 140 is not the plan's number; the plan has 133 scores"
            ),
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, sentence: str) -> None:
    assert "\n".join(problems(changed(old, new))) == f"m.yaml:{sentence}"


@pytest.mark.parametrize("size", [17, 18])
def test_a_frame_of_the_smallest_size_or_above_is_right(size: int) -> None:
    FILE.write_text(changed("width: 17, height: 17", f"width: {size}, height: {size}"), "utf-8")
    assert load(FILE).fixtures["noise_17"].width == size


def test_right_expectations_are_accepted() -> None:
    FILE.write_text("expect: {cells: 13, scores: 133}\n" + MATRIX, "utf-8")
    assert load(FILE).expect.cells == 13


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", ["m.yaml:1:1: the file must be a mapping, not null"]),
        ("[]", ["m.yaml:1:1: the file must be a mapping, not a list"]),
        ("version: 1\nfixtures: {}", ["m.yaml:2:11: fixtures is empty; give at least one"]),
        (
            "version: 1\nfixtures:\n  n: {generator: noise, width: 17, height: 17, bit_depth: 8}\n",
            ["m.yaml:1:1: the file has no cells; add a product under 'matrix'"],
        ),
        (
            "version: 1\nfixtures: 3\nmatrix: []\ninclude: {}\n",
            [
                "m.yaml:2:11: fixtures 3 must be a mapping",
                "m.yaml:3:9: matrix is empty; give at least one",
                "m.yaml:4:10: include must be a list, not a mapping",
            ],
        ),
        (
            "version: 1\nfixtures: {n: 3}\nmatrix: [3]\ninclude: [x]\n",
            [
                "m.yaml:2:15: n 3 must be a mapping",
                "m.yaml:3:10: matrix[0] 3 must be a mapping",
                "m.yaml:4:11: include[0] 'x' must be a mapping",
            ],
        ),
    ],
)
def test_a_file_that_is_no_matrix_is_refused(text: str, sentences: list[str]) -> None:
    assert problems(text) == sentences


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(MatrixError, match=r"^m\.yaml: cannot be read: No such file or directory"):
        load(FILE)


def test_every_mistake_of_a_file_is_told_in_one_run_in_order() -> None:
    text = """\
version: 3
fixtures:
  tiny: {generator: noise, width: 16, height: 17, bit_depth: 9}
  wrong: {generator: noise, width: 17}
  tiny: {generator: noise, width: 17, height: 17, bit_depth: 8}
matrix:
  - feature: float_add
    candidates: []
    fixtures: [tinny]
  - feature: float_adm
    candidates: [cpu]
    dialects: [x87]
    options: [{debug: yes, adm_csf_mode: 10}]
    fixtures: [tiny]
    excluded: []
  - feature: float_adm
    candidates: [cuda]
    fixtures: [tiny]
    exclude: ["*/pocl"]
  - feature: float_adm
    candidates: [cuda]
    fixtures: [wrong]
    exclude: ["*/pocl"]
include:
  - {feature: float_adm, candidate: cuda, fixture: tiny}
"""
    assert problems(text) == [
        "m.yaml:1:10: version 3 is out of range; allowed: 1",
        "m.yaml:3:35: frame 16x17 is below 17x17: float_adm has no defined result there",
        "m.yaml:3:62: bit_depth 9 is not supported; allowed: 8, 10, 12, 16",
        "m.yaml:4:10: key 'bit_depth' is missing; add it",
        "m.yaml:4:10: key 'height' is missing; add it",
        "m.yaml:5:3: duplicate key 'tiny', first in line 3; delete one",
        f"m.yaml:7:14: unknown feature 'float_add'; did you mean 'float_adm'? allowed: {FEATURES}",
        "m.yaml:8:17: candidates is empty; give at least one",
        "m.yaml:9:16: unknown fixture 'tinny'; did you mean 'tiny'? allowed: tiny, wrong",
        "m.yaml:11:18: candidate 'cpu' is the reference itself; name another backend",
        f"m.yaml:12:16: unknown dialect of float_adm 'x87'; allowed: {DIALECTS}",
        "m.yaml:13:23: debug 'yes' must be true or false",
        "m.yaml:13:42: adm_csf_mode 10 is out of range; allowed: 0 to 9",
        f"m.yaml:15:5: unknown key 'excluded'; did you mean 'exclude'? allowed: {PRODUCT_KEYS}",
        "m.yaml:19:15: exclude '*/pocl' removes no cell; correct or delete it",
        (
            "m.yaml:25:5: cell float_adm/rcpss-double/default/tiny/cuda "
            "declared in line 16 and again in line 25; exclude one"
        ),
    ]


def test_the_schema_tells_ranges_and_descriptions_of_options() -> None:
    definitions = schema()["$defs"]
    option = definitions["FloatAdmOptions"]["properties"]["adm_noise_weight"]
    assert (option["minimum"], option["maximum"]) == (0, 1500)
    assert option["description"] == "noise floor of den and num"
    assert definitions["FloatAdmOptions"]["additionalProperties"] is False


def test_the_schema_has_every_feature_backend_dialect_and_fixture_model() -> None:
    whole = schema()
    product = whole["$defs"]["float_adm_product"]["properties"]
    assert product["feature"]["enum"] == ["float_adm"]
    assert product["candidates"]["items"]["enum"] == list(registry.backend_names())
    assert product["dialects"]["items"]["enum"] == list(FEATURE.dialects)
    assert product["options"]["items"] == {"$ref": "#/$defs/FloatAdmOptions"}
    models: list[type[BaseModel]] = [FileFixture, *generators().values()]
    assert {model.__name__ for model in models} <= whole["$defs"].keys()


def test_the_committed_schema_is_that_of_the_models() -> None:
    committed = (ROOT / "matrices" / "schema.json").read_text("utf-8")
    assert json.loads(committed) == schema(), "write it: parity-gate schema > matrices/schema.json"
