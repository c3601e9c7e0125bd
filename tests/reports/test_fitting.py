from __future__ import annotations

import pytest

from reports.fitting import LEAST, MOST, Block, Choice, Section

TOLD = "\n3 more rows, in report.json\n"  # the room for it is kept


def _row(text: str) -> Block:
    return Block((lambda: text,))


ROWS = [_row("ä" * 50), _row("b" * 100), _row("c" * 100)]
WHOLE = len(TOLD) + 300


@pytest.mark.parametrize(("spare", "gone"), [(-1, 1), (0, 0), (1, 0)])
def test_parts_are_shown_to_the_last_byte(spare: int, gone: int) -> None:
    text, out = Section("", ROWS, "more row", tail="").fill(WHOLE + spare)
    assert out == gone
    assert len(text.encode()) <= WHOLE + spare
    assert ("\n1 more row, in report.json\n" in text) is (gone == 1)


@pytest.mark.parametrize(("spare", "shown"), [(-1, False), (0, True), (1, True)])
def test_section_without_room_for_title_and_sentence_is_left_out(spare: int, shown: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    section = Section("title", ROWS, "more row", tail="tail")
    text, _ = section.fill(len("title" + TOLD + "tail") + spare)
    assert text == (f"title{TOLD}tail" if shown else "")


@pytest.mark.parametrize("limit", [-1, 0, 1])
def test_no_room_at_all_gives_no_text(limit: int) -> None:
    assert Section("title", ROWS, "more row").fill(limit) == ("", 3)


@pytest.mark.parametrize(("number", "gone"), [(MOST - 1, 0), (MOST, 0), (MOST + 1, 1)])
def test_no_section_shows_more_parts_than_anybody_reads(number: int, gone: int) -> None:
    assert Section("", [_row("x")] * number, "more row").fill(1 << 20)[1] == gone


@pytest.mark.parametrize(
    ("share", "left", "form"),
    [
        (11, 11, "full förm!"),
        (10, 99, "short för"),
        (9, 99, "short för"),
        (9, 10, "short för"),
        (9, 9, ""),
    ],
)
def test_block_takes_the_fullest_form_within_its_share_or_the_barest_beyond(
    share: int, left: int, form: str
) -> None:
    assert Block((lambda: "full förm!", lambda: "short för")).fit(share, left) == form


def test_section_beyond_its_share_says_nothing_but_its_sentence() -> None:
    section = Section("title", ROWS, "more row", tail="tail")
    assert section.fit(3, 9_999) == f"title{TOLD}tail"
    assert section.fit(3, 9) == ""


def test_heavy_section_gets_more_of_scarce_room_and_the_light_one_its_share() -> None:
    sections = [
        Section(name, [_row(name * 500)] * 20, "more row", weight=weight)
        for name, weight in (("A", 1), ("B", 3))
    ]
    text = Section("", sections, "more section").fill(10_000)[0]
    assert (text.count("A") // 500, text.count("B") // 500) == (4, 15)


def test_room_that_a_section_does_not_need_goes_to_those_behind_it() -> None:
    sections = [Section("", [_row("A")], "more row"), Section("", [_row("B" * 9_000)], "more row")]
    assert Section("", sections, "more section").fill(10_000)[0].count("B") == 9_000


def test_a_part_below_the_least_size_may_exceed_its_share() -> None:
    rows = [_row("x" * LEAST)] * 10
    assert Section("", rows, "more row").fill(3 * LEAST + 100)[1] == 7


def test_first_part_that_finds_no_room_ends_the_section() -> None:
    rows = [_row("a"), _row("b" * 999), _row("c")]
    text, _ = Section("", rows, "more row", tail="").fill(99)
    assert text == "a\n2 more rows, in report.json\n"


def test_other_order_is_taken_only_where_something_is_cut() -> None:
    rows = [_row("g" * 100), _row("r" * 100)]
    plan, cut = (Section("", order, "more row", tail="") for order in (rows, rows[::-1]))
    assert Choice(plan, cut).fit(1_000, 1_000) == "g" * 100 + "r" * 100
    assert Choice(plan, cut).fit(150, 1_000) == "r" * 100 + "\n1 more row, in report.json\n"
