"""Instances with different options in one run never mix their outputs."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from stills import noise

from backends import registry
from backends.base import Arithmetic, Scores

if TYPE_CHECKING:
    from backends.base import Backend

FEATURE = registry.features()["float_adm"]
CLIP = noise(37, 29, frames=2, bit_depth=8)
OPTION_SETS: dict[str, dict[str, Any]] = {
    "default": {},
    "debug": {"debug": True, "adm_enhn_gain_limit": 1.2},
    "other debug": {"debug": True, "adm_noise_weight": 0, "adm_skip_scale0": True},
    "no debug": {"adm_csf_mode": 1, "adm_bypass_cm": 1},
}
# Each after each other, and each after itself.
INTERLEAVED = (
    *("default", "debug", "default", "other debug", "debug", "no debug", "default", "default"),
    *("no debug", "other debug", "other debug", "default", "no debug", "debug", "debug"),
    *("other debug", "no debug", "no debug"),
)


def compute(backend: Backend, name: str) -> Scores:
    options = FEATURE.options.model_validate(OPTION_SETS[name])
    return backend.compute(FEATURE, Arithmetic("rcpss-single"), options, CLIP)


def fresh(backend: str) -> dict[str, Scores]:
    """Return the scores of each option set, each from a backend that computed nothing before."""
    found = {}
    for name in OPTION_SETS:
        with closing(registry.open_backend(backend)) as opened:
            found[name] = compute(opened, name)
    return found


def require_apart(backend: Backend) -> None:
    expected = fresh(backend.name)
    for place, name in enumerate(INTERLEAVED):
        scores = compute(backend, name)
        assert scores.names == expected[name].names, (place, name)
        assert scores.values.tobytes() == expected[name].values.tobytes(), (place, name)
        assert scores.unset.tobytes() == expected[name].unset.tobytes(), (place, name)


def test_the_sequence_has_every_option_set_after_every_other_and_itself() -> None:
    pairs = set(pairwise(INTERLEAVED))
    assert pairs == {(one, other) for one in OPTION_SETS for other in OPTION_SETS}


def test_interleaved_option_sets_do_not_mix_on_a_device(device_backend: Backend) -> None:
    require_apart(device_backend)


def test_interleaved_option_sets_do_not_mix_in_the_reference() -> None:
    with closing(registry.open_backend("cpu")) as reference:
        require_apart(reference)


def test_the_option_sets_give_different_scores() -> None:
    """Else mixing them would not be seen."""
    found = fresh("cpu")
    firsts = {scores.values[:, :7].tobytes() for scores in found.values()}
    assert len(firsts) == len(OPTION_SETS)
    debug, other = found["debug"], found["other debug"]
    shared = set(debug.names) & set(other.names)
    assert shared == {"adm"}
    column = debug.names.index("adm")
    assert (debug.values[:, column] != other.values[:, column]).all()
