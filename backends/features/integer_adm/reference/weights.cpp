// Section 6: weights of the contrast sensitivity function.
#include <cmath>
#include <stdexcept>

#include "integer_adm.hpp"

namespace integer_adm {

static const double pi = 3.14159265358979323846;

static float rounded(double value) { return static_cast<float>(value); }

// Whether a weight is that of h and v, or that of d.
enum Orientation { hv, d };

// 6.1: Watson 97; `r` are the pixels per degree of the viewing condition.
static float watson(int scale, Orientation orientation, float r)
{
    static const float a = 0.495f, k = 0.466f, f0 = 0.401f;
    static const float g[2] = {1.0f, 0.534f};
    static const float amplitude[2][scales] = {{0.67234f, 0.41317f, 0.22727f, 0.11792f},
                                               {0.72709f, 0.49428f, 0.28688f, 0.15214f}};
    const double cycles = (std::pow(2.0, scale + 1) * f0) * g[orientation];
    const float t = rounded(std::log10(cycles / static_cast<double>(r)));
    const float exponent = (k * t) * t;
    const double power = std::pow(10.0, static_cast<double>(exponent));
    const float q = rounded(((2.0 * a) * power) / amplitude[orientation][scale]);
    return 1.0f / q;
}

// 6.2: what Barten's formula reads from its tables at luminance 100, between the rows 20 and 150.
static float barten_parameter(int index)
{
    static const float at_20[4] = {0.334278f, 3.79542f, 1.07327f, 6.4635f};
    static const float at_150[4] = {0.394533f, 2.7755f, 1.16577f, 7.45665f};
    const float low = rounded(std::log10(20.0)), high = rounded(std::log10(150.0));
    const float position = rounded(std::log10(100.0));
    return at_20[index] + ((at_150[index] - at_20[index]) / (high - low)) * (position - low);
}

static float barten_transfer(float f)
{
    static const float amount[4] = {0.424838596301290f, 0.572435103936480f, 0.000167576239164937f,
                                    0.00255872352306433f};
    static const float decay[4] = {0.028f, 0.37f, 37.0f, 360.0f};
    float sum = 0.0f;
    for (int i = 0; i < 4; i++) {
        const float exponent = -decay[i] * f;
        sum =
            rounded(sum + static_cast<double>(amount[i]) * std::exp(static_cast<double>(exponent)));
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

static float barten(int scale, float r, double factor)
{
    const float f = rounded(r / std::pow(2.0, scale + 1));
    double p[4];
    for (int i = 0; i < 4; i++)
        p[i] = barten_parameter(i);
    const float reach = rounded(p[0]) * f, seventh = f / 7.0f;
    const float a = rounded(1.0 + std::pow(static_cast<double>(reach), p[1]));
    const double squared = std::pow(static_cast<double>(seventh), 2.0);
    const float b = rounded(1.0 / std::pow(1.0 - std::exp(-squared), p[2]));
    const float product = a * b;
    const float n = rounded(p[3] / std::pow(static_cast<double>(product), 0.5));
    const float weight = (n * barten_transfer(f)) * barten_rod_vision();
    return rounded(static_cast<double>(weight) * factor);
}

// 6.3: a viewing condition of the tables, and its weights of the four scales. The text has three
// more conditions, nearer than libvmaf allows.
struct Row {
    int height;
    double distance;
    float weights[2][scales];
};

// clang-format off
static const Row blended[] = {
    {1080, 3.0, {{.01183f, .025026f, .04295f, .058621f}, {.004302f, .011778f, .023918f, .035901f}}},
    {1080, 5.0, {{.004212f, .014809f, .029642f, .047464f}, {.000984f, .005852f, .0146f, .027574f}}},
    {2160, 1.5, {{.01183f, .025026f, .04295f, .058621f}, {.004302f, .011778f, .023918f, .035901f}}},
    {2160, 3.0, {{.00226f, .01183f, .025026f, .04295f}, {.000479f, .004302f, .011778f, .023918f}}},
    {2160, 5.0, {{.000092f, .004212f, .014809f, .029642f}, {.000050f, .000984f, .005852f, .0146f}}},
    {720, 5.0, {{.010144f, .022561f, .040309f, .05672f}, {.003463f, .010282f, .021839f, .034641f}}},
};
static const Row blended_mae[] = {
    {1080, 3.0, {{.011249f, .022606f, .035930f, .045673f}, {.004097f, .010921f, .021430f, .031313f}}},
    {1080, 5.0, {{.004052f, .013939f, .026298f, .038833f}, {.000927f, .005544f, .013415f, .024515f}}},
    {2160, 1.5, {{.011249f, .022606f, .035930f, .045673f}, {.004097f, .010921f, .021430f, .031313f}}},
    {2160, 3.0, {{.002166f, .011249f, .022606f, .035930f}, {.000447f, .004097f, .010921f, .021430f}}},
    {2160, 5.0, {{.000077f, .004052f, .013939f, .026298f}, {.000045f, .000927f, .005544f, .013415f}}},
    {720, 5.0, {{.009689f, .020577f, .034162f, .044523f}, {.003302f, .009579f, .019661f, .030318f}}},
};
// clang-format on

template <std::size_t rows>
static float tabulated(const Row (&table)[rows], int scale, Orientation orientation,
                       const Options &options)
{
    for (const Row &row : table)
        if (row.height == options.ref_display_height && row.distance == options.norm_view_dist)
            return row.weights[orientation][scale];
    return -22.0f; // Netflix takes the error's number for a weight
}

static float weight(int scale, Orientation orientation, const Options &options)
{
    const double size = options.norm_view_dist * options.ref_display_height;
    const float r = rounded((size * pi) / 180.0);
    switch (options.csf_mode) {
    case 0:
        return watson(scale, orientation, r);
    case 1:
        return barten(scale, r, orientation == hv ? options.csf_scale : options.csf_diag_scale);
    case 2:
        return tabulated(blended, scale, orientation, options);
    case 3:
        return tabulated(blended_mae, scale, orientation, options);
    default:
        throw std::invalid_argument("csf_mode must be 0, 1, 2 or 3");
    }
}

// 13.4: halves the weights together until VMAFx's integers hold them, and returns how often.
static int halve(std::array<double, 3> &values, int scale)
{
    static const std::array<double, 3> limits[scales] = {
        {43900.0, 43900.0, 65536.0},
        {279958309.0, 279958309.0, 279958309.0},
        {539893111.0, 539893111.0, 539893111.0},
        {546406567.0, 546406567.0, 546406567.0},
    };
    for (double value : values)
        if (!std::isfinite(value) || value < 0.0)
            throw std::invalid_argument("dialect vmafx has no weights for these options");
    const auto exceeds = [&] {
        for (int band = 0; band < 3; band++)
            if (values[band] >= limits[scale][band])
                return true;
        return false;
    };
    int halvings = 0;
    for (; exceeds(); halvings++)
        for (double &value : values)
            value *= 0.5;
    return halvings;
}

// 6.4. Netflix stores 16 bits at scale 0 and 32 above, whatever the number: its low bits.
Weights csf_weights(int scale, const Options &options, bool vmafx)
{
    const float f_hv = weight(scale, hv, options), f_d = weight(scale, d, options);
    const double size = options.norm_view_dist * options.ref_display_height;
    if (scale == 0 && options.csf_mode == 0 && std::fabs(size - 3240.0) < 1e-8)
        return {{f_hv, f_hv, f_d}, {36453, 36453, 49417}, 0};
    const double unit_hv = scale == 0 ? 0x1p21 : 0x1p32, unit_d = scale == 0 ? 0x1p23 : 0x1p32;
    std::array<double, 3> values = {f_hv * unit_hv, f_hv * unit_hv, f_d * unit_d};
    Weights weights = {{f_hv, f_hv, f_d}, {}, vmafx ? halve(values, scale) : 0};
    for (int band = 0; band < 3; band++) {
        const auto whole = static_cast<std::uint64_t>(static_cast<std::int64_t>(values[band]));
        weights.fixed[band] =
            static_cast<std::uint32_t>(whole & (scale == 0 ? 0xffff : 0xffffffff));
    }
    return weights;
}

} // namespace integer_adm
