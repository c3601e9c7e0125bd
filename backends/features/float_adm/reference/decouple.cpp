// Section 6.2: splits dist into a restored part (along ref) and an additive part (the rest).
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "float_adm.hpp"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace float_adm {

static const float eps = 1e-30f;
static const float cos_1deg_squared = 0x1.ffd814p-1f; // float of cos(pi / 180)^2

// This processor's estimate of 1/d. Its bits belong to the processor: AMD and Intel differ.
static float rcpss(float d)
{
#if defined(__SSE__)
    return _mm_cvtss_f32(_mm_rcp_ss(_mm_set_ss(d)));
#else
    (void)d;
    std::abort(); // never called: the binding refuses it without the instruction
#endif
}

// Another processor's: the table holds the estimates of [1, 2), the exponent is exact.
float replayed_estimate(const std::uint32_t *table, float d)
{
    if (std::isnan(d))
        return d;
    if (std::fabs(d) < FLT_MIN) // zeros and denormals
        return std::copysign(std::numeric_limits<float>::infinity(), d);
    if (std::isinf(d))
        return std::copysign(0.0f, d);
    int exponent;
    const float mantissa = 2.0f * std::frexp(std::fabs(d), &exponent); // in [1, 2)
    const int index = static_cast<int>((mantissa - 1.0f) * 4096.0f);   // truncated
    float estimate;
    std::memcpy(&estimate, &table[index], sizeof estimate);
    const float scaled = std::ldexp(estimate, 1 - exponent);
    return std::copysign(scaled < FLT_MIN ? 0.0f : scaled, d); // never a denormal
}

static float divide(float n, float d, const Dialect &dialect)
{
    float estimate = 0.0f;
    switch (dialect.division) {
    case Division::ieee:
        return n / d;
    case Division::instruction:
        estimate = rcpss(d);
        break;
    case Division::table:
        estimate = replayed_estimate(dialect.table, d);
        break;
    case Division::quotient:
        estimate = 1.0f / d;
        break;
    }
    const float error = 1.0f - d * estimate;
    return n * (estimate + estimate * error);
}

// Whether the vectors (h, v) of both pictures are less than about one degree apart. The
// association of the right side decides close cases.
static bool aligned(float oh, float ov, float th, float tv)
{
    const float dot = oh * th + ov * tv;
    const float ref_squared = oh * oh + ov * ov;
    const float dist_squared = th * th + tv * tv;
    return dot >= 0.0f && dot * dot >= (cos_1deg_squared * ref_squared) * dist_squared;
}

static float restore(float o, float t, bool flag, double gain_limit, const Dialect &dialect)
{
    float k = divide(t, o + eps, dialect);
    k = k < 0.0f ? 0.0f : (k > 1.0f ? 1.0f : k);
    float restored = k * o;
    if (flag && restored > 0.0f) {
        const double gained = static_cast<double>(restored) * gain_limit;
        restored = static_cast<float>(gained < t ? gained : static_cast<double>(t));
    }
    if (flag && restored < 0.0f) {
        const double gained = static_cast<double>(restored) * gain_limit;
        restored = static_cast<float>(gained > t ? gained : static_cast<double>(t));
    }
    return restored;
}

void decouple(const Bands &ref, const Bands &dist, double gain_limit, const Dialect &dialect,
              Bands &restored, Bands &additive)
{
    const int width = ref[0].width, height = ref[0].height;
    restored.assign(3, Plane(width, height));
    additive.assign(3, Plane(width, height));
    for (std::size_t i = 0; i < ref[0].samples.size(); i++) {
        const bool flag =
            aligned(ref[0].samples[i], ref[1].samples[i], dist[0].samples[i], dist[1].samples[i]);
        for (int band = 0; band < 3; band++) {
            const float t = dist[band].samples[i];
            const float r = restore(ref[band].samples[i], t, flag, gain_limit, dialect);
            restored[band].samples[i] = r;
            additive[band].samples[i] = t - r;
        }
    }
}

} // namespace float_adm
