// The processor's reciprocal estimate (RCPSS) as data: a table read from the instruction itself,
// and the check that the table with integer exponent arithmetic is the whole instruction.
// Source: float_adm.md section 6.2.
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#if defined(__SSE__)
#include <xmmintrin.h>
constexpr bool has_rcpss = true;
#else
constexpr bool has_rcpss = false;
#endif

namespace nb = nanobind;

constexpr std::uint32_t entries = 4096, low_bits = 11;
constexpr std::uint32_t sign_bit = 0x80000000u, infinity = 0x7f800000u, mantissa_mask = 0x7fffffu;

using Table = nb::ndarray<std::uint32_t, nb::shape<entries>, nb::c_contig, nb::device::cpu>;

static std::uint32_t estimate(std::uint32_t bits)
{
#if defined(__SSE__)
    float value;
    std::memcpy(&value, &bits, sizeof value);
    value = _mm_cvtss_f32(_mm_rcp_ss(_mm_set_ss(value)));
    std::memcpy(&bits, &value, sizeof value);
    return bits;
#else
    (void)bits;
    throw std::runtime_error("this processor has no RCPSS instruction");
#endif
}

static std::uint32_t model(const std::uint32_t *table, std::uint32_t bits)
{
    const std::uint32_t sign = bits & sign_bit, mantissa = bits & mantissa_mask;
    const int exponent = static_cast<int>(bits >> 23 & 255);
    if (exponent == 0)
        return sign | infinity; // zeros and denormals
    if (exponent == 255)
        return mantissa != 0 ? bits | 0x400000u : sign; // quiet NaN, or infinity to zero
    const std::uint32_t entry = table[mantissa >> low_bits];
    const int result = static_cast<int>(entry >> 23) + 127 - exponent;
    if (result < 1)
        return sign;
    return sign | static_cast<std::uint32_t>(result) << 23 | (entry & mantissa_mask);
}

static void read_table(Table table)
{
    for (std::uint32_t i = 0; i < entries; i++)
        table.data()[i] = estimate(0x3f800000u | i << low_bits);
}

// Every mantissa of [1, 2), then every sign and exponent at 2048 mantissas.
static std::pair<std::uint64_t, std::uint64_t> check_table(Table table)
{
    std::uint64_t checked = 0, different = 0;
    const auto check = [&](std::uint32_t bits) {
        checked++;
        different += estimate(bits) != model(table.data(), bits);
    };
    for (std::uint32_t mantissa = 0; mantissa <= mantissa_mask; mantissa++)
        check(0x3f800000u | mantissa);
    for (std::uint32_t high = 0; high < 512; high++)
        for (std::uint32_t mantissa = 0; mantissa <= mantissa_mask; mantissa += 4096 + 2)
            check(high << 23 | mantissa);
    return {checked, different};
}

NB_MODULE(_reciprocal, module)
{
    module.doc() = "The reciprocal estimate of this processor, as a table of 4096 float bits.";
    module.attr("HAS_RCPSS") = has_rcpss;
    module.def("read_table", &read_table, nb::arg("table").noconvert(),
               "Fill table (4096, uint32) with the estimates of the floats 3F800000 | i << 11.");
    module.def("check_table", &check_table, nb::arg("table").noconvert(),
               "Return (inputs checked, inputs where table and instruction differ).");
}
