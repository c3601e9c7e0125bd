// float_adm on the CPU, one frame: the reference that every candidate is held against.
// Written to be read beside the specification (float_adm.md); section numbers below are its own.
// Every operation rounds once to its stated type: this code must be compiled without contraction
// and without fast-math (CMakeLists.txt passes the flags; the tests build it at several levels).
#pragma once

#include <array>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <vector>

static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated in float");

namespace float_adm {

#if defined(__SSE__)
constexpr bool has_rcpss = true;
#else
constexpr bool has_rcpss = false;
#endif

constexpr int scales = 4;
constexpr int outputs = 18;

// A picture or a wavelet band, row by row.
struct Plane {
    int width;
    int height;
    std::vector<float> samples;

    Plane(int w, int h) : width(w), height(h), samples(static_cast<std::size_t>(w) * h) {}
    const float *row(int y) const { return samples.data() + static_cast<std::size_t>(y) * width; }
    float *row(int y) { return samples.data() + static_cast<std::size_t>(y) * width; }
};

// The three detail bands of a scale, always in the order h, v, d.
using Bands = std::vector<Plane>;

// libvmaf's options, in declaration order; plain data, so that tests can build it through ctypes.
struct Options {
    double enhn_gain_limit;
    double norm_view_dist;
    double noise_weight;
    double csf_scale;
    double csf_diag_scale;
    int ref_display_height;
    int csf_mode;
    int bypass_cm;
    int adm3_apply_hm;
    double p_norm;
    double dlm_weight;
    double min_val;
    double f1[scales]; // weight of the h and v bands, used if >= 0
    double f2[scales]; // weight of the d band, used if >= 0
    int skip_aim_scale;
    int skip_scale0;
};

// How the decouple divides (section 6.2): all but the first take an estimate of 1/d through one
// Newton step.
enum class Division : int {
    ieee,        // IEEE quotient
    instruction, // this processor's RCPSS
    table,       // another processor's RCPSS, replayed from its table
    quotient,    // the IEEE quotient 1/d for the estimate, where there is no RCPSS
};

// A dialect is a division and a precision of the CSF weights (section 1); the conclusion comes on
// top. Plain data, so that tests can build it through ctypes.
struct Dialect {
    Division division;
    const std::uint32_t *table; // 4096 float bits, for Division::table
    int double_weights;         // weights with fp64 intermediates
    int vmafx_conclusion;       // VMAFx's rules at the end of a frame instead of Netflix's
};

// 5.1: samples of `bit_depth` 8 (bytes) or 10, 12, 16 (16-bit words) to centred float.
Plane to_float(const void *samples, int width, int height, int bit_depth);

// 5.3, 5.4: one wavelet level; `bands` is left alone when null (low-pass only).
Plane dwt(const Plane &input, Bands *bands);

// 6.2: another processor's estimate of 1/d, from its table of 4096 float bits.
float replayed_estimate(const std::uint32_t *table, float d);

// 6.2: splits dist into what restores ref and what is added to it.
void decouple(const Bands &ref, const Bands &dist, double gain_limit, const Dialect &dialect,
              Bands &restored, Bands &additive);

// 6.3: CSF weights of the bands h, v, d of a scale.
std::array<float, 3> csf_weights(int scale, const Options &options, bool double_weights);

// 6.4: multiplies each band by its weight, in place.
void apply_csf(Bands &bands, const std::array<float, 3> &weights);

// 6.5: masking threshold of weighted bands, one value for all three bands.
Plane masking_threshold(const Bands &weighted);

// 6.6, 6.7: pooled energy of |weight * band|.
float pool_energy(const Bands &bands, const std::array<float, 3> &weights, double p_norm,
                  double noise_weight);

// 6.6, 6.7: pooled energy of what exceeds the threshold; a null threshold is 0.
float pool_masked(const Bands &weighted, const Plane *threshold, double p_norm,
                  double noise_weight);

// The three sums of each scale.
struct ScaleSums {
    float num;
    float den;
    float aim;
};

// 7: scores of the frame in libvmaf's order, debug included; unset marks what is left unset.
void conclude(const std::array<ScaleSums, scales> &sums, int width, int height,
              const Options &options, bool vmafx, double scores[outputs], bool unset[outputs]);

} // namespace float_adm

// One frame, from samples to scores. C linkage so that tests can call differently built copies.
extern "C" void float_adm_frame(const void *ref, const void *dist, int width, int height,
                                int bit_depth, const float_adm::Options *options,
                                const float_adm::Dialect *dialect,
                                double scores[float_adm::outputs], bool unset[float_adm::outputs]);
