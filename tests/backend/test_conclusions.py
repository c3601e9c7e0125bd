"""The two ways to end a frame, on content that makes them differ: both sides, rule by rule."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from stills import Clip, noise

from backends.base import Arithmetic, Refused
from backends.features.float_adm import FEATURE
from backends.features.float_adm.spec import FloatAdmOptions

if TYPE_CHECKING:
    from backends.base import Backend, Scores

NETFLIX, VMAFX = Arithmetic("ieee-double"), Arithmetic("ieee-double", "vmafx")


def flat(level: int = 128, dist: int = 128) -> Clip:
    """Return constant pictures; mid grey has no detail at all, so every denominator is 0."""
    shape = (1, 34, 33)
    return Clip(np.full(shape, level, np.uint8), np.full(shape, dist, np.uint8), 8)


def overflowing() -> Clip:
    """Return mid grey, then noise, whose energies at p-norm 20 and weight 10 are infinite."""
    clip = noise(33, 34, 2)
    clip.ref[0], clip.dist[0] = 128, 128
    return clip


class Side:
    """Both sides of the gate give what the tests ask; they must agree bit for bit."""

    def __init__(self, device_backend: Backend) -> None:
        self._device = device_backend

    def scores(self, arithmetic: Arithmetic, clip: Clip, **options: float) -> Scores:
        chosen = FloatAdmOptions.model_validate({"debug": True, **options})
        reference = FEATURE.reference(arithmetic, chosen, clip)
        twin = self._device.compute(FEATURE, arithmetic, chosen, clip)
        assert reference.values.tobytes() == twin.values.tobytes()
        assert reference.unset.tobytes() == twin.unset.tobytes()
        return reference

    def last_frame(
        self, arithmetic: Arithmetic, clip: Clip, **options: float
    ) -> dict[str, float | None]:
        """Return the frame's scores by their short keys; None is UNSET."""
        scores = self.scores(arithmetic, clip, **options)
        columns = zip(
            FloatAdmOptions(debug=True).outputs(), scores.values[-1], scores.unset[-1], strict=True
        )
        short = (
            (name.removeprefix("VMAF_feature_").removesuffix("_score"), value, unset)
            for name, value, unset in columns
        )
        return {name: None if unset else float(value) for name, value, unset in short}

    def refusals(self, arithmetic: Arithmetic, clip: Clip, **options: float) -> set[str]:
        chosen = FloatAdmOptions.model_validate(options)
        sentences = set()
        for compute in (
            FEATURE.reference,
            partial(self._device.compute, FEATURE),
        ):
            with pytest.raises(Refused) as refusal:
                compute(arithmetic, chosen, clip)
            sentences.add(str(refusal.value))
        return sentences


@pytest.fixture
def side(device_backend: Backend) -> Side:
    return Side(device_backend)


def test_netflix_leaves_aim_and_adm3_unset_where_the_denominator_is_0(side: Side) -> None:
    frame = side.last_frame(NETFLIX, flat(), adm_noise_weight=0)
    assert (frame["adm2"], frame["aim"], frame["adm3"], frame["adm_den"]) == (1, None, None, 0)
    assert np.isnan(frame["adm_scale0"])  # type: ignore[arg-type] # None is no NaN either


@pytest.mark.parametrize(
    ("options", "adm3"),
    [
        ({}, 0.5),
        ({"adm_dlm_weight": 0.3}, 0.3),
        ({"adm_dlm_weight": 0.3, "adm_min_val": 0.4}, 0.4),
        ({"adm_adm3_apply_hm": True}, 1.0),
        ({"adm_adm3_apply_hm": True, "adm_dlm_weight": 0.3}, 1.0),
    ],
)
def test_vmafx_sets_aim_to_1_where_the_denominator_is_0(
    side: Side, options: dict[str, float], adm3: float
) -> None:
    frame = side.last_frame(VMAFX, flat(), adm_noise_weight=0, **options)
    assert (frame["adm2"], frame["aim"], frame["adm3"], frame["adm_den"]) == (1, 1, adm3, 0)


def test_vmafx_calls_a_ratio_of_0_to_0_one(side: Side) -> None:
    frame = side.last_frame(VMAFX, flat(), adm_noise_weight=0)
    assert [frame[f"adm_scale{scale}"] for scale in range(4)] == [1, 1, 1, 1]


def test_vmafx_calls_a_skipped_scale_0(side: Side) -> None:
    frame = side.last_frame(VMAFX, flat(), adm_noise_weight=0, adm_skip_scale0=True)
    assert [frame[f"adm_scale{scale}"] for scale in range(4)] == [0, 1, 1, 1]


@pytest.mark.parametrize("arithmetic", [NETFLIX, VMAFX])
def test_the_harmonic_mean_of_nothing_is_the_lower_clip(side: Side, arithmetic: Arithmetic) -> None:
    """A restored picture of nothing and no added detail: adm2 and aim are 0, their mean is 0/0."""
    clip = noise(33, 34, 1)
    clip.dist[:] = 128
    frame = side.last_frame(
        arithmetic, clip, adm_noise_weight=0, adm_adm3_apply_hm=True, adm_min_val=0.25
    )
    assert (frame["adm2"], frame["aim"], frame["adm3"]) == (0, 0, 0.25)


def test_ordinary_frames_end_alike(side: Side) -> None:
    values = {
        side.scores(arithmetic, noise(33, 34, 2)).values.tobytes()
        for arithmetic in (NETFLIX, VMAFX)
    }
    assert len(values) == 1


def test_netflix_emits_what_is_not_finite(side: Side) -> None:
    frame = side.last_frame(NETFLIX, overflowing(), adm_p_norm=20, adm_f1s0=10)
    assert not np.isfinite(frame["adm_den"])  # type: ignore[arg-type] # None would raise


def test_vmafx_refuses_a_frame_that_is_not_finite_by_its_number(side: Side) -> None:
    (sentence,) = side.refusals(VMAFX, overflowing(), adm_p_norm=20, adm_f1s0=10)
    assert sentence.startswith("frame 1 ")
    assert sentence.endswith("the conclusion vmafx refuses frames with a score that is not finite")


def test_vmafx_asks_only_of_what_is_emitted_that_it_be_finite(side: Side) -> None:
    """Only debug outputs are infinite here: a finite sum over an infinite one is 0."""
    clip = noise(33, 34, 1)
    clip.dist[:] = 128
    overflow = {"adm_p_norm": 20, "adm_f1s0": 10}
    assert side.scores(VMAFX, clip, debug=False, **overflow).values.shape == (1, 7)
    (sentence,) = side.refusals(VMAFX, clip, debug=True, **overflow)
    assert sentence.startswith("frame 0 adm_den_f1s0_10_apn_20 is inf")


def test_an_unknown_conclusion_is_refused(side: Side) -> None:
    (sentence,) = side.refusals(Arithmetic("ieee-double", "fork"), flat())
    assert sentence == "conclusion 'fork' is unknown; allowed: netflix, vmafx"
