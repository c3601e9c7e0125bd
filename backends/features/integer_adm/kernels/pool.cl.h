// Energies inside the window and their sums. Sums are exact inside a row, in any order, modulo
// 2^64; each row is then rounded once, and the rounded rows are added.

// Nine sums a frame: den h, v, d; num h, v, d; aim h, v, d.
#define SLOTS 9
// Every 64th sample of a row is added up by one work item, so that neighbours read neighbours.
#define SLICES 64

// The cube of a magnitude, for the denominators; `log_columns` is the bit length of the window's
// width - 1. The square's rounding is a whole unit, on purpose.
FUNCTION ulong energy(int sample, int scale, int log_columns)
{
    const ulong size = (ulong)magnitude(sample);
    if (scale == 0)
        return size * size * size;
    const int square = scale == 2 ? 30 : 31;
    const ulong squared = (size * size + ((ulong)1 << square)) >> square;
    return (squared * size + (ulong)half_of(log_columns)) >> log_columns;
}

// One work item per slice of a row of the window, whose corner is (left, top).
KERNEL slices(GLOBAL const int *bands, GLOBAL const int *signals, GLOBAL const int *filtered,
              GLOBAL const int *centres, GLOBAL ulong *output, uint weight_hv, uint weight_d,
              int scale, int repaired, int log_width, int log_columns, int width, int height,
              int left, int top, int frames)
{
    const int slice = ID(0), row = ID(1), frame = ID(2);
    const int columns = width - 2 * left, rows = height - 2 * top;
    if (slice < columns && slice < SLICES && row < rows && frame < frames) {
        const size_t area = (size_t)width * height;
        const int y = row + top;
        GLOBAL const int *ref = bands + (size_t)frame * 3 * area;
        GLOBAL const int *restored = signals + (size_t)frame * 6 * area;
        GLOBAL const int *additive = restored + 3 * area;
        GLOBAL const int *by_restored = filtered + (size_t)frame * 2 * area;
        GLOBAL const int *in_restored = centres + (size_t)frame * 2 * area;
        ulong sums[SLOTS];
        for (int slot = 0; slot < SLOTS; slot++)
            sums[slot] = 0;
        for (int x = left + slice; x < left + columns; x += SLICES) {
            const long num = threshold(by_restored + area, in_restored + area, x, y, width, height);
            const long aim = threshold(by_restored, in_restored, x, y, width, height);
            for (int band = 0; band < 3; band++) {
                const size_t at = band * area + (size_t)y * width + x;
                const long weight = band_weight(band, weight_hv, weight_d);
                const long in_num = excess(restored[at], band, weight, num, scale, repaired);
                const long in_aim = excess(additive[at], band, weight, aim, scale, repaired);
                sums[band] += energy(ref[at], scale, log_columns);
                sums[3 + band] += (ulong)cube(in_num, band, scale, log_width);
                sums[6 + band] += (ulong)cube(in_aim, band, scale, log_width);
            }
        }
        for (int slot = 0; slot < SLOTS; slot++) {
            const size_t line = ((size_t)frame * SLOTS + slot) * rows + row;
            output[line * SLICES + slice] = sums[slot];
        }
    }
}

// One work item per row of a slot: adds its slices and rounds the total, to 2^den_shift in the
// denominators and 2^num_shift in the others. Those are signed, except where `repaired` at scale 0.
KERNEL row_folds(GLOBAL const ulong *parts, GLOBAL ulong *folded, int den_shift, int num_shift,
                 int scale, int repaired, int columns, int rows, int frames)
{
    const int row = ID(0), slot = ID(1), frame = ID(2);
    if (row < rows && slot < SLOTS && frame < frames) {
        const size_t line = ((size_t)frame * SLOTS + slot) * rows + row;
        const int shift = slot < 3 ? den_shift : num_shift;
        ulong total = (ulong)half_of(shift);
        for (int slice = 0; slice < SLICES && slice < columns; slice++)
            total += parts[line * SLICES + slice];
        if (slot < 3 || (scale == 0 && repaired))
            folded[line] = total >> shift;
        else
            folded[line] = (ulong)((long)total >> shift);
    }
}

// One work item per slot: adds the rows of a frame. `totals` holds, per frame, the slots of four
// scales.
KERNEL fold(GLOBAL const ulong *folded, GLOBAL ulong *totals, int rows, int scale, int frames)
{
    const int slot = ID(0), frame = ID(1);
    if (slot < SLOTS && frame < frames && ID(2) == 0) {
        GLOBAL const ulong *own = folded + ((size_t)frame * SLOTS + slot) * rows;
        ulong total = 0;
        for (int row = 0; row < rows; row++)
            total += own[row];
        totals[((size_t)frame * 4 + scale) * SLOTS + slot] = total;
    }
}
