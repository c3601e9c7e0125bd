// The reference as a Python module.
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "float_adm.hpp"
#include "frames.hpp"

namespace nb = nanobind;
using namespace float_adm;
using frames::option;

static_assert(outputs == frames::outputs, "a row of scores holds all outputs");

using Table = nb::ndarray<const std::uint32_t, nb::shape<4096>, nb::c_contig, nb::device::cpu>;

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

static Dialect read_dialect(Division division, const std::optional<Table> &table,
                            bool double_weights, bool vmafx_conclusion)
{
    if (division == Division::instruction && !has_rcpss)
        throw std::invalid_argument("this processor has no RCPSS instruction");
    if ((division == Division::table) != table.has_value())
        throw std::invalid_argument("a table goes with the division `table` and with no other");
    return {division, table ? table->data() : nullptr, double_weights, vmafx_conclusion};
}

static void compute(frames::Samples ref, frames::Samples dist, int bit_depth,
                    const nb::dict &options, Division division, std::optional<Table> table,
                    bool double_weights, bool vmafx_conclusion, int threads, frames::Values scores,
                    frames::Marks unset)
{
    const Options chosen = read_options(options);
    const Dialect dialect = read_dialect(division, table, double_weights, vmafx_conclusion);
    frames::compute(ref, dist, bit_depth, 17, threads, scores, unset,
                    [&](const frames::Frame &frame) {
                        float_adm_frame(frame.ref, frame.dist, frame.width, frame.height, bit_depth,
                                        &chosen, &dialect, frame.scores, frame.unset);
                    });
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
