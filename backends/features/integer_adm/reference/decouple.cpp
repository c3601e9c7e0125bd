// Section 5: splits dist into a restored part (along ref) and an additive part (the rest).
#include <cstdlib>

#include "integer_adm.hpp"

namespace integer_adm {

static const std::int64_t one = 32768; // of the ratio, in Q15

// The entry of the reciprocal table: 2^30 / n, cut toward 0.
static std::int64_t reciprocal(std::int64_t n) { return (1 << 30) / n; }

static int bit_length(std::int64_t n)
{
    return 64 - __builtin_clzll(static_cast<std::uint64_t>(n));
}

// 5.1: t / o in Q15, before its clamp.
static std::int64_t ratio0(std::int64_t o, std::int64_t t)
{
    return o == 0 ? one : (reciprocal(o) * t + 16384) >> 15;
}

static std::int64_t ratio(std::int64_t o, std::int64_t t)
{
    if (o == 0)
        return one;
    const std::int64_t magnitude = std::abs(o), sign = o < 0 ? -1 : 1;
    // the table has indices of 15 bits, so larger numbers lose their low bits
    const int s = magnitude < 32768 ? 0 : bit_length(magnitude) - 15;
    const std::int64_t kept = (magnitude + half(s)) >> s;
    return (reciprocal(kept) * t * sign + half(15 + s)) >> (15 + s);
}

// 5.2, 5.4
static std::int32_t restore(std::int64_t k, std::int64_t o, std::int64_t t, bool flag,
                            double gain_limit)
{
    const std::int64_t restored = (k * o + 16384) >> 15;
    if (!flag || k == 0 || o == 0)
        return static_cast<std::int32_t>(restored);
    const double gained = static_cast<double>(restored) * gain_limit;
    const double most = static_cast<double>(t);
    const bool within = o > 0 ? gained < most : gained > most;
    return static_cast<std::int32_t>(within ? gained : most); // cut toward 0
}

void decouple(const Bands &ref, const Bands &dist, int scale, double gain_limit, Spelling spelling,
              Bands &restored, Bands &additive)
{
    const int width = ref[0].width, height = ref[0].height;
    restored.assign(3, Plane(width, height));
    additive.assign(3, Plane(width, height));
    for (std::size_t i = 0; i < ref[0].samples.size(); i++) {
        const Vectors vectors = {ref[0].samples[i], ref[1].samples[i], dist[0].samples[i],
                                 dist[1].samples[i]};
        const bool aligned = flag(spelling, vectors);
        for (int band = 0; band < 3; band++) {
            const std::int64_t o = ref[band].samples[i], t = dist[band].samples[i];
            const std::int64_t k = scale == 0 ? ratio0(o, t) : ratio(o, t);
            const std::int64_t clamped = k < 0 ? 0 : (k > one ? one : k);
            const std::int32_t r = restore(clamped, o, t, aligned, gain_limit);
            restored[band].samples[i] = r;
            additive[band].samples[i] = static_cast<std::int32_t>(t - r);
        }
    }
}

} // namespace integer_adm
