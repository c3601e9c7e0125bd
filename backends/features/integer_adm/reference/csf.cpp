// Section 7: contrast sensitivity, and what a magnitude adds to the threshold of its neighbours.
#include <cstdlib>

#include "integer_adm.hpp"

namespace integer_adm {

static std::int32_t weighted_sample(std::int64_t sample, std::int64_t weight, int scale, int band)
{
    if (scale > 0)
        return w32((weight * sample + (1 << 27)) >> 28);
    return band < 2 ? w16((weight * sample + 16384) >> 15)
                    : w16((weight * sample + 65535) >> 17); // not 65536
}

static std::int32_t filtered_sample(std::int64_t weighted, int scale)
{
    const std::int64_t magnitude = std::abs(weighted);
    if (scale > 0) // 2^31 is subtracted: 0 becomes -1
        return w32((143165577 * magnitude - (std::int64_t{1} << 31)) >> 32);
    return w16((4369 * magnitude + 2048) >> 12);
}

void apply_csf(const Bands &bands, const Weights &weights, int scale, Bands &weighted,
               Bands &filtered)
{
    const int width = bands[0].width, height = bands[0].height;
    weighted.assign(3, Plane(width, height));
    filtered.assign(3, Plane(width, height));
    for (int band = 0; band < 3; band++)
        for (std::size_t i = 0; i < bands[band].samples.size(); i++) {
            const std::int32_t sample =
                weighted_sample(bands[band].samples[i], weights.fixed[band], scale, band);
            weighted[band].samples[i] = sample;
            filtered[band].samples[i] = filtered_sample(sample, scale);
        }
}

} // namespace integer_adm
