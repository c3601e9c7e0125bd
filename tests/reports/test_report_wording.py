from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from gate.model import (
    UNFINISHED,
    Cell,
    Result,
    Run,
    Shard,
    Status,
    failure_sentence,
    mismatch_sentence,
)
from reports import wording

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]


def test_failure_sentence_has_the_form_of_the_design(failed: Result) -> None:
    expected = "frame 3 adm2: 0x1.de3b6cp-1 expected 0x1.de3b6ep-1 (-1 ulp32), 4 of 84 scores"
    assert failure_sentence(failed) == expected


def test_operand_stands_in_place_of_a_frame(corpus: Result) -> None:
    sentence = "operand 23910 (-11037, -15188, -12400, -16452) flag: 0 expected 1"
    assert failure_sentence(corpus) == f"{sentence}, 23000 of 3000000 scores"


def test_operand_whose_flag_is_no_integer_is_told_exactly(corpus: Result) -> None:
    assert corpus.comparison is not None
    first = corpus.comparison.mismatches[0]
    told = [
        mismatch_sentence(replace(first, candidate=value)).partition("flag: ")[2]
        for value in (0.5, -0.0, math.nan, None)
    ]
    assert told == [f"{value} expected 1" for value in ("0.5", "-0", "nan", "UNSET")]


def test_failure_without_a_mismatch_says_its_reason(failed: Result) -> None:
    bare = replace(failed, comparison=None, reason="the repeats differ")
    assert failure_sentence(bare) == "the repeats differ"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tab\tand\nline", "tab\tand\nline"),
        ("a\r\nb\rc", "a\nb\\rc"),
        ("\x00\x1b[31m\x7f\x9b", r"\x00\x1b[31m\x7f\x9b"),
        ("\ufffe\udc80\u202e\U0001fffe", r"\ufffe\udc80\u202e\U0001fffe"),
        ("größer ≥ 😀", "größer ≥ 😀"),
    ],
)
def test_control_characters_are_spelled_and_the_rest_is_kept(text: str, shown: str) -> None:
    assert wording.printable(text) == shown


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (29, "x" * 29),
        (30, "x" * 30),
        (31, "x" * 20 + "\n[... 1 character cut ...]\n" + "x" * 10),
    ],
)
def test_cut_keeps_the_limit_and_tells_the_rest(length: int, shown: str) -> None:
    assert wording.cut("x" * length, 30) == shown


def test_cut_keeps_the_last_line_of_a_traceback() -> None:
    assert wording.cut("start" + "-" * 1000 + "ValueError: 9", 60).endswith("ValueError: 9")


def test_every_red_exit_code_without_a_red_cell_has_a_problem(
    build_run: BuildRun, passed: Result, skipped: Result
) -> None:
    missing = build_run(passed, missing=("opencl:nvidia: no driver",))
    assert [p.name for p in wording.problems(missing)] == ["required backend opencl:nvidia"]
    assert [p.name for p in wording.problems(build_run())] == ["no cells"]
    assert [p.name for p in wording.problems(build_run(skipped))] == ["all skipped"]
    interrupted = build_run(passed, interrupted=True)
    assert [p.name for p in wording.problems(interrupted)] == ["interrupted"]
    assert wording.problems(build_run(passed, skipped)) == []


def test_interrupted_run_says_how_many_cells_did_not_finish(
    build_run: BuildRun, passed: Result, broken: Result
) -> None:
    late = Result(passed.cell, Status.ERROR, UNFINISHED)
    for results, told in (
        ((late,), "1 cell did not finish, listed as ERROR"),
        ((late, late), "2 cells did not finish, listed as ERROR"),
        ((), "every cell had finished"),
    ):
        (problem,) = wording.problems(build_run(passed, broken, *results, interrupted=True))
        assert problem.sentence == f"the run was interrupted; {told}"


@pytest.mark.parametrize("status", list(Status))
def test_red_cells_and_no_others_have_a_command(
    status: Status, build_run: BuildRun, build_cell: BuildCell, passed: Result
) -> None:
    told = wording.rerun_command(build_run(passed, Result(build_cell(), status)))
    green = status in (Status.PASS, Status.KNOWN, Status.SKIP)
    assert told == ("" if green else "parity-gate rerun report.json --failed")


@pytest.mark.parametrize(
    ("matrix", "told"),
    [
        ("pr.yaml", ""),
        ("./pr.yaml", ""),
        ("matrices/pr.yaml", ""),
        ("list of mine", " --matrix 'list of mine'"),
        ("pr.YAML", " --matrix pr.YAML"),
        ("pr.yml", " --matrix pr.yml"),
        ("../pr.yaml", " --matrix ../pr.yaml"),
        ("matrices/mine/pr.yaml", " --matrix matrices/mine/pr.yaml"),
        ("/a/matrices/pr.yaml", " --matrix /a/matrices/pr.yaml"),
        ("out/$(x).yaml", " --matrix 'out/$(x).yaml'"),
    ],
)
def test_a_matrix_that_a_rerun_does_not_find_is_named(
    matrix: str, told: str, build_run: BuildRun, failed: Result
) -> None:
    command = wording.rerun_command(build_run(failed, matrix=matrix))
    assert command == f"parity-gate rerun report.json --failed{told}"


@pytest.mark.parametrize(("matrix", "fact"), [("fuzz --seed 7", "seed"), ("angle", "full")])
def test_what_has_no_file_names_none(
    matrix: str, fact: str, build_run: BuildRun, failed: Result
) -> None:
    run = build_run(failed, matrix=matrix, environment={"matrix": {fact: "x"}})
    assert wording.rerun_command(run) == "parity-gate rerun report.json --failed"


def test_a_replayed_table_is_named(build_run: BuildRun, failed: Result) -> None:
    run = build_run(failed, matrix="pr.yaml", rcp_table="my t.json")
    assert wording.rerun_command(run).endswith(" --failed --rcp-table 'my t.json'")


def test_empty_shard_is_no_problem_unless_the_selection_is_empty(
    build_run: BuildRun, skipped: Result
) -> None:
    assert wording.problems(build_run(shard=Shard(8, 8, (), selected=7))) == []
    (problem,) = wording.problems(build_run(shard=Shard(8, 8, (), selected=0)))
    assert problem.name == "no cells"
    (problem,) = wording.problems(build_run(skipped, shard=Shard(7, 8, (6,), selected=7)))
    assert problem.name == "all skipped"


def test_cells_that_did_not_finish_are_no_errors_with_another_reason(
    build_run: BuildRun, unfinished: Result, broken: Result, skipped: Result
) -> None:
    run = build_run(unfinished, broken, replace(skipped, reason=UNFINISHED))
    assert wording.unfinished(run) == [unfinished]
    assert wording.errors(run) == [broken]


def test_one_differing_score_has_no_plural(failed: Result) -> None:
    assert failed.comparison is not None
    assert (
        wording.differing(failed) == "4 of 84 scores differ, in 2 of 12 frames, by at most 6.0e-08"
    )
    first = failed.comparison.mismatches[:1]
    one = replace(failed.comparison, scores=1, different=1, mismatches=first)
    single = replace(failed, cell=replace(failed.cell, frames=1), comparison=one)
    assert wording.differing(single) == "1 of 1 score differs, in 1 of 1 frame, by at most 6.0e-08"


def test_nothing_that_differs_is_in_no_frame(passed: Result) -> None:
    assert wording.differing(passed) == "0 of 84 scores differ"


def test_operands_of_a_corpus_are_no_frames(corpus: Result) -> None:
    assert wording.differing(corpus) == "23000 of 3000000 scores differ"


def test_empty_selection_names_the_globs_and_what_to_do(build_run: BuildRun) -> None:
    (problem,) = wording.problems(build_run(selection=("*/cuda9",), planned=150))
    assert problem.sentence == (
        "no cell of matrices/pr.yaml was run: --cell */cuda9 selects 0 of its 150 cells; "
        "`parity-gate list` shows the ids"
    )


def test_shared_id_keeps_what_the_cells_have_in_common(build_cell: BuildCell) -> None:
    cells = [build_cell("a/slash"), build_cell("other", dialect="ieee-double")]
    results = [Result(cell, Status.SKIP, "why") for cell in cells]
    assert wording.shared_id(results) == "float_adm/*/egl_1.2/*/cuda"
    assert wording.shared_id(results[:1]) == cells[0].id


def test_reasons_are_shared_only_with_the_same_detail(broken: Result) -> None:
    other = replace(broken, detail="another log")
    assert wording.by_reason([broken, other, broken]) == [[broken, broken], [other]]


AXES = {
    "dialect": ("rcpss-double", "ieee-double"),
    "options_name": ("default", "egl_1"),
    "candidate": ("cuda", "opencl:pocl"),
    "fixture": ("f0", "f1"),
}


def _grouped(
    build_run: BuildRun, build_cell: BuildCell, red: Callable[[Cell], bool]
) -> list[tuple[int, str]]:
    cells = [build_cell(**dict(zip(AXES, names, strict=True))) for names in product(*AXES.values())]
    results = [Result(cell, Status.FAIL if red(cell) else Status.PASS) for cell in cells]
    groups = wording.by_guilty_axes(build_run(*results))
    return [(len(group), wording.shared_id(group)) for group in groups]


@pytest.mark.parametrize(
    ("red", "groups"),
    [
        (lambda _: False, []),
        (lambda _: True, [(16, "float_adm/*/*/*/*")]),
        (lambda c: c.dialect == "ieee-double", [(8, "float_adm/ieee-double/*/*/*")]),
        (lambda c: c.options_name == "egl_1", [(8, "float_adm/*/egl_1/*/*")]),
        (lambda c: c.candidate == "cuda", [(8, "float_adm/*/*/*/cuda")]),
        (lambda c: c.fixture == "f1", [(8, "float_adm/*/*/f1/*")]),
        (
            lambda c: (c.dialect, c.candidate) == ("ieee-double", "cuda"),
            [(4, "float_adm/ieee-double/*/*/cuda")],
        ),
        (
            lambda c: (c.dialect, c.options_name, c.candidate) == ("ieee-double", "egl_1", "cuda"),
            [(2, "float_adm/ieee-double/egl_1/*/cuda")],
        ),
        (
            lambda c: c.dialect == "ieee-double" or c.options_name == "egl_1",
            [(8, "float_adm/ieee-double/*/*/*"), (4, "float_adm/rcpss-double/egl_1/*/*")],
        ),
    ],
)
def test_group_spans_an_axis_only_where_no_value_of_it_is_green(
    red: Callable[[Cell], bool],
    groups: list[tuple[int, str]],
    build_run: BuildRun,
    build_cell: BuildCell,
) -> None:
    assert _grouped(build_run, build_cell, red) == groups


@pytest.mark.parametrize("status", [Status.SKIP, Status.ERROR])
def test_cells_that_were_not_compared_keep_no_groups_apart(
    status: Status, build_run: BuildRun, build_cell: BuildCell
) -> None:
    cells = {name: build_cell(options_name=name) for name in ("a", "b", "c")}
    statuses = {"a": Status.FAIL, "b": Status.FAIL, "c": status}
    results = [Result(cells[name], status) for name, status in statuses.items()]
    (group,) = wording.by_guilty_axes(build_run(*results))
    assert wording.shared_id(group) == "float_adm/rcpss-double/*/bbb_576x324_420p8/cuda"


def test_known_deviation_keeps_groups_apart_like_a_pass(
    build_run: BuildRun, build_cell: BuildCell
) -> None:
    statuses = {"a": Status.FAIL, "b": Status.FAIL, "c": Status.KNOWN}
    results = [Result(build_cell(options_name=name), s) for name, s in statuses.items()]
    groups = wording.by_guilty_axes(build_run(*results))
    assert [[r.cell.options_name for r in group] for group in groups] == [["a"], ["b"]]


def test_groups_do_not_mix_features(build_run: BuildRun, build_cell: BuildCell) -> None:
    cells = [build_cell(), build_cell(feature="integer_adm")]
    groups = wording.by_guilty_axes(build_run(*(Result(cell, Status.FAIL) for cell in cells)))
    assert [wording.shared_id(group) for group in groups] == [cell.id for cell in cells]


def test_largest_group_comes_first(build_run: BuildRun, build_cell: BuildCell) -> None:
    names = [("a", "f0"), ("b", "f0"), ("b", "f1")]
    red = [Result(build_cell(f, options_name=o), Status.FAIL) for o, f in names]
    green = Result(build_cell(options_name="c"), Status.PASS)
    groups = wording.by_guilty_axes(build_run(*red, green))
    assert [len(group) for group in groups] == [2, 1]


def test_unset_scores_are_said_once_for_all_to_which_they_apply(build_run: BuildRun) -> None:
    run = build_run()
    (reference,) = run.references
    references = [
        replace(reference, fixture=fixture, dialect=dialect)
        for fixture in ("f0", "f1")
        for dialect in ("rcpss-double", "ieee-double")
    ]
    references += [
        replace(reference, fixture="f2", conclusion="vmafx"),
        replace(reference, fixture="f0", reference="libvmaf"),  # is already said
        replace(reference, fixture="f3", frames=((None, 0.0, None), (None, 0.0, 1.0))),
    ]
    found = wording.unset_scores(replace(run, references=tuple(references)))
    assert [(u.scores, u.frames, u.arithmetics, u.fixtures) for u in found] == [
        (("adm3",), 1, ("rcpss-double", "ieee-double"), ("f0", "f1")),
        (("adm3",), 1, ("rcpss-double+vmafx",), ("f2",)),
        (("adm2",), 2, ("rcpss-double",), ("f3",)),
        (("adm3",), 1, ("rcpss-double",), ("f3",)),
    ]
    assert found[2].sentence == "adm2 in 2 of 2 frames"


def test_scores_that_are_all_set_are_not_said(build_run: BuildRun) -> None:
    run = build_run()
    (reference,) = run.references
    whole = replace(reference, frames=((math.nan, 0.0, -0.0),))
    assert wording.unset_scores(replace(run, references=(whole,))) == []


def test_a_conclusion_other_than_the_default_stays_apart(build_cell: BuildCell) -> None:
    cells = [build_cell(conclusion=name) for name in ("netflix", "vmafx")]
    results = [Result(cell, Status.SKIP, "why") for cell in cells]
    assert wording.shared_id(results) == "float_adm/*/egl_1.2/bbb_576x324_420p8/cuda"
    assert wording.shared_id(results[1:]).startswith("float_adm/rcpss-double+vmafx/")


def test_reference_time_is_counted_once_for_all_candidates(
    build_run: BuildRun, build_cell: BuildCell
) -> None:
    cells = (build_cell(), build_cell(candidate="opencl:pocl"), build_cell("another"))
    results = (Result(cell, Status.PASS, reference_seconds=0.5) for cell in cells)
    assert wording.reference_seconds(build_run(*results)) == {"cpu": 1.0}
