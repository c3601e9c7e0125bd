"""Tests of the fuzzer's reproducers and of the backends that it keeps open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from forging import Forger
from planting import CANDIDATE, run_cells

from backends import registry
from backends.base import Arithmetic, Backend, Clip, Feature, Options, Scores, Unavailable
from backends.cpu import Cpu
from gate import fuzz, matrix, plan, runner
from gate.draw import draw
from gate.fuzz import Drawing, Kept, Reproducer, reproduce
from gate.model import Run, Status

SEED, CELLS = 1, 60


class Faulty(Forger):
    """The reference with a fault: where `wrong` says so, one score is one step off."""

    def __init__(self, wrong: Callable[[Clip, Options], bool]) -> None:
        super().__init__(CANDIDATE)
        self.wrong = wrong
        self.facts_read = self.closed = 0

    def facts(self) -> Mapping[str, str]:
        self.facts_read += 1
        return super().facts()

    def compute(
        self, feature: Feature, arithmetic: Arithmetic, options: Options, clip: Clip
    ) -> Scores:
        scores = super().compute(feature, arithmetic, options, clip)
        if self.wrong(clip, options):
            scores.values[-1, 0] = np.nextafter(scores.values[-1, 0], 9)
        return scores

    def close(self) -> None:
        self.closed += 1


def low_gain(clip: Clip, options: Options) -> bool:
    return clip.height > 20 and options.model_dump()["adm_enhn_gain_limit"] < 60


@dataclass
class Fuzzed:
    """What one run with a faulty candidate gave."""

    run: Run
    reproducers: list[Reproducer]
    candidate: Faulty
    opened: list[str] = field(default_factory=list)


def fuzzed(wrong: Callable[[Clip, Options], bool]) -> Fuzzed:
    drawn = fuzz.matrix_of(SEED, CELLS, (CANDIDATE,))
    cells = plan.plan(drawn)
    candidate, opened = Faulty(wrong), []

    def open_backend(name: str) -> Backend:
        opened.append(name)
        return Cpu() if name == "cpu" else candidate

    with Kept(open_backend) as backends:
        run = runner.run(
            drawn,
            runner.begun(drawn, cells, planned=len(cells), command="parity-gate fuzz"),
            open_backend=backends,
            progress=runner.Progress(),
        )
        run, reproducers = reproduce(run, SEED, backends, lambda name: f"run {name}")
    return Fuzzed(run, reproducers, candidate, opened)


@pytest.fixture(scope="module")
def faulty() -> Fuzzed:
    return fuzzed(low_gain)


def test_what_differs_is_found_and_some_of_it_is_made_small(faulty: Fuzzed) -> None:
    assert 3 < faulty.run.count(Status.FAIL) < CELLS
    assert faulty.run.count(Status.ERROR) == 0
    assert [found.name for found in faulty.reproducers] == list(fuzz.REPRODUCERS)


def test_the_smallest_pictures_are_made_smaller_first(faulty: Fuzzed) -> None:
    sizes = {
        r.cell.id: r.cell.width * r.cell.height * r.cell.frames
        for r in faulty.run.results
        if r.status is Status.FAIL
    }
    assert [sizes[found.failed] for found in faulty.reproducers] == sorted(sizes.values())[:3]


def test_a_result_tells_its_reproducer(faulty: Fuzzed) -> None:
    told = {result.cell.id: result.detail for result in faulty.run.results if result.detail}
    assert told == {
        found.failed: f"small reproducer: run {found.name}" for found in faulty.reproducers
    }


def test_a_reproducer_is_small_and_fails_when_it_is_read_back(
    faulty: Fuzzed, tmp_path: Path
) -> None:
    for found in faulty.reproducers:
        path = tmp_path / found.name
        path.write_text(found.render(faulty.run), "utf-8")
        loaded = matrix.load(path)
        (cell,) = plan.plan(loaded)
        least = (33, 33) if cell.dialect == "netflix" else (17, 21)
        assert (cell.width, cell.height, cell.frames) == (*least, 1)
        assert cell.options.keys() == {"adm_enhn_gain_limit"}
        assert run_cells(loaded, (cell,), Faulty(low_gain)).count(Status.FAIL) == 1
        assert run_cells(loaded, (cell,), Faulty(lambda *_: False)).count(Status.PASS) == 1


def test_a_reproducer_says_where_it_comes_from(faulty: Fuzzed) -> None:
    for found in faulty.reproducers:
        assert found.text.startswith(f"# Differs as {found.failed} of seed {SEED}")


def test_backends_are_opened_once_and_closed_once(faulty: Fuzzed) -> None:
    assert faulty.opened == ["cpu", CANDIDATE]
    assert faulty.candidate.closed == 1
    assert faulty.candidate.facts_read > 3


def test_nothing_is_searched_where_nothing_differs() -> None:
    sound = fuzzed(lambda *_: False)
    assert sound.run.count(Status.PASS) > CELLS / 2
    assert sound.run.count(Status.FAIL) == 0
    assert sound.reproducers == []


def test_an_interrupted_search_keeps_what_it_has_and_the_run_is_interrupted() -> None:
    asked = 0

    def wrong(clip: Clip, options: Options) -> bool:
        nonlocal asked
        asked += 1
        if asked == CELLS + 60:
            raise KeyboardInterrupt
        return low_gain(clip, options)

    stopped = fuzzed(wrong)
    assert stopped.run.interrupted
    assert 0 < len(stopped.reproducers) < 3
    assert stopped.run.count(Status.FAIL) > 3
    assert stopped.run.unfinished == 0


def test_an_interrupted_run_is_not_searched() -> None:
    def wrong(*_: object) -> bool:
        raise KeyboardInterrupt

    stopped = fuzzed(wrong)
    assert stopped.run.interrupted
    assert stopped.reproducers == []


def test_an_absent_backend_is_absent_every_time() -> None:
    def open_backend(name: str) -> Backend:
        raise Unavailable(name)

    with Kept(open_backend) as backends:
        for _ in range(2):
            with pytest.raises(Unavailable, match="cuda"):
                backends("cuda")


def test_a_drawing_is_read_back_from_what_reports_tell() -> None:
    for candidates in (fuzz.CANDIDATES, (CANDIDATE,)):
        drawing = Drawing(-3, 5, candidates)
        facts = {"path": "anything", "sha256": drawing.matrix.sha256, **drawing.matrix.drawn}
        assert Drawing.told(facts) == drawing
        assert Drawing.told(facts).matrix == drawing.matrix


def test_the_command_line_of_a_drawing_names_candidates_that_are_not_the_default() -> None:
    begin = ("fuzz", "--cells=5", "--seed=-3")
    assert Drawing(-3, 5, fuzz.CANDIDATES).arguments == begin
    named = ("--candidate", "cuda", "--candidate", CANDIDATE)
    assert Drawing(-3, 5, ("cuda", CANDIDATE)).arguments == (*begin, *named)


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (0, "cells: Input should be greater than or equal to 1; it is no report of parity-gate"),
        (1, ""),
        (fuzz.MOST_CELLS - 1, ""),
        (fuzz.MOST_CELLS, ""),
        (fuzz.MOST_CELLS + 1, "cells: Input should be less than or equal to 100000; "),
    ],
)
def test_no_report_makes_more_cells_drawn_than_the_command_line(
    cells: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = fuzz.matrix_of(SEED, 1, (CANDIDATE,))
    monkeypatch.setattr(fuzz, "matrix_of", lambda *_: drawn)
    facts = {"seed": "1", "cells": str(cells), "candidates": CANDIDATE, "sha256": drawn.sha256}
    if not told:
        assert Drawing.told(facts).cells == cells
        return
    with pytest.raises(ValueError, match=f"^{told}"):
        Drawing.told(facts)


@pytest.mark.parametrize("name", ["seed", "cells", "candidates", "sha256"])
def test_a_report_that_tells_half_a_drawing_is_refused(name: str) -> None:
    drawn = fuzz.matrix_of(SEED, 2, (CANDIDATE,))
    facts = {"sha256": drawn.sha256, **drawn.drawn}
    del facts[name]
    with pytest.raises(ValueError, match=f"^({name}: |seed 1 draws cells of sha256 )"):
        Drawing.told(facts)


def test_a_feature_that_cannot_be_imported_is_told_where_other_cells_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = fuzz.matrix_of(SEED, 2, (CANDIDATE,))
    monkeypatch.setattr(registry, "broken", lambda: {"backends.features.x": "no module"})
    with pytest.raises(ValueError, match=r"drew them; backends\.features\.x: no module$"):
        Drawing.told({**drawn.drawn, "sha256": "0"})


def test_every_draw_can_be_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    for index in range(150):
        drawn = draw(5, index)
        path.write_text(fuzz.as_file(drawn, "cpu", CANDIDATE, "drawn"), "utf-8")
        loaded = matrix.load(path)
        (cell,) = plan.plan(loaded)
        assert loaded.warnings == {}
        assert loaded.fixtures == {drawn.fixture_name: drawn.declared()}
        assert (cell.options, cell.dialect, cell.conclusion) == (
            drawn.options,
            drawn.dialect,
            drawn.conclusion,
        )
