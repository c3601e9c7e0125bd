// Section 6.3: CSF weights. `_float` and `_double` variants differ in where they round.
#include <cmath>

#include "float_adm.hpp"

namespace float_adm {

static const double pi = 3.14159265358979323846;

static float rounded(double value) { return static_cast<float>(value); }

// Pixels per degree of the viewing condition, fp64.
static double pixels_per_degree(const Options &options)
{
    return (options.norm_view_dist * options.ref_display_height * pi) / 180.0;
}

// Watson97; orientation 0 is h and v, 1 is d.
static float watson(int scale, int orientation, double r, bool double_weights)
{
    static const float a = 0.495f, k = 0.466f, f0 = 0.401f;
    static const float g[2] = {1.0f, 0.534f};
    static const float amplitude[2][scales] = {{0.67234f, 0.41317f, 0.22727f, 0.11792f},
                                               {0.72709f, 0.49428f, 0.28688f, 0.15214f}};
    const double cycles = std::pow(2.0, scale + 1) * f0 * g[orientation];
    double exponent;
    if (double_weights) {
        const double t = std::log10(cycles / r);
        exponent = static_cast<double>(k) * t * t;
    } else {
        const float t = rounded(std::log10(cycles / static_cast<double>(rounded(r))));
        exponent = static_cast<double>((k * t) * t);
    }
    const float q = rounded(2.0 * a * std::pow(10.0, exponent) / amplitude[orientation][scale]);
    return 1.0f / q;
}

// What Barten's formula reads from its tables at luminance 100, between the anchors 20 and 150.
static float barten_parameter(int index, bool double_weights)
{
    static const float at_20[4] = {0.334278f, 3.79542f, 1.07327f, 6.4635f};
    static const float at_150[4] = {0.394533f, 2.7755f, 1.16577f, 7.45665f};
    const float low = rounded(std::log10(20.0)), high = rounded(std::log10(150.0));
    const float position = rounded(std::log10(100.0));
    const float rise = at_150[index] - at_20[index];
    if (!double_weights)
        return at_20[index] + (rise / (high - low)) * (position - low);
    const double slope = static_cast<double>(rise) / static_cast<double>(high - low);
    return rounded(at_20[index] + slope * static_cast<double>(position - low));
}

// Optical transfer: a sum of four exponentials, rounded to float after each.
static float barten_transfer(float f, bool double_weights)
{
    static const float amount[4] = {0.424838596301290f, 0.572435103936480f, 0.000167576239164937f,
                                    0.00255872352306433f};
    static const float decay[4] = {0.028f, 0.37f, 37.0f, 360.0f};
    float sum = 0.0f;
    for (int i = 0; i < 4; i++) {
        const double exponent = double_weights
                                    ? -static_cast<double>(decay[i]) * static_cast<double>(f)
                                    : static_cast<double>(-decay[i] * f);
        sum = rounded(sum + static_cast<double>(amount[i]) * std::exp(exponent));
    }
    return sum;
}

static float barten_rod_vision()
{
    static const float s[4] = {30.162f, 4.0627f, 1.6596f, 0.2712f};
    const float ratio = s[1] / 100.0f;
    const double inner = std::pow(static_cast<double>(ratio), static_cast<double>(s[2])) + 1.0;
    return rounded(s[0] * std::pow(inner, -static_cast<double>(s[3])));
}

static float barten(int scale, double r, double factor, bool double_weights)
{
    const float f = rounded(rounded(r) / std::pow(2.0, scale + 1));
    float p[4];
    for (int i = 0; i < 4; i++)
        p[i] = barten_parameter(i, double_weights);

    const double reach = double_weights ? static_cast<double>(p[0]) * static_cast<double>(f)
                                        : static_cast<double>(p[0] * f);
    const float alpha = rounded(1.0 + std::pow(reach, static_cast<double>(p[1])));
    const double u = double_weights ? static_cast<double>(f) / 7.0 : static_cast<double>(f / 7.0f);
    const float beta = rounded(1.0 / std::pow(1.0 - std::exp(-(u * u)), static_cast<double>(p[2])));
    const double noise = double_weights ? static_cast<double>(alpha) * static_cast<double>(beta)
                                        : static_cast<double>(alpha * beta);
    const float c = rounded(p[3] / std::pow(noise, 0.5));
    const float transfer = barten_transfer(f, double_weights);
    const float rod = barten_rod_vision();
    if (!double_weights)
        return rounded(static_cast<double>((c * transfer) * rod) * factor);
    return rounded((static_cast<double>(c) * transfer) * rod * factor);
}

static float native_adm(int scale, int orientation, double r)
{
    float f = rounded(rounded(r) / std::pow(2.0, scale + 1));
    if (orientation == 1)
        f = rounded(static_cast<double>(f) / 0.7);
    const double cycles = f;
    return rounded((0.31 + 0.69 * cycles) * std::exp(-0.29 * cycles));
}

static float weight(int scale, int orientation, const Options &options, bool double_weights)
{
    const double override = orientation == 0 ? options.f1[scale] : options.f2[scale];
    if (override >= 0.0)
        return rounded(override);
    const double r = pixels_per_degree(options);
    const double factor = orientation == 0 ? options.csf_scale : options.csf_diag_scale;
    switch (options.csf_mode) {
    case 1:
        return barten(scale, r, factor, double_weights);
    case 2:
        return native_adm(scale, orientation, r);
    default: // 0 and, as in libvmaf, every number without a formula of its own
        return watson(scale, orientation, r, double_weights);
    }
}

std::array<float, 3> csf_weights(int scale, const Options &options, bool double_weights)
{
    const float hv = weight(scale, 0, options, double_weights);
    return {hv, hv, weight(scale, 1, options, double_weights)};
}

} // namespace float_adm
