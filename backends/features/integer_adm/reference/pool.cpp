// Sections 8 and 9.3 to 9.5: cubes inside the region, summed row by row, and their roots.
// A sum is rounded once a row; inside a row the order means nothing.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "integer_adm.hpp"

namespace integer_adm {

static const float third = 1.0f / 3.0f;

static float rounded(double value) { return static_cast<float>(value); }

static float noise(const Region &region, double noise_weight, float root)
{
    return std::pow(rounded(static_cast<double>(region.area()) * noise_weight), root);
}

// 8: the cube of a reference sample, and the exponent of what the cubes add up to. The rounding
// term of the square is a whole unit.
struct Energy {
    int scale, square, column, row, exponent;

    Energy(const Region &region, int s) : scale(s)
    {
        static const int squares[scales] = {0, 31, 30, 31};
        static const int exponents[scales] = {18, 32, 27, 23};
        square = squares[s];
        column = s == 0 ? 0 : clog2(region.width());
        row = s == 0 ? std::max(0, clog2(region.area()) - 20) : clog2(region.height());
        exponent = exponents[s] - row - column;
    }

    std::uint64_t cube(std::int64_t sample) const
    {
        const auto x = static_cast<std::uint64_t>(std::abs(sample));
        if (scale == 0)
            return x * x * x;
        const std::uint64_t squared = (x * x + (std::uint64_t{1} << square)) >> square;
        return (squared * x + half(column)) >> column;
    }
};

float pool_energy(const Bands &ref, const Weights &weights, int scale, double noise_weight)
{
    const Region region(ref[0]);
    const Energy energy(region, scale);
    const float floor = noise(region, noise_weight, third);
    std::array<float, 3> terms;
    for (int band = 0; band < 3; band++) {
        std::uint64_t sum = 0;
        for (int y = region.top; y < region.bottom; y++) {
            std::uint64_t total = 0;
            for (int x = region.left; x < region.right; x++)
                total += energy.cube(ref[band].row(y)[x]);
            sum += (total + half(energy.row)) >> energy.row;
        }
        const double weight = std::pow(static_cast<double>(weights.exact[band]), 3.0);
        const double value = std::ldexp(static_cast<double>(sum), -energy.exponent) * weight;
        terms[band] = std::pow(rounded(value), third) + floor;
    }
    return (terms[0] + terms[1]) + terms[2];
}

// 9.3, 9.5: the shifts of a band's cubes, and the exponent of what they add up to.
struct Cubes {
    int scale, square, column, row, exponent;

    Cubes(const Plane &signal, int s, int band) : scale(s)
    {
        static const int squares[3] = {29, 29, 30}, columns[3] = {4, 4, 3};
        static const int exponents0[3] = {52, 52, 57}, exponents[scales] = {0, 45, 39, 36};
        square = s == 0 ? squares[band] : 30;
        column = clog2(signal.width) - (s == 0 ? columns[band] : 0);
        row = clog2(signal.height);
        exponent = (s == 0 ? exponents0[band] : exponents[s]) - column - row;
    }

    std::int64_t cube(std::int64_t x) const
    {
        const std::int64_t squared = w32((x * x + half(square)) >> square);
        return (squared * x + half(column)) >> column;
    }

    // 9.4: what a row's total adds. Netflix reads it as signed, so one beyond 2^63 is negative.
    std::uint64_t folded(std::uint64_t total, bool is_signed) const
    {
        const std::uint64_t sum = total + half(row);
        return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(sum) >> row)
                         : sum >> row;
    }

    // 9.5: scale 0 rounds to binary64 first, the others straight to binary32.
    float value(std::uint64_t sum, bool is_signed, int halvings) const
    {
        const int shift = exponent - 3 * halvings;
        const auto number = static_cast<std::int64_t>(sum);
        if (scale > 0)
            return std::ldexp(static_cast<float>(number), -shift);
        const double wide = is_signed ? static_cast<double>(number) : static_cast<double>(sum);
        return rounded(std::ldexp(wide, -shift));
    }
};

float pool_masked(const Bands &signal, const Plane &threshold, const Weights &weights, int scale,
                  float root, double noise_weight, bool vmafx)
{
    const Region region(signal[0]);
    const bool is_signed = scale > 0 || !vmafx;
    const float floor = noise(region, noise_weight, root);
    std::array<float, 3> terms;
    for (int band = 0; band < 3; band++) {
        const Cubes cubes(signal[band], scale, band);
        std::uint64_t sum = 0;
        for (int y = region.top; y < region.bottom; y++) {
            const std::int32_t *samples = signal[band].row(y), *limits = threshold.row(y);
            std::uint64_t total = 0; // wraps, as a signed total does in Netflix
            for (int x = region.left; x < region.right; x++)
                total += static_cast<std::uint64_t>(cubes.cube(
                    excess(samples[x], weights.fixed[band], limits[x], scale, band, vmafx)));
            sum += cubes.folded(total, is_signed);
        }
        terms[band] = std::pow(cubes.value(sum, is_signed, weights.halvings), root) + floor;
    }
    return (terms[0] + terms[1]) + terms[2];
}

} // namespace integer_adm
