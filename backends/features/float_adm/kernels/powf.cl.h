// The C library's float power, step by step: glibc's routine, all of it in double between the bits
// of the argument and the rounding of the result. Source: float_adm.md, section 12.

// For each sixteenth of a binade: the reciprocal of a point in it, and the logarithm of that point.
CONSTANT double RECIPROCALS[16] = {
    0x1.661ec79f8f3bep+0, 0x1.571ed4aaf883dp+0, 0x1.49539f0f010b0p+0, 0x1.3c995b0b80385p+0,
    0x1.30d190c8864a5p+0, 0x1.25e227b0b8ea0p+0, 0x1.1bb4a4a1a343fp+0, 0x1.12358f08ae5bap+0,
    0x1.0953f419900a7p+0, 0x1.0000000000000p+0, 0x1.e608cfd9a47acp-1, 0x1.ca4b31f026aa0p-1,
    0x1.b2036576afce6p-1, 0x1.9c2d163a1aa2dp-1, 0x1.886e6037841edp-1, 0x1.767dcf5534862p-1};
CONSTANT double LOGARITHMS[16] = {
    -0x1.efec65b963019p-2, -0x1.b0b6832d4fca4p-2, -0x1.7418b0a1fb77bp-2, -0x1.39de91a6dcf7bp-2,
    -0x1.01d9bf3f2b631p-2, -0x1.97c1d1b3b7af0p-3, -0x1.2f9e393af3c9fp-3, -0x1.960cbbf788d5cp-4,
    -0x1.a6f9db6475fcep-5, 0x0.0000000000000p+0,  0x1.338ca9f24f53dp-4,  0x1.476a9543891bap-3,
    0x1.e840b4ac4e4d2p-3,  0x1.40645f0c6651cp-2,  0x1.88e9c2c1b9ff8p-2,  0x1.ce0a44eb17bccp-2};
// 2^(j/32).
CONSTANT double POWERS_OF_TWO[32] = {
    0x1.0000000000000p+0, 0x1.059b0d3158574p+0, 0x1.0b5586cf9890fp+0, 0x1.11301d0125b51p+0,
    0x1.172b83c7d517bp+0, 0x1.1d4873168b9aap+0, 0x1.2387a6e756238p+0, 0x1.29e9df51fdee1p+0,
    0x1.306fe0a31b715p+0, 0x1.371a7373aa9cbp+0, 0x1.3dea64c123422p+0, 0x1.44e086061892dp+0,
    0x1.4bfdad5362a27p+0, 0x1.5342b569d4f82p+0, 0x1.5ab07dd485429p+0, 0x1.6247eb03a5585p+0,
    0x1.6a09e667f3bcdp+0, 0x1.71f75e8ec5f74p+0, 0x1.7a11473eb0187p+0, 0x1.82589994cce13p+0,
    0x1.8ace5422aa0dbp+0, 0x1.93737b0cdc5e5p+0, 0x1.9c49182a3f090p+0, 0x1.a5503b23e255dp+0,
    0x1.ae89f995ad3adp+0, 0x1.b7f76f2fb5e47p+0, 0x1.c199bdd85529cp+0, 0x1.cb720dcef9069p+0,
    0x1.d5818dcfba487p+0, 0x1.dfc97337b9b5fp+0, 0x1.ea4afa2a490dap+0, 0x1.f50765b6e4540p+0};

// a*b+c as the build of the C library that the host runs computes it: rounded once, or twice.
FUNCTION double plus_product(double c, double a, double b, int fused)
{
    return fused ? fma(a, b, c) : c + a * b;
}

// The binary logarithm of a positive finite float, given by its bits.
FUNCTION double logarithm(uint bits, int fused)
{
    if (bits < 0x00800000u) // denormal: 2^23 times as much, 23 exponents less
        bits = as_uint(as_float(bits) * 0x1p+23f) - (23u << 23);
    const uint offset = bits - 0x3F330000u; // buckets start at 0.699: 1 lies inside one
    const int bucket = (int)(offset >> 19) & 15;
    const int exponent = (int)offset >> 23;
    const double z = as_float(bits - (offset & 0xFF800000u));
    const double r = plus_product(-1.0, z, RECIPROCALS[bucket], fused);
    const double whole = LOGARITHMS[bucket] + exponent;
    const double r2 = r * r;
    const double r4 = r2 * r2;
    const double high = plus_product(-0x1.71969a075c67ap-2, 0x1.27616c9496e0bp-2, r, fused);
    const double middle = plus_product(-0x1.7154748bef6c8p-1, 0x1.ec70a6ca7baddp-2, r, fused);
    const double low = plus_product(whole, 0x1.71547652ab82bp+0, r, fused);
    return plus_product(plus_product(low, middle, r2, fused), high, r4, fused);
}

// Two to the power of an exponent in (-150, 128).
FUNCTION float exponential(double exponent, int fused)
{
    const double shifted = exponent + 0x1.8p+47; // its last bits count 32nds
    const ulong steps = as_ulong(shifted);
    const double f = exponent - (shifted - 0x1.8p+47);
    const double scale = as_double(as_ulong(POWERS_OF_TWO[steps & 31]) + ((steps >> 5) << 52));
    const double high = plus_product(0x1.ebfce50fac4f3p-3, 0x1.c6af84b912394p-5, f, fused);
    const double low = plus_product(1.0, 0x1.62e42ff0c52d6p-1, f, fused);
    return (float)(plus_product(low, high, f * f, fused) * scale);
}

// powf(x, p) for x >= 0 (or NaN) and p > 0.
FUNCTION float power(float x, float p, int fused)
{
    const uint bits = as_uint(x);
    if (bits == 0u || bits >= 0x7F800000u) // zero, infinity, NaN
        return x;
    const double exponent = (double)p * logarithm(bits, fused);
    if (exponent > 0x1.fffffffd1d571p+6)
        return as_float(0x7F800000u);
    return exponent <= -150.0 ? 0.0f : exponential(exponent, fused);
}

// Powers alone, to hold them against the C library's. One work item per pair.
KERNEL powers(GLOBAL const float *values, GLOBAL const float *exponents, GLOBAL float *output,
              int fused, int count)
{
    const int i = ID(0);
    if (i < count && ID(1) == 0 && ID(2) == 0)
        output[i] = power(values[i], exponents[i], fused);
}
