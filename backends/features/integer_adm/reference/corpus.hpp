// Deterministic operand corpora for the angle flag: the fixtures of `parity-gate angle`.
// A corpus consists of blocks, each of which can be made without the others, in any order.
#pragma once

#include <cstdint>

namespace integer_adm {

// Where the samples of a corpus come from. The first three give vectors (oh, ov, th, tv), the
// others operands (dp, om, tm).
enum class Source : int {
    near_parallel, // int16 vectors, dist beside ref, from one generator; the parameter is its seed
    band,          // the same from a generator for each block
    width,         // vectors of so many bits, 2 to 31, as the parameter says
    walk,          // every pair of magnitude classes of om and tm, dp around where the flag flips
    edges,         // every triple of edge operands, then the closest calls
};

constexpr std::int64_t block_samples = 500000;

// The number of integers in a sample: 4 or 3.
int columns(Source source);

// The number of samples of `edges`; the other sources have no end.
std::int64_t edge_samples();

} // namespace integer_adm

// C linkage so that tests can call differently built copies.
extern "C" {

// Fills the first `count` samples of a block, row by row.
void angle_samples(integer_adm::Source source, std::uint64_t parameter, std::uint64_t block,
                   std::int64_t count, std::int64_t *samples);

// The operands of vectors, row by row.
void angle_operands(std::int64_t count, const std::int64_t *vectors, std::int64_t *operands);

// The flag of each sample, which has `columns` integers, in a spelling (angle.hpp).
void angle_flags(int spelling, int columns, std::int64_t count, const std::int64_t *samples,
                 std::uint8_t *flags);
}
