"""The file of known deviations after `parity-gate bless`: longer, or as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bless_desk import ADDED, ENTRY, LIST, LISTED, MATRIX, MATRIX_TEXT, Desk, furnished


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    return furnished(tmp_path, monkeypatch, Desk(capsys))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LISTED.rstrip("\n"), f"{LISTED}\n{ADDED}"),
        (f"{LISTED}\n\n", f"{LISTED}\n\n{ADDED}"),
        (f"{LISTED}# The end.\n", f"{LISTED}# The end.\n\n{ADDED}"),
        (LISTED.replace("\n", "\r\n"), f"{LISTED}\n{ADDED}".replace("\n", "\r\n")),
    ],
)
def test_the_rest_of_the_file_stays_as_it_is(before: str, after: str, desk: Desk) -> None:
    LIST.write_bytes(before.encode())
    desk.run()
    assert desk.bless().code == 0
    assert LIST.read_bytes() == after.encode()
    assert desk.run().code == 0


@pytest.mark.parametrize("indent", ["", "    "])
def test_entries_have_the_indent_of_those_before(indent: str, desk: Desk) -> None:
    def moved(text: str) -> str:
        return "".join(
            f"{indent}{line[2:]}" if line.startswith("  ") else line
            for line in text.splitlines(keepends=True)
        )

    LIST.write_text(moved(LISTED), "utf-8")
    desk.run()
    assert desk.bless().code == 0
    assert LIST.read_text("utf-8") == moved(f"{LISTED}\n{ADDED}")
    assert desk.run().code == 0


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        (
            f"version: 1\ndeviations: [{ENTRY}]\n",
            f"{LIST}:2: no dash begins this line; write entries one below the other",
        ),
        (
            LISTED.replace("version: 1\n", "") + "version: 1\n",
            "no entry can stand at the end: matrices/deviations.yaml:11:10: ",
        ),
        (LISTED + "...\n", "no entry can stand at the end: matrices/deviations.yaml:12:3: "),
    ],
)
def test_a_file_that_takes_no_entry_at_its_end_is_as_it_was(
    listed: str, told: str, desk: Desk
) -> None:
    LIST.write_text(listed, "utf-8")
    assert desk.run().code == 1
    assert told in desk.refused()


def test_a_file_whose_end_reads_otherwise_is_as_it_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.run()
    monkeypatch.setattr("gate.bless.entry_text", lambda entry, _: f"  # {entry.owner}\n")
    assert desk.refused() == (
        "out: entries at the end would be read as something else; the file is as it was"
    )


def test_a_matrix_without_a_list_is_refused(desk: Desk) -> None:
    MATRIX.write_text(MATRIX_TEXT.replace("deviations: deviations.yaml\n", ""), "utf-8")
    desk.run()
    assert desk.refused() == (
        f"out: {MATRIX} names no file of deviations; give it one with a first entry"
    )


def test_a_list_behind_a_link_is_changed_where_it_is(desk: Desk) -> None:
    real = MATRIX.parent / "folder"
    real.mkdir()
    LIST.rename(real / "d.yaml")
    LIST.symlink_to("folder/d.yaml")
    desk.run()
    assert desk.bless().code == 0
    assert LIST.is_symlink()
    assert (real / "d.yaml").read_text("utf-8") == f"{LISTED}\n{ADDED}"


def test_a_list_that_cannot_be_written_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.run()

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28), str(LIST))

    monkeypatch.setattr("gate.bless.write_whole", full)
    assert desk.refused() == f"{LIST}: No space left on device; mend that and bless again"


def test_a_file_that_is_being_checked_when_somebody_interrupts_is_as_it_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.run()
    seen = []

    def interrupt(*_: object) -> None:
        seen.append(LIST.read_text("utf-8"))
        raise KeyboardInterrupt

    monkeypatch.setattr("gate.bless._require_listed", interrupt)
    assert desk.bless().code != 0
    assert seen == [f"{LISTED}\n{ADDED}"]
    assert LIST.read_text("utf-8") == LISTED


def test_help_of_bless_has_an_example(desk: Desk) -> None:
    assert "Example: parity-gate bless out --reason" in desk("bless", "--help").out
