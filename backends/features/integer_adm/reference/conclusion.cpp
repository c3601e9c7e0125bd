// Sections 10 and 13.6: from the sums of four scales to the scores of a frame.
#include "integer_adm.hpp"

namespace integer_adm {

// Netflix leaves 0/0 a NaN. VMAFx says 1; a ratio that is not finite, it refuses afterwards.
static double scale_ratio(double num, double den, bool vmafx)
{
    return vmafx && num == 0.0 && den == 0.0 ? 1.0 : num / den;
}

static double adm3(double adm2, double aim, const Options &options)
{
    const double weight = options.dlm_weight;
    const double value = adm2 * weight + (1.0 - aim) * (1.0 - weight);
    return value > options.min_val ? value : options.min_val;
}

void conclude(const std::array<ScaleSums, scales> &sums, int width, int height,
              const Options &options, bool vmafx, double scores[outputs], bool unset[outputs])
{
    enum { ADM2, AIM, ADM3, ADM_SCALE0, ADM = 7, ADM_NUM, ADM_DEN, ADM_NUM_SCALE0 };
    double num = 0.0, den = 0.0, aim_num = 0.0;
    for (int scale = 0; scale < scales; scale++) {
        num += sums[scale].num;
        den += sums[scale].den;
        aim_num += sums[scale].aim;
        scores[ADM_SCALE0 + scale] = scale_ratio(sums[scale].num, sums[scale].den, vmafx);
        scores[ADM_NUM_SCALE0 + 2 * scale] = sums[scale].num;
        scores[ADM_NUM_SCALE0 + 2 * scale + 1] = sums[scale].den;
    }
    const double limit = (1e-10 * (static_cast<double>(width) * height)) / 2073600.0;
    num = num < limit ? 0.0 : num;
    den = den < limit ? 0.0 : den;

    for (int i = 0; i < outputs; i++)
        unset[i] = false;
    if (den == 0.0 && !vmafx) {
        scores[ADM2] = 1.0;
        scores[AIM] = scores[ADM3] = 0.0;
        unset[AIM] = unset[ADM3] = true; // libvmaf emits whatever was on its stack
    } else {
        const bool nothing = den == 0.0 && num == 0.0 && aim_num == 0.0;
        scores[ADM2] = nothing ? 1.0 : num / den;
        scores[AIM] = nothing ? 1.0 : aim_num / den;
        scores[ADM3] = adm3(scores[ADM2], scores[AIM], options);
    }
    scores[ADM] = scores[ADM2];
    scores[ADM_NUM] = num;
    scores[ADM_DEN] = den;
}

} // namespace integer_adm
