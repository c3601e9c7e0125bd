// Contrast sensitivity: weights every signal in place and keeps a filtered magnitude beside it.

FUNCTION float band_weight(int band, float weight_hv, float weight_d)
{
    return band == 2 ? weight_d : weight_hv;
}

// One work item per sample; six planes a frame: restored h, v, d, additive h, v, d.
KERNEL csf(GLOBAL float *signals, GLOBAL float *filtered, float weight_hv, float weight_d,
           int width, int height, int planes)
{
    const int x = ID(0), y = ID(1), plane = ID(2);
    if (x < width && y < height && plane < planes) {
        const size_t at = ((size_t)plane * height + y) * width + x;
        const float weighted = band_weight(plane % 3, weight_hv, weight_d) * signals[at];
        signals[at] = weighted;
        // the double nearest to the float 1/30, on purpose: the product rounds twice
        filtered[at] = (float)(0.0333333351 * (double)fabs(weighted));
    }
}
