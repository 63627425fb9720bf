// Levels drawn by inversion: a binary search in the cumulative probabilities of a class.
#include <cstddef>
#include <cstdint>

#include <nanobind/ndarray.h>

#include "kernels.hpp"

namespace nb = nanobind;

namespace rejoint {
namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Classes = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename Code>
using Column = nb::ndarray<Code, nb::ndim<1>, nb::device::cpu>;

// out[i] = number of rows of column classes[i] that uniform[i] reaches; the tree has a power of two
// rows, the last of which are infinite.
template <typename Code>
void draw_levels(const Matrix &tree, const Classes &classes, const Vector &uniform,
                 Column<Code> &out) {
    nb::gil_scoped_release release;
    const std::size_t rank = tree.shape(1), half = tree.shape(0) / 2;
    const std::int64_t stride = out.stride(0);
    for (std::size_t i = 0; i < uniform.shape(0); ++i) {
        const double *column = tree.data() + classes.data()[i];
        std::size_t level = 0;
        for (std::size_t step = half; step; step /= 2)
            level += step * (uniform.data()[i] >= column[(level + step - 1) * rank]);
        out.data()[static_cast<std::int64_t>(i) * stride] = static_cast<Code>(level);
    }
}

}  // namespace

void register_draw_levels(nb::module_ &m) {
    m.def("draw_levels", &draw_levels<std::int8_t>);
    m.def("draw_levels", &draw_levels<std::int16_t>);
    m.def("draw_levels", &draw_levels<std::int32_t>);
    m.def("draw_levels", &draw_levels<std::int64_t>);
}

}  // namespace rejoint
