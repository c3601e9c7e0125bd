// The angle flag and its corpora as a part of the Python module.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "angle.hpp"
#include "corpus.hpp"
#include "integer_adm.hpp"

namespace nb = nanobind;
using namespace integer_adm;

using Rows = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstRows = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Picture = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

static void require(bool sound, const char *sentence)
{
    if (!sound)
        throw std::invalid_argument(sentence);
}

static void samples_of(Source source, std::uint64_t parameter, std::uint64_t block, Rows samples)
{
    const std::int64_t count = samples.shape(0);
    const std::int64_t most = source == Source::edges ? edge_samples() : block_samples;
    require(static_cast<int>(samples.shape(1)) == columns(source), "samples have 3 or 4 columns");
    require(count <= most, "a block has not so many samples");
    require(source != Source::width || (parameter >= 2 && parameter <= 31), "2 to 31 bits");
    nb::gil_scoped_release unlocked;
    angle_samples(source, parameter, block, count, samples.data());
}

static void operands_of(ConstRows vectors, Rows operands)
{
    require(vectors.shape(1) == 4 && operands.shape(1) == 3, "4 columns become 3");
    require(vectors.shape(0) == operands.shape(0), "a row for each row");
    nb::gil_scoped_release unlocked;
    angle_operands(vectors.shape(0), vectors.data(), operands.data());
}

static void flags_of(Spelling spelling, ConstRows samples, Flags flags)
{
    require(samples.shape(1) == 3 || samples.shape(1) == 4, "samples have 3 or 4 columns");
    require(samples.shape(1) == 4 || spelling != Spelling::e, "spelling e is for vectors");
    require(samples.shape(0) == flags.shape(0), "a flag for each sample");
    nb::gil_scoped_release unlocked;
    angle_flags(static_cast<int>(spelling), static_cast<int>(samples.shape(1)), samples.shape(0),
                samples.data(), flags.data());
}

// Samples of scale 0; those with an operand that binary32 may not keep; flips of each spelling.
using Survey = std::tuple<std::int64_t, std::int64_t, std::vector<std::int64_t>>;

static Survey survey(Picture ref, Picture dist, int bit_depth,
                     const std::vector<Spelling> &spellings)
{
    const nb::dlpack::dtype wanted =
        bit_depth == 8 ? nb::dtype<std::uint8_t>() : nb::dtype<std::uint16_t>();
    require(ref.dtype() == wanted && dist.dtype() == wanted, "samples are uint8 or uint16");
    require(ref.shape(0) == dist.shape(0) && ref.shape(1) == dist.shape(1),
            "ref and dist have the same shape");
    require(ref.shape(0) >= 17 && ref.shape(1) >= 17, "a frame has at least 17x17 samples");
    const int height = static_cast<int>(ref.shape(0)), width = static_cast<int>(ref.shape(1));
    nb::gil_scoped_release unlocked;
    const Bands o = dwt0(ref.data(), width, height, bit_depth).detail;
    const Bands t = dwt0(dist.data(), width, height, bit_depth).detail;
    std::int64_t large = 0;
    std::vector<std::int64_t> flips(spellings.size());
    for (std::size_t i = 0; i < o[0].samples.size(); i++) {
        const Vectors v = {o[0].samples[i], o[1].samples[i], t[0].samples[i], t[1].samples[i]};
        const Operands of = exact(v);
        const std::int64_t kept = std::int64_t{1} << 24;
        large += std::max({std::abs(of.dp), of.om, of.tm}) > kept;
        const bool golden = flag(Spelling::golden, v);
        for (std::size_t k = 0; k < spellings.size(); k++)
            flips[k] += flag(spellings[k], v) != golden;
    }
    return {o[0].samples.size(), large, flips};
}

void bind_angle(nb::module_ &module)
{
    nb::enum_<Spelling>(module, "Spelling", "How the angle flag is spelled.")
        .value("golden", Spelling::golden)
        .value("int64", Spelling::int64)
        .value("a", Spelling::a)
        .value("b", Spelling::b)
        .value("c", Spelling::c)
        .value("d", Spelling::d)
        .value("e", Spelling::e);
    nb::enum_<Source>(module, "Source", "Where the samples of a corpus come from.")
        .value("near_parallel", Source::near_parallel)
        .value("band", Source::band)
        .value("width", Source::width)
        .value("walk", Source::walk)
        .value("edges", Source::edges);
    module.attr("BLOCK_SAMPLES") = block_samples;
    module.attr("EDGE_SAMPLES") = edge_samples();
    module.def("columns", &columns, nb::arg("source"), "Return 4 for vectors, 3 for operands.");
    // without noconvert an array of another type would be copied, and the copy filled
    module.def("angle_samples", &samples_of, nb::arg("source"), nb::arg("parameter"),
               nb::arg("block"), nb::arg("samples").noconvert(),
               "Fill samples (n, 4) or (n, 3) int64 with the first of a block.");
    module.def("angle_operands", &operands_of, nb::arg("vectors").noconvert(),
               nb::arg("operands").noconvert(),
               "Fill operands (n, 3) int64, dp, om, tm, from vectors (n, 4) int64.");
    module.def("angle_flags", &flags_of, nb::arg("spelling"), nb::arg("samples").noconvert(),
               nb::arg("flags").noconvert(),
               "Fill flags (n,) uint8 from samples (n, 4) or (n, 3) int64.");
    module.def("survey", &survey, nb::arg("ref").noconvert(), nb::arg("dist").noconvert(),
               nb::arg("bit_depth"), nb::arg("spellings"),
               "Return of scale 0 of a frame (height, width), uint8 at 8 bits and uint16 above:\n"
               "samples, those with an operand above 2^24, flips of each spelling.");
}
