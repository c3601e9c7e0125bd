// The processor's reciprocal estimate (RCPSS) as data: a table read from the instruction itself,
// and the check that the table with integer exponent arithmetic is the whole instruction.
// Source: float_adm.md section 6.2.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <future>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#if defined(__SSE2__)
#include <emmintrin.h>
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
#if defined(__SSE2__)
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

// How many of the inputs first .. first + count - 1 have the estimate `wanted`. The results stay in
// vector registers: moving each out would take as long again as the instruction.
static std::uint32_t equal_estimates(std::uint32_t first, std::uint32_t count, std::uint32_t wanted)
{
#if defined(__SSE2__)
    const __m128i entry = _mm_cvtsi32_si128(static_cast<int>(wanted)), one = _mm_cvtsi32_si128(1);
    __m128i bits = _mm_cvtsi32_si128(static_cast<int>(first)), equal = _mm_setzero_si128();
    for (std::uint32_t i = 0; i < count; i++) {
        const __m128i got = _mm_castps_si128(_mm_rcp_ss(_mm_castsi128_ps(bits)));
        equal = _mm_sub_epi32(equal, _mm_cmpeq_epi32(got, entry)); // true is -1
        bits = _mm_add_epi32(bits, one);
    }
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(equal));
#else
    return estimate(first) == wanted ? count : 0; // never reached: estimate throws
#endif
}

struct Count {
    std::uint64_t checked = 0, different = 0;
};

// One of `parts` parts of: every mantissa of [1, 2), where the model is the entry itself, then
// every sign and exponent at 2048 mantissas.
static Count check_part(const std::uint32_t *table, std::uint32_t part, std::uint32_t parts)
{
    Count count;
    for (std::uint32_t i = part; i < entries; i += parts) {
        const std::uint32_t first = 0x3f800000u | i << low_bits, inputs = 1u << low_bits;
        count.different += inputs - equal_estimates(first, inputs, table[i]);
        count.checked += inputs;
    }
    for (std::uint32_t high = part; high < 512; high += parts)
        for (std::uint32_t mantissa = 0; mantissa <= mantissa_mask; mantissa += 4096 + 2) {
            const std::uint32_t bits = high << 23 | mantissa;
            count.different += estimate(bits) != model(table, bits);
            count.checked++;
        }
    return count;
}

static std::pair<std::uint64_t, std::uint64_t> check_table(Table table)
{
    if (!has_rcpss)
        throw std::runtime_error("this processor has no RCPSS instruction");
    const std::uint32_t parts = std::min(4u, std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::future<Count>> others;
    for (std::uint32_t part = 1; part < parts; part++)
        others.push_back(std::async(std::launch::async | std::launch::deferred, check_part,
                                    table.data(), part, parts));
    Count total = check_part(table.data(), 0, parts);
    for (std::future<Count> &other : others) {
        const Count count = other.get();
        total.checked += count.checked;
        total.different += count.different;
    }
    return {total.checked, total.different};
}

using Floats = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static void estimates(Floats values, Floats results)
{
    if (values.size() != results.size())
        throw std::invalid_argument("values and results must have the same length");
    for (std::size_t i = 0; i < values.size(); i++) {
        std::uint32_t bits;
        std::memcpy(&bits, &values.data()[i], sizeof bits);
        bits = estimate(bits);
        std::memcpy(&results.data()[i], &bits, sizeof bits);
    }
}

NB_MODULE(_reciprocal, module)
{
    module.doc() = "The reciprocal estimate of this processor, as a table of 4096 float bits.";
    module.attr("HAS_RCPSS") = has_rcpss;
    module.def("read_table", &read_table, nb::arg("table").noconvert(),
               "Fill table (4096, uint32) with the estimates of the floats 3F800000 | i << 11.");
    module.def("estimates", &estimates, nb::arg("values").noconvert(),
               nb::arg("results").noconvert(),
               "Fill results (n,) float32 with the instruction's estimates for values (n,).");
    module.def("check_table", &check_table, nb::arg("table").noconvert(),
               "Return (inputs checked, inputs where table and instruction differ).");
}
