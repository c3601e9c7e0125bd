from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from gate.model import Cell, Result, Run, Shard, Status
from reports import markdown
from reports.marks import look

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]

VOID = {"br", "hr"}


class Page(HTMLParser):
    """What a browser makes of a report: the tags, rows of cells, and that tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs or tag in {"code", "th", "td"}, (tag, attrs)
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"th", "td"}:
            self.rows[-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"th", "td"} & set(self._open):
            self.rows[-1][-1] += data


def test_first_line_is_the_verdict(run: Run) -> None:
    first = markdown.render(run).splitlines()[0]
    assert first == f"## ❌ {run.verdict}"


def test_verdict_mark_is_green_for_a_passed_run_only(
    build_run: BuildRun,
    passed: Result,
    known: Result,
    failed: Result,
    broken: Result,
    skipped: Result,
) -> None:
    def mark(*results: Result, **others: object) -> str:
        return markdown.render(build_run(*results, **others)).split()[1]

    assert mark(passed, skipped) == "✅"
    assert mark(known, skipped) == "✅"
    assert mark(known, failed) == "❌"
    assert mark(passed, failed) == "❌"
    assert mark(passed, broken) == "💥"
    assert mark(skipped) == "💥"
    assert mark() == "💥"
    assert mark(passed, missing=("cuda: no driver",)) == "💥"
    assert mark(passed, interrupted=True) == "💥"


def test_table_has_a_mark_for_every_cell(build_run: BuildRun, build_cell: BuildCell) -> None:
    marks = {
        ("a", "default"): Status.PASS,
        ("b", "default"): Status.FAIL,
        ("a", "egl_1"): Status.ERROR,
    }
    results = [
        Result(build_cell(fixture, options_name=options), status)
        for (fixture, options), status in marks.items()
    ]
    rows = Page(markdown.render(build_run(*results))).rows
    assert rows[:3] == [
        ["arithmetic", "options", "a", "b"],
        ["rcpss-double", "default", "✅", "❌"],
        ["rcpss-double", "egl_1", "💥", ""],
    ]


def test_longer_axis_goes_down(build_run: BuildRun, build_cell: BuildCell) -> None:
    results = [Result(build_cell(name), Status.PASS) for name in ("a", "b", "c")]
    rows = Page(markdown.render(build_run(*results))).rows
    assert rows[:2] == [["arithmetic", "fixture", "egl_1.2"], ["rcpss-double", "a", "✅"]]


@pytest.mark.parametrize(("columns", "shown"), [(60, True), (61, False)])
def test_a_table_that_nobody_can_read_is_left_out_with_a_sentence(
    build_run: BuildRun, build_cell: BuildCell, columns: int, *, shown: bool
) -> None:
    cells = [build_cell(f"f{n}", options_name=f"o{n}") for n in range(columns)]
    text = markdown.render(build_run(*(Result(cell, Status.PASS) for cell in cells)))
    assert any("f0" in row for row in Page(text).rows) is shown
    assert ("the table is too large for this report" in text) is not shown


def test_each_candidate_has_its_table(build_run: BuildRun, build_cell: BuildCell) -> None:
    names = ("cuda", "opencl:pocl")
    results = [Result(build_cell(candidate=name), Status.PASS) for name in names]
    text = markdown.render(build_run(*results))
    assert "<strong>float_adm on cuda</strong> against cpu" in text
    assert "<strong>float_adm on opencl:pocl</strong> against cpu" in text


def test_skipped_candidate_is_one_line_with_its_reason(
    build_run: BuildRun, passed: Result, skipped: Result
) -> None:
    text = markdown.render(build_run(passed, skipped))
    assert "<strong>float_adm on opencl:intel</strong>: ⏭ all 1 cell skipped, reasons below" in text
    assert f"⏭ <code>{skipped.cell.id}</code>: opencl:intel: no such platform" in text


def test_failure_shows_values_counts_and_the_command(build_run: BuildRun, failed: Result) -> None:
    text = markdown.render(build_run(failed))
    assert "\n4 of 84 scores differ, in 2 of 12 frames, by at most 6.0e-08.\n" in text
    assert f"```sh\nparity-gate run matrices/pr.yaml --cell {failed.cell.id}\n```\n" in text
    rows = Page(text).rows
    start = rows.index(
        [
            "frame",
            "score",
            "reference",
            "candidate",
            "reference, decimal",
            "candidate, decimal",
            "steps apart",
        ]
    )
    assert rows[start + 1 : start + 5] == [
        [
            "3",
            "adm2",
            "0x1.de3b6ep-1",
            "0x1.de3b6cp-1",
            "0.9340471625328064",
            "0.9340471029281616",
            "-1 ulp32",
        ],
        ["3", "aim", "0x0p+0", "-0x0p+0", "0.0", "-0.0", "-1 ulp32"],
        ["7", "adm3", "0x1p-1", "nan", "0.5", "nan", "no distance"],
        ["7", "adm_scale0", "UNSET", "inf", "UNSET", "inf", "no distance"],
    ]


def test_all_red_cells_have_one_command_above_the_failures(
    run: Run, build_run: BuildRun, broken: Result, passed: Result, skipped: Result
) -> None:
    told = "All red cells again, from the run's report.json:\n\n```sh\n"
    told += "parity-gate rerun report.json --failed\n```\n\n"
    text = markdown.render(run)
    assert text.count(told) == text.count(" rerun ") == 1
    assert f"{told}### Failures\n" in text
    assert f"{told}### Errors\n" in markdown.render(build_run(passed, broken))
    assert "rerun" not in markdown.render(build_run(passed, skipped))


def test_a_hostile_path_stays_within_the_command(build_run: BuildRun, failed: Result) -> None:
    path = "```\n</details>\x1b<script>.yml"
    text = markdown.render(build_run(failed, matrix=path))
    assert "`````" not in text
    assert (
        "````sh\nparity-gate rerun report.json --failed --matrix '```\n</details>\\x1b<script>.yml'"
        "\n````\n"
    ) in text
    assert "script" not in Page(text).tags


@pytest.mark.parametrize(("limit", "whole"), [(2_500, False), (10_000, True), (65_535, True)])
def test_a_long_command_is_there_whole_or_counted(
    limit: int, *, whole: bool, build_run: BuildRun, failed: Result
) -> None:
    text = markdown.render(build_run(failed, matrix=f"{'d' * 3_500}.yml"), limit)
    assert len(text.encode()) <= limit
    assert (f" --matrix {'d' * 3_500}.yml\n```" in text) == whole
    assert ("more sections, in report.json" in text) == (not whole)


LISTED = "; the first 20 are listed here, all of them in report.json"
KNOWN_HEADER = ["🟡 cell", "differs", "reason"]


def test_known_deviations_are_listed_with_reason_and_count(
    build_run: BuildRun, passed: Result, known: Result
) -> None:
    rows = Page(markdown.render(build_run(passed, known))).rows
    told = "2 of 84 scores differ, in 1 of 12 frames, by at most 6.0e-08"
    assert rows[rows.index(KNOWN_HEADER) + 1] == [known.cell.id, told, known.reason]
    assert KNOWN_HEADER not in Page(markdown.render(build_run(passed))).rows


@pytest.mark.parametrize(("number", "told"), [(199, 0), (200, 0), (201, 1)])
def test_long_list_of_known_deviations_says_how_many_more(
    number: int, told: int, build_run: BuildRun, known: Result
) -> None:
    cells = (replace(known.cell, fixture=f"f{n}") for n in range(number))
    text = markdown.render(build_run(*(replace(known, cell=cell) for cell in cells)))
    assert text.count("| 2 of 84 scores differ,") == min(number, 200)
    assert text.count("1 more known deviation, in report.json") == told


@pytest.mark.parametrize(
    ("number", "kept", "told"),
    [
        (20, 20, ""),
        (21, 21, LISTED),
        (21, 20, "; the first 20 are listed here, the first 20 in report.json"),
        (3_000_000, 100, "; the first 20 are listed here, the first 100 in report.json"),
    ],
)
def test_operands_are_listed_and_the_report_says_how_many_are_kept(
    number: int, kept: int, told: str, build_run: BuildRun, corpus: Result
) -> None:
    assert corpus.comparison is not None
    mismatches = corpus.comparison.mismatches[:1] * kept
    comparison = replace(corpus.comparison, different=number, mismatches=mismatches)
    text = markdown.render(build_run(replace(corpus, comparison=comparison)))
    line = "- operand 23910 (-11037, -15188, -12400, -16452) flag: 0 expected 1\n"
    assert text.count(line) == 20
    assert f"\n{number} of 3000000 scores differ{told}.\n" in text


def test_unexpected_agreement_is_told(build_run: BuildRun, agreeing: Result) -> None:
    text = markdown.render(build_run(agreeing))
    assert f"❌ <code>{agreeing.cell.id}</code> {agreeing.reason}</summary>" in text
    assert "\n0 of 84 scores differ.\n" in text
    assert "steps apart" not in text


def test_sections_come_failures_first(run: Run) -> None:
    titles = [line for line in markdown.render(run).splitlines() if line.startswith("### ")]
    assert titles == [
        "### Matrix",
        "### Failures",
        "### Errors",
        "### Known deviations",
        "### Skips",
        "### Compared",
        "### Environment",
    ]


def test_hostile_text_adds_no_markup(run: Run, broken: Result) -> None:
    calm = replace(broken, reason="reason", detail="detail")
    results = tuple(calm if result is broken else result for result in run.results)
    expected = Page(markdown.render(replace(run, results=results)))
    page = Page(markdown.render(run))
    assert page.tags == expected.tags
    assert "script" not in page.tags


def test_hostile_names_and_facts_add_no_markup(build_run: BuildRun, build_cell: BuildCell) -> None:
    name = "__a__ |`*b*`<i>[x](http://y)\n\x00"
    result = Result(build_cell(name), Status.PASS, seconds=1.0)
    text = markdown.render(build_run(result, environment={name: {name: name}}, matrix=name))
    page = Page(text)
    assert not {"i", "em", "a"} & set(page.tags)
    assert page.tags.count("strong") == 1  # the title of the table
    shown = r"__a__ |`*b*`<i>[x](http://y) \x00"
    assert page.rows[-1] == [shown, shown]
    assert "\x00" not in text


def test_fence_is_longer_than_any_in_the_log(build_run: BuildRun, broken: Result) -> None:
    log = replace(broken, detail="`````\n</details>\n# loud")
    assert "h1" not in Page(markdown.render(build_run(log))).tags


def test_errors_with_one_reason_are_told_once(build_run: BuildRun, build_cell: BuildCell) -> None:
    cells = [build_cell(f"f{number}") for number in range(22)]
    run = build_run(*(Result(cell, Status.ERROR, "no kernel", "log") for cell in cells))
    text = markdown.render(run)
    assert "💥 22 cells <code>float_adm/rcpss-double/egl_1.2/&#42;/cuda</code>: no kernel" in text
    assert text.count("```text\nno kernel\n\nlog\n```") == 1
    assert "- and 2 more cells, in report.json" in text


@pytest.mark.parametrize(("number", "told"), [(19, ""), (20, ""), (21, LISTED)])
def test_long_listing_says_how_many_are_listed(
    number: int, told: str, build_run: BuildRun, failed: Result
) -> None:
    assert failed.comparison is not None
    mismatches = tuple(replace(failed.comparison.mismatches[0], frame=i) for i in range(number))
    comparison = replace(failed.comparison, different=number, mismatches=mismatches)
    many = replace(failed, comparison=comparison)
    text = markdown.render(build_run(many))
    assert text.count("| adm2 | <code>") == min(number, 20)
    lead = f"\n{number} of 84 scores differ, in {number} of 12 frames, by at most 6.0e-08"
    assert f"{lead}{told}.\n" in text


@pytest.mark.parametrize(
    ("limit", "shortened", "bare"),
    [(1_000_000, False, False), (65_535, True, False), (25_000, True, True)],
)
def test_listing_that_was_shortened_for_room_says_so(
    limit: int, build_run: BuildRun, failed: Result, *, shortened: bool, bare: bool
) -> None:
    assert failed.comparison is not None
    mismatches = failed.comparison.mismatches * 2
    comparison = replace(failed.comparison, different=8, mismatches=mismatches)
    many = replace(failed, comparison=comparison, detail="x" * 4_000)
    cells = [replace(failed.cell, fixture=f"f{number}") for number in range(20)]
    text = markdown.render(build_run(*(replace(many, cell=cell) for cell in cells)), limit)
    first = text.count("; the first 5 are listed here, all of them in report.json.")
    none = text.count(" by at most 6.0e-08; all of them in report.json.")
    rows = sum(text.count(f"| {mismatch.score} | <code>") for mismatch in mismatches[:4])
    assert (first > 0, none > 0) == (shortened, bare)
    assert text.count("<summary>❌ ") == 20
    assert rows == 5 * first + 8 * (20 - first - none)
    assert text.count("| frame | score |") == 20 - none
    assert none == text.count("More about it is in report.json.")


@pytest.mark.parametrize(("number", "told"), [(199, 0), (200, 0), (201, 1)])
def test_long_list_of_failures_says_how_many_more(
    number: int, told: int, build_run: BuildRun, failed: Result
) -> None:
    cells = (replace(failed.cell, fixture=f"f{n}") for n in range(number))
    text = markdown.render(build_run(*(replace(failed, cell=cell) for cell in cells)))
    assert text.count("<summary>❌ ") == min(number, 200)
    assert text.count("\n1 more failing cell, in report.json\n") == told


def test_every_cause_is_among_the_first_failures(
    build_run: BuildRun, build_cell: BuildCell, failed: Result, passed: Result
) -> None:
    cells = [build_cell(f"f{n}", options_name=name) for name in ("a", "b", "green") for n in (0, 1)]
    red = [replace(failed, cell=cell) for cell in cells[:4]]
    text = markdown.render(build_run(*red, *(replace(passed, cell=cell) for cell in cells[4:])))
    order = [text.index(f"❌ <code>{red[index].cell.id}<") for index in (0, 2, 1, 3)]
    assert order == sorted(order)


@pytest.mark.parametrize(("number", "told"), [(199, 0), (200, 0), (201, 1)])
def test_table_without_room_for_all_rows_shows_those_that_did_not_pass_first(
    number: int, told: int, build_run: BuildRun, build_cell: BuildCell
) -> None:
    statuses = [Status.PASS] * (number - 1) + [Status.KNOWN]
    results = [Result(build_cell(f"f{n}"), status) for n, status in enumerate(statuses)]
    text = markdown.render(build_run(*results))
    rows = [row for row in Page(text).rows if row[0] == "rcpss-double"]
    assert len(rows) == min(number, 200)
    assert rows[0 if told else -1] == ["rcpss-double", f"f{number - 1}", "🟡"]
    assert text.count("\n1 more row, in report.json\n") == told


def test_cells_that_did_not_finish_are_a_group_of_their_own(
    build_run: BuildRun, unfinished: Result, broken: Result
) -> None:
    cells = [replace(unfinished.cell, fixture=f"f{n}") for n in range(3)]
    late = [replace(unfinished, cell=cell) for cell in cells]
    text = markdown.render(build_run(*late, broken))
    errors, _, others = text.partition("### Not finished\n")
    shared = "float_adm/rcpss-double/egl_1.2/&#42;/cuda"
    assert f"<summary>💥 3 cells <code>{shared}</code>: not finished</summary>" in others
    assert errors.count("<summary>💥 ") == 1
    assert "### Not finished" not in markdown.render(build_run(broken))


def test_report_says_which_run_it_is(build_run: BuildRun, passed: Result) -> None:
    text = markdown.render(build_run(passed))
    assert "- run <code>0123456789abcdef</code>\n" in text
    assert "- shard" not in text
    assert "- repeats" not in text
    shard = Shard(2, 8, (4,), selected=31)
    text = markdown.render(build_run(passed, shard=shard, rerun_of="abc"))
    assert "- shard <code>2 of 8, 1 of 31 selected cells</code>\n" in text
    assert "- repeats cells of run <code>abc</code>\n" in text


def test_compared_counts_nan_and_unset(build_run: BuildRun, passed: Result) -> None:
    rows = Page(markdown.render(build_run(passed))).rows
    assert ["float_adm on cuda", "1 of 1", "84", "0", "3", "7", "1.2"] in rows
    assert ["reference cpu", "", "", "", "", "", "0.5"] in rows
    assert [passed.cell.id, "1.25"] in rows


UNSET_HEADER = ["UNSET in the reference", "options", "fixtures", "scores", "frames"]


def test_unset_scores_are_named(build_run: BuildRun, passed: Result) -> None:
    rows = Page(markdown.render(build_run(passed))).rows
    row = ["float_adm rcpss-double", "egl_1.2", "bbb_576x324_420p8", "adm3", "1 of 2"]
    assert rows[rows.index(UNSET_HEADER) + 1] == row
    none = Page(markdown.render(build_run(passed, references=()))).rows
    assert UNSET_HEADER not in none


@pytest.mark.parametrize(("number", "told"), [(199, 0), (200, 0), (201, 1)])
def test_long_list_of_unset_scores_says_how_many_more(
    number: int, told: int, build_run: BuildRun, passed: Result
) -> None:
    run = build_run(passed)
    (reference,) = run.references
    many = tuple(replace(reference, options_name=f"o{n}") for n in range(number))
    text = markdown.render(replace(run, references=many))
    assert text.count("| adm3 | 1 of 2 |") == min(number, 200)
    assert text.count("1 more row, in report.json") == told


def test_report_of_many_unset_scores_with_long_names_fits_a_step_summary(
    build_run: BuildRun, passed: Result
) -> None:
    run = build_run(passed)
    (reference,) = run.references
    names = tuple(f"{n:|<255}" for n in range(18))
    frames = ((None,) * 18,)
    many = tuple(
        replace(
            reference, options_name=f"{n:|<248}", fixture=f"f{n}" * 20, names=names, frames=frames
        )
        for n in range(500)
    )
    text = markdown.render(replace(run, references=many))
    assert len(text.encode()) < 1024 * 1024
    assert "more rows, in report.json" in text


def test_notes_stand_below_the_verdict(build_run: BuildRun, passed: Result) -> None:
    text = markdown.render(build_run(passed, notes=("table of *another*", "fallback")))
    lines = text.splitlines()
    assert lines[0].endswith("table of &#42;another&#42;, fallback")
    assert lines[2:4] == ["- ⚠ table of &#42;another&#42;", "- ⚠ fallback"]
    assert "⚠" not in markdown.render(build_run(passed))


def test_a_conclusion_has_its_own_row(build_run: BuildRun, build_cell: BuildCell) -> None:
    cells = [build_cell("a", conclusion=name) for name in ("netflix", "vmafx")]
    rows = Page(markdown.render(build_run(*(Result(c, Status.PASS) for c in cells)))).rows
    assert [row[0] for row in rows[:3]] == ["arithmetic", "rcpss-double", "rcpss-double+vmafx"]


def test_empty_run_says_so(build_run: BuildRun) -> None:
    text = markdown.render(build_run())
    assert text.startswith("## 💥 NOTHING PROVED: 0 cells")
    assert "- 💥 no cell of matrices/pr.yaml was run" in text


def test_partial_run_says_so(build_run: BuildRun, passed: Result) -> None:
    text = markdown.render(build_run(passed, selection=("*/cuda", "a*"), planned=150))
    assert "1 of 150 cells, chosen by <code>--cell &#42;/cuda --cell a&#42;</code>" in text


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.PASS])
def test_report_of_many_red_cells_fits_a_step_summary(
    status: Status, build_run: BuildRun, failed: Result
) -> None:
    assert failed.comparison is not None
    mismatches = failed.comparison.mismatches * 21
    comparison = replace(failed.comparison, different=len(mismatches), mismatches=mismatches)
    results = (
        Result(
            replace(failed.cell, fixture=f"f{number}"),
            status,
            f"{number} <" + "|" * 5000,
            "`😀" * 20_000,
            comparison if status in {Status.FAIL, Status.KNOWN} else None,
        )
        for number in range(1_000)
    )
    text = markdown.render(build_run(*results))
    assert len(text.encode()) < 1024 * 1024
    assert look(status).mark + " |" in text or status is Status.SKIP
    assert "in report.json" in text
