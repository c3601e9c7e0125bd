// Section 6.4: contrast sensitivity, one factor per band.
#include "float_adm.hpp"

namespace float_adm {

void apply_csf(Bands &bands, const std::array<float, 3> &weights)
{
    for (int band = 0; band < 3; band++)
        for (float &sample : bands[band].samples)
            sample = weights[band] * sample;
}

} // namespace float_adm
