// Sections 3 and 4: one level of the wavelet transform, vertical pass first.
#include <utility>

#include "integer_adm.hpp"

namespace integer_adm {

static const std::int64_t low_taps[4] = {15826, 27411, 7345, -4240};
static const std::int64_t high_taps[4] = {-4240, -7345, 27411, -15826};
static const std::int64_t low_sum = 46342;

// Index of the sample that stands for index i of n: mirrored before the first, and past the last
// with the last sample repeated.
static int mirrored(int i, int n)
{
    if (i < 0)
        return -i;
    return i >= n ? 2 * n - 1 - i : i;
}

// What a pass adds to its sums before it shifts them.
struct Rounding {
    std::int64_t add;
    int shift;
};

template <class Sample>
static std::int64_t filter(const std::int64_t taps[4], Sample s0, Sample s1, Sample s2, Sample s3,
                           Rounding rounding)
{
    const std::int64_t sum = taps[0] * s0 + taps[1] * s1 + taps[2] * s2 + taps[3] * s3;
    return (sum + rounding.add) >> rounding.shift;
}

using Wrap = std::int32_t (*)(std::int64_t);

template <Wrap wrap, class Sample>
static Plane vertical(const Sample *samples, int width, int height, const std::int64_t taps[4],
                      Rounding rounding)
{
    Plane output(width, (height + 1) / 2);
    const auto row = [&](int y) {
        return samples + static_cast<std::size_t>(mirrored(y, height)) * width;
    };
    for (int y = 0; y < output.height; y++) {
        const Sample *s0 = row(2 * y - 1), *s1 = row(2 * y);
        const Sample *s2 = row(2 * y + 1), *s3 = row(2 * y + 2);
        std::int32_t *out = output.row(y);
        for (int x = 0; x < width; x++)
            out[x] = wrap(filter(taps, s0[x], s1[x], s2[x], s3[x], rounding));
    }
    return output;
}

template <Wrap wrap>
static Plane horizontal(const Plane &input, const std::int64_t taps[4], Rounding rounding)
{
    const int width = input.width;
    Plane output((width + 1) / 2, input.height);
    for (int y = 0; y < output.height; y++) {
        const std::int32_t *in = input.row(y);
        std::int32_t *out = output.row(y);
        for (int x = 0; x < output.width; x++)
            out[x] = wrap(filter(taps, in[mirrored(2 * x - 1, width)], in[2 * x],
                                 in[mirrored(2 * x + 1, width)], in[mirrored(2 * x + 2, width)],
                                 rounding));
    }
    return output;
}

template <Wrap wrap> static Level level(const Plane &low, const Plane &high, Rounding rounding)
{
    Bands detail;
    detail.push_back(horizontal<wrap>(high, low_taps, rounding));  // h
    detail.push_back(horizontal<wrap>(low, high_taps, rounding));  // v
    detail.push_back(horizontal<wrap>(high, high_taps, rounding)); // d
    return {horizontal<wrap>(low, low_taps, rounding), std::move(detail)};
}

template <class Sample>
static Level samples_dwt(const Sample *samples, int width, int height, int bit_depth)
{
    const std::int64_t rounding = std::int64_t{1} << (bit_depth - 1);
    const std::int64_t middle = low_sum * rounding; // mid grey becomes 0
    return level<w16>(
        vertical<w16>(samples, width, height, low_taps, {rounding - middle, bit_depth}),
        vertical<w16>(samples, width, height, high_taps, {rounding, bit_depth}), {32768, 16});
}

Level dwt0(const void *samples, int width, int height, int bit_depth)
{
    if (bit_depth == 8)
        return samples_dwt(static_cast<const std::uint8_t *>(samples), width, height, bit_depth);
    return samples_dwt(static_cast<const std::uint16_t *>(samples), width, height, bit_depth);
}

Level dwt(const Plane &input, int scale)
{
    static const Rounding down[] = {{0, 0}, {32768, 16}, {32768, 16}};
    static const Rounding across[] = {{16384, 15}, {32768, 16}, {16384, 15}};
    const auto pass = [&](const std::int64_t taps[4]) {
        return vertical<w32>(input.samples.data(), input.width, input.height, taps,
                             down[scale - 1]);
    };
    return level<w32>(pass(low_taps), pass(high_taps), across[scale - 1]);
}

} // namespace integer_adm
