// Samples to centred float. A batch holds `pictures` pictures: all ref frames, then all dist
// frames. One work item per sample.
KERNEL pixels_8(GLOBAL const uchar *samples, GLOBAL float *output, int width, int height,
                int pictures)
{
    const int x = ID(0), y = ID(1), picture = ID(2);
    if (x < width && y < height && picture < pictures) {
        const size_t at = ((size_t)picture * height + y) * width + x;
        output[at] = (float)samples[at] - 128.0f;
    }
}

// `step` is what one 8-bit level measures at this depth: 4, 16 or 256.
KERNEL pixels_16(GLOBAL const ushort *samples, GLOBAL float *output, int width, int height,
                 int pictures, float step)
{
    const int x = ID(0), y = ID(1), picture = ID(2);
    if (x < width && y < height && picture < pictures) {
        const size_t at = ((size_t)picture * height + y) * width + x;
        output[at] = (float)samples[at] / step - 128.0f; // exact: step is a power of two
    }
}
