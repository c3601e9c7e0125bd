// Shows that a device has had the bytes of a buffer: their hash, which backends/witness.py collects
// and gate/proof.py computes in another way. Each word is mixed with its place and the run's nonce;
// sums modulo 2^64 do not ask who added first, so that any number of work items may share them.
// The finaliser is that of splitmix64. Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom
// Number Generators", OOPSLA 2014, with the constants of Stafford's variant 13.
FUNCTION ulong mixed(ulong word, ulong place, ulong run)
{
    ulong x = word ^ (run + (place + 1) * 0x9E3779B97F4A7C15ul); // 2^64 / golden ratio
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ul;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBul;
    return x ^ (x >> 31);
}

// Words are little endian, `bytes` is the same buffer, and zeros follow behind its `length` bytes.
// An item takes blocks of consecutive words, which suits the caches of processors.
KERNEL witness(GLOBAL const ulong *words, GLOBAL const uchar *bytes, GLOBAL ulong *sums,
               ulong length, ulong run, ulong computation, int columns, int rows)
{
    const int x = ID(0), y = ID(1);
    if (x >= columns || y >= rows || ID(2) > 0)
        return;
    const int item = y * columns + x;
    const ulong block = 64, whole = length / 8;
    const ulong step = block * (ulong)(columns * rows);
    ulong sum = 0;
    for (ulong first = block * (ulong)item; first < whole; first += step) {
        const ulong end = whole - first < block ? whole : first + block;
        for (ulong at = first; at < end; ++at)
            sum += mixed(words[at], at, run);
    }
    if (item == 0 && length > 8 * whole) {
        ulong last = 0;
        for (ulong at = 8 * whole; at < length; ++at)
            last |= (ulong)bytes[at] << (8 * (at - 8 * whole));
        sum += mixed(last, whole, run);
    }
    sums[item] = sum * computation;
}
