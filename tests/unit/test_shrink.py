"""Tests of the search for a simpler cell."""

from __future__ import annotations

from typing import Any

from gate.draw import Draw, draw
from gate.shrink import shrink, simpler

LARGE = Draw(
    5,
    {
        "generator": "amplified",
        "width": 301,
        "height": 98,
        "bit_depth": 16,
        "frames": 3,
        "label": "x",
        "amplitude": 40,
    },
    "float_adm",
    "ieee-single",
    "vmafx",
    {"debug": True, "adm_enhn_gain_limit": 1.23456, "adm_csf_mode": 2, "adm_skip_scale0": True},
)
SMALLEST = {"generator": "amplified", "width": 17, "height": 17, "bit_depth": 8}
ENOUGH = 1000


def test_what_nothing_matters_for_becomes_the_plainest_cell() -> None:
    plain = Draw(5, SMALLEST, "float_adm", "rcpss-double", "netflix", {})
    assert shrink(LARGE, lambda _: True, ENOUGH) == plain


def test_what_matters_stays() -> None:
    def matters(drawn: Draw) -> bool:
        limit = drawn.options.get("adm_enhn_gain_limit", 100)
        odd = drawn.fixture["width"] % 2 == 1 and drawn.fixture["height"] > 40
        return limit < 1.5 and odd and drawn.dialect == "ieee-single"

    small = shrink(LARGE, matters, ENOUGH)
    assert small.fixture == {**SMALLEST, "height": 41}
    assert small.options == {"adm_enhn_gain_limit": 1.0}
    assert (small.dialect, small.conclusion) == ("ieee-single", "netflix")


def test_a_cell_that_nothing_simpler_equals_stays_as_it_is() -> None:
    assert shrink(LARGE, lambda _: False, ENOUGH) == LARGE


def test_no_more_is_tried_than_allowed() -> None:
    asked = []

    def matters(drawn: Draw) -> bool:
        asked.append(drawn)
        return len(asked) < 5

    small = shrink(LARGE, matters, 7)
    assert len(asked) == 7
    assert small == asked[3]


def test_every_step_is_allowed_and_a_step() -> None:
    for index in range(200):
        drawn = draw(4, index)
        steps = list(simpler(drawn))
        assert drawn not in steps
        for step in steps:
            assert step.index == drawn.index
            step.declared()
            step.chosen()


def test_a_step_that_the_fixture_refuses_is_left_out() -> None:
    fixture: dict[str, Any] = {
        "generator": "impulse",
        "width": 40,
        "height": 17,
        "bit_depth": 10,
        "level": 1023,
        "peak": 3,
        "x": 30,
        "y": 2,
    }
    steps = list(simpler(Draw(0, fixture, "float_adm", "rcpss-double", "netflix", {})))
    assert [step.fixture for step in steps] == [
        {**fixture, "width": 39},
        *({**fixture, name: fixture[name] // 2} for name in ("level", "peak", "x", "y")),
    ]


def test_digits_are_dropped_from_the_front() -> None:
    plain = Draw(0, SMALLEST, "float_adm", "rcpss-double", "netflix", {"adm_p_norm": 2.345})
    steps = [step.options for step in simpler(plain)]
    assert steps == [{}, *({"adm_p_norm": p} for p in (2.0, 2.3, 2.35))]
