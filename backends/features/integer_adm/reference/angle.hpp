// The one-degree angle flag: whether the (h, v) vectors of ref and dist point the same way.
// Written to be read beside the specification (angle_flag.md); section numbers below are its own.
// dp is the dot product, om and tm are the squared lengths of ref and dist, all exact.
#pragma once

#include <cstdint>

namespace integer_adm {

using Predicate = bool (*)(std::int64_t dp, std::int64_t om, std::int64_t tm);

// Section 1: the golden predicate, which defines the flag.
bool aligned(std::int64_t dp, std::int64_t om, std::int64_t tm);

// Section 2: the same flag in 64-bit integers only.
bool aligned_int64(std::int64_t dp, std::int64_t om, std::int64_t tm);

// Section 4: wrong spellings, which are not the golden predicate where some operand exceeds 2^24.
enum class Spelling : int {
    golden,
    int64,
    a, // products of operands that were never narrowed, exact in int64, compared in binary64
    b, // narrowed operands, but everything after that in binary32
    c, // the products of a, narrowed to binary32 and compared there
    d, // the golden layout without the narrowing
    e, // b on dot products that were themselves formed in binary32
};

// Returns the predicate of a spelling; that of e expects operands from `in_binary32`.
Predicate predicate(Spelling spelling);

// The vectors of a sample: (oh, ov) of ref, (th, tv) of dist.
struct Vectors {
    std::int64_t oh, ov, th, tv; // of at most 31 bits beside the sign
};

struct Operands {
    std::int64_t dp, om, tm;
};

// The exact operands.
Operands exact(const Vectors &v);

// The operands as binary32 arithmetic forms them from int16 components: whole numbers, all exact in
// binary32.
Operands in_binary32(const Vectors &v);

// The flag of a sample in a spelling.
bool flag(Spelling spelling, const Vectors &v);

} // namespace integer_adm
