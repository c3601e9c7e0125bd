// The reference as a Python module.
#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "frames.hpp"
#include "integer_adm.hpp"

namespace nb = nanobind;
using namespace integer_adm;
using frames::option;

static_assert(outputs == frames::outputs, "a row of scores holds all outputs");

void bind_angle(nb::module_ &module); // angle_bindings.cpp

static Options read_options(const nb::dict &d)
{
    Options o = {};
    o.csf_scale = option<double>(d, "adm_csf_scale");
    o.csf_diag_scale = option<double>(d, "adm_csf_diag_scale");
    o.dlm_weight = option<double>(d, "adm_dlm_weight");
    o.enhn_gain_limit = option<double>(d, "adm_enhn_gain_limit");
    o.norm_view_dist = option<double>(d, "adm_norm_view_dist");
    o.noise_weight = option<double>(d, "adm_noise_weight");
    o.min_val = option<double>(d, "adm_min_val");
    o.p_norm = option<double>(d, "adm_p_norm");
    o.ref_display_height = option<int>(d, "adm_ref_display_height");
    o.csf_mode = option<int>(d, "adm_csf_mode");
    o.skip_aim = option<bool>(d, "adm_skip_aim");
    o.skip_scale0 = option<bool>(d, "adm_skip_scale0");
    return o;
}

static void compute(frames::Samples ref, frames::Samples dist, int bit_depth,
                    const nb::dict &options, bool vmafx_dialect, bool vmafx_conclusion, int threads,
                    frames::Values scores, frames::Marks unset, Spelling spelling)
{
    const Options chosen = read_options(options);
    const Dialect dialect = {vmafx_dialect, vmafx_conclusion, spelling};
    frames::compute(ref, dist, bit_depth, 17, threads, scores, unset,
                    [&](const frames::Frame &frame) {
                        integer_adm_frame(frame.ref, frame.dist, frame.width, frame.height,
                                          bit_depth, &chosen, &dialect, frame.scores, frame.unset);
                    });
}

// The planes as one array of its own.
static nb::ndarray<nb::numpy, std::int32_t, nb::ndim<3>> stacked(const Bands &bands)
{
    const auto height = static_cast<std::size_t>(bands[0].height);
    const auto width = static_cast<std::size_t>(bands[0].width);
    auto *const samples = new std::int32_t[bands.size() * height * width];
    nb::capsule owner(samples, [](void *p) noexcept { delete[] static_cast<std::int32_t *>(p); });
    for (std::size_t band = 0; band < bands.size(); band++)
        std::copy(bands[band].samples.begin(), bands[band].samples.end(),
                  samples + band * height * width);
    return {samples, {bands.size(), height, width}, owner};
}

static Level level_of(const void *picture, int width, int height, int bit_depth, int scale)
{
    Level level = dwt0(picture, width, height, bit_depth);
    for (int s = 1; s <= scale; s++)
        level = dwt(level.low, s);
    return level;
}

template <class Sample>
using Picture = nb::ndarray<const Sample, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Sample>
static nb::tuple stages(Picture<Sample> ref, Picture<Sample> dist, int bit_depth,
                        const nb::dict &options, bool vmafx_dialect, int scale)
{
    const auto height = static_cast<int>(ref.shape(0)), width = static_cast<int>(ref.shape(1));
    if (ref.shape(0) != dist.shape(0) || ref.shape(1) != dist.shape(1) ||
        std::min(width, height) < 17 || (bit_depth == 8) != (sizeof(Sample) == 1) ||
        bit_depth < 8 || bit_depth > 16 || scale < 0 || scale >= scales)
        throw std::invalid_argument("stages are those of compute: pictures of the same shape");
    const Options chosen = read_options(options);
    const Level at_ref = level_of(ref.data(), width, height, bit_depth, scale);
    const Level at_dist = level_of(dist.data(), width, height, bit_depth, scale);
    Bands restored, additive, weighted, filtered;
    decouple(at_ref.detail, at_dist.detail, scale, chosen.enhn_gain_limit, Spelling::golden,
             restored, additive);
    apply_csf(additive, csf_weights(scale, chosen, vmafx_dialect), scale, weighted, filtered);
    const ScaleSums sums = scale_sums(scale, at_ref.detail, at_dist.detail, chosen,
                                      Dialect{vmafx_dialect, false, Spelling::golden});
    nb::dict planes;
    planes["ref_low"] = stacked({at_ref.low});
    planes["ref"] = stacked(at_ref.detail);
    planes["dist_low"] = stacked({at_dist.low});
    planes["dist"] = stacked(at_dist.detail);
    planes["restored"] = stacked(restored);
    planes["additive"] = stacked(additive);
    planes["weighted"] = stacked(weighted);
    planes["filtered"] = stacked(filtered);
    return nb::make_tuple(planes, nb::make_tuple(sums.num, sums.den, sums.aim));
}

template <class Sample> static void bind_stages(nb::module_ &module)
{
    module.def("stages", &stages<Sample>, nb::arg("ref").noconvert(), nb::arg("dist").noconvert(),
               nb::arg("bit_depth"), nb::arg("options"), nb::arg("vmafx_dialect"), nb::arg("scale"),
               "Return the planes of a scale by name, int32 (bands, height, width), weighted and\n"
               "filtered those of the additive part, and the scale's sums (num, den, aim).");
}

NB_MODULE(_reference, module)
{
    module.doc() = "Compiled CPU reference of integer_adm.";
    module.attr("COMPILER") = REFERENCE_COMPILER;
    module.attr("FLAGS") = REFERENCE_FLAGS;
    bind_angle(module); // the type of a default has to be there before it
    // without noconvert an array of another type would be copied, and the copy filled
    module.def(
        "compute", &compute, nb::arg("ref").noconvert(), nb::arg("dist").noconvert(),
        nb::arg("bit_depth"), nb::arg("options"), nb::arg("vmafx_dialect"),
        nb::arg("vmafx_conclusion"), nb::arg("threads"), nb::arg("scores").noconvert(),
        nb::arg("unset").noconvert(), nb::arg("spelling") = Spelling::golden,
        "Fill scores (frames, 18) float64 and unset (frames, 18) bool from ref and dist\n"
        "(frames, height, width), uint8 at 8 bits and uint16 above; spelling is that of the angle\n"
        "flag at scale 0.");
    bind_stages<std::uint8_t>(module);
    bind_stages<std::uint16_t>(module);
}
