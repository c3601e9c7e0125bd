// The reference as a Python module: frames in parallel on threads, without the interpreter's lock.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "float_adm.hpp"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace nb = nanobind;
using namespace float_adm;

using Samples = nb::ndarray<nb::ro, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::shape<-1, outputs>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const std::uint32_t, nb::shape<4096>, nb::c_contig, nb::device::cpu>;
using Marks = nb::ndarray<bool, nb::shape<-1, outputs>, nb::c_contig, nb::device::cpu>;

template <class Value> static Value option(const nb::dict &options, const std::string &name)
{
    return nb::cast<Value>(options[name.c_str()]);
}

static Options read_options(const nb::dict &d)
{
    Options o = {};
    o.enhn_gain_limit = option<double>(d, "adm_enhn_gain_limit");
    o.norm_view_dist = option<double>(d, "adm_norm_view_dist");
    o.noise_weight = option<double>(d, "adm_noise_weight");
    o.csf_scale = option<double>(d, "adm_csf_scale");
    o.csf_diag_scale = option<double>(d, "adm_csf_diag_scale");
    o.ref_display_height = option<int>(d, "adm_ref_display_height");
    o.csf_mode = option<int>(d, "adm_csf_mode");
    o.bypass_cm = option<int>(d, "adm_bypass_cm");
    o.adm3_apply_hm = option<bool>(d, "adm_adm3_apply_hm");
    o.p_norm = option<double>(d, "adm_p_norm");
    o.dlm_weight = option<double>(d, "adm_dlm_weight");
    o.min_val = option<double>(d, "adm_min_val");
    for (int scale = 0; scale < scales; scale++) {
        o.f1[scale] = option<double>(d, "adm_f1s" + std::to_string(scale));
        o.f2[scale] = option<double>(d, "adm_f2s" + std::to_string(scale));
    }
    o.skip_aim_scale = option<int>(d, "adm_skip_aim_scale");
    o.skip_scale0 = option<bool>(d, "adm_skip_scale0");
    return o;
}

struct Batch {
    const std::uint8_t *ref, *dist;
    std::size_t frame_bytes;
    int frames, width, height, bit_depth;
    Options options;
    Dialect dialect;
    double *scores;
    bool *unset;

    void compute(int frame) const
    {
        float_adm_frame(ref + frame * frame_bytes, dist + frame * frame_bytes, width, height,
                        bit_depth, &options, &dialect, scores + frame * outputs,
                        unset + frame * outputs);
    }
};

static void keep_denormals()
{
#if defined(__SSE__)
    _mm_setcsr(0x1f80); // a library built with -ffast-math turns them off for the whole process
#endif
}

static void compute_frames(const Batch &batch, int threads)
{
    std::atomic<int> next{0};
    std::vector<std::exception_ptr> failures(threads);
    const auto work = [&](int thread) {
        try {
            keep_denormals();
            for (int frame = next++; frame < batch.frames; frame = next++)
                batch.compute(frame);
        } catch (...) {
            failures[thread] = std::current_exception();
        }
    };
    std::vector<std::thread> pool;
    pool.reserve(threads);
    try {
        while (static_cast<int>(pool.size()) < threads)
            pool.emplace_back(work, static_cast<int>(pool.size()));
    } catch (const std::system_error &) {
        if (pool.empty())
            throw;
        // the system gives no more threads; those that run take the frames of the others
    }
    for (std::thread &thread : pool)
        thread.join();
    for (const std::exception_ptr &failure : failures)
        if (failure)
            std::rethrow_exception(failure);
}

static void check_shapes(const Samples &ref, const Samples &dist, int bit_depth,
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
    if (ref.shape(1) < 17 || ref.shape(2) < 17)
        throw std::invalid_argument("a frame below 17x17 has no defined result");
}

static Dialect read_dialect(Division division, const std::optional<Table> &table,
                            bool double_weights, bool vmafx_conclusion)
{
    if (division == Division::instruction && !has_rcpss)
        throw std::invalid_argument("this processor has no RCPSS instruction");
    if ((division == Division::table) != table.has_value())
        throw std::invalid_argument("a table goes with the division `table` and with no other");
    return {division, table ? table->data() : nullptr, double_weights, vmafx_conclusion};
}

static void compute(Samples ref, Samples dist, int bit_depth, const nb::dict &options,
                    Division division, std::optional<Table> table, bool double_weights,
                    bool vmafx_conclusion, int threads, Values scores, Marks unset)
{
    check_shapes(ref, dist, bit_depth, scores, unset);
    const int frames = static_cast<int>(ref.shape(0));
    const Batch batch = {static_cast<const std::uint8_t *>(ref.data()),
                         static_cast<const std::uint8_t *>(dist.data()),
                         ref.shape(1) * ref.shape(2) * (bit_depth == 8 ? 1 : 2),
                         frames,
                         static_cast<int>(ref.shape(2)),
                         static_cast<int>(ref.shape(1)),
                         bit_depth,
                         read_options(options),
                         read_dialect(division, table, double_weights, vmafx_conclusion),
                         scores.data(),
                         unset.data()};
    nb::gil_scoped_release unlocked;
    compute_frames(batch, std::max(1, std::min(threads, frames)));
}

using Floats = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static void replayed_estimates(Table table, Floats values)
{
    for (std::size_t i = 0; i < values.size(); i++)
        values.data()[i] = replayed_estimate(table.data(), values.data()[i]);
}

NB_MODULE(_reference, module)
{
    module.doc() = "Compiled CPU reference of float_adm.";
    module.attr("HAS_RCPSS") = has_rcpss;
    module.attr("COMPILER") = REFERENCE_COMPILER;
    module.attr("FLAGS") = REFERENCE_FLAGS;
    nb::enum_<Division>(module, "Division", "How the decouple divides.")
        .value("ieee", Division::ieee)
        .value("instruction", Division::instruction)
        .value("table", Division::table)
        .value("quotient", Division::quotient);
    module.def("replayed_estimates", &replayed_estimates, nb::arg("table").noconvert(),
               nb::arg("values").noconvert(),
               "Put in place of each value (n,) float32 the estimate of its reciprocal by table\n"
               "(4096,) uint32, as the division `table` uses it.");
    // without noconvert an array of another type would be copied, and the copy filled
    module.def(
        "compute", &compute, nb::arg("ref").noconvert(), nb::arg("dist").noconvert(),
        nb::arg("bit_depth"), nb::arg("options"), nb::arg("division"),
        nb::arg("table").noconvert().none(), nb::arg("double_weights"), nb::arg("vmafx_conclusion"),
        nb::arg("threads"), nb::arg("scores").noconvert(), nb::arg("unset").noconvert(),
        "Fill scores (frames, 18) float64 and unset (frames, 18) bool from ref and dist\n"
        "(frames, height, width), uint8 at 8 bits and uint16 above; table (4096,) uint32 or None.");
}
