// Sections 6.1, 6.6 and 6.7: energies inside the window, summed in a fixed order, and their roots.
#include <cmath>

#include "float_adm.hpp"

namespace float_adm {

// Samples cut off each side of a band of n samples; exact form in section 6.1.
static int margin(int n) { return static_cast<int>(n * 0.1 - 0.5); }

struct Window {
    int left, top, right, bottom;
    explicit Window(const Plane &band)
        : left(margin(band.width)), top(margin(band.height)), right(band.width - left),
          bottom(band.height - top)
    {
    }
    int area() const { return (right - left) * (bottom - top); }
};

static float energy(float z, double p_norm)
{
    return p_norm == 3.0 ? (z * z) * z : std::pow(z, static_cast<float>(p_norm));
}

// Rows left to right, row sums top to bottom, all in float: the order is part of the result.
template <class Magnitude>
static float total(const Window &window, double p_norm, Magnitude magnitude)
{
    float sum = 0.0f;
    for (int y = window.top; y < window.bottom; y++) {
        float row = 0.0f;
        for (int x = window.left; x < window.right; x++)
            row = row + energy(magnitude(x, y), p_norm);
        sum = sum + row;
    }
    return sum;
}

static float root_of_bands(const std::array<float, 3> &totals, int area, double p_norm,
                           double noise_weight)
{
    const float root = static_cast<float>(1.0 / p_norm);
    const float floor = static_cast<float>(static_cast<double>(area) * noise_weight);
    const float noise = std::pow(floor, root);
    std::array<float, 3> values;
    for (int band = 0; band < 3; band++)
        values[band] = std::pow(totals[band], root) + noise;
    return (values[0] + values[1]) + values[2];
}

float pool_energy(const Bands &bands, const std::array<float, 3> &weights, double p_norm,
                  double noise_weight)
{
    const Window window(bands[0]);
    std::array<float, 3> totals;
    for (int band = 0; band < 3; band++)
        totals[band] = total(window, p_norm, [&](int x, int y) {
            return std::fabs(weights[band] * bands[band].row(y)[x]);
        });
    return root_of_bands(totals, window.area(), p_norm, noise_weight);
}

float pool_masked(const Bands &weighted, const Plane *threshold, double p_norm, double noise_weight)
{
    const Window window(weighted[0]);
    std::array<float, 3> totals;
    for (int band = 0; band < 3; band++)
        totals[band] = total(window, p_norm, [&](int x, int y) {
            const float limit = threshold != nullptr ? threshold->row(y)[x] : 0.0f;
            const float z = std::fabs(weighted[band].row(y)[x]) - limit;
            return z < 0.0f ? 0.0f : z;
        });
    return root_of_bands(totals, window.area(), p_norm, noise_weight);
}

} // namespace float_adm
