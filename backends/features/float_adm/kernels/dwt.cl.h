// One wavelet level: a vertical pass over the pictures, then a horizontal one over its results.

// Where to read index i of n samples: mirrored in front, mirrored with a repeated edge behind.
FUNCTION int tap_position(int i, int n)
{
    if (i < 0)
        i = -i;
    if (i >= n)
        i = 2 * n - 1 - i;
    return i;
}

FUNCTION float low_pass(float s0, float s1, float s2, float s3)
{
    float sum = as_float(0x3EF746EAu) * s0;
    sum = sum + as_float(0x3F5625EFu) * s1;
    sum = sum + as_float(0x3E6585F8u) * s2;
    return sum + as_float(0xBE0483EEu) * s3;
}

FUNCTION float high_pass(float s0, float s1, float s2, float s3)
{
    float sum = as_float(0xBE0483EEu) * s0;
    sum = sum + as_float(0xBE6585F8u) * s1;
    sum = sum + as_float(0x3F5625EFu) * s2;
    return sum + as_float(0xBEF746EAu) * s3;
}

// One work item per column and output row; width and height are the input's.
KERNEL dwt_vertical(GLOBAL const float *input, GLOBAL float *low, GLOBAL float *high, int width,
                    int height, int pictures)
{
    const int x = ID(0), y = ID(1), picture = ID(2);
    const int rows = (height + 1) / 2;
    if (x < width && y < rows && picture < pictures) {
        GLOBAL const float *column = input + (size_t)picture * height * width + x;
        const float s0 = column[(size_t)tap_position(2 * y - 1, height) * width];
        const float s1 = column[(size_t)tap_position(2 * y, height) * width];
        const float s2 = column[(size_t)tap_position(2 * y + 1, height) * width];
        const float s3 = column[(size_t)tap_position(2 * y + 2, height) * width];
        const size_t at = ((size_t)picture * rows + y) * width + x;
        low[at] = low_pass(s0, s1, s2, s3);
        high[at] = high_pass(s0, s1, s2, s3);
    }
}

// One work item per output sample; width is the input's, rows are already halved. `next` is the
// input of the next level, `bands` holds h, v, d of each picture.
KERNEL dwt_horizontal(GLOBAL const float *low, GLOBAL const float *high, GLOBAL float *next,
                      GLOBAL float *bands, int width, int rows, int pictures)
{
    const int x = ID(0), y = ID(1), picture = ID(2);
    const int columns = (width + 1) / 2;
    if (x < columns && y < rows && picture < pictures) {
        const size_t row = ((size_t)picture * rows + y) * width;
        const size_t p0 = row + tap_position(2 * x - 1, width);
        const size_t p1 = row + tap_position(2 * x, width);
        const size_t p2 = row + tap_position(2 * x + 1, width);
        const size_t p3 = row + tap_position(2 * x + 2, width);
        const size_t area = (size_t)rows * columns;
        const size_t at = (size_t)y * columns + x;
        GLOBAL float *own = bands + picture * 3 * area + at;
        next[picture * area + at] = low_pass(low[p0], low[p1], low[p2], low[p3]);
        own[0] = low_pass(high[p0], high[p1], high[p2], high[p3]);
        own[area] = high_pass(low[p0], low[p1], low[p2], low[p3]);
        own[2 * area] = high_pass(high[p0], high[p1], high[p2], high[p3]);
    }
}
