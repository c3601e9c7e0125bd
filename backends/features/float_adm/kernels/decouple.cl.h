// Splits dist into what restores ref and what is added to it.

// The host processor's reciprocal estimate, replayed from its table in integer arithmetic.
FUNCTION float reciprocal_estimate(GLOBAL const uint *table, float value)
{
    const uint bits = as_uint(value);
    const uint sign = bits & 0x80000000u;
    const uint fraction = bits & 0x007FFFFFu;
    const int exponent = (int)((bits >> 23) & 255u);
    const uint entry = table[fraction >> 11];
    const int scaled = (int)(entry >> 23) + 127 - exponent;
    uint result = sign; // below the normal range: a zero
    if (scaled >= 1)
        result = sign | ((uint)scaled << 23) | (entry & 0x007FFFFFu);
    if (exponent == 0) // zero or denormal: an infinity
        result = sign | 0x7F800000u;
    if (exponent == 255) // infinity: a zero; NaN: a quiet NaN
        result = fraction == 0u ? sign : (bits | 0x00400000u);
    return as_float(result);
}

// `division` is 0 for the IEEE quotient; else an estimate of 1/divisor goes through one Newton
// step: 1 takes it from the table, 2 from the IEEE quotient.
FUNCTION float divide(float numerator, float divisor, int division, GLOBAL const uint *table)
{
    if (division > 0) {
        const float estimate = division == 1 ? reciprocal_estimate(table, divisor) : 1.0f / divisor;
        const float residue = 1.0f - divisor * estimate;
        const float refined = estimate + estimate * residue;
        return numerator * refined;
    }
    return numerator / divisor;
}

// Whether ref's (h, v) and dist's point the same way, to about one degree.
FUNCTION int same_direction(float ref_h, float ref_v, float dist_h, float dist_v)
{
    const float dot = ref_h * dist_h + ref_v * dist_v;
    const float ref_power = ref_h * ref_h + ref_v * ref_v;
    const float dist_power = dist_h * dist_h + dist_v * dist_v;
    const float scaled = as_float(0x3F7FEC0Au) * ref_power; // cos^2 of one degree
    return dot >= 0.0f && dot * dot >= scaled * dist_power;
}

FUNCTION float restored_sample(float ref, float dist, int same, double gain_limit, int division,
                               GLOBAL const uint *table)
{
    float ratio = divide(dist, ref + as_float(0x0DA24260u), division, table); // + 1e-30
    ratio = ratio < 0.0f ? 0.0f : (ratio > 1.0f ? 1.0f : ratio);
    float value = ratio * ref;
    if (same && value > 0.0f) {
        const double limit = (double)value * gain_limit;
        value = (float)(limit < (double)dist ? limit : (double)dist);
    }
    if (same && value < 0.0f) {
        const double limit = (double)value * gain_limit;
        value = (float)(limit > (double)dist ? limit : (double)dist);
    }
    return value;
}

// One work item per band sample of a frame. `signals` holds, per frame, restored h, v, d and
// additive h, v, d.
KERNEL decouple(GLOBAL const float *bands, GLOBAL float *signals, GLOBAL const uint *table,
                double gain_limit, int division, int width, int height, int frames)
{
    const int x = ID(0), y = ID(1), frame = ID(2);
    if (x < width && y < height && frame < frames) {
        const size_t area = (size_t)width * height;
        const size_t at = (size_t)y * width + x;
        GLOBAL const float *ref = bands + (size_t)frame * 3 * area + at;
        GLOBAL const float *dist = bands + (size_t)(frames + frame) * 3 * area + at;
        GLOBAL float *restored = signals + (size_t)frame * 6 * area + at;
        GLOBAL float *additive = restored + 3 * area;
        const int same = same_direction(ref[0], ref[area], dist[0], dist[area]);
        for (int band = 0; band < 3; band++) {
            const float t = dist[band * area];
            const float r = restored_sample(ref[band * area], t, same, gain_limit, division, table);
            restored[band * area] = r;
            additive[band * area] = t - r;
        }
    }
}
