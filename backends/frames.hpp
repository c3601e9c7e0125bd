// What the Python modules of compiled references share: arrays of frames, checked, and computed in
// parallel on threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace frames {

namespace nb = nanobind;

constexpr int outputs = 18; // scores of a frame, debug outputs included

using Samples = nb::ndarray<nb::ro, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::shape<-1, outputs>, nb::c_contig, nb::device::cpu>;
using Marks = nb::ndarray<bool, nb::shape<-1, outputs>, nb::c_contig, nb::device::cpu>;

template <class Value> Value option(const nb::dict &options, const std::string &name)
{
    return nb::cast<Value>(options[name.c_str()]);
}

// One picture pair and where its scores go.
struct Frame {
    const std::uint8_t *ref, *dist;
    int width, height;
    double *scores;
    bool *unset;
};

inline void keep_denormals()
{
#if defined(__SSE__)
    _mm_setcsr(0x1f80); // a library built with -ffast-math turns them off for the whole process
#endif
}

inline void check_shapes(const Samples &ref, const Samples &dist, int bit_depth, int smallest,
                         const Values &scores, const Marks &unset)
{
    if (bit_depth != 8 && bit_depth != 10 && bit_depth != 12 && bit_depth != 16)
        throw std::invalid_argument("bit_depth must be 8, 10, 12 or 16");
    const nb::dlpack::dtype wanted =
        bit_depth == 8 ? nb::dtype<std::uint8_t>() : nb::dtype<std::uint16_t>();
    if (ref.dtype() != wanted || dist.dtype() != wanted)
        throw std::invalid_argument("samples must be uint8 at 8 bits and uint16 above");
    for (int axis = 0; axis < 3; axis++)
        if (ref.shape(axis) != dist.shape(axis))
            throw std::invalid_argument("ref and dist must have the same shape");
    if (scores.shape(0) != ref.shape(0) || unset.shape(0) != ref.shape(0))
        throw std::invalid_argument("scores and unset must have one row per frame");
    if (static_cast<int>(std::min(ref.shape(1), ref.shape(2))) < smallest)
        throw std::invalid_argument("a frame below " + std::to_string(smallest) + "x" +
                                    std::to_string(smallest) + " has no defined result");
}

// Calls `work(thread)` on so many threads, or on as many as the system gives.
template <class Work> void on_threads(int threads, Work work)
{
    std::vector<std::exception_ptr> failures(threads);
    const auto guarded = [&](int thread) {
        try {
            work(thread);
        } catch (...) {
            failures[thread] = std::current_exception();
        }
    };
    std::vector<std::thread> pool;
    pool.reserve(threads);
    try {
        while (static_cast<int>(pool.size()) < threads)
            pool.emplace_back(guarded, static_cast<int>(pool.size()));
    } catch (const std::system_error &) {
        if (pool.empty())
            throw;
        // the system gives no more threads; those that run take the work of the others
    }
    for (std::thread &thread : pool)
        thread.join();
    for (const std::exception_ptr &failure : failures)
        if (failure)
            std::rethrow_exception(failure);
}

// Calls `compute(frame)` for every frame, without the interpreter's lock.
template <class Compute>
void compute(const Samples &ref, const Samples &dist, int bit_depth, int smallest, int threads,
             const Values &scores, const Marks &unset, Compute compute)
{
    check_shapes(ref, dist, bit_depth, smallest, scores, unset);
    const int count = static_cast<int>(ref.shape(0));
    const int height = static_cast<int>(ref.shape(1)), width = static_cast<int>(ref.shape(2));
    const std::size_t bytes = ref.shape(1) * ref.shape(2) * (bit_depth == 8 ? 1 : 2);
    const auto *ref_bytes = static_cast<const std::uint8_t *>(ref.data());
    const auto *dist_bytes = static_cast<const std::uint8_t *>(dist.data());
    double *const values = scores.data();
    bool *const marks = unset.data();
    std::atomic<int> next{0};
    nb::gil_scoped_release unlocked;
    on_threads(std::max(1, std::min(threads, count)), [&](int) {
        keep_denormals();
        for (int i = next++; i < count; i = next++)
            compute(Frame{ref_bytes + i * bytes, dist_bytes + i * bytes, width, height,
                          values + i * outputs, marks + i * outputs});
    });
}

} // namespace frames
