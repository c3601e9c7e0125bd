// One wavelet level: a vertical pass over the pictures, then a horizontal one over its results.

// Samples minus mid-grey, whose place in the specification is after the vertical pass: the low-pass
// taps add up to 46342 and the high-pass taps to 0. A batch holds `pictures` pictures: all ref
// frames, then all dist frames. One work item per sample.
KERNEL samples_8(GLOBAL const uchar *samples, GLOBAL int *output, int grey, int width, int height,
                 int pictures)
{
    const int x = ID(0), y = ID(1), picture = ID(2);
    if (x < width && y < height && picture < pictures) {
        const size_t at = ((size_t)picture * height + y) * width + x;
        output[at] = (int)samples[at] - grey;
    }
}

KERNEL samples_16(GLOBAL const ushort *samples, GLOBAL int *output, int grey, int width, int height,
                  int pictures)
{
    const int x = ID(0), y = ID(1), picture = ID(2);
    if (x < width && y < height && picture < pictures) {
        const size_t at = ((size_t)picture * height + y) * width + x;
        output[at] = (int)samples[at] - grey;
    }
}

// Where to read index i of n samples: mirrored in front, mirrored with a repeated edge behind.
FUNCTION int tap_position(int i, int n)
{
    if (i < 0)
        i = -i;
    if (i >= n)
        i = 2 * n - 1 - i;
    return i;
}

// Half of 2^shift, which rounds what is then shifted; 0 where nothing is.
FUNCTION long half_of(int shift) { return ((long)1 << shift) >> 1; }

// All bands of samples of at most 16 bits fit 16 bits, and all others 32, so nothing is cut here.
FUNCTION int low_pass(long s0, long s1, long s2, long s3, int shift)
{
    const long sum = 15826 * s0 + 27411 * s1 + 7345 * s2 - 4240 * s3;
    return (int)((sum + half_of(shift)) >> shift);
}

FUNCTION int high_pass(long s0, long s1, long s2, long s3, int shift)
{
    const long sum = 27411 * s2 - 15826 * s3 - 4240 * s0 - 7345 * s1;
    return (int)((sum + half_of(shift)) >> shift);
}

// One work item per column and output row; width and height are the input's.
KERNEL dwt_vertical(GLOBAL const int *input, GLOBAL int *low, GLOBAL int *high, int shift,
                    int width, int height, int pictures)
{
    const int x = ID(0), y = ID(1), picture = ID(2);
    const int rows = (height + 1) / 2;
    if (x < width && y < rows && picture < pictures) {
        GLOBAL const int *column = input + (size_t)picture * height * width + x;
        const long s0 = column[(size_t)tap_position(2 * y - 1, height) * width];
        const long s1 = column[(size_t)tap_position(2 * y, height) * width];
        const long s2 = column[(size_t)tap_position(2 * y + 1, height) * width];
        const long s3 = column[(size_t)tap_position(2 * y + 2, height) * width];
        const size_t at = ((size_t)picture * rows + y) * width + x;
        low[at] = low_pass(s0, s1, s2, s3, shift);
        high[at] = high_pass(s0, s1, s2, s3, shift);
    }
}

// One work item per output sample; width is the input's, rows are already halved. `next` is the
// input of the next level, `bands` holds h, v, d of each picture.
KERNEL dwt_horizontal(GLOBAL const int *low, GLOBAL const int *high, GLOBAL int *next,
                      GLOBAL int *bands, int shift, int width, int rows, int pictures)
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
        GLOBAL int *own = bands + picture * 3 * area + at;
        next[picture * area + at] = low_pass(low[p0], low[p1], low[p2], low[p3], shift);
        own[0] = low_pass(high[p0], high[p1], high[p2], high[p3], shift);
        own[area] = high_pass(low[p0], low[p1], low[p2], low[p3], shift);
        own[2 * area] = high_pass(high[p0], high[p1], high[p2], high[p3], shift);
    }
}
