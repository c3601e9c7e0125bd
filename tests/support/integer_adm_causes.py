"""Wrong constructs of `integer_adm`, old and tempting, and the cells of pr.yaml that name them.

Spellings of the angle flag are those of angle_flag.md, section 4; they hold for the operands of
scale 0, where the old ports had them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planting import Cause

from backends.base import Arithmetic
from backends.features.integer_adm import twin
from backends.features.integer_adm.weights import csf_weights

if TYPE_CHECKING:
    import pytest

    from backends.features.integer_adm.spec import IntegerAdmOptions
    from backends.features.integer_adm.weights import Weights

ANY = "integer_adm/*/debug/bbb_63x65_420p8"
FLAG = "    if (dp < 0)\n        return 0;\n    if (om == 0"
SECOND_STORE = "samples[at] - grey;\n    }\n}\n\n// Where"  # of samples_16, the last before it
FIRST_SCALE = "(ulong)(om | tm) >> 32 == 0"
FLIPPED = "integer_adm/*/debug_egl_1.2/near_9*"


def spelled(name: str, wrong: str) -> Cause:
    """Return the cause that decides the angle flag of scale 0 by the expression `wrong`."""
    early = f"    if (dp >= 0 && {FIRST_SCALE})\n        return {wrong};\n"
    return Cause(name, (FLIPPED,), ((FLAG, early + FLAG),))


def not_halved(patch: pytest.MonkeyPatch) -> None:
    def netflix(scale: int, _: Arithmetic, options: IntegerAdmOptions) -> Weights:
        return csf_weights(scale, Arithmetic("netflix"), options)

    patch.setattr(twin, "csf_weights", netflix)


CAUSES = [
    Cause(
        "one fold per tile instead of per row",
        ("integer_adm/*/debug/city_322x182_420p8", "integer_adm/*/debug/bbb_576x324_420p8"),
        (
            ("        ulong total = (ulong)half_of(shift);\n", "        ulong total = 0;\n"),
            (
                "            total += parts[line * SLICES + slice];",
                "            total += (parts[line * SLICES + slice] + half_of(shift)) >> shift;",
            ),
            ("folded[line] = total >> shift;", "folded[line] = total;"),
            ("folded[line] = (ulong)((long)total >> shift);", "folded[line] = total;"),
        ),
    ),
    Cause(
        "a shift off by one",
        (ANY,),
        (("band == 2 ? log_width - 3 : log_width - 4", "log_width - 4"),),
    ),
    Cause(
        "+2^31 for the -2^31 that rounds the mask",
        (ANY,),
        (("143165577 * value - 2147483648", "143165577 * value + 2147483648"),),
    ),
    Cause(
        "+2^31 for the -2^31 that rounds the centre",
        (ANY,),
        (("286331153 * value - 2147483648", "286331153 * value + 2147483648"),),
    ),
    Cause(
        "(65536, 17) for (65535, 17)",
        ("integer_adm/*/debug_scfd_0.00322699_csf_1_scf_0.01/near_322x182_12",),
        (("(product + 65535) >> 17", "(product + 65536) >> 17"),),
    ),
    Cause(
        "a shortened cosine constant",
        ("integer_adm/*/debug_egl_1.2/bbb_576x324_420p10",),
        (
            ("const ulong low = 16772106 *", "const ulong low = 16772183 *"),  # 0.9997
            ("const ulong whole = 16772106 *", "const ulong whole = 16772183 *"),
        ),
    ),
    spelled(
        "angle flag in doubles, not narrowed",
        "(double)(dp * dp) >= (double)(om * tm) * as_float(0x3F7FEC0Au)",
    ),
    spelled(
        "angle flag in floats",
        "((float)dp / 4096.0f) * ((float)dp / 4096.0f) >= "
        "(as_float(0x3F7FEC0Au) * ((float)om / 4096.0f)) * ((float)tm / 4096.0f)",
    ),
    spelled(
        "angle flag of products in floats",
        "(float)(dp * dp) >= (float)(om * tm) * as_float(0x3F7FEC0Au)",
    ),
    Cause(
        "a float division for the reciprocal table",
        ("integer_adm/*/debug/city_322x182_420p8", "integer_adm/*/debug/brushes_640x360_444p8"),
        (
            (
                "(long)reciprocals[(size + half_of(drop)) >> drop]",
                "(long)(1073741824.0f / (float)((size + half_of(drop)) >> drop))",
            ),
        ),
    ),
    Cause(
        "rows swapped in the mirror rule",
        (ANY, "integer_adm/vmafx/debug/noise_17x17_8"),
        (("        i = -i;", "        i = -1 - i;"), ("2 * n - 1 - i", "2 * n - 2 - i")),
    ),
    Cause(
        "mirror for clamp at the far edge of the mask",
        ("integer_adm/*/debug/contrast_97x81_8", "integer_adm/vmafx/debug/noise_17x17_8"),
        (
            ("x == width - 1 ? x : x + 1", "x == width - 1 ? x - 1 : x + 1"),
            ("y == height - 1 ? y : y + 1", "y == height - 1 ? y - 1 : y + 1"),
        ),
    ),
    Cause(
        "16-bit rows a byte stride apart",
        ("integer_adm/*/debug/bbb_63x65_420p10", "integer_adm/*/debug/near_63x65_16"),
        (
            (
                SECOND_STORE,
                SECOND_STORE.replace("[at]", "[at - (size_t)(picture * height + y) * width / 2]"),
            ),
        ),
    ),
    Cause(
        "the limited product rounded to nearest",
        ("integer_adm/*/debug_egl_1.2/amplified_*",),
        (
            (
                "(long)(kept >> (places - drop))",
                "(long)((kept + half_of(places - drop)) >> (places - drop))",
            ),
        ),
    ),
    Cause(
        "the limited product in floats",
        ("integer_adm/*/debug_egl_1.37/amplified_1*",),
        (
            (
                "const long limit = gained((ulong)magnitude(value), gain, places);",
                (
                    "const float scaled = (float)gain / (float)((ulong)1 << places);"
                    "const long limit = (long)((float)magnitude(value) * scaled);"
                ),
            ),
        ),
    ),
    Cause(
        "the rows of netflix without a sign",
        ("integer_adm/netflix/debug/ridges_64x64_*",),
        (("if (slot < 3 || (scale == 0 && repaired))", "if (slot < 3 || scale == 0)"),),
    ),
    Cause(
        "the centre of netflix without its 16 bits",
        ("integer_adm/netflix/debug/noise_322x182_*",),
        (("return repaired ? exact : (short)exact;", "return exact;"),),
    ),
    Cause(
        "the square's rounding in the denominator, halved",
        (ANY,),
        (("((ulong)1 << square)) >> square", "((ulong)1 << (square - 1))) >> square"),),
    ),
    Cause(
        "weights of vmafx that are not halved",
        ("integer_adm/vmafx/debug_csf_1/bbb_63x65_420p8",),
        patch=not_halved,
    ),
    Cause(
        "a row of slices left unwritten",
        (ANY,),
        (("slice < SLICES && row < rows", "slice < SLICES && row < rows && row > 0"),),
    ),
    Cause(
        "slices that start at what the memory held",
        ("integer_adm/*/debug/flatref_patch_64x64_8",),
        (
            (
                "sums[slot] = 0;",
                "sums[slot] = output[((frame * SLOTS + slot) * rows + row) * SLICES + slice];",
            ),
        ),
    ),
]
