// One kernel that shows what a compiler's flags did to plain arithmetic; backends/exactness.py
// holds the results against IEEE 754 on thousands of inputs.
KERNEL probe(GLOBAL const float *a, GLOBAL const float *b, GLOBAL const float *c,
             GLOBAL const double *wide_a, GLOBAL const double *wide_b, GLOBAL const double *wide_c,
             GLOBAL float *narrow, GLOBAL double *wide, int count)
{
    const int i = ID(0);
    if (i >= count || ID(1) > 0 || ID(2) > 0)
        return;
    narrow[i] = c[i] + a[i] * b[i];
    narrow[count + i] = a[i] / b[i];
    narrow[2 * count + i] = (a[i] * as_float(0x00800000u)) * 0.25f; // denormal for |a| < 4
    narrow[3 * count + i] = a[i] < b[i] ? 1.0f : 2.0f;              // b holds NaNs
    narrow[4 * count + i] = (float)wide_a[i];
    narrow[5 * count + i] = as_float(as_uint(fabs(a[i])));
    wide[i] = wide_c[i] + wide_a[i] * wide_b[i];
    wide[count + i] = fma(wide_a[i], wide_b[i], wide_c[i]);
}
