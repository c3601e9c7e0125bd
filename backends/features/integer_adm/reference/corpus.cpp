// The corpora: xorshift128+ as in the specification's proof, jittered vectors, a walk, edges.
#include <algorithm>
#include <cstdint>

#include "angle.hpp"
#include "corpus.hpp"

namespace integer_adm {

using std::int64_t;
using std::uint64_t;

// xorshift128+, seeded as in the specification's proof, whose counts the near-parallel corpora
// repeat.
class Random {
    uint64_t older, newer;

public:
    explicit Random(uint64_t seed)
        : older(seed * 0x9E3779B97F4A7C15u + 1), newer(seed ^ 0xD1B54A32D192ED03u)
    {
        skip(20); // until similar seeds have nothing in common
    }

    uint64_t next()
    {
        uint64_t mixed = older;
        older = newer;
        mixed ^= mixed << 23;
        newer = mixed ^ older ^ (mixed >> 17) ^ (older >> 26);
        return newer + older;
    }

    void skip(uint64_t numbers)
    {
        while (numbers-- > 0)
            next();
    }

    int64_t between(int64_t low, int64_t high)
    {
        return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
    }
};

// A generator of its own for each block of each corpus.
static Random block_random(Source source, uint64_t parameter, uint64_t block)
{
    return Random((static_cast<uint64_t>(source) << 56) + (parameter << 48) + block);
}

// Vectors of `bits` bits: ref anywhere, dist beside it.
static void jittered(Random &random, int bits, int64_t jitter, int64_t count, int64_t *samples)
{
    const int64_t high = (int64_t{1} << (bits - 1)) - 1, low = -high - 1;
    const auto beside = [&](int64_t component) {
        return std::clamp(component + random.between(-jitter, jitter), low, high);
    };
    for (; count > 0; count--, samples += 4) {
        samples[0] = random.between(low, high);
        samples[1] = random.between(low, high);
        samples[2] = beside(samples[0]);
        samples[3] = beside(samples[1]);
    }
}

static const int bits_of_a_band = 16; // at scale 0
static const int jitter_of_a_band = 600;

static void near_parallel(uint64_t seed, uint64_t block, int64_t count, int64_t *samples)
{
    Random random(seed);
    random.skip(4 * block_samples * block);
    jittered(random, bits_of_a_band, jitter_of_a_band, count, samples);
}

// The smallest dp that sets the flag; squared lengths have at most 62 bits, and so has dp.
static int64_t flip(int64_t om, int64_t tm)
{
    int64_t low = 0, high = int64_t{1} << 62;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (aligned(middle, om, tm))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t of_bits(Random &random, int bits)
{
    const int64_t leading = int64_t{1} << (bits - 1);
    return leading | (static_cast<int64_t>(random.next() >> 1) & (leading - 1));
}

// Six steps on both sides of the flip: in one lap of one, in the next of what binary32 resolves.
static void walk(Random random, int64_t count, int64_t *samples)
{
    const int classes = 62;
    int64_t *const end = samples + 3 * count;
    for (int64_t pair = 0; samples < end; pair++) {
        const int64_t om = of_bits(random, 1 + static_cast<int>(pair % classes));
        const int64_t tm = of_bits(random, 1 + static_cast<int>(pair / classes % classes));
        const int64_t centre = flip(om, tm);
        const bool fine = pair / (classes * classes) % 2 == 0;
        const int64_t step = fine ? 1 : std::max(int64_t{1}, centre >> 23);
        for (int64_t at = -6; at <= 6 && samples < end; at++, samples += 3) {
            samples[0] = centre + at * step;
            samples[1] = om;
            samples[2] = tm;
        }
    }
}

// Around every limit of the arithmetic: the significand of binary32 and binary64, the cosine's own,
// int32, int64, and the carry into 2^63.
static const int64_t edge_operands[] = {
    0,
    1,
    2,
    3,
    (int64_t{1} << 23) - 1,
    int64_t{1} << 23,
    (int64_t{1} << 23) + 1,
    16772105,
    16772106,
    16772107,
    (int64_t{1} << 24) - 1,
    int64_t{1} << 24,
    (int64_t{1} << 24) + 1,
    (int64_t{1} << 25) - 1,
    (int64_t{1} << 31) - 1,
    int64_t{1} << 31,
    (int64_t{1} << 40) - 1,
    int64_t{1} << 40,
    int64_t{1} << 52,
    (int64_t{1} << 53) - 1,
    (int64_t{1} << 62) - 1,
    int64_t{1} << 62,
    (int64_t{1} << 62) + 1,
    INT64_MAX - (int64_t{1} << 39),
    INT64_MAX - (int64_t{1} << 38),
    INT64_MAX - 1,
    INT64_MAX,
    -1,
    -(int64_t{1} << 24) - 1,
    -(int64_t{1} << 31),
    -(int64_t{1} << 62),
    INT64_MIN + 1,
    INT64_MIN,
};

// Operands whose right side lies less than one unit of binary64 above the left one: it rounds to
// the left side in every first of two, which an exact comparison misses, and to the next number in
// every second, which a truncated one misses. Random operands never come that close.
static const int64_t closest_calls[][3] = {
    {12189388, 9379243, 15846316},         {12529500, 12223584, 12846985},
    {10027718, 11781033, 8537941},         {11310223, 8412357, 15210971},
    {2 * 9136372, 2 * 13787115, 12112574}, {2 * 8499345, 2 * 12220959, 11825729},
    {15694928, 2 * 11110719, 11088653},    {14343304, 2 * 8523951, 12071459},
};

static void edges(int64_t count, int64_t *samples)
{
    const int64_t size = sizeof edge_operands / sizeof *edge_operands;
    for (int64_t i = 0; i < count; i++, samples += 3) {
        const int64_t call = i - size * size * size;
        if (call >= 0) {
            std::copy_n(closest_calls[call], 3, samples);
            continue;
        }
        samples[0] = edge_operands[i / (size * size)];
        samples[1] = edge_operands[i / size % size];
        samples[2] = edge_operands[i % size];
    }
}

int columns(Source source) { return source == Source::walk || source == Source::edges ? 3 : 4; }

int64_t edge_samples()
{
    const int64_t size = sizeof edge_operands / sizeof *edge_operands;
    return size * size * size + sizeof closest_calls / sizeof *closest_calls;
}

} // namespace integer_adm

using namespace integer_adm;

void angle_samples(Source source, std::uint64_t parameter, std::uint64_t block, std::int64_t count,
                   std::int64_t *samples)
{
    Random random = block_random(source, parameter, block);
    const int bits = static_cast<int>(parameter);
    switch (source) {
    case Source::near_parallel:
        return near_parallel(parameter, block, count, samples);
    case Source::band:
        return jittered(random, bits_of_a_band, jitter_of_a_band, count, samples);
    case Source::width: // a jitter of about one degree
        return jittered(random, bits, (std::int64_t{1} << bits >> 6) + 1, count, samples);
    case Source::walk:
        return walk(random, count, samples);
    case Source::edges:
        return edges(count, samples);
    }
}

void angle_operands(std::int64_t count, const std::int64_t *vectors, std::int64_t *operands)
{
    for (std::int64_t i = 0; i < count; i++, vectors += 4, operands += 3) {
        const Operands of = exact({vectors[0], vectors[1], vectors[2], vectors[3]});
        operands[0] = of.dp;
        operands[1] = of.om;
        operands[2] = of.tm;
    }
}

static bool flag_of(Spelling spelling, int columns, const std::int64_t *sample)
{
    if (columns == 3)
        return predicate(spelling)(sample[0], sample[1], sample[2]);
    return flag(spelling, {sample[0], sample[1], sample[2], sample[3]});
}

void angle_flags(int spelling, int columns, std::int64_t count, const std::int64_t *samples,
                 std::uint8_t *flags)
{
    for (std::int64_t i = 0; i < count; i++)
        flags[i] = flag_of(static_cast<Spelling>(spelling), columns, samples + i * columns);
}
