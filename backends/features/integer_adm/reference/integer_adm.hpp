// integer_adm on the CPU, one frame: the reference that every candidate is held against.
// Written to be read beside the specification (integer_adm.md); section numbers below are its own.
// Integers are computed in 64 bits and cut where the text says so; the few operations in floating
// point round once to their stated type: this code must be compiled without contraction and without
// fast-math (CMakeLists.txt passes the flags; the tests build it at several levels).
#pragma once

#include <array>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "angle.hpp"

static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated in float");
static_assert((-3 >> 1) == -2, "a negative number must be shifted with its sign");
static_assert(static_cast<std::int64_t>(~std::uint64_t{0}) == -1, "signed numbers must wrap");

namespace integer_adm {

constexpr int scales = 4;
constexpr int outputs = 18;

// A wavelet band, row by row. Those of scale 0 hold values of 16 bits.
struct Plane {
    int width;
    int height;
    std::vector<std::int32_t> samples;

    Plane(int w, int h) : width(w), height(h), samples(static_cast<std::size_t>(w) * h) {}
    const std::int32_t *row(int y) const { return samples.data() + offset(y); }
    std::int32_t *row(int y) { return samples.data() + offset(y); }

private:
    std::size_t offset(int y) const { return static_cast<std::size_t>(y) * width; }
};

// The three detail bands of a scale, always in the order h, v, d.
using Bands = std::vector<Plane>;

// What one wavelet level makes of a picture: `low` is the picture of the next scale.
struct Level {
    Plane low; // band a
    Bands detail;
};

// libvmaf's options; plain data, so that tests can build it through ctypes.
struct Options {
    double csf_scale;
    double csf_diag_scale;
    double dlm_weight;
    double enhn_gain_limit;
    double norm_view_dist;
    double noise_weight;
    double min_val;
    double p_norm;
    int ref_display_height;
    int csf_mode;
    int skip_aim;
    int skip_scale0;
};

// Plain data, so that tests can build it through ctypes.
struct Dialect {
    int vmafx;            // VMAFx's repairs (section 13) instead of Netflix's arithmetic
    int vmafx_conclusion; // VMAFx's rules at the end of a frame instead of Netflix's
    Spelling spelling;    // of the angle flag at scale 0; a wrong one shows what it would change
};

// 0: keep the low 16 or 32 bits, read as a signed number.
constexpr std::int32_t w16(std::int64_t x)
{
    return static_cast<std::int32_t>((static_cast<std::uint64_t>(x) + 0x8000) & 0xffff) - 0x8000;
}

constexpr std::int32_t w32(std::int64_t x)
{
    const std::uint64_t low = (static_cast<std::uint64_t>(x) + 0x80000000) & 0xffffffff;
    return static_cast<std::int32_t>(static_cast<std::int64_t>(low) - 0x80000000);
}

// 0: the smallest s with 2^s >= n, and half of 2^s.
constexpr int clog2(std::int64_t n)
{
    int s = 0;
    while ((std::int64_t{1} << s) < n)
        s++;
    return s;
}

constexpr std::int64_t half(int s) { return s >= 1 ? std::int64_t{1} << (s - 1) : 0; }

// 2: the columns and rows of a band that enter the sums.
struct Region {
    int left, top, right, bottom; // the last two are the first that are left out
    explicit Region(const Plane &band);
    int width() const { return right - left; }
    int height() const { return bottom - top; }
    std::int64_t area() const { return std::int64_t{width()} * height(); }
};

// 3: the wavelet of samples of `bit_depth` 8 (bytes) or 10, 12, 16 (16-bit words).
Level dwt0(const void *samples, int width, int height, int bit_depth);

// 4: the wavelet of the scales 1 to 3.
Level dwt(const Plane &input, int scale);

// 5: splits dist into what restores ref and what is added to it.
void decouple(const Bands &ref, const Bands &dist, int scale, double gain_limit, Spelling spelling,
              Bands &restored, Bands &additive);

// 6: weights of the bands h, v, d of a scale.
struct Weights {
    std::array<float, 3> exact;         // for the denominators
    std::array<std::uint32_t, 3> fixed; // for everything else
    int halvings;                       // `fixed` is as many halvings too small (13.4)
};

// Throws std::invalid_argument where VMAFx has no weights.
Weights csf_weights(int scale, const Options &options, bool vmafx);

// 7: weighs the bands, and makes of their magnitudes what masks the neighbours.
void apply_csf(const Bands &bands, const Weights &weights, int scale, Bands &weighted,
               Bands &filtered);

// 9.1: masking threshold inside the region, one value for all three bands; 0 outside.
Plane masking_threshold(const Bands &weighted, const Bands &filtered, int scale, bool vmafx);

// 9.2: what a weighted sample exceeds the threshold by.
std::int64_t excess(std::int32_t sample, std::uint32_t weight, std::int32_t threshold, int scale,
                    int band, bool vmafx);

// 8: the denominator of a scale.
float pool_energy(const Bands &ref, const Weights &weights, int scale, double noise_weight);

// 9.3 to 9.5: the numerator of a scale, or that of AIM; `root` is the exponent of the roots.
float pool_masked(const Bands &signal, const Plane &threshold, const Weights &weights, int scale,
                  float root, double noise_weight, bool vmafx);

// The three sums of each scale.
struct ScaleSums {
    float num;
    float den;
    float aim;
};

ScaleSums scale_sums(int scale, const Bands &ref, const Bands &dist, const Options &options,
                     const Dialect &dialect);

// 10 and 13.6: scores of the frame in libvmaf's order, debug included; unset marks what is left
// unset.
void conclude(const std::array<ScaleSums, scales> &sums, int width, int height,
              const Options &options, bool vmafx, double scores[outputs], bool unset[outputs]);

} // namespace integer_adm

// One frame, from samples to scores. C linkage so that tests can call differently built copies.
extern "C" void integer_adm_frame(const void *ref, const void *dist, int width, int height,
                                  int bit_depth, const integer_adm::Options *options,
                                  const integer_adm::Dialect *dialect,
                                  double scores[integer_adm::outputs],
                                  bool unset[integer_adm::outputs]);
