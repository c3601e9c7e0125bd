"""Check vectors of integer_adm.md, section 15, on everyone; checkpoints on the reference."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import integer_adm_oracle as oracle
import numpy as np
import pytest
from integer_adm_patterns import pattern, pattern_o
from stills import Clip

from backends.base import Arithmetic
from backends.features.integer_adm import FEATURE, _reference, spec
from backends.features.integer_adm.spec import IntegerAdmOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.base import Backend, Scores

# pattern, width, height, bit depth, dialect, gain limit
#     adm2 aim adm3
#     adm_scale0 to adm_scale3
#     adm_num adm_den
VECTORS = """
A 64 48 8 netflix 100
    0x1.fe58b78538192p-1 0x1.05d673af19f93p-10 0x1.feeae625b0461p-1
    0x1.f84c00a3bdc9cp-1 0x1.ff8f484b11dd6p-1 0x1.ffe8782a2c1d1p-1 0x1.ffeb7cef98961p-1
    0x1.62ba298000000p+7 0x1.63e05fc000000p+7

A 64 48 8 vmafx 100
    0x1.fe58b78538192p-1 0x1.05d673af19f93p-10 0x1.feeae625b0461p-1
    0x1.f84c00a3bdc9cp-1 0x1.ff8f484b11dd6p-1 0x1.ffe8782a2c1d1p-1 0x1.ffeb7cef98961p-1
    0x1.62ba298000000p+7 0x1.63e05fc000000p+7

A 70 63 10 netflix 100
    0x1.fff31160a7fc0p-1 0x1.4c2afd3eddb43p-11 0x1.ffd00350ac224p-1
    0x1.ff59965743cc5p-1 0x1.fff0350cff084p-1 0x1.00035836f6dd1p+0 0x1.0001112b30c37p+0
    0x1.56ee18e000000p+8 0x1.56f6c28000000p+8

A 70 63 10 vmafx 100
    0x1.fff31160a7fc0p-1 0x1.4c2afd3eddb43p-11 0x1.ffd00350ac224p-1
    0x1.ff59965743cc5p-1 0x1.fff0350cff084p-1 0x1.00035836f6dd1p+0 0x1.0001112b30c37p+0
    0x1.56ee18e000000p+8 0x1.56f6c28000000p+8

B 64 64 8 netflix 100
    0x1.762d69f1ab70fp-2 0x1.4a47d455ec149p-1 0x1.70cee0a2e9a3ep-2
    0x1.da82a13c2773dp-2 0x1.416985a69c0b9p-2 0x1.6b32c3c316b89p-2 0x1.46bae777cf78ep-2
    0x1.c043f98000000p+5 0x1.32b04dc000000p+7

B 64 64 8 vmafx 100
    0x1.7615bc301ef6ep-2 0x1.4a47d455ec149p-1 0x1.70c309c22366ep-2
    0x1.da29565ab1ac8p-2 0x1.416985a69c0b9p-2 0x1.6b32c3c316b89p-2 0x1.46bae777cf78ep-2
    0x1.c0279b8000000p+5 0x1.32b04dc000000p+7

B 96 80 16 netflix 100
    0x1.7e1fac5f04156p-2 0x1.4d5b12c93a2a8p-1 0x1.71b4c36647e03p-2
    0x1.d1138cdfec34cp-2 0x1.70ea43e2996a8p-2 0x1.5e5070e1ed508p-2 0x1.4723f998f6830p-2
    0x1.1639f58000000p+6 0x1.74ca400000000p+7

B 96 80 16 vmafx 100
    0x1.7e1f971541b0cp-2 0x1.4d5b12c93a2a8p-1 0x1.71b4b8c166adep-2
    0x1.d1133b4b1a42ap-2 0x1.70ea43e2996a8p-2 0x1.5e5070e1ed508p-2 0x1.4723f998f6830p-2
    0x1.1639e60000000p+6 0x1.74ca400000000p+7

C 322 182 8 netflix 100
    0x1.33c21bc8a9945p+0 0x0.0p+0 0x1.19e10de454ca2p+0
    0x1.286d8ded55466p+0 0x1.32e0945ecd77fp+0 0x1.374466e059575p+0 0x1.3a712d8919b7bp+0
    0x1.3edf2d0000000p+8 0x1.093e96c000000p+8

C 322 182 8 vmafx 100
    0x1.33c21bc8a9945p+0 0x0.0p+0 0x1.19e10de454ca2p+0
    0x1.286d8ded55466p+0 0x1.32e0945ecd77fp+0 0x1.374466e059575p+0 0x1.3a712d8919b7bp+0
    0x1.3edf2d0000000p+8 0x1.093e96c000000p+8

C 322 182 8 netflix 1.2
    0x1.2470dd2e5774bp+0 0x0.0p+0 0x1.12386e972bba6p+0
    0x1.1c2582595919bp+0 0x1.23aafedd66819p+0 0x1.271e0c3511151p+0 0x1.295a088a6437fp+0
    0x1.2f00548000000p+8 0x1.093e96c000000p+8

C 322 182 8 vmafx 1.2
    0x1.2470dd2e5774bp+0 0x0.0p+0 0x1.12386e972bba6p+0
    0x1.1c2582595919bp+0 0x1.23aafedd66819p+0 0x1.271e0c3511151p+0 0x1.295a088a6437fp+0
    0x1.2f00548000000p+8 0x1.093e96c000000p+8

C 17 19 8 vmafx 100
    0x1.2b092078611f6p+0 0x1.0722f588eee7ap-13 0x1.158073b05a6bfp+0
    0x1.088cc0f3c72adp+0 0x1.0b6654c04484ap+0 0x1.2ffb53263dccep+0 0x1.3b19330867a33p+0
    0x1.65106c0000000p+5 0x1.31ad660000000p+5
"""

# Of pattern A, 64x48, 8 bits, dialect netflix: scale, plane, band, sum, sum of squares mod 2^64;
# weighted and filtered are D and F of the additive part.
CHECKPOINTS = """
0 ref a -175910 32609541830
0 ref h 74820 15810471630
0 ref v -14064 8471523478
0 ref d 17255 10884494721
0 dist a -175800 32600255348
0 dist h 74916 15867667082
0 dist v -14601 8452491485
0 dist d 17744 10880903290
0 restored h 110957 14860907565
0 restored v -8156 8131211218
0 restored d 10202 10561659786
0 additive h -21410 28393862
0 additive v -6753 9425099
0 additive d 2841 11731861
0 weighted h -23804 35131268
0 weighted v -7517 11668477
0 weighted d 1076 1665556
0 filtered h 98950 39969632
0 filtered v 53519 13289017
0 filtered d 22609 1894155
1 ref a -4189503694 8749779692776746530
1 ref h 1765129667 11370527230796335827
1 ref v -1245926488 6633271368472761714
1 ref d -3369954910 9302489678518329572
1 dist a -4187840110 8727056196694507626
1 dist h 1773824057 11355547796374443671
1 dist v -1241274197 6662992170523655813
1 dist d -3375337802 9289958468694992240
1 restored h 1797127516 11348788202649214460
1 restored v -1226942788 6647209041578023448
1 restored d -3388199705 9255863125247510635
1 additive h -23303459 312020204509555
1 additive v -14331409 449565042175065
1 additive d 12861903 415545099178023
1 weighted h -11925717 81716675523035
1 weighted v -7334200 117739057178828
1 weighted d 2942611 21750719295459
1 filtered h 1241627 90793871549
1 filtered v 1821809 130817835973
1 filtered d 723943 24166015221
2 ref a -857282845 303199854774450779
2 ref h -217059813 119279110036464445
2 ref v -251214128 118356204249933486
2 ref d -462334016 102754044852491504
2 dist a -856300260 302199558494420302
2 dist h -219007728 119608153800421958
2 dist v -253796213 117915246510786135
2 dist d -462903412 102843451635273434
2 restored h -218680310 119584403878832044
2 restored v -254455208 117898047369019276
2 restored d -460924727 102799711796796237
2 additive h -327418 349504347022
2 additive v 658995 530975585343
2 additive d -1978685 2298116985889
2 weighted h -227215 168315440869
2 weighted v 457317 255709103205
2 weighted d -772381 350171887221
2 filtered h 20599 186985031
2 filtered v 36330 284045476
2 filtered d 36354 389013096
3 ref a -260208703 50624501418384967
3 ref h 149766124 6756989259474434
3 ref v -44135412 1573765842648198
3 ref d 35169899 2513098297743987
3 dist a -260076177 50480520807665655
3 dist h 149498619 6746218329405617
3 dist v -43885150 1571507813336420
3 dist d 35313695 2516266309811279
3 restored h 149447637 6746179785205901
3 restored v -44007249 1570836723655195
3 restored d 35313735 2516266059561599
3 additive h 50982 1876155044
3 additive v 122099 14908165801
3 additive d -40 1600
3 weighted h 37256 1001921696
3 weighted v 89227 7961457529
3 weighted d -20 400
3 filtered h 1230 1111602
3 filtered v 2962 8838740
3 filtered d -11 11
"""

# The sums of the same: scale, num, den, aim.
SUMS = """
0 0x1.0a4f4c0000000p+5 0x1.0e60ac0000000p+5 0x1.6bfde00000000p-3
1 0x1.e041c40000000p+5 0x1.e0ab960000000p+5 0x0.0p+0
2 0x1.cbea000000000p+5 0x1.cbff240000000p+5 0x0.0p+0
3 0x1.a8db2c0000000p+4 0x1.a8ec320000000p+4 0x0.0p+0
"""

DEBUG = IntegerAdmOptions(debug=True)


class Vector(NamedTuple):
    """Published scores of a pattern."""

    pattern: str
    width: int
    height: int
    depth: int
    dialect: str
    gain: float
    scores: list[float]

    @classmethod
    def of(cls, text: str) -> Vector:
        name, width, height, depth, dialect, gain, *scores = text.split()
        numbers = [float.fromhex(score) for score in scores]
        return cls(name, int(width), int(height), int(depth), dialect, float(gain), numbers)


KEYS = ("adm2", "aim", "adm3", *(f"adm_scale{scale}" for scale in range(4)), "adm_num", "adm_den")


def by_key(scores: Scores) -> dict[str, float]:
    """Return the first frame's scores by their short keys; none is unset."""
    keys = (key.removeprefix("integer_") for key in spec.SCORES + spec.DEBUG_SCORES)
    assert not scores.unset.any()
    return dict(zip(keys, scores.values[0].tolist(), strict=True))


@pytest.mark.parametrize("text", VECTORS.strip().split("\n\n"))
def test_every_check_vector_is_given(reference_or_device: Backend, text: str) -> None:
    vector = Vector.of(text)
    ref, dist = pattern(vector.pattern, vector.width, vector.height, vector.depth)
    options = IntegerAdmOptions(debug=True, adm_enhn_gain_limit=vector.gain)
    clip = Clip(ref[None], dist[None], vector.depth)
    scores = reference_or_device.compute(FEATURE, Arithmetic(vector.dialect), options, clip)
    frame = by_key(scores)
    assert [frame[key] for key in KEYS] == vector.scores


@pytest.mark.parametrize("p_norm", [1.0, 2.0, 2.5, 4.5, 20.0])
def test_every_root_of_vmafx_is_the_oracles(reference_or_device: Backend, p_norm: float) -> None:
    ref, dist = pattern("B", 64, 64, 8)
    options = IntegerAdmOptions(debug=True, adm_p_norm=p_norm)
    clip = Clip(ref[None], dist[None], 8)
    frame = by_key(reference_or_device.compute(FEATURE, Arithmetic("vmafx"), options, clip))
    assert frame["aim"] > 0
    assert frame == oracle.frame(ref, dist, 8, options.model_dump(), vmafx=True)


def planes(scale: int) -> tuple[dict[str, NDArray[np.int32]], tuple[float, float, float]]:
    ref, dist = pattern("A", 64, 48, 8)
    return _reference.stages(ref, dist, 8, DEBUG.model_dump(), vmafx_dialect=False, scale=scale)


@pytest.mark.parametrize("line", CHECKPOINTS.strip().split("\n"))
def test_reference_gives_every_checkpoint(line: str) -> None:
    scale, name, band, total, squares = line.split()
    found, _ = planes(int(scale))
    if band == "a":
        plane = found[f"{name}_low"][0]
    else:
        plane = found[name]["hvd".index(band)]
        if name not in {"ref", "dist"}:
            plane = plane[tuple(map(oracle.wide, plane.shape))]
    values = [int(value) for value in plane.flat]
    assert sum(values) == int(total)
    assert sum(value * value for value in values) % 2**64 == int(squares)


@pytest.mark.parametrize("line", SUMS.strip().split("\n"))
def test_reference_gives_every_sum(line: str) -> None:
    scale, *sums = line.split()
    assert planes(int(scale))[1] == tuple(map(float.fromhex, sums))


def overflowing(backend: Backend, dialect: str, depth: int) -> dict[str, float]:
    """Return the scores of pattern O by their short keys."""
    picture = pattern_o(depth)[None]
    clip = Clip(picture, picture, depth)
    return by_key(backend.compute(FEATURE, Arithmetic(dialect), DEBUG, clip))


@pytest.mark.parametrize("depth", [8, 10, 16])
def test_netflix_wraps_a_row_total_beyond_2_63_into_a_nan(
    reference_or_device: Backend, depth: int
) -> None:
    frame = overflowing(reference_or_device, "netflix", depth)
    wrong = [key for key, value in frame.items() if math.isnan(value)]
    assert wrong == ["adm2", "adm_scale0", "adm", "adm_num", "adm_num_scale0"]
    assert (frame["adm3"], frame["aim"]) == (0, 0)


def test_netflix_keeps_the_denominator_of_that_frame(reference_or_device: Backend) -> None:
    frame = overflowing(reference_or_device, "netflix", 8)
    assert frame["adm_den"] == float.fromhex("0x1.f290e68000000p+6")


@pytest.mark.parametrize(
    ("depth", "scores"),
    [
        (
            8,
            {
                "adm2": "0x1.00005d73b765ep+0",
                "adm3": "0x1.00002eb9dbb2fp+0",
                "adm_num_scale0": "0x1.25bb8c0000000p+5",
                "adm_den_scale0": "0x1.25b9800000000p+5",
            },
        ),
        (10, {"adm2": "0x1.00005761b9bf8p+0", "adm_num_scale0": "0x1.2665d00000000p+5"}),
        (16, {"adm2": "0x1.00005802fffd7p+0", "adm_num_scale0": "0x1.269e6c0000000p+5"}),
    ],
)
def test_vmafx_counts_that_row_total_as_unsigned(
    reference_or_device: Backend, depth: int, scores: dict[str, str]
) -> None:
    frame = overflowing(reference_or_device, "vmafx", depth)
    assert {key: frame[key] for key in scores} == {k: float.fromhex(v) for k, v in scores.items()}
