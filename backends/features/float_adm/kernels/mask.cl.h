// The masking threshold of one signal: its three bands' neighbourhoods, added up.

FUNCTION float band_threshold(GLOBAL const float *weighted, GLOBAL const float *filtered, int x,
                              int y, int width, int height)
{
    const int west = x == 0 ? 1 : x - 1;         // mirror in front
    const int east = x == width - 1 ? x : x + 1; // clamp behind
    GLOBAL const float *north = filtered + (size_t)(y == 0 ? 1 : y - 1) * width;
    GLOBAL const float *middle = filtered + (size_t)y * width;
    GLOBAL const float *south = filtered + (size_t)(y == height - 1 ? y : y + 1) * width;
    const float centre = fabs(weighted[(size_t)y * width + x]);
    float sum = north[west];
    sum = sum + north[x];
    sum = sum + north[east];
    sum = sum + middle[west];
    sum = (float)((double)sum + 0.0666666701 * (double)centre); // the double of float 1/15
    sum = sum + middle[east];
    sum = sum + south[west];
    sum = sum + south[x];
    return sum + south[east];
}

// One work item per sample of a signal; two signals a frame: restored, additive.
KERNEL mask(GLOBAL const float *signals, GLOBAL const float *filtered, GLOBAL float *thresholds,
            int width, int height, int count)
{
    const int x = ID(0), y = ID(1), signal = ID(2);
    if (x < width && y < height && signal < count) {
        const size_t area = (size_t)width * height;
        const size_t first = (size_t)signal * 3 * area;
        float sum = 0.0f;
        for (int band = 0; band < 3; band++)
            sum = sum + band_threshold(signals + first + band * area,
                                       filtered + first + band * area, x, y, width, height);
        thresholds[signal * area + (size_t)y * width + x] = sum;
    }
}
