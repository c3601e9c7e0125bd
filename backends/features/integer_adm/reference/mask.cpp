// Sections 9.1 and 9.2: the contrast masking threshold, and what exceeds it.
#include <algorithm>
#include <cstdlib>

#include "integer_adm.hpp"

namespace integer_adm {

// Samples cut off each side of a band of n samples.
static int crop(int n) { return n >= 5 ? (n - 5) / 10 : 0; }

Region::Region(const Plane &band)
    : left(crop(band.width)), top(crop(band.height)), right(band.width - left),
      bottom(band.height - top)
{
}

// Netflix cuts the sample's own part at scale 0 to 16 bits, so a strong one makes it negative.
static std::int64_t centre(std::int64_t weighted, int scale, bool vmafx)
{
    const std::int64_t magnitude = std::abs(weighted);
    if (scale > 0)
        return w32((286331153 * magnitude - (std::int64_t{1} << 31)) >> 32);
    const std::int64_t part = (8738 * magnitude + 2048) >> 12;
    return vmafx ? part : w16(part);
}

// The eight neighbours. Before the first row or column stands index 1, past the last the last.
static std::int64_t neighbours(const Plane &filtered, int x, int y)
{
    const std::int32_t *above = filtered.row(y == 0 ? 1 : y - 1);
    const std::int32_t *here = filtered.row(y);
    const std::int32_t *below = filtered.row(y == filtered.height - 1 ? y : y + 1);
    const int left = x == 0 ? 1 : x - 1;
    const int right = x == filtered.width - 1 ? x : x + 1;
    const std::int64_t edges = std::int64_t{above[x]} + here[left] + here[right] + below[x];
    return edges + above[left] + above[right] + below[left] + below[right];
}

Plane masking_threshold(const Bands &weighted, const Bands &filtered, int scale, bool vmafx)
{
    const Region region(weighted[0]);
    Plane threshold(weighted[0].width, weighted[0].height);
    for (int y = region.top; y < region.bottom; y++)
        for (int x = region.left; x < region.right; x++) {
            std::int64_t sum = 0;
            for (int band = 0; band < 3; band++)
                sum += neighbours(filtered[band], x, y) +
                       centre(weighted[band].row(y)[x], scale, vmafx);
            threshold.row(y)[x] = w32(sum);
        }
    return threshold;
}

std::int64_t excess(std::int32_t sample, std::uint32_t weight, std::int32_t threshold, int scale,
                    int band, bool vmafx)
{
    const std::int64_t product = std::int64_t{sample} * weight;
    if (scale > 0) {
        const std::int64_t magnitude = std::abs(std::int64_t{w32((product + (1 << 27)) >> 28)});
        return std::max(w32(magnitude - threshold), 0);
    }
    const std::int64_t magnitude = std::abs(std::int64_t{w32(product)});
    const std::int64_t scaled = std::int64_t{threshold} * (band < 2 ? 1 << 10 : 1 << 12);
    if (vmafx)
        return std::clamp(magnitude - scaled, std::int64_t{0}, (std::int64_t{1} << 31) - 1);
    return std::max(w32(magnitude - w32(scaled)), 0);
}

} // namespace integer_adm
