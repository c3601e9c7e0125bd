// The four scales of one frame.
#include "integer_adm.hpp"

namespace integer_adm {

// 9: the numerator of a signal that is masked by another.
static float masked(const Bands &signal, const Bands &masker, int scale, const Weights &weights,
                    float root, double noise_weight, bool vmafx)
{
    Bands weighted, filtered;
    apply_csf(masker, weights, scale, weighted, filtered);
    const Plane threshold = masking_threshold(weighted, filtered, scale, vmafx);
    return pool_masked(signal, threshold, weights, scale, root, noise_weight, vmafx);
}

ScaleSums scale_sums(int scale, const Bands &ref, const Bands &dist, const Options &options,
                     const Dialect &dialect)
{
    const bool vmafx = dialect.vmafx != 0;
    const Weights weights = csf_weights(scale, options, vmafx);
    const Spelling spelling = scale == 0 ? dialect.spelling : Spelling::golden;
    Bands restored, additive;
    decouple(ref, dist, scale, options.enhn_gain_limit, spelling, restored, additive);

    const float root = 1.0f / static_cast<float>(vmafx ? options.p_norm : 3.0); // 13.5
    ScaleSums sums = {};
    sums.den = pool_energy(ref, weights, scale, options.noise_weight);
    sums.num = masked(restored, additive, scale, weights, root, options.noise_weight, vmafx);
    if (!options.skip_aim)
        sums.aim = masked(additive, restored, scale, weights, root, 0.0, vmafx);
    return sums;
}

} // namespace integer_adm

void integer_adm_frame(const void *ref, const void *dist, int width, int height, int bit_depth,
                       const integer_adm::Options *options, const integer_adm::Dialect *dialect,
                       double scores[integer_adm::outputs], bool unset[integer_adm::outputs])
{
    using namespace integer_adm;
    Level ref_level = dwt0(ref, width, height, bit_depth);
    Level dist_level = dwt0(dist, width, height, bit_depth);
    std::array<ScaleSums, scales> sums;
    for (int scale = 0; scale < scales; scale++) {
        if (scale > 0) {
            ref_level = dwt(ref_level.low, scale);
            dist_level = dwt(dist_level.low, scale);
        }
        if (scale == 0 && options->skip_scale0)
            sums[scale] = {0.0f, 1e-10f, 0.0f};
        else
            sums[scale] =
                scale_sums(scale, ref_level.detail, dist_level.detail, *options, *dialect);
    }
    conclude(sums, width, height, *options, dialect->vmafx_conclusion != 0, scores, unset);
}
