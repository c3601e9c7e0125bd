// Contrast masking: what a weighted sample exceeds its threshold by, and the cube of that.

// The threshold at a place: what masks there, and what the eight neighbours add, modulo 2^32.
FUNCTION int threshold(GLOBAL const int *filtered, GLOBAL const int *centres, int x, int y,
                       int width, int height)
{
    const int west = x == 0 ? 1 : x - 1;         // mirror in front
    const int east = x == width - 1 ? x : x + 1; // clamp behind
    GLOBAL const int *north = filtered + (size_t)(y == 0 ? 1 : y - 1) * width;
    GLOBAL const int *middle = filtered + (size_t)y * width;
    GLOBAL const int *south = filtered + (size_t)(y == height - 1 ? y : y + 1) * width;
    uint sum = (uint)centres[(size_t)y * width + x];
    sum += (uint)north[west] + (uint)north[x] + (uint)north[east];
    sum += (uint)middle[west] + (uint)middle[east];
    sum += (uint)south[west] + (uint)south[x] + (uint)south[east];
    return (int)sum;
}

// Netflix cuts to 32 bits what VMAFx bounds, at scale 0.
FUNCTION long excess(int sample, int band, long weight, long masked, int scale, int repaired)
{
    const long product = weight * sample;
    if (scale > 0) {
        const int rest = (int)(magnitude((int)((product + (1 << 27)) >> 28)) - masked);
        return rest < 0 ? 0 : rest;
    }
    const long rest = magnitude((int)product) - masked * (band == 2 ? 4096 : 1024);
    const long kept = repaired ? (rest > 2147483647 ? 2147483647 : rest) : (int)rest;
    return kept < 0 ? 0 : kept;
}

// `log_width` is the bit length of the band's width - 1.
FUNCTION long cube(long value, int band, int scale, int log_width)
{
    const int square = scale == 0 && band < 2 ? 29 : 30;
    const int shift = scale > 0 ? log_width : (band == 2 ? log_width - 3 : log_width - 4);
    const long squared = (int)((value * value + half_of(square)) >> square); // cut to 32 bits
    return (squared * value + half_of(shift)) >> shift;
}
