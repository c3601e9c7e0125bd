// Section 5.1: samples to centred float.
#include <cstdint>

#include "float_adm.hpp"

namespace float_adm {

template <class Sample> static void convert(const Sample *samples, float divisor, Plane &plane)
{
    for (std::size_t i = 0; i < plane.samples.size(); i++)
        plane.samples[i] = static_cast<float>(samples[i]) / divisor + -128.0f;
}

Plane to_float(const void *samples, int width, int height, int bit_depth)
{
    Plane plane(width, height);
    if (bit_depth == 8)
        convert(static_cast<const std::uint8_t *>(samples), 1.0f, plane);
    else // 4, 16 or 256: exact, like the sum
        convert(static_cast<const std::uint16_t *>(samples),
                static_cast<float>(1 << (bit_depth - 8)), plane);
    return plane;
}

} // namespace float_adm
