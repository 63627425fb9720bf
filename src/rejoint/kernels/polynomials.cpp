// Elementary symmetric polynomials of each record's rows of a table: e_d is the sum over all sets
// of d cells of the products of their rows. From them come sums over all tables of d variables,
// none of which is formed.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include "kernels.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace rejoint {
namespace {

using Cube = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Starts = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t PARTS = 16;     // each with sums of its own, added in order: the same result
constexpr std::size_t LEAST = 1024;   // records or cells of a part, whatever number of threads

// e[j] += a e[j - 1] for j = order .. 1; e[0] is one and not stored: e + (j - 1) * width holds e_j.
REJOINT_CLONES
void include(double *REJOINT_RESTRICT e, const double *REJOINT_RESTRICT a, std::size_t order,
             std::size_t width) {
    for (std::size_t j = order; j > 1; --j) {
        double *to = e + (j - 1) * width;
        const double *below = e + (j - 2) * width;
        for (std::size_t f = 0; f < width; ++f) to[f] += a[f] * below[f];
    }
    if (order)
        for (std::size_t f = 0; f < width; ++f) e[f] += a[f];
}

// left[j] = e[j] - a left[j - 1]: the polynomials without one of the rows.
REJOINT_CLONES
void exclude(const double *REJOINT_RESTRICT e, const double *REJOINT_RESTRICT a,
             double *REJOINT_RESTRICT left, std::size_t order, std::size_t width) {
    if (order)
        for (std::size_t f = 0; f < width; ++f) left[f] = e[f] - a[f];
    for (std::size_t j = 1; j < order; ++j) {
        double *to = left + j * width;
        const double *below = left + (j - 1) * width, *here = e + j * width;
        for (std::size_t f = 0; f < width; ++f) to[f] = here[f] - a[f] * below[f];
    }
}

// e[j] += (b - a) left[j - 1]: one row in place of another.
REJOINT_CLONES
void exchange(double *REJOINT_RESTRICT e, const double *REJOINT_RESTRICT left,
              const double *REJOINT_RESTRICT a, const double *REJOINT_RESTRICT b,
              std::size_t order, std::size_t width) {
    if (order)
        for (std::size_t f = 0; f < width; ++f) e[f] += b[f] - a[f];
    for (std::size_t j = 1; j < order; ++j) {
        double *to = e + j * width;
        const double *below = left + (j - 1) * width;
        for (std::size_t f = 0; f < width; ++f) to[f] += (b[f] - a[f]) * below[f];
    }
}

REJOINT_CLONES
void add_scaled(double *REJOINT_RESTRICT to, const double *REJOINT_RESTRICT from, double scale,
                std::size_t width) {
    for (std::size_t f = 0; f < width; ++f) to[f] += scale * from[f];
}

// Call function(part, first, last) for parts of 0 .. count, on some threads.
template <typename Function>
std::size_t in_parts(std::size_t count, std::size_t threads, Function &&function) {
    const std::size_t parts = std::clamp<std::size_t>(count / LEAST, 1, PARTS);
    std::atomic<std::size_t> next{0};
    in_parallel(std::clamp<std::size_t>(threads, 1, parts), [&](std::size_t) {
        for (std::size_t part; (part = next++) < parts;)
            function(part, count * part / parts, count * (part + 1) / parts);
    });
    return parts;
}

void add_up(const std::vector<std::vector<double>> &sums, std::size_t parts, double *out) {
    for (std::size_t part = 0; part < parts; ++part)
        for (std::size_t i = 0; i < sums[part].size(); ++i) out[i] += sums[part][i];
}

// Fill state (records, order - 1, width) with e_1 .. e_{order - 1}; add the weighted e_order up.
void symmetric_build(const Starts &starts, const Places &cells, const Vector &weight,
                     const Matrix &table, std::size_t order, std::optional<Cube> state,
                     Output &total, std::size_t threads) {
    nb::gil_scoped_release release;
    const std::size_t width = table.shape(1), kept = (order - 1) * width;
    std::vector<std::vector<double>> sums(PARTS, std::vector<double>(width));
    std::vector<std::vector<double>> rooms(PARTS, std::vector<double>(order * width));
    const std::size_t parts =
        in_parts(weight.shape(0), threads, [&](std::size_t part, std::size_t i, std::size_t end) {
            double *e = rooms[part].data();
            for (; i < end; ++i) {
                std::fill(e, e + order * width, 0.0);
                for (std::int64_t k = starts.data()[i]; k < starts.data()[i + 1]; ++k)
                    include(e, table.data() + cells.data()[k] * width, order, width);
                if (state) std::copy(e, e + kept, state->data() + i * kept);
                add_scaled(sums[part].data(), e + kept, weight.data()[i], width);
            }
        });
    add_up(sums, parts, total.data());
}

// Add up, level by level, the weighted e_{order - 1} of the records without one variable's row.
void symmetric_without(const Places &records, const Places &levels, const Vector &weight,
                       const Matrix &rows, std::size_t order, const Cube &state, Output &out,
                       std::size_t threads) {
    nb::gil_scoped_release release;
    const std::size_t width = rows.shape(1), kept = (order - 1) * width;
    std::vector<std::vector<double>> sums(PARTS, std::vector<double>(out.size()));
    std::vector<std::vector<double>> rooms(PARTS, std::vector<double>(order * width, 1.0));
    const std::size_t parts = in_parts(
        records.shape(0), threads, [&](std::size_t part, std::size_t k, std::size_t end) {
            double *left = rooms[part].data();  // all ones, e_0, where the order is one
            for (; k < end; ++k) {
                const std::size_t i = static_cast<std::size_t>(records.data()[k]);
                const std::size_t level = static_cast<std::size_t>(levels.data()[k]);
                exclude(state.data() + i * kept, rows.data() + level * width, left, order - 1,
                        width);
                add_scaled(sums[part].data() + level * width, kept ? left + kept - width : left,
                           weight.data()[i], width);
            }
        });
    add_up(sums, parts, out.data());
}

// Put new rows of one variable in place of old ones in the state of all records that have it.
void symmetric_replace(const Places &records, const Places &levels, const Matrix &old,
                       const Matrix &rows, std::size_t order, Cube &state, std::size_t threads) {
    nb::gil_scoped_release release;
    const std::size_t width = rows.shape(1), kept = (order - 1) * width;
    std::vector<std::vector<double>> rooms(PARTS, std::vector<double>(order * width));
    in_parts(records.shape(0), threads, [&](std::size_t part, std::size_t k, std::size_t end) {
        double *left = rooms[part].data();
        for (; k < end; ++k) {
            double *e = state.data() + static_cast<std::size_t>(records.data()[k]) * kept;
            const std::size_t at = static_cast<std::size_t>(levels.data()[k]) * width;
            exclude(e, old.data() + at, left, order - 1, width);
            exchange(e, left, old.data() + at, rows.data() + at, order - 1, width);
        }
    });
}

}  // namespace

void register_polynomials(nb::module_ &m) {
    m.def("symmetric_build", &symmetric_build);
    m.def("symmetric_without", &symmetric_without);
    m.def("symmetric_replace", &symmetric_replace);
}

}  // namespace rejoint
