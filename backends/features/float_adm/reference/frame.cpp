// Section 6: the four scales of one frame.
#include "float_adm.hpp"

namespace float_adm {

static ScaleSums scale_sums(int scale, const Bands &ref, const Bands &dist, const Options &options,
                            const Dialect &dialect)
{
    Bands restored, additive;
    decouple(ref, dist, options.enhn_gain_limit, dialect, restored, additive);
    const std::array<float, 3> weights = csf_weights(scale, options, dialect.double_weights);
    apply_csf(restored, weights);
    apply_csf(additive, weights);

    ScaleSums sums;
    sums.den = pool_energy(ref, weights, options.p_norm, options.noise_weight);
    if (options.bypass_cm) {
        sums.num = pool_masked(restored, nullptr, options.p_norm, options.noise_weight);
        sums.aim = pool_masked(additive, nullptr, options.p_norm, 0.0);
    } else { // each signal is masked by the other
        const Plane by_additive = masking_threshold(additive);
        const Plane by_restored = masking_threshold(restored);
        sums.num = pool_masked(restored, &by_additive, options.p_norm, options.noise_weight);
        sums.aim = pool_masked(additive, &by_restored, options.p_norm, 0.0);
    }
    return sums;
}

} // namespace float_adm

void float_adm_frame(const void *ref, const void *dist, int width, int height, int bit_depth,
                     const float_adm::Options *options, const float_adm::Dialect *dialect,
                     double scores[float_adm::outputs], bool unset[float_adm::outputs])
{
    using namespace float_adm;
    Plane ref_plane = to_float(ref, width, height, bit_depth);
    Plane dist_plane = to_float(dist, width, height, bit_depth);
    std::array<ScaleSums, scales> sums;
    for (int scale = 0; scale < scales; scale++) {
        if (scale == 0 && options->skip_scale0) {
            ref_plane = dwt(ref_plane, nullptr);
            dist_plane = dwt(dist_plane, nullptr);
            sums[scale] = {0.0f, 1e-10f, 0.0f};
            continue;
        }
        Bands ref_bands, dist_bands;
        ref_plane = dwt(ref_plane, &ref_bands);
        dist_plane = dwt(dist_plane, &dist_bands);
        sums[scale] = scale_sums(scale, ref_bands, dist_bands, *options, *dialect);
    }
    conclude(sums, width, height, *options, dialect->vmafx_conclusion != 0, scores, unset);
}
