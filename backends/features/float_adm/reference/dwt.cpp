// Sections 5.2 to 5.4: one level of the wavelet transform, vertical pass first.
#include "float_adm.hpp"

namespace float_adm {

// Daubechies-2, as the float values that libvmaf holds (bits in section 5.2).
static const float low_taps[4] = {0x1.ee8dd4p-2f, 0x1.ac4bdep-1f, 0x1.cb0bfp-3f, -0x1.0907dcp-3f};
static const float high_taps[4] = {low_taps[3], -low_taps[2], low_taps[1], -low_taps[0]};

// Index of the sample that stands for index i of n: mirrored before the first, and past the last
// with the last sample repeated.
static int mirrored(int i, int n)
{
    if (i < 0)
        return -i;
    return i >= n ? 2 * n - 1 - i : i;
}

static float filter(const float taps[4], float s0, float s1, float s2, float s3)
{
    return ((taps[0] * s0 + taps[1] * s1) + taps[2] * s2) + taps[3] * s3;
}

static Plane vertical(const Plane &input, const float taps[4])
{
    Plane output(input.width, (input.height + 1) / 2);
    for (int y = 0; y < output.height; y++) {
        const float *s0 = input.row(mirrored(2 * y - 1, input.height));
        const float *s1 = input.row(mirrored(2 * y, input.height));
        const float *s2 = input.row(mirrored(2 * y + 1, input.height));
        const float *s3 = input.row(mirrored(2 * y + 2, input.height));
        float *out = output.row(y);
        for (int x = 0; x < output.width; x++)
            out[x] = filter(taps, s0[x], s1[x], s2[x], s3[x]);
    }
    return output;
}

static Plane horizontal(const Plane &input, const float taps[4])
{
    Plane output((input.width + 1) / 2, input.height);
    for (int y = 0; y < output.height; y++) {
        const float *in = input.row(y);
        float *out = output.row(y);
        for (int x = 0; x < output.width; x++)
            out[x] =
                filter(taps, in[mirrored(2 * x - 1, input.width)], in[mirrored(2 * x, input.width)],
                       in[mirrored(2 * x + 1, input.width)], in[mirrored(2 * x + 2, input.width)]);
    }
    return output;
}

Plane dwt(const Plane &input, Bands *bands)
{
    const Plane low = vertical(input, low_taps);
    if (bands != nullptr) {
        const Plane high = vertical(input, high_taps);
        bands->clear();
        bands->push_back(horizontal(high, low_taps));  // h
        bands->push_back(horizontal(low, high_taps));  // v
        bands->push_back(horizontal(high, high_taps)); // d
    }
    return horizontal(low, low_taps);
}

} // namespace float_adm
