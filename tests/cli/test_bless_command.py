"""`parity-gate bless`: what a whole run found becomes known, and what is not whole is refused."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from bless_desk import (
    ADDED,
    LIST,
    LISTED,
    MATRIX,
    MATRIX_TEXT,
    RED,
    WORDS,
    Desk,
    failing,
    furnished,
    last_bit,
    lost,
)

from backends.base import Scores
from gate import record
from gate.bless import LONGEST, day_of, text_of
from gate.model import Status


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    return furnished(tmp_path, monkeypatch, Desk(capsys))


def statuses(out: str = "out") -> dict[str, Status]:
    run = record.load(Path(out) / record.NAME)
    return {result.cell.id: result.status for result in run.results}


def changed(**values: Any) -> None:  # noqa: ANN401 - what JSON has
    """Change what the report says of its run."""
    path = Path("out", record.NAME)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")


def test_what_is_blessed_is_known_in_the_next_run_and_red_when_it_agrees(desk: Desk) -> None:
    assert desk.run().code == 1
    assert list(statuses().values()).count(Status.FAIL) == RED
    LIST.chmod(0o640)
    ended = desk.bless()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        f"{ADDED}\n2 entries for 4 cells added to {LIST}; a person must review that change\n"
    )
    assert LIST.read_text("utf-8") == f"{LISTED}\n{ADDED}"
    assert LIST.stat().st_mode & 0o777 == 0o640
    assert desk.run().code == 0
    assert list(statuses().values()).count(Status.KNOWN) == RED + 2
    del desk.faults[18]
    assert desk.run().code == 1
    (red, _) = [name for name, status in statuses().items() if status is Status.FAIL]
    assert red == "float_adm/ieee-single/default/b/opencl:pocl"
    assert "agrees although matrices/deviations.yaml:11 lists it" in desk("report", "out").out


def test_a_dry_run_prints_the_same_and_writes_nothing(desk: Desk) -> None:
    desk.run()
    ended = desk.bless("--dry-run", report="out/report.json")
    assert (ended.code, LIST.read_text("utf-8")) == (0, LISTED)
    assert ended.out == (
        f"{ADDED}\n2 entries for 4 cells would be added to {LIST}; "
        "a person must review that change\n"
    )


def test_groups_of_cells_are_blessed_one_after_the_other_with_reasons_of_their_own(
    desk: Desk,
) -> None:
    desk.run()
    assert desk.bless("--cell", "*/default/*").code == 0
    assert desk("bless", "out", *WORDS, "--reason", "2nd", "--cell", "*/egl_1.2/*").code == 0
    first, second = ADDED.split("\n\n")
    second = second.replace("rounds the limited product", "2nd")
    assert LIST.read_text("utf-8") == f"{LISTED}\n{first}\n\n{second}"
    assert desk.run().code == 0


def test_a_lost_number_is_listed_as_one(desk: Desk) -> None:
    desk.faults[17] = lost
    desk.run()
    assert desk.bless().code == 0
    added = LIST.read_text("utf-8").removeprefix(LISTED)
    assert added.count("    not_finite: true\n") == 2
    assert added.count("  - cells:\n") == 4
    assert desk.run().code == 0


def test_a_merged_run_is_a_whole_one(desk: Desk) -> None:
    for index in (1, 2):
        desk.run("--shard", f"{index}/2", out=f"out/{index}")
    assert desk("merge", "out/1", "out/2").code == 1
    assert desk.bless().code == 0
    assert desk.run().code == 0


# What is no whole run


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"selection": ["*"]}, "has only what --cell chose"),
        ({"rerun_of": "0123"}, "repeats cells of run 0123"),
        ({"rcp_table": "amd-zen-4"}, "replayed the table 'amd-zen-4'"),
        ({"interrupted": True}, "was interrupted"),
        ({"missing": ["cuda: gone"]}, "misses a required backend (cuda: gone)"),
        ({"planned": 17}, "has 16 of 17 cells"),
        (
            {"shard": {"index": 2, "count": 3, "positions": [], "selected": 16}},
            "is shard 2 of 3",
        ),
    ],
)
def test_a_report_of_a_partial_run_is_refused(
    change: dict[str, object], told: str, desk: Desk
) -> None:
    desk.run()
    changed(**change)
    assert desk.refused() == (
        f"out: only a whole run is blessed, and this one {told}; run all of its matrix"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--cell", "*"), "has only what --cell chose"),
        (("--shard", "1/1"), "is shard 1 of 1"),
        (("--rcp-table", "amd-zen-4"), "replayed the table 'amd-zen-4'"),
        (("--require", "cuda"), "misses a required backend (cuda: cuda is not here)"),
    ],
)
def test_a_run_of_less_is_refused(arguments: tuple[str, ...], told: str, desk: Desk) -> None:
    desk.run(*arguments)
    assert f"this one {told}; " in desk.refused()


def test_a_rerun_and_its_cells_are_refused(desk: Desk) -> None:
    desk.run()
    assert desk("rerun", "out").code == 1
    assert "this one repeats cells of run " in desk.refused(report="out/rerun")


def test_a_run_that_was_interrupted_is_refused(desk: Desk) -> None:
    def interrupt(_: Scores) -> Scores:
        raise KeyboardInterrupt

    desk.faults[18] = interrupt
    assert desk.run().code == 130
    assert " that did not finish; " in desk.refused()


def test_a_merged_run_that_lacks_cells_is_refused(desk: Desk) -> None:
    def interrupt(_: Scores) -> Scores:
        raise KeyboardInterrupt

    desk.run("--shard", "1/2", out="out/1")
    desk.faults.update(dict.fromkeys((17, 18, 19, 20), interrupt))
    desk.run("--shard", "2/2", out="out/2")
    assert desk("merge", "out/1", "out/2").code == 130
    assert " that did not finish; " in desk.refused()


def test_a_report_of_another_matrix_is_refused(desk: Desk) -> None:
    desk.run()
    digest = record.load(Path("out", record.NAME)).environment["matrix"]["sha256"]
    MATRIX.write_text(f"{MATRIX_TEXT}# and more\n", "utf-8")
    assert desk.refused() == (
        f"out: the matrix of sha256 {digest} is none of *.yaml and matrices/*.yaml here; "
        "name it with --matrix"
    )
    assert desk.refused("--matrix", str(MATRIX)) == (
        f"out: it is of another matrix than {MATRIX} is now; run that"
    )


@pytest.mark.parametrize("change", [{"frames": 2}, {"options": {"debug": True}}])
def test_a_report_whose_cells_are_not_the_matrixs_is_refused(
    change: dict[str, object], desk: Desk
) -> None:
    desk.run()
    cells = json.loads(Path("out", record.NAME).read_text("utf-8"))["cells"]
    red = next(cell for cell in cells if cell["status"] == "FAIL")
    red |= change
    changed(cells=cells)
    assert desk.refused() == f"out: it is of another matrix than {MATRIX} is now; run that"


def test_cells_that_are_there_twice_are_refused(desk: Desk) -> None:
    desk.run()
    cells = json.loads(Path("out", record.NAME).read_text("utf-8"))["cells"]
    changed(cells=[*cells[:-1], cells[0]])
    assert "it is of another matrix" in desk.refused()


def test_what_is_no_report_is_refused_by_bless(desk: Desk) -> None:
    assert desk.refused() == ("out: No such file or directory; name a report.json of parity-gate")
    desk.run()
    assert desk.refused(report="out/junit.xml").startswith("out/junit.xml: it is no JSON (")


# What is never blessed


def test_without_a_red_cell_there_is_nothing_to_bless(desk: Desk) -> None:
    desk.faults = {19: last_bit}
    assert desk.run().code == 0
    assert desk.refused(code=3) == "out: none of its 16 cells is FAIL; nothing is blessed"


@pytest.mark.parametrize("glob", ["*/same/*", "*/listed/*", "none"])
def test_a_glob_without_a_red_cell_blesses_nothing(glob: str, desk: Desk) -> None:
    desk.run()
    told = f"out: --cell {glob!r} matches no cell that is FAIL; nothing is blessed"
    assert desk.refused("--cell", "*/a/*", "--cell", glob, code=3) == told


def test_an_error_is_never_blessed(desk: Desk) -> None:
    desk.faults[18] = failing
    desk.run()
    assert desk.refused() == (
        "out: cell float_adm/ieee-single/default/b/opencl:pocl is ERROR, which is never blessed; "
        "mend it, or choose others with --cell"
    )
    assert "is ERROR" in desk.refused("--cell", "*/default/*")
    assert desk.bless("--cell", "*/a/*").code == 0


def test_a_cell_that_moves_is_never_blessed(desk: Desk) -> None:
    desk.run()
    cells = json.loads(Path("out", record.NAME).read_text("utf-8"))["cells"]
    red = next(cell for cell in cells if cell["status"] == "FAIL")
    red["status"], red["controls"][0]["different"] = "NONDETERMINISTIC", 1
    changed(cells=cells)
    assert f"cell {red['id']} is NONDETERMINISTIC, which is never blessed" in desk.refused()
    assert desk.bless("--cell", "*/b/*").code == 0


def test_a_candidate_that_nobody_asked_once_more_is_not_blessed(desk: Desk) -> None:
    desk.run()
    cells = json.loads(Path("out", record.NAME).read_text("utf-8"))["cells"]
    red = next(cell for cell in cells if cell["status"] == "FAIL")
    red["controls"] = [one for one in red["controls"] if one["side"] == "reference"]
    changed(cells=cells)
    assert f"cell {red['id']} was not computed once more" in desk.refused()


def test_a_cell_that_is_listed_is_not_listed_again(desk: Desk) -> None:
    desk.run()
    assert desk.bless("--cell", "*/egl_1.2/a/*").code == 0
    assert desk.refused() == (
        f"out: cell float_adm/ieee-single/egl_1.2/a/opencl:pocl is listed already ({LIST}:11); "
        "correct that by hand, or choose others with --cell"
    )


def test_an_unexpected_agreement_is_not_blessed(desk: Desk) -> None:
    del desk.faults[19]
    desk.run()
    assert f"/listed/opencl:pocl is listed already ({LIST}:5); " in desk.refused()
    LIST.write_text(LISTED.replace("*/listed/*", "*/same/*"), "utf-8")
    assert f"/listed/opencl:pocl is listed already ({LIST}:5); " in desk.refused()


def test_a_report_that_does_not_tell_what_differs_is_refused(desk: Desk) -> None:
    desk.run()
    cells = json.loads(Path("out", record.NAME).read_text("utf-8"))["cells"]
    red = next(cell for cell in cells if cell["status"] == "FAIL")
    for mismatch in red["comparison"]["mismatches"]:
        mismatch["score"] = "another"
    changed(cells=cells)
    assert f"cell {red['id']} does not tell what differs; " in desk.refused()


# What is said about it


TODAY = date(2031, 1, 1)


@pytest.mark.parametrize("text", ["2031-01-01", "2031-01-02", "2032-01-01", "2032-01-02"])
def test_an_entry_holds_from_today_to_a_year_ahead(text: str) -> None:
    assert timedelta(366) == LONGEST
    assert day_of(text, TODAY) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2030-12-31", "2030-12-31 is in the past; allowed: 2031-01-01 to 2032-01-02"),
        ("2032-01-03", "2032-01-03 is over a year ahead; allowed: 2031-01-01 to 2032-01-02"),
        ("2031-02-29", "'2031-02-29' is not a day; write YYYY-MM-DD"),
        ("20310201", "'20310201' is not a day; write YYYY-MM-DD"),
        ("", "'' is not a day; write YYYY-MM-DD"),
    ],
)
def test_another_day_is_refused(text: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        day_of(text, TODAY)
    assert ended.value.exit_code == 2
    assert capsys.readouterr() == ("", f"--expires {told}\n")


@pytest.mark.parametrize("option", ["--reason", "--owner"])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty; write what a reviewer can judge"),
        (" \t\n", "is empty; write what a reviewer can judge"),
        ("a\x1bb", r"'a\x1bb' holds what cannot be printed; write plain text"),
    ],
)
def test_a_text_must_say_something(option: str, text: str, told: str, desk: Desk) -> None:
    desk.run()
    assert desk.refused(option, text) == f"{option} {told}"


@pytest.mark.parametrize("option", ["--reason", "--owner", "--expires"])
def test_nothing_is_blessed_without_a_word(option: str, desk: Desk) -> None:
    desk.run()
    place = WORDS.index(option)
    ended = desk("bless", "out", *WORDS[:place], *WORDS[place + 2 :])
    assert ended.code == 2
    assert f"Missing option '{option}'" in ended.err
    assert LIST.read_text("utf-8") == LISTED


def test_an_expiry_in_the_past_is_refused_before_the_report_is_read(desk: Desk) -> None:
    assert desk.refused("--expires", "2020-01-01").startswith("--expires 2020-01-01 is in the past")


def test_a_text_is_one_line() -> None:
    assert text_of("--reason", " a\n b\t") == "a b"
