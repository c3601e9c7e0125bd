// Splits dist into what restores ref and what is added to it; the same at every scale.

FUNCTION long magnitude(long value) { return value < 0 ? -value : value; }

// dist / ref, from 0 to 1 in 1/32768. The table holds 2^30 / n, cut, for n up to 32768; a larger
// ref is rounded to its 15 leading bits first.
FUNCTION long ratio(int ref, int dist, GLOBAL const int *reciprocals)
{
    if (ref == 0)
        return 32768;
    const long size = magnitude(ref);
    const int drop = size < 32768 ? 0 : 49 - (int)clz((ulong)size);
    const long quotient = (long)reciprocals[(size + half_of(drop)) >> drop] * dist;
    const long value = ((ref < 0 ? -quotient : quotient) + half_of(15 + drop)) >> (15 + drop);
    return value < 0 ? 0 : (value > 32768 ? 32768 : value);
}

// A value of at most 2^32 times the gain limit, a double of 53 bits and `places` of them behind the
// point, as binary64 multiplies them: the product rounded to 53 bits, a tie to the even one, then
// cut to an integer. 46 <= places <= 52.
FUNCTION long gained(ulong value, ulong gain, int places)
{
    if (value == 0)
        return 0;
    // The product is high * 2^32 + low.
    const ulong word = 0xFFFFFFFF;
    const ulong products = value * (gain & word);
    const ulong high = value * (gain >> 32) + (products >> 32), low = products & word;
    const int drop = 43 - (int)clz(high); // of its bits, 0 to 32
    const ulong unit = (ulong)1 << drop;
    const ulong twice = (low & (unit - 1)) << 1;
    ulong kept = (high << (32 - drop)) | (low >> drop);
    if (twice > unit || (twice == unit && (kept & 1)))
        kept++;
    return (long)(kept >> (places - drop));
}

// Restored part of dist in one band; `same` is the angle flag.
FUNCTION int restored_sample(int ref, int dist, int same, ulong gain, int places,
                             GLOBAL const int *reciprocals)
{
    const long factor = ratio(ref, dist, reciprocals);
    const long value = (factor * ref + 16384) >> 15;
    if (!same || factor == 0 || ref == 0)
        return (int)value;
    const long limit = gained((ulong)magnitude(value), gain, places);
    if (ref > 0)
        return (int)(limit < dist ? limit : dist);
    return (int)(-limit > dist ? -limit : dist);
}

// Whether ref's (h, v) and dist's point the same way, to about one degree.
FUNCTION int same_direction(long ref_h, long ref_v, long dist_h, long dist_v)
{
    return aligned(ref_h * dist_h + ref_v * dist_v, ref_h * ref_h + ref_v * ref_v,
                   dist_h * dist_h + dist_v * dist_v);
}

// One work item per band sample of a frame. `signals` holds, per frame, restored h, v, d and
// additive h, v, d.
KERNEL decouple(GLOBAL const int *bands, GLOBAL int *signals, GLOBAL const int *reciprocals,
                ulong gain, int places, int width, int height, int frames)
{
    const int x = ID(0), y = ID(1), frame = ID(2);
    if (x < width && y < height && frame < frames) {
        const size_t area = (size_t)width * height;
        const size_t at = (size_t)y * width + x;
        GLOBAL const int *ref = bands + (size_t)frame * 3 * area + at;
        GLOBAL const int *dist = bands + (size_t)(frames + frame) * 3 * area + at;
        GLOBAL int *restored = signals + (size_t)frame * 6 * area + at;
        GLOBAL int *additive = restored + 3 * area;
        const int same = same_direction(ref[0], ref[area], dist[0], dist[area]);
        for (int band = 0; band < 3; band++) {
            const int t = dist[band * area];
            const int r = restored_sample(ref[band * area], t, same, gain, places, reciprocals);
            restored[band * area] = r;
            additive[band * area] = t - r; // fits: r is 0 or has t's sign
        }
    }
}
