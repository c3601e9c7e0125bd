// Section 7, Netflix's and VMAFx's rules: from the sums of four scales to the scores of a frame.
#include "float_adm.hpp"

namespace float_adm {

static double adm3(double adm2, double aim, const Options &options, bool vmafx)
{
    double value;
    if (options.adm3_apply_hm && vmafx && adm2 + aim == 0.0)
        value = 0.0;
    else if (options.adm3_apply_hm)
        value = ((2.0 * adm2) * aim) / (adm2 + aim);
    else
        value = adm2 * options.dlm_weight + (1.0 - aim) * (1.0 - options.dlm_weight);
    return value > options.min_val ? value : options.min_val;
}

// Netflix leaves 0/0 a NaN. VMAFx says 1, and a literal 0 for a scale that was skipped.
static double scale_ratio(double num, double den, bool skipped, bool vmafx)
{
    if (vmafx && skipped)
        return 0.0;
    return vmafx && num == 0.0 && den == 0.0 ? 1.0 : num / den;
}

void conclude(const std::array<ScaleSums, scales> &sums, int width, int height,
              const Options &options, bool vmafx, double scores[outputs], bool unset[outputs])
{
    enum { ADM2, AIM, ADM3, ADM_SCALE0, ADM = 7, ADM_NUM, ADM_DEN, ADM_NUM_SCALE0 };
    double num = 0.0, den = 0.0, aim_num = 0.0, aim_den = 0.0;
    for (int scale = 0; scale < scales; scale++) {
        num += sums[scale].num;
        den += sums[scale].den;
        if (scale != options.skip_aim_scale) {
            aim_num += sums[scale].aim;
            aim_den += sums[scale].den;
        }
        const double n = sums[scale].num, d = sums[scale].den;
        scores[ADM_SCALE0 + scale] = scale_ratio(n, d, scale == 0 && options.skip_scale0, vmafx);
        scores[ADM_NUM_SCALE0 + 2 * scale] = n;
        scores[ADM_NUM_SCALE0 + 2 * scale + 1] = d;
    }
    const double limit = (1e-10 * (static_cast<double>(width) * height)) / (1920.0 * 1080.0);
    num = num < limit ? 0.0 : num;
    den = den < limit ? 0.0 : den;

    for (int i = 0; i < outputs; i++)
        unset[i] = false;
    if (den == 0.0 && vmafx) {
        scores[ADM2] = scores[AIM] = 1.0;
        scores[ADM3] = adm3(1.0, 1.0, options, vmafx);
    } else if (den == 0.0) {
        scores[ADM2] = 1.0;
        scores[AIM] = scores[ADM3] = 0.0;
        unset[AIM] = unset[ADM3] = true; // libvmaf emits whatever was on its stack
    } else {
        const double ratio = aim_num / aim_den;
        scores[ADM2] = num / den;
        scores[AIM] = ratio < 1.0 ? ratio : 1.0;
        scores[ADM3] = adm3(scores[ADM2], scores[AIM], options, vmafx);
    }
    scores[ADM] = scores[ADM2];
    scores[ADM_NUM] = num;
    scores[ADM_DEN] = den;
}

} // namespace float_adm
