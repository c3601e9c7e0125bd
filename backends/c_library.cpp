// The C library's float power over arrays: on threads, without the interpreter's lock.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace nb = nanobind;

using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Results = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t fewest = 1 << 15; // values worth a thread of their own

// A library built with -ffast-math turns denormals off for the whole process; here they are kept.
class KeptDenormals {
public:
#if defined(__SSE__)
    KeptDenormals() : before(_mm_getcsr()) { _mm_setcsr(0x1f80); }
    ~KeptDenormals() { _mm_setcsr(before); }

private:
    unsigned int before;
#endif
};

static void powers(const float *values, const float *exponents, float *results, std::size_t count)
{
    [[maybe_unused]] const KeptDenormals kept{};
    for (std::size_t i = 0; i < count; i++)
        results[i] = ::powf(values[i], exponents[i]);
}

static void powf_arrays(Floats values, Floats exponents, Results results, std::size_t threads)
{
    const std::size_t count = values.shape(0);
    if (exponents.shape(0) != count || results.shape(0) != count)
        throw std::invalid_argument("values, exponents and results must have the same length");
    const float *x = values.data(), *p = exponents.data();
    float *to = results.data();
    nb::gil_scoped_release unlocked;
    const std::size_t share = std::max(fewest, count / std::max<std::size_t>(threads, 1) + 1);
    std::vector<std::thread> pool;
    pool.reserve(count / share);
    std::size_t first = 0;
    try {
        for (; count - first > share; first += share)
            pool.emplace_back(powers, x + first, p + first, to + first, share);
    } catch (const std::system_error &) {
        // the system gives no more threads; this one takes the rest
    }
    powers(x + first, p + first, to + first, count - first);
    for (std::thread &thread : pool)
        thread.join();
}

NB_MODULE(_c_library, module)
{
    module.doc() = "The C library's float functions, over arrays.";
    // without noconvert an array of another type would be copied, and the copy filled
    module.def(
        "powf", &powf_arrays, nb::arg("values").noconvert(), nb::arg("exponents").noconvert(),
        nb::arg("results").noconvert(), nb::arg("threads"),
        "Fill results with powf(value, exponent) of values and exponents, each (n, float32).");
}
