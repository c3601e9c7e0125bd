// Sections 1, 2 and 4 of the specification of the angle flag.
#include <cfloat>
#include <stdexcept>

#include "angle.hpp"

static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated in float");

namespace integer_adm {

using std::int64_t;
using std::uint64_t;

static const float cos_1deg_squared = 0x1.ffd814p-1f; // float of cos(pi / 180)^2

bool aligned(int64_t dp, int64_t om, int64_t tm)
{
    const double p = static_cast<double>(static_cast<float>(dp)) / 4096.0;
    const double o = static_cast<double>(static_cast<float>(om)) / 4096.0;
    const double t = static_cast<double>(static_cast<float>(tm)) / 4096.0;
    return p >= 0.0 && p * p >= (static_cast<double>(cos_1deg_squared) * o) * t;
}

static int bit_length(uint64_t value) { return value ? 64 - __builtin_clzll(value) : 0; }

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// A binary32 value: significand * 2^exponent, 2^23 <= significand < 2^24.
struct Narrowed {
    uint64_t significand;
    int exponent;
};

// Step 4: what binary32 keeps of a positive integer, rounded to nearest even.
static Narrowed narrowed(uint64_t value)
{
    const int dropped = bit_length(value) - 24;
    if (dropped <= 0)
        return {value << -dropped, dropped};
    const uint64_t rest = value & ((uint64_t{1} << dropped) - 1);
    const uint64_t half = uint64_t{1} << (dropped - 1);
    uint64_t kept = value >> dropped;
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    if (kept == uint64_t{1} << 24) // the carry
        return {kept / 2, dropped + 1};
    return {kept, dropped};
}

bool aligned_int64(int64_t dp, int64_t om, int64_t tm)
{
    if (dp < 0) // step 1
        return false;
    if (om == 0 || tm == 0 || (om < 0) != (tm < 0)) // step 2: the right side is at most 0
        return true;
    if (dp == 0) // step 3
        return false;
    const Narrowed p = narrowed(magnitude(dp));
    const Narrowed o = narrowed(magnitude(om));
    const Narrowed t = narrowed(magnitude(tm));
    const int shift = 2 * p.exponent - o.exponent - t.exponent; // step 5
    if (shift >= 3)
        return true;
    if (shift <= -3)
        return false;

    // Step 6: cos^2 = (2^24 - 5110) / 2^24, so the right side is whole - part / 2^24.
    const uint64_t low24 = (uint64_t{1} << 24) - 1;
    const uint64_t product = o.significand * t.significand;
    const uint64_t whole = product - 5110 * (product >> 24);
    const uint64_t part = 5110 * (product & low24);

    // Step 7: its bit length, which a borrow may take below that of `whole`.
    int length = bit_length(whole);
    const uint64_t above = whole - (uint64_t{1} << (length - 1));
    if (above < 5110 && (above << 24) < part)
        length--;
    const int k = 53 - length;

    // Step 8: the right side * 2^k, rounded to nearest even.
    const uint64_t scaled = part << k;
    uint64_t right = (whole << k) - (scaled >> 24);
    const uint64_t fraction = scaled & low24, half = uint64_t{1} << 23;
    if (fraction > half || (fraction == half && (right & 1)))
        right--;
    return (p.significand * p.significand) << (shift + k) >= right; // step 9
}

// A product that wraps where it does not fit; at scale 0, the place of these spellings, it fits.
static int64_t product(int64_t x, int64_t y)
{
    return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}

static bool spelling_a(int64_t dp, int64_t om, int64_t tm)
{
    const double right = static_cast<double>(product(om, tm));
    return dp >= 0 && static_cast<double>(product(dp, dp)) >= right * cos_1deg_squared;
}

static bool spelling_b(int64_t dp, int64_t om, int64_t tm)
{
    const float p = static_cast<float>(dp) / 4096.0f;
    const float o = static_cast<float>(om) / 4096.0f;
    const float t = static_cast<float>(tm) / 4096.0f;
    return p >= 0.0f && p * p >= (cos_1deg_squared * o) * t;
}

static bool spelling_c(int64_t dp, int64_t om, int64_t tm)
{
    const float right = static_cast<float>(product(om, tm));
    return dp >= 0 && static_cast<float>(product(dp, dp)) >= right * cos_1deg_squared;
}

static bool spelling_d(int64_t dp, int64_t om, int64_t tm)
{
    const double p = static_cast<double>(dp) / 4096.0;
    const double o = static_cast<double>(om) / 4096.0;
    const double t = static_cast<double>(tm) / 4096.0;
    return p >= 0.0 && p * p >= (static_cast<double>(cos_1deg_squared) * o) * t;
}

Predicate predicate(Spelling spelling)
{
    switch (spelling) {
    case Spelling::golden:
        return aligned;
    case Spelling::int64:
        return aligned_int64;
    case Spelling::a:
        return spelling_a;
    case Spelling::b:
    case Spelling::e:
        return spelling_b;
    case Spelling::c:
        return spelling_c;
    case Spelling::d:
        return spelling_d;
    }
    throw std::invalid_argument("an unknown spelling of the angle flag");
}

// x1 * y1 + x2 * y2. Products of components of 32 bits fit; their sum too, but for four components
// of the lowest value, which no band and no corpus has.
static int64_t exact_dot(int64_t x1, int64_t y1, int64_t x2, int64_t y2)
{
    return x1 * y1 + x2 * y2;
}

// Each product and the sum are rounded once; the products are exact integers before that, which
// leaves nothing to contract.
static int64_t rounded_dot(int64_t x1, int64_t y1, int64_t x2, int64_t y2)
{
    return static_cast<int64_t>(static_cast<float>(x1 * y1) + static_cast<float>(x2 * y2));
}

Operands exact(const Vectors &v)
{
    return {exact_dot(v.oh, v.th, v.ov, v.tv), exact_dot(v.oh, v.oh, v.ov, v.ov),
            exact_dot(v.th, v.th, v.tv, v.tv)};
}

Operands in_binary32(const Vectors &v)
{
    return {rounded_dot(v.oh, v.th, v.ov, v.tv), rounded_dot(v.oh, v.oh, v.ov, v.ov),
            rounded_dot(v.th, v.th, v.tv, v.tv)};
}

bool flag(Spelling spelling, const Vectors &v)
{
    const Operands of = spelling == Spelling::e ? in_binary32(v) : exact(v);
    return predicate(spelling)(of.dp, of.om, of.tm);
}

} // namespace integer_adm
