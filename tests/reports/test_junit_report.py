from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, combinations, product

import pytest
from junit_structure import check_structure

from gate.model import Cell, ExitCode, Result, Run, Shard, Status
from reports import junit

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]

MEGABYTE = 1_000_000


def _suite(run: Run) -> ET.Element:
    document = junit.render(run)
    root = ET.fromstring(document.encode())  # noqa: S314 - our own document
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    return suite


def _only(case: ET.Element) -> ET.Element:
    (child,) = case
    return child


def _cases(run: Run) -> dict[str, ET.Element]:
    return {case.attrib["name"]: case for case in _suite(run).iter("testcase")}


def test_document_has_the_structure_that_consumers_read(build_run: BuildRun, run: Run) -> None:
    shard = Shard(1, 2, (0, 1, 2, 3, 4), selected=9)
    whole = replace(run, missing=("cuda: no driver",), notes=("note",), shard=shard, rerun_of="abc")
    for limit in (junit.LIMIT, 10_000, 5_000, 3_500):
        for part in (whole, build_run()):
            check_structure(ET.fromstring(junit.render(part, limit)))  # noqa: S314 - our own document


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<system-out>", "<system-out kind='x'>"),
        ("classname=", "class="),
        ("<properties>", "<properties>text"),
        ('tests="6"', 'tests="six"'),
        ("<failure type=", "<failure kind="),
    ],
)
def test_check_of_the_structure_sees_another_structure(old: str, new: str, run: Run) -> None:
    document = junit.render(run)
    assert old in document
    with pytest.raises(AssertionError):
        check_structure(ET.fromstring(document.replace(old, new)))  # noqa: S314 - our own document


def test_each_status_has_its_own_element(run: Run) -> None:
    elements = [_only(case).tag for case in _cases(run).values()]
    assert elements == ["system-out", "system-out", "failure", "failure", "error", "skipped"]


def test_totals_count_each_status_once(run: Run) -> None:
    suite = _suite(run)
    totals = {key: suite.attrib[key] for key in ("tests", "failures", "errors", "skipped")}
    assert totals == {"tests": "6", "failures": "2", "errors": "1", "skipped": "1"}


def test_testcase_points_to_the_matrix_line_and_holds_the_seconds(
    build_run: BuildRun, failed: Result
) -> None:
    (case,) = _cases(build_run(failed)).values()
    assert case.attrib == {
        "name": "float_adm/rcpss-double/egl_1.2/bbb_576x324_420p8/cuda",
        "classname": "float_adm.rcpss-double.egl_1.2.bbb_576x324_420p8",
        "file": "matrices/pr.yaml",
        "line": "14",
        "time": "2.500000",
    }


def test_names_do_not_depend_on_the_outcome(build_run: BuildRun, failed: Result) -> None:
    def names(result: Result, **others: object) -> list[tuple[str, str]]:
        cases = _suite(build_run(result, **others)).iter("testcase")
        return [(case.attrib["classname"], case.attrib["name"]) for case in cases]

    later = replace(failed, status=Status.ERROR, reason="other", seconds=99.0, comparison=None)
    assert names(failed) == names(later, started="2031-01-01T00:00:00+00:00", seconds=1.0)


def test_missing_backend_has_a_name_without_its_reason(build_run: BuildRun, passed: Result) -> None:
    case = _cases(build_run(passed, missing=("opencl:pocl: error 0x7f",)))[
        "required backend opencl:pocl"
    ]
    assert case.attrib["classname"] == "gate"
    assert _only(case).tag == "error"
    assert "opencl:pocl: error 0x7f" in (_only(case).text or "")


def test_failure_body_repeats_everything_essential(build_run: BuildRun, failed: Result) -> None:
    (case,) = _cases(build_run(failed)).values()
    failure = _only(case)
    assert failure.attrib["message"] == failed.reason
    assert (failure.text or "").splitlines() == [
        "FAIL float_adm/rcpss-double/egl_1.2/bbb_576x324_420p8/cuda",
        "frame 3 adm2: 0x1.de3b6cp-1 expected 0x1.de3b6ep-1 (-1 ulp32), 4 of 84 scores",
        (
            "4 of 84 scores differ, in 2 of 12 frames, by at most 6.0e-08; "
            "in the reference: 0 NaN, 0 UNSET"
        ),
        "UNSET in the reference: adm3 in 1 of 2 frames",
        f"repeat: parity-gate run matrices/pr.yaml --cell {failed.cell.id}",
        (
            "frame 3 adm2: candidate 0x1.de3b6cp-1 = 0.9340471029281616, "
            "reference 0x1.de3b6ep-1 = 0.9340471625328064, -1 ulp32"
        ),
        "frame 3 aim: candidate -0x0p+0 = -0.0, reference 0x0p+0 = 0.0, -1 ulp32",
        "frame 7 adm3: candidate nan = nan, reference 0x1p-1 = 0.5, no distance",
        "frame 7 adm_scale0: candidate inf = inf, reference UNSET = UNSET, no distance",
    ]


def test_known_deviation_passes_and_says_what_differs(build_run: BuildRun, known: Result) -> None:
    suite = _suite(build_run(known))
    (case,) = suite.iter("testcase")
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("0", "0")
    assert (_only(case).tag, (_only(case).text or "").splitlines()[:3]) == (
        "system-out",
        [
            f"KNOWN {known.cell.id}",
            known.reason,
            (
                "2 of 84 scores differ, in 1 of 12 frames, by at most 6.0e-08; "
                "in the reference: 0 NaN, 0 UNSET"
            ),
        ],
    )
    properties = {p.attrib["name"]: p.attrib["value"] for p in suite.iter("property")}
    told = f"2 of 84 scores differ, in 1 of 12 frames, by at most 6.0e-08: {known.reason}"
    assert properties[f"known {known.cell.id}"] == told


def test_unexpected_agreement_is_a_failure(build_run: BuildRun, agreeing: Result) -> None:
    (case,) = _cases(build_run(agreeing)).values()
    assert (_only(case).tag, _only(case).attrib["message"]) == ("failure", agreeing.reason)
    assert (_only(case).text or "").splitlines()[1:3] == [
        agreeing.reason,
        "0 of 84 scores differ; in the reference: 0 NaN, 0 UNSET",
    ]


def test_operands_are_listed_and_all_of_them_counted(build_run: BuildRun, corpus: Result) -> None:
    (case,) = _cases(build_run(corpus)).values()
    sentence = "operand 23910 (-11037, -15188, -12400, -16452) flag: 0 expected 1"
    assert _only(case).attrib["message"] == f"{sentence}, 23000 of 3000000 scores"
    assert (_only(case).text or "").splitlines()[2:] == [
        "23000 of 3000000 scores differ; in the reference: 0 NaN, 0 UNSET",
        f"repeat: parity-gate run matrices/pr.yaml --cell {corpus.cell.id}",
        sentence,
        f"operand 40000 (1, -2, 3, {2**63 - 1}) flag: 1 expected 0",
        "[... 22998 more scores cut ...]",
    ]


def test_hostile_text_stays_text(build_run: BuildRun, broken: Result) -> None:
    (case,) = _cases(build_run(broken)).values()
    text = _only(case).text or ""
    assert text.endswith(
        "`x` | y </failure></error> ]]> <script>alert(1)</script> & \\x00 \\x1b[31mred"
        "\\x9b2J \\ufffe \\udc80\n```\n## not a heading"
    )


def test_hostile_names_and_facts_stay_text(build_run: BuildRun, build_cell: BuildCell) -> None:
    result = Result(build_cell('a"<&\x00'), Status.PASS)
    run = build_run(result, matrix="\udc80<.yaml", environment={"a\x1b": {"b<": "c\x00" * 9}})
    (case,) = _cases(run).values()
    assert case.attrib["name"] == r'float_adm/rcpss-double/egl_1.2/a"<&\x00/cuda'
    assert case.attrib["file"] == r"\udc80<.yaml"
    properties = {p.attrib["name"]: p.attrib["value"] for p in _suite(run).iter("property")}
    assert properties[r"a\x1b: b<"] == r"c\x00" * 9


def test_environment_is_in_the_properties(run: Run) -> None:
    properties = {p.attrib["name"]: p.attrib["value"] for p in _suite(run).iter("property")}
    assert properties["host: C library"] == "glibc 2.36"
    assert properties["candidate cuda: device"] == "NVIDIA H200"
    assert properties["verdict"] == run.verdict


def test_properties_say_which_run_it_is(build_run: BuildRun, passed: Result) -> None:
    def told(run: Run) -> dict[str, str]:
        return {p.attrib["name"]: p.attrib["value"] for p in _suite(run).iter("property")}

    shard = Shard(2, 8, (4,), selected=31)
    properties = told(build_run(passed, shard=shard, rerun_of="abc"))
    assert properties["run"] == "0123456789abcdef"
    assert properties["shard"] == "2 of 8, 1 of 31 selected cells"
    assert properties["repeats cells of run"] == "abc"
    assert not {"shard", "repeats cells of run", "cut"} & told(build_run(passed)).keys()


def test_a_property_repeats_all_red_cells(
    build_run: BuildRun, run: Run, passed: Result, skipped: Result
) -> None:
    document = junit.render(run)
    told = '<property name="all red cells again" value="parity-gate rerun report.json --failed" />'
    assert document.count(told) == document.count(" rerun ") == 1
    assert " rerun " not in junit.render(build_run(passed, skipped))


def test_notes_are_in_the_properties_under_names_that_stay(build_run: BuildRun) -> None:
    suite = _suite(build_run(notes=("table of <another>", "fallback\x1b")))
    properties = {p.attrib["name"]: p.attrib["value"] for p in suite.iter("property")}
    assert properties["note 1"] == "table of <another>"
    assert properties["note 2"] == r"fallback\x1b"


def test_passed_cell_names_the_unset_scores_of_its_own_reference(
    build_run: BuildRun, passed: Result, build_cell: BuildCell
) -> None:
    cells = [
        build_cell(),
        build_cell(conclusion="vmafx"),
        build_cell(dialect="ieee-single"),
        build_cell("other"),
        build_cell(options_name="default"),
        build_cell(reference="libvmaf", candidate="cpu"),
    ]
    run = build_run(*(replace(passed, cell=cell) for cell in cells))
    (reference,) = run.references
    frames = ((None, 1.0, 2.0), (None, 1.0, None))
    others = replace(reference, reference="libvmaf", names=("a", "b", "c"), frames=frames)
    cases = _cases(replace(run, references=(reference, others))).values()
    lines = [
        [line for line in (_only(case).text or "").splitlines() if line.startswith("UNSET")]
        for case in cases
    ]
    assert lines == [
        ["UNSET in the reference: adm3 in 1 of 2 frames"],
        *[[]] * 4,
        [
            "UNSET in the reference: a in 2 of 2 frames",
            "UNSET in the reference: c in 1 of 2 frames",
        ],
    ]


def test_a_conclusion_is_part_of_both_names(build_run: BuildRun, passed: Result) -> None:
    cell = replace(passed.cell, conclusion="vmafx")
    (case,) = _cases(build_run(replace(passed, cell=cell))).values()
    assert case.attrib["name"] == "float_adm/rcpss-double+vmafx/egl_1.2/noise_17x17_420p8/cuda"
    assert case.attrib["classname"] == "float_adm.rcpss-double+vmafx.egl_1.2.noise_17x17_420p8"


def test_skip_says_its_reason(build_run: BuildRun, passed: Result, skipped: Result) -> None:
    case = _cases(build_run(passed, skipped))[skipped.cell.id]
    assert _only(case).attrib["message"] == "opencl:intel: no such platform"
    assert "opencl:intel: no such platform" in (_only(case).text or "")


@pytest.mark.parametrize(
    ("status", "tag"),
    [
        (Status.FAIL, "failure"),
        (Status.NONDETERMINISTIC, "failure"),
        (Status.ERROR, "error"),
        (Status.SKIP, "skipped"),
    ],
)
def test_cell_without_any_text_does_not_look_passed(
    status: Status, tag: str, build_run: BuildRun, build_cell: BuildCell
) -> None:
    case = _cases(build_run(Result(build_cell(), status)))[build_cell().id]
    assert _only(case).tag == tag


SHARDS = (Shard(8, 8, (), selected=7), Shard(8, 8, (), selected=0))


def test_document_is_red_exactly_where_the_exit_code_is(build_run: BuildRun, run: Run) -> None:
    subsets = chain.from_iterable(combinations(run.results, n) for n in range(7))
    for results in subsets:
        for missing in ((), ("cuda: no driver",)):
            for interrupted, shard in product((False, True), (None, *SHARDS)):
                stopped = {"missing": missing, "interrupted": interrupted, "shard": shard}
                part = build_run(*results, **stopped)
                suite = _suite(part)
                red = int(suite.attrib["errors"]) + int(suite.attrib["failures"])
                assert (red > 0) == (part.exit_code is not ExitCode.OK), part.verdict


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (junit.MISMATCHES - 1, None),
        (junit.MISMATCHES, None),
        (junit.MISMATCHES + 1, "[... 1 more score cut ...]"),
    ],
)
def test_long_listing_says_how_much_is_cut(
    number: int, told: str | None, build_run: BuildRun, failed: Result
) -> None:
    assert failed.comparison is not None
    mismatches = tuple(replace(failed.comparison.mismatches[0], frame=i) for i in range(number))
    comparison = replace(failed.comparison, different=number, mismatches=mismatches)
    many = replace(failed, comparison=comparison)
    (case,) = _cases(build_run(many)).values()
    lines = (_only(case).text or "").splitlines()
    listed = [line for line in lines if line.startswith("frame ") and "candidate" in line]
    assert len(listed) == min(number, junit.MISMATCHES)
    assert [line for line in lines if "cut" in line] == ([told] if told else [])


def test_document_with_huge_details_stays_below_30_megabytes(
    build_run: BuildRun, broken: Result
) -> None:
    huge = replace(broken, detail='"' * 200_000, reason="<" * 50_000)
    cells = (replace(huge.cell, fixture=f"f{number}") for number in range(400))
    document = junit.render(build_run(*(replace(huge, cell=cell) for cell in cells)))
    assert len(document.encode()) < 30 * MEGABYTE
    assert document.count("<error ") == 400
    assert document.count("characters cut") >= 400
