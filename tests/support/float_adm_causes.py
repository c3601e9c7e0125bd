"""Wrong constructs of `float_adm`, old and tempting, and the cells of pr.yaml that name them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from planting import Cause

from backends import c_library
from backends.features.float_adm import conclusion, twin
from backends.features.float_adm.weights import band_weights

if TYPE_CHECKING:
    import pytest
    from numpy.typing import NDArray

    from backends.base import Arithmetic
    from backends.features.float_adm.spec import FloatAdmOptions


def other_weights(patch: pytest.MonkeyPatch) -> None:
    def swapped(
        scale: int, options: FloatAdmOptions, *, double: bool
    ) -> tuple[np.float32, np.float32]:
        return band_weights(scale, options, double=not double)

    patch.setattr(twin, "band_weights", swapped)


def a_step_off(patch: pytest.MonkeyPatch) -> None:
    def stepped(
        scale: int, options: FloatAdmOptions, *, double: bool
    ) -> tuple[np.float32, np.float32]:
        hv, d = band_weights(scale, options, double=double)
        return np.nextafter(hv, np.float32(np.inf)) if scale == 2 else hv, d

    patch.setattr(twin, "band_weights", stepped)


def root_in_doubles(patch: pytest.MonkeyPatch) -> None:
    def power(values: NDArray[np.float32], _: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.array([math.pow(value, 1 / 3) for value in values], np.float32)

    patch.setattr(c_library, "powf", power)


def wrong_entry(patch: pytest.MonkeyPatch) -> None:
    right = twin.reciprocal_division

    def spoiled(arithmetic: Arithmetic) -> tuple[np.int32, NDArray[np.uint32]]:
        division, table = right(arithmetic)
        bits = table.copy()
        # a wrong step or two would vanish: the Newton step squares its error
        bits[1696:1697] ^= 1 << 16
        return division, bits

    patch.setattr(twin, "reciprocal_division", spoiled)


def wide_floor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conclusion, "FLOOR", 1e-2)


CAUSES = [
    Cause(
        "rows summed in a tree",
        ("float_adm/ieee-*/debug/bbb_63x65_420p8", "float_adm/ieee-*/debug/boost_576x324_8"),
        (
            (
                """\
        float sum = 0.0f;
        for (int column = 0; column < columns; column++)
            sum = sum + own[(size_t)column * rows];
""",
                """\
        float even = 0.0f, odd = 0.0f;
        for (int column = 0; column < columns; column += 2)
            even = even + own[(size_t)column * rows];
        for (int column = 1; column < columns; column += 2)
            odd = odd + own[(size_t)column * rows];
        const float sum = even + odd;
""",
            ),
        ),
    ),
    Cause(
        "rows folded in fp64",
        ("float_adm/ieee-*/debug/bbb_63x65_420p8",),
        (
            ("float total = 0.0f;", "double total = 0.0;"),
            ("= total;", "= (float)total;"),
        ),
    ),
    Cause(
        "two rows swapped in the fold",
        ("float_adm/ieee-*/debug/bbb_63x65_420p8",),
        (
            (
                "sums[index * rows + row] = sum;",
                "sums[index * rows + ((row ^ 1) < rows ? row ^ 1 : row)] = sum;",
            ),
        ),
    ),
    Cause(
        "last column dropped",
        ("float_adm/ieee-*/debug/noise_17x17_8",),
        (("column < columns; column++", "column < columns - 1; column++"),),
    ),
    Cause(
        "mirror for clamp at the far edge",
        ("float_adm/ieee-*/debug/noise_17x17_8",),
        (
            ("x == width - 1 ? x : x + 1", "x == width - 1 ? x - 1 : x + 1"),
            ("y == height - 1 ? y : y + 1", "y == height - 1 ? y - 1 : y + 1"),
        ),
    ),
    Cause(
        "clamp for mirror at the near edge",
        ("float_adm/ieee-*/debug/noise_17x17_8",),
        (("x == 0 ? 1 : x - 1", "x == 0 ? 0 : x - 1"),),
    ),
    Cause(
        "1/15 in fp32",
        ("float_adm/ieee-*/debug/aitzgorri_640x360_422p10",),
        (
            (
                "(float)((double)sum + 0.0666666701 * (double)centre)",
                "sum + 0.0666666701f * centre",
            ),
        ),
    ),
    Cause(
        "1/30 in fp32",
        (
            "float_adm/ieee-single/debug_scfd_0.5_csf_1_scf_2/city_322x182_420p8",
            "float_adm/ieee-double/debug_egl_1.2/amplified_321x241_8",
        ),
        (("(float)(0.0333333351 * (double)fabs(weighted))", "0.0333333351f * fabs(weighted)"),),
    ),
    Cause(
        "centre added last",
        ("float_adm/ieee-*/debug/bbb_63x65_420p8",),
        (
            ("    sum = (float)((double)sum + 0.0666666701 * (double)centre);", "    //"),
            (
                "    return sum + south[east];",
                """\
    sum = sum + south[east];
    return (float)((double)sum + 0.0666666701 * (double)centre);""",
            ),
        ),
    ),
    Cause(
        "threshold from the same signal",
        ("float_adm/ieee-*/debug/noise_17x17_8",),
        (
            ("by_restored = bypass ? 0.0f : masks[0]", "by_restored = bypass ? 0.0f : masks[area]"),
            ("by_additive = bypass ? 0.0f : masks[area]", "by_additive = bypass ? 0.0f : masks[0]"),
        ),
    ),
    Cause(
        "gain product in fp32",
        ("float_adm/ieee-*/debug_egl_1.2/amplified_*",),
        (
            (
                """\
const double limit = (double)value * gain_limit;
        value = (float)(limit < """,
                """\
const double limit = (double)(value * (float)gain_limit);
        value = (float)(limit < """,
            ),
        ),
    ),
    Cause(
        "cos^2 multiplied last in the angle test",
        ("float_adm/ieee-*/debug/near_322x182_12", "float_adm/ieee-*/debug/bbb_576x324_420p10"),
        (
            (
                "dot * dot >= scaled * dist_power",
                "dot * dot >= as_float(0x3F7FEC0Au) * (ref_power * dist_power)",
            ),
        ),
    ),
    Cause(
        "IEEE quotient for the estimate",
        ("float_adm/rcpss-*/debug/noise_17x17_8", "float_adm/rcpss-*/debug/noise_32x32_12"),
        (("if (division > 0) {", "if (0) {"),),
    ),
    Cause(
        "one wrong entry in the reciprocal table",
        ("float_adm/rcpss-*/debug/bbb_576x324_420p10",),
        patch=wrong_entry,
    ),
    Cause(
        "weights of the other precision",
        ("float_adm/ieee-*/debug/bbb_63x65_420p8",),
        patch=other_weights,
    ),
    Cause(
        "one weight off by one step",
        ("float_adm/ieee-*/debug/bbb_63x65_420p8", "float_adm/ieee-*/debug_apn_2.5/city_322x182_*"),
        patch=a_step_off,
    ),
    Cause(
        "root as fp64 pow",
        ("float_adm/ieee-*/debug/bbb_63x65_420p8",),
        patch=root_in_doubles,
    ),
    Cause(
        "the device's own float power",
        (
            "float_adm/ieee-*/debug_apn_2.5/city_322x182_*",
            "float_adm/ieee-*/debug_apn_2/bbb_63x65_420p8",
        ),
        ((": power(z, p_norm, fused);", ": pow(z, p_norm);"),),
    ),
    Cause(
        "a gap in the input of the next level",
        ("float_adm/ieee-*/debug/noise_17x17_8",),
        (("        next[picture * area", "        if (x > 0) next[picture * area"),),
    ),
    Cause(
        "floor of 1e-2",
        ("float_adm/ieee-*/debug_nw_0/flat1_576x324_16",),
        patch=wide_floor,
    ),
    Cause(
        "a row left unwritten",
        ("float_adm/ieee-*/debug/noise_17x17_8",),
        (("sums[index * rows + row] = sum;", "if (row > 0) sums[index * rows + row] = sum;"),),
    ),
    Cause(
        "a column left unweighted",
        ("float_adm/ieee-*/debug/noise_17x17_8",),
        (
            (
                "if (x < width && y < height && plane < planes) {",
                "if (x < width - 1 && y < height && plane < planes) {",
            ),
        ),
    ),
    Cause(
        "a sum that starts at what the memory held",
        ("float_adm/ieee-*/debug/noise_17x17_8",),
        (
            (
                "        float sum = 0.0f;\n        for (int column",
                "        float sum = sums[index * rows + row];\n        for (int column",
            ),
        ),
    ),
]
