from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from gate.model import Cell, Comparison, Result, Run, Status
from reports import console

BuildCell = Callable[..., Cell]
BuildRun = Callable[..., Run]


def _print(run: Run, width: int = 100, *, colour: bool = False) -> str:
    target = io.StringIO()
    terminal = Console(
        file=target,
        width=width,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
    )
    terminal.print(console.table(run), soft_wrap=True)
    return target.getvalue()


def test_table_counts_option_sets_by_mark(build_run: BuildRun, build_cell: BuildCell) -> None:
    statuses = [Status.PASS, *Status]
    results = [
        Result(build_cell(options_name=f"o{number}"), status)
        for number, status in enumerate(statuses)
    ]
    other = Result(build_cell("flat", dialect="ieee-single"), Status.PASS)
    lines = [line.split() for line in _print(build_run(*results, other)).splitlines()]
    assert lines[:2] == [
        ["float_adm", "on", "cuda"],
        ["fixture", "rcpss-double", "ieee-single"],
    ]
    assert lines[3:5] == [
        ["bbb_576x324_420p8", "✗", "1", "~", "1", "!", "1", "-", "1", "≠", "1", "✓", "2"],
        ["flat", "✓", "1"],
    ]


def test_full_matrix_fits_100_columns(build_run: BuildRun, build_cell: BuildCell) -> None:
    dialects = ("rcpss-double", "rcpss-single", "ieee-double", "ieee-single")
    results = [
        Result(build_cell(f"bbb_{number}_576x324_420p8", candidate, dialect=dialect), Status.PASS)
        for candidate in ("cuda", "opencl:pocl")
        for number in range(12)
        for dialect in dialects
    ]
    text = _print(build_run(*results))
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("✓ 1 ") == len(results)
    assert "…" not in text


@pytest.mark.parametrize("width", [1, 20, 40, 59])
def test_narrow_terminal_is_printed_as_one_of_60_columns(
    width: int, build_run: BuildRun, build_cell: BuildCell, failed: Result
) -> None:
    dialects = ("rcpss-single", "ieee-double", "ieee-single")
    others = (Result(build_cell(dialect=name), Status.PASS) for name in dialects)
    run = build_run(failed, *others)
    text = _print(run, width)
    assert text == _print(run, 60)
    assert text.count("✓ 1 ") == len(dialects)
    assert "  ieee-single\n" in text
    assert f"     {run.repeat_command(failed.cell)}\n" in text


def test_table_uses_a_terminal_wider_than_60_columns(
    build_run: BuildRun, build_cell: BuildCell
) -> None:
    name = "f" * 50
    dialects = ("rcpss-double", "ieee-double")
    run = build_run(*(Result(build_cell(name, dialect=d), Status.PASS) for d in dialects))
    assert name not in _print(run, 60)
    assert name in _print(run, 80)


def test_failure_has_the_form_of_the_design(build_run: BuildRun, failed: Result) -> None:
    lines = _print(build_run(failed)).splitlines()
    cell = "float_adm/rcpss-double/egl_1.2/bbb_576x324_420p8/cuda"
    first = "frame 3 adm2: 0x1.de3b6cp-1 expected 0x1.de3b6ep-1 (-1 ulp32), 4 of 84 scores"
    assert lines[-6:-3] == [
        f"FAIL {cell} {first}",
        "     0.9340471029281616 expected 0.9340471625328064",
        f"     parity-gate run matrices/pr.yaml --cell {cell}",
    ]


def test_all_red_cells_have_one_command_below_them(
    build_run: BuildRun, failed: Result, broken: Result, passed: Result, skipped: Result
) -> None:
    for red in ([failed], [broken], [broken, failed, failed]):
        lines = _print(build_run(passed, *red)).splitlines()
        told = ["", "All red cells again:", "     parity-gate rerun report.json --failed"]
        assert lines[-3:] == told
    assert "again" not in _print(build_run(passed, skipped))


def test_the_command_for_all_red_cells_names_the_program_and_the_report(
    build_run: BuildRun, failed: Result
) -> None:
    target = io.StringIO()
    table = console.table(build_run(failed), "my out/\x1b.json", ("python", "-m", "gate"))
    Console(file=target, width=100).print(table, soft_wrap=True)
    told = r"     python -m gate rerun 'my out/\x1b.json' --failed"
    assert target.getvalue().splitlines()[-1] == told


def test_negative_zero_nan_and_unset_are_named(build_run: BuildRun, failed: Result) -> None:
    assert failed.comparison is not None
    for mismatch, decimals in zip(
        failed.comparison.mismatches[1:],
        ("-0.0 expected 0.0", "nan expected 0.5", "inf expected UNSET"),
        strict=True,
    ):
        comparison = replace(failed.comparison, different=1, mismatches=(mismatch,))
        assert decimals in _print(build_run(replace(failed, comparison=comparison)))


def test_cells_with_one_reason_share_one_line(
    build_run: BuildRun, build_cell: BuildCell, passed: Result
) -> None:
    skips = [Result(build_cell(f"f{n}", "opencl:intel"), Status.SKIP, "no wheel") for n in (1, 2)]
    text = _print(build_run(passed, *skips))
    shared = "float_adm/rcpss-double/egl_1.2/*/opencl:intel"
    assert f"\nSKIP 2 cells {shared}: no wheel\n" in text
    assert "float_adm on opencl:intel" not in text


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (1, []),
        (2, []),
        (3, []),
        (4, ["     [... 1 line above, in report.json ...]"]),
        (30, ["     [... 27 lines above, in report.json ...]"]),
    ],
)
def test_error_shows_the_end_of_its_detail_and_how_to_repeat_it(
    number: int, told: list[str], build_run: BuildRun, broken: Result
) -> None:
    log = [f"k.cl:{line}: error" for line in range(number)]
    calm = replace(broken, reason="csf does not compile", detail="\n".join(log) + "\n")
    lines = _print(build_run(calm)).splitlines()
    start = lines.index(f"ERROR {calm.cell.id}: csf does not compile")
    assert lines[start + 1 : -3] == [
        *told,
        *(f"     {line}" for line in log[-3:]),
        f"     {build_run().repeat_command(calm.cell)}",
    ]


def test_cells_that_did_not_finish_stand_apart_from_errors(
    build_run: BuildRun, unfinished: Result, broken: Result
) -> None:
    other = replace(unfinished, cell=replace(unfinished.cell, fixture="later"))
    calm = replace(broken, reason="csf does not compile", detail="")
    lines = _print(build_run(unfinished, calm, other)).splitlines()
    shared = "float_adm/rcpss-double/egl_1.2/*/cuda"
    assert [line for line in lines if line.startswith("ERROR ")] == [
        f"ERROR 2 cells {shared}: not finished",
        f"ERROR {calm.cell.id}: csf does not compile",
    ]


@pytest.mark.parametrize(("number", "told"), [(19, 0), (20, 0), (21, 1)])
def test_long_list_of_reasons_says_how_many_more(
    number: int, told: int, build_run: BuildRun, broken: Result
) -> None:
    results = (replace(broken, reason=f"reason {n}", detail="") for n in range(number))
    text = _print(build_run(*results))
    assert text.count(": reason ") == min(number, 20)
    assert text.count("and 1 more ERROR reason, in report.json") == told


def test_long_line_of_a_detail_is_cut(build_run: BuildRun, broken: Result) -> None:
    text = _print(build_run(replace(broken, reason="reason", detail="x" * 1600)))
    assert text.count("x" * 500) == 3
    assert "[... 100 characters cut ...]" in text


def test_hostile_text_cannot_steer_the_terminal(run: Run) -> None:
    text = _print(replace(run, matrix="\x1b[2J.yaml"))
    assert r"\x1b[31mred\x9b2J" in text
    assert all(character.isprintable() or character == "\n" for character in text)


def test_markup_of_rich_in_names_is_plain_text(build_run: BuildRun, build_cell: BuildCell) -> None:
    name = "[red]loud[/red]"
    result = Result(build_cell(name, dialect="[b]d[/b]"), Status.ERROR, "[i]reason[/i]")
    text = _print(build_run(result))
    assert text.count(name) == 3
    assert text.count("[b]d[/b]") == 3
    assert "[i]reason[/i]" in text


def test_worst_status_stands_next_to_the_verdict(run: Run) -> None:
    lines = _print(run).splitlines()
    heads = ("KNOWN", "SKIP", "ERROR", "FAIL", "NONDETERMINISTIC")
    words = [line.split()[0] for line in lines if line.startswith(heads)]
    groups = ["FAIL", "NONDETERMINISTIC"]
    assert words == ["KNOWN", "SKIP", "ERROR", *groups, *groups]


def test_every_known_deviation_is_listed_with_its_reason_and_its_count(
    build_run: BuildRun, known: Result
) -> None:
    cells = [replace(known.cell, fixture=f"f{number}") for number in range(console.ROWS + 1)]
    lines = _print(build_run(*(replace(known, cell=cell) for cell in cells))).splitlines()
    shared = "float_adm/rcpss-double/egl_1.2/*/libvmaf"
    start = lines.index(f"KNOWN {len(cells)} cells {shared}: {known.reason}")
    told = "2 of 84 scores differ, in 1 of 12 frames, by at most 6.0e-08"
    assert lines[start + 1 :] == [f"     {cell.id}: {told}" for cell in cells]


def test_known_deviations_of_two_reasons_are_listed_apart(
    build_run: BuildRun, known: Result
) -> None:
    other = replace(known, cell=replace(known.cell, fixture="stripes"), reason="fractional gain")
    text = _print(build_run(known, other))
    assert f"KNOWN {known.cell.id}: {known.reason}\n     {known.cell.id}: 2 of 84" in text
    assert f"KNOWN {other.cell.id}: fractional gain\n     {other.cell.id}: 2 of 84" in text


def test_unexpected_agreement_is_told(build_run: BuildRun, agreeing: Result) -> None:
    assert f"FAIL {agreeing.cell.id} {agreeing.reason}\n" in _print(build_run(agreeing))


def test_operand_that_differs_is_told_in_one_sentence(build_run: BuildRun, corpus: Result) -> None:
    lines = _print(build_run(corpus)).splitlines()
    sentence = "operand 23910 (-11037, -15188, -12400, -16452) flag: 0 expected 1"
    assert lines[-5:-3] == [
        f"FAIL {corpus.cell.id} {sentence}, 23000 of 3000000 scores",
        f"     parity-gate run matrices/pr.yaml --cell {corpus.cell.id}",
    ]


def test_text_is_the_same_without_colour(build_run: BuildRun, failed: Result) -> None:
    coloured = _print(build_run(failed), colour=True)
    assert "\x1b[1;31m✗ 1\x1b[0m" in coloured
    assert "✗ 1" in _print(build_run(failed))
    assert "\x1b" not in _print(build_run(failed))


def _headlines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("FAIL ")]


def test_failures_of_one_cause_are_one_line_before_the_examples(
    build_run: BuildRun, build_cell: BuildCell, failed: Result
) -> None:
    cells = [
        build_cell(f"f{n}", "opencl:pocl", options_name=options)
        for options in ("default", "debug")
        for n in range(13)
    ]
    results = [replace(failed, cell=cell) for cell in cells if cell.options_name == "debug"]
    passing = [Result(cell, Status.PASS) for cell in cells if cell.options_name == "default"]
    text = _print(build_run(*passing, *results))
    first, *examples = _headlines(text)
    assert first == "FAIL 13 cells float_adm/rcpss-double/debug/*/opencl:pocl"
    assert len(examples) == 5
    assert examples[0].startswith(f"FAIL {results[0].cell.id} frame 3 adm2: ")
    assert "\nand 8 more failing cells, in report.json\n\nAll red cells again:\n" in text


def test_one_failing_cell_is_not_told_twice(build_run: BuildRun, failed: Result) -> None:
    assert len(_headlines(_print(build_run(failed)))) == 1


@pytest.mark.parametrize(("number", "told"), [(4, 0), (5, 0), (6, 1)])
def test_a_handful_of_examples_says_how_many_more(
    number: int, told: int, build_run: BuildRun, failed: Result
) -> None:
    cells = [replace(failed.cell, fixture=f"f{n}") for n in range(number)]
    text = _print(build_run(*(replace(failed, cell=cell) for cell in cells)))
    assert text.count(" frame 3 adm2: ") == min(number, 5)
    assert text.count("and 1 more failing cell, in report.json") == told


def test_every_group_of_failures_has_an_example(
    build_run: BuildRun, build_cell: BuildCell, failed: Result, passed: Result
) -> None:
    names = {"a": 8, "b": 2, "green": 0}
    cells = [build_cell(f"f{n}", options_name=name) for name in names for n in range(8)]
    results = [
        replace(failed if number % 8 < names[cell.options_name] else passed, cell=cell)
        for number, cell in enumerate(cells)
    ]
    groups = _headlines(_print(build_run(*results)))
    assert groups[:2] == [
        "FAIL 8 cells float_adm/rcpss-double/a/*/cuda",
        "FAIL 2 cells float_adm/rcpss-double/b/*/cuda",
    ]
    assert [line.split("/")[2:4] for line in groups[2:]] == [
        ["a", "f0"],
        ["b", "f0"],
        ["a", "f1"],
        ["b", "f1"],
        ["a", "f2"],
    ]


@pytest.mark.parametrize(("number", "told"), [(19, 0), (20, 0), (21, 1)])
def test_long_list_of_groups_says_how_many_more(
    number: int, told: int, build_run: BuildRun, failed: Result, passed: Result
) -> None:
    cells = [replace(failed.cell, options_name=f"o{n}") for n in range(number)]
    green = replace(passed, cell=replace(failed.cell, options_name="green"))
    text = _print(build_run(green, *(replace(failed, cell=cell) for cell in cells)))
    assert text.count("FAIL 1 cell ") == min(number, 20)
    assert text.count("and 1 more failing group, in report.json") == told


def test_nan_and_unset_are_counted(build_run: BuildRun, passed: Result, failed: Result) -> None:
    line = "In the reference: 3 NaN, 7 UNSET scores"
    assert line in _print(build_run(passed))
    assert "In the reference" not in _print(build_run(failed))


def test_unset_scores_are_named(build_run: BuildRun, passed: Result) -> None:
    line = "UNSET float_adm egl_1.2: adm3 in 1 of 2 frames of bbb_576x324_420p8 (rcpss-double)\n"
    assert line in _print(build_run(passed))
    assert "UNSET float_adm" not in _print(build_run(passed, references=()))


@pytest.mark.parametrize(("number", "told"), [(19, 0), (20, 0), (21, 1)])
def test_long_list_of_unset_scores_says_how_many_more(
    number: int, told: int, build_run: BuildRun
) -> None:
    run = build_run()
    (reference,) = run.references
    many = tuple(replace(reference, options_name=f"o{n}") for n in range(number))
    text = _print(replace(run, references=many))
    assert text.count("UNSET float_adm ") == min(number, 20)
    assert text.count("and 1 more line of UNSET scores, in report.json") == told


def test_notes_are_told(build_run: BuildRun, passed: Result) -> None:
    text = _print(build_run(passed, notes=("[b]a table[/b] is replayed\x1b",)))
    assert text.endswith("\nNote: [b]a table[/b] is replayed\\x1b\n")
    assert "Note:" not in _print(build_run(passed))


def test_one_unset_score_has_no_plural(build_run: BuildRun, passed: Result) -> None:
    single = replace(passed, comparison=Comparison(84, 0, 1, 0, ()))
    assert "In the reference: 0 NaN, 1 UNSET score\n" in _print(build_run(single))


def test_missing_interrupted_and_empty_are_told(build_run: BuildRun, passed: Result) -> None:
    assert "required backend missing: cuda: no driver" in _print(
        build_run(passed, missing=("cuda: no driver",))
    )
    assert "the run was interrupted" in _print(build_run(passed, interrupted=True))
    assert "no cell of matrices/pr.yaml was run" in _print(build_run())


def test_of_very_many_fixtures_those_that_only_passed_share_a_row(
    build_run: BuildRun, build_cell: BuildCell
) -> None:
    red = {7: Status.FAIL, 50: Status.ERROR}
    results = [
        Result(build_cell(f"f{number}"), red.get(number, Status.PASS))
        for number in range(console.ROWS + 1)
    ]
    lines = [line.split() for line in _print(build_run(*results)).splitlines()]
    assert lines[3:6] == [
        ["f7", "✗", "1"],
        ["f50", "!", "1"],
        ["59", "other", "fixtures", "✓", "59"],
    ]
    lines = [line.split() for line in _print(build_run(*results[:-1])).splitlines()]
    assert lines[3] == ["f0", "✓", "1"]


def test_very_many_fixtures_that_passed_are_one_row(
    build_run: BuildRun, build_cell: BuildCell
) -> None:
    cells = [build_cell(f"f{number}") for number in range(console.ROWS + 1)]
    lines = _print(build_run(*(Result(cell, Status.PASS) for cell in cells))).splitlines()
    assert lines[3].split() == ["61", "fixtures", "✓", "61"]


def test_very_many_red_fixtures_are_cut_with_their_counts(
    build_run: BuildRun, build_cell: BuildCell
) -> None:
    cells = [build_cell(f"f{number}") for number in range(console.ROWS + 5)]
    lines = _print(build_run(*(Result(cell, Status.ERROR) for cell in cells))).splitlines()
    assert lines[2 + console.ROWS].split() == [f"f{console.ROWS - 1}", "!", "1"]
    assert lines[3 + console.ROWS].split() == ["5", "other", "fixtures", "!", "5"]
