// Energies inside the window and their sums. The order of every sum is part of the result: a row
// from left to right, then the rows from top to bottom, all in float.

// Nine sums a frame: den h, v, d; num h, v, d; aim h, v, d.
#define SLOTS 9

// z to the power of p_norm, which is not the C library's power where p_norm is 3.
FUNCTION float energy(float z, int cubed, float p_norm, int fused)
{
    return cubed ? (z * z) * z : power(z, p_norm, fused);
}

FUNCTION float above(float value, float threshold)
{
    const float rest = fabs(value) - threshold;
    return rest < 0.0f ? 0.0f : rest;
}

// One work item per sample of the window, whose corner is (left, top). Terms are stored slot,
// column, row, so that neighbouring rows lie side by side for row_sums.
KERNEL terms(GLOBAL const float *bands, GLOBAL const float *signals, GLOBAL const float *thresholds,
             GLOBAL float *output, float weight_hv, float weight_d, int bypass, int cubed,
             float p_norm, int fused, int width, int height, int left, int top, int frames)
{
    const int column = ID(0), row = ID(1), frame = ID(2);
    const int columns = width - 2 * left, rows = height - 2 * top;
    if (column < columns && row < rows && frame < frames) {
        const size_t area = (size_t)width * height;
        const size_t at = (size_t)(row + top) * width + column + left;
        GLOBAL const float *ref = bands + (size_t)frame * 3 * area + at;
        GLOBAL const float *restored = signals + (size_t)frame * 6 * area + at;
        GLOBAL const float *additive = restored + 3 * area;
        GLOBAL const float *masks = thresholds + (size_t)frame * 2 * area + at;
        const float by_restored = bypass ? 0.0f : masks[0];
        const float by_additive = bypass ? 0.0f : masks[area];
        const size_t slot = (size_t)columns * rows;
        GLOBAL float *own = output + (size_t)frame * SLOTS * slot + (size_t)column * rows + row;
        for (int band = 0; band < 3; band++) {
            const float weight = band_weight(band, weight_hv, weight_d);
            own[band * slot] = energy(fabs(weight * ref[band * area]), cubed, p_norm, fused);
            own[(3 + band) * slot] =
                energy(above(restored[band * area], by_additive), cubed, p_norm, fused);
            own[(6 + band) * slot] =
                energy(above(additive[band * area], by_restored), cubed, p_norm, fused);
        }
    }
}

// One work item per row of a slot.
KERNEL row_sums(GLOBAL const float *terms, GLOBAL float *sums, int columns, int rows, int frames)
{
    const int row = ID(0), slot = ID(1), frame = ID(2);
    if (row < rows && slot < SLOTS && frame < frames) {
        const size_t index = (size_t)frame * SLOTS + slot;
        GLOBAL const float *own = terms + index * columns * rows + row;
        float sum = 0.0f;
        for (int column = 0; column < columns; column++)
            sum = sum + own[(size_t)column * rows];
        sums[index * rows + row] = sum;
    }
}

// One work item per slot: the rows of a frame, top to bottom. `totals` holds, per frame, the
// slots of four scales.
KERNEL fold(GLOBAL const float *sums, GLOBAL float *totals, int rows, int scale, int frames)
{
    const int slot = ID(0), frame = ID(1);
    if (slot < SLOTS && frame < frames && ID(2) == 0) {
        GLOBAL const float *own = sums + ((size_t)frame * SLOTS + slot) * rows;
        float total = 0.0f;
        for (int row = 0; row < rows; row++)
            total = total + own[row];
        totals[((size_t)frame * 4 + scale) * SLOTS + slot] = total;
    }
}
