// The one-degree angle flag, in integers: it decides as binary64 would, which multiplies squared
// lengths narrowed to binary32 by the cosine's square and rounds that product once.

// What binary32 keeps of a positive value of at most 2^63: 24 bits, a tie goes to the even one.
FUNCTION ulong kept_by_binary32(ulong value)
{
    const int drop = 40 - (int)clz(value);
    if (drop <= 0)
        return value;
    const ulong odd = (value >> drop) & 1;
    return ((value + ((ulong)1 << (drop - 1)) - 1 + odd) >> drop) << drop;
}

// The 24 bits behind `zeros` leading zeros.
FUNCTION ulong significand(ulong value, int zeros) { return (value << zeros) >> 40; }

// Compares dot^2 * 2^gap with 16772106 * ref * dist / 2^24 after its one rounding to 53 bits; all
// three are of 24 bits, so both sides without the gap lie in [2^45, 2^48).
FUNCTION int reaches(ulong dot, ulong ref, ulong dist, int gap)
{
    if (gap <= -3 || gap >= 3)
        return gap > 0;
    const ulong low24 = ((ulong)1 << 24) - 1;
    const ulong squares = ref * dist;
    const ulong low = 16772106 * (squares & low24);
    const ulong whole = 16772106 * (squares >> 24) + (low >> 24);
    const ulong part = low & low24;        // the product is whole + part / 2^24
    const int more = (int)clz(whole) - 11; // bits of `part` among the 53, 5 to 7
    const ulong rest = part & (low24 >> more);
    const ulong middle = (ulong)1 << (23 - more);
    ulong bound = (whole << more) + (part >> (24 - more));
    if (rest > middle || (rest == middle && (bound & 1)))
        bound++;
    return (dot * dot) << (gap + more) >= bound;
}

// dp is the dot product of ref's and dist's (h, v), om and tm are their squared lengths; a negative
// length stands for a sum that has wrapped.
FUNCTION int aligned(long dp, long om, long tm)
{
    if (dp < 0)
        return 0;
    if (om == 0 || tm == 0 || (om < 0) != (tm < 0))
        return 1;
    if (dp == 0)
        return 0;
    const ulong dot = kept_by_binary32((ulong)dp);
    const ulong ref = kept_by_binary32(om < 0 ? 0 - (ulong)om : (ulong)om);
    const ulong dist = kept_by_binary32(tm < 0 ? 0 - (ulong)tm : (ulong)tm);
    const int dot_zeros = (int)clz(dot), ref_zeros = (int)clz(ref), dist_zeros = (int)clz(dist);
    return reaches(significand(dot, dot_zeros), significand(ref, ref_zeros),
                   significand(dist, dist_zeros), ref_zeros + dist_zeros - 2 * dot_zeros);
}

// One work item per sample of a corpus; its operands dp, om, tm follow each other.
KERNEL angle_flags(GLOBAL const long *operands, GLOBAL uchar *flags, int count)
{
    const int i = ID(0);
    if (i < count && ID(1) == 0 && ID(2) == 0) {
        GLOBAL const long *at = operands + 3 * (size_t)i;
        flags[i] = (uchar)aligned(at[0], at[1], at[2]);
    }
}
