"""The reference and every twin equal a slow independent numpy float ADM on random inputs."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NoReturn

import float_adm_oracle as oracle
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stills import Clip

from backends import reciprocal
from backends.base import CONCLUSIONS, Arithmetic, Refused
from backends.features.float_adm import FEATURE, spec
from backends.features.float_adm.spec import FloatAdmOptions
from backends.reciprocal import RcpTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.base import Backend, Scores

SETTINGS = settings(
    deadline=None,  # a slow oracle is the point
    derandomize=True,  # CI runs what a desk runs
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def six_digits(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers that libvmaf's text normalisation leaves alone."""
    return st.floats(low, high).map(lambda v: float(f"{float(np.float32(v)):g}"))


weight = st.one_of(st.just(-1.0), six_digits(0, 2))
OPTIONS = st.fixed_dictionaries(
    {"debug": st.just(value=True)},
    optional={
        "adm_enhn_gain_limit": st.one_of(st.sampled_from([1.0, 1.05, 1.2, 1.37]), six_digits(1, 9)),
        "adm_norm_view_dist": six_digits(0.75, 24),
        "adm_noise_weight": st.one_of(st.just(0.0), six_digits(0, 2)),
        "adm_csf_scale": six_digits(0, 50),
        "adm_csf_diag_scale": six_digits(0, 50),
        "adm_ref_display_height": st.integers(1, 4320),
        "adm_csf_mode": st.integers(0, 9),
        "adm_bypass_cm": st.integers(0, 1),
        "adm_adm3_apply_hm": st.booleans(),
        "adm_p_norm": st.one_of(st.sampled_from([1.0, 2.0, 4.5, 20.0]), six_digits(1, 20)),
        "adm_dlm_weight": six_digits(0, 1),
        "adm_min_val": six_digits(0, 1),
        "adm_skip_aim_scale": st.integers(0, 3),
        "adm_skip_scale0": st.booleans(),
        "adm_f1s0": weight,
        "adm_f2s0": weight,
        "adm_f1s3": weight,
        "adm_f2s2": weight,
    },
)


@st.composite
def pairs(draw: st.DrawFn) -> Clip:
    """Pictures of any size from 17x17: noise, a near copy of it, or amplified detail."""
    width, height = draw(st.integers(17, 90)), draw(st.integers(17, 90))
    depth = draw(st.sampled_from([8, 10, 12, 16]))
    top, mid = (1 << depth) - 1, 1 << (depth - 1)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = np.uint8 if depth == 8 else np.uint16
    detail = random.integers(-mid // 4, mid // 4, (height, width))
    content = draw(st.sampled_from(["noise", "near", "amplified", "flat"]))
    ref = mid + 2 * detail
    dist = {
        "noise": random.integers(0, top + 1, (height, width)),
        "near": np.clip(ref + random.integers(-3, 4, (height, width)), 0, top),
        "amplified": mid + 3 * detail,
        "flat": np.full((height, width), draw(st.integers(0, top))),
    }[content]
    if draw(st.booleans()):
        ref, dist = dist, ref
    return Clip(ref.astype(dtype)[None], dist.astype(dtype)[None], depth)


def expected_of(
    pair: Clip, arithmetic: Arithmetic, options: FloatAdmOptions
) -> dict[str, float | None]:
    table = arithmetic.rcp_table or reciprocal.host_table()
    return oracle.frame(
        pair.ref[0],
        pair.dist[0],
        pair.bit_depth,
        options.model_dump(),
        table=table.bits if spec.uses_rcpss(arithmetic.dialect) else None,
        weights="double" if spec.double_weights(arithmetic.dialect) else "single",
        vmafx=arithmetic.conclusion == "vmafx",
    )


def different_from_oracle(
    compute: Callable[[Arithmetic, FloatAdmOptions, Clip], Scores],
    pair: Clip,
    arithmetic: Arithmetic,
    options: FloatAdmOptions,
) -> list[str]:
    """Return the scores whose bits are not the oracle's; any NaN equals any NaN.

    A frame with a score that is not finite must be refused where the conclusion is vmafx.
    """
    expected = expected_of(pair, arithmetic, options)
    if arithmetic.conclusion == "vmafx" and not all(
        v is not None and math.isfinite(v) for v in expected.values()
    ):
        with pytest.raises(Refused, match="the conclusion vmafx refuses"):
            compute(arithmetic, options, pair)
        return []
    scores = compute(arithmetic, options, pair)
    assert len(expected) == scores.values.size == 18
    wrong = []
    columns = zip(scores.names, expected.values(), scores.values[0], scores.unset[0], strict=True)
    for name, value, got, unset in columns:
        if value is None or unset:
            same = value is None and bool(unset)
        else:
            wanted = np.float64(value)
            same = wanted.tobytes() == got.tobytes() or bool(np.isnan(wanted) and np.isnan(got))
        if not same:
            wrong.append(f"{name}: {got!r}, oracle {value!r}")
    return wrong


@settings(SETTINGS, max_examples=60)
@given(pair=pairs(), dialect=st.sampled_from(["rcpss-double", "rcpss-single"]))
def test_without_an_estimate_both_sides_take_the_quotient_through_the_newton_step(
    device_backend: Backend, pair: Clip, dialect: str
) -> None:
    def refuse() -> NoReturn:
        message = "no estimate"
        raise Refused(message)

    options = FloatAdmOptions(debug=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reciprocal, "host_table", refuse)
        reference = FEATURE.reference(Arithmetic(dialect), options, pair)
        twin = device_backend.compute(FEATURE, Arithmetic(dialect), options, pair)
    expected = Arithmetic(dialect, rcp_table=RcpTable("", oracle.QUOTIENT))
    for scores in (reference, twin):
        computed = functools.partial(lambda scores, *_: scores, scores)
        assert different_from_oracle(computed, pair, expected, options) == []


TABLES = st.sampled_from([None, *reciprocal.shipped().values()])
ARITHMETICS = st.builds(
    Arithmetic, st.sampled_from(spec.DIALECTS), st.sampled_from(CONCLUSIONS), TABLES
)


@settings(SETTINGS, max_examples=400)
@given(pair=pairs(), arithmetic=ARITHMETICS, chosen=OPTIONS)
def test_reference_equals_the_oracle(
    pair: Clip, arithmetic: Arithmetic, chosen: dict[str, Any]
) -> None:
    options = FloatAdmOptions.model_validate(chosen)
    assert different_from_oracle(FEATURE.reference, pair, arithmetic, options) == []


@settings(SETTINGS, max_examples=300)
@given(pair=pairs(), arithmetic=ARITHMETICS, chosen=OPTIONS)
def test_twin_equals_the_oracle(
    device_backend: Backend, pair: Clip, arithmetic: Arithmetic, chosen: dict[str, Any]
) -> None:
    options = FloatAdmOptions.model_validate(chosen)

    def compute(arithmetic: Arithmetic, options: FloatAdmOptions, pair: Clip) -> Scores:
        return device_backend.compute(FEATURE, arithmetic, options, pair)

    assert different_from_oracle(compute, pair, arithmetic, options) == []
