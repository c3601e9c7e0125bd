// Contrast sensitivity: weighs signals, and makes of their magnitudes what masks others.

FUNCTION long band_weight(int band, uint weight_hv, uint weight_d)
{
    return band == 2 ? weight_d : weight_hv;
}

// Scale 0 computes in 16 bits, the others in 32. Its rounding of band d is 65535, on purpose.
FUNCTION long weighted_magnitude(int sample, int band, long weight, int scale)
{
    const long product = weight * sample;
    if (scale > 0)
        return magnitude((int)((product + (1 << 27)) >> 28));
    if (band == 2)
        return magnitude((short)((int)(product + 65535) >> 17));
    return magnitude((short)((int)(product + 16384) >> 15));
}

// A thirtieth, of a magnitude that masks its neighbours. The rounding of scales 1 to 3 is minus
// 2^31, on purpose, here and below.
FUNCTION int thirtieth(long value, int scale)
{
    if (scale > 0)
        return (int)((143165577 * value - 2147483648) >> 32);
    return (short)((4369 * value + 2048) >> 12);
}

// A fifteenth, of a magnitude that masks its own place; Netflix keeps 16 bits of it at scale 0.
FUNCTION int fifteenth(long value, int scale, int repaired)
{
    if (scale > 0)
        return (int)((286331153 * value - 2147483648) >> 32);
    const int exact = (int)((8738 * value + 2048) >> 12);
    return repaired ? exact : (short)exact;
}

// One work item per sample of a signal; two signals a frame: restored, additive. What the three
// bands mask is added up, in the integers modulo 2^32.
KERNEL csf(GLOBAL const int *signals, GLOBAL int *filtered, GLOBAL int *centres, uint weight_hv,
           uint weight_d, int scale, int repaired, int width, int height, int count)
{
    const int x = ID(0), y = ID(1), signal = ID(2);
    if (x < width && y < height && signal < count) {
        const size_t area = (size_t)width * height;
        const size_t at = (size_t)y * width + x;
        GLOBAL const int *own = signals + (size_t)signal * 3 * area + at;
        uint around = 0, centre = 0;
        for (int band = 0; band < 3; band++) {
            const long weight = band_weight(band, weight_hv, weight_d);
            const long weighted = weighted_magnitude(own[band * area], band, weight, scale);
            around += (uint)thirtieth(weighted, scale);
            centre += (uint)fifteenth(weighted, scale, repaired);
        }
        filtered[signal * area + at] = (int)around;
        centres[signal * area + at] = (int)centre;
    }
}
