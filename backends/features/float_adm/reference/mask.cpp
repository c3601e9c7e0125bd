// Sections 6.4 (filtered magnitude) and 6.5: the contrast masking threshold.
#include <cmath>

#include "float_adm.hpp"

namespace float_adm {

// fp64 constants that hold the float values of 1/30 and 1/15: products with them round twice.
static const double one_by_30 = 0.0333333351;
static const double one_by_15 = 0.0666666701;

static Plane filtered(const Plane &band)
{
    Plane output(band.width, band.height);
    for (std::size_t i = 0; i < band.samples.size(); i++)
        output.samples[i] =
            static_cast<float>(one_by_30 * static_cast<double>(std::fabs(band.samples[i])));
    return output;
}

// Adds one band's part to the threshold. Before the first row or column stands index 1 (mirror),
// past the last the last itself (clamp).
static void add_band(const Plane &band, Plane &threshold)
{
    const Plane q = filtered(band);
    for (int y = 0; y < band.height; y++) {
        const float *above = q.row(y == 0 ? 1 : y - 1);
        const float *here = q.row(y);
        const float *below = q.row(y == band.height - 1 ? y : y + 1);
        for (int x = 0; x < band.width; x++) {
            const int left = x == 0 ? 1 : x - 1;
            const int right = x == band.width - 1 ? x : x + 1;
            float sum = 0.0f;
            sum = sum + above[left];
            sum = sum + above[x];
            sum = sum + above[right];
            sum = sum + here[left];
            const double centre = one_by_15 * static_cast<double>(std::fabs(band.row(y)[x]));
            sum = static_cast<float>(static_cast<double>(sum) + centre);
            sum = sum + here[right];
            sum = sum + below[left];
            sum = sum + below[x];
            sum = sum + below[right];
            threshold.row(y)[x] = threshold.row(y)[x] + sum;
        }
    }
}

Plane masking_threshold(const Bands &weighted)
{
    Plane threshold(weighted[0].width, weighted[0].height); // starts at 0
    for (const Plane &band : weighted)
        add_band(band, threshold);
    return threshold;
}

} // namespace float_adm
