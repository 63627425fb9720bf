// Projection onto the simplex, and the ADMM steps that consist of little else.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include <nanobind/ndarray.h>

#include "kernels.hpp"
#include "simd.hpp"
#include "simplex.hpp"

namespace nb = nanobind;

namespace rejoint {
namespace {

using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Below this many entries insertion is faster than std::sort.
constexpr std::size_t SHORT = 24;

// Up to this many rows, columns are projected together.
constexpr std::size_t FEW = 12;

void sort_down(double *x, std::size_t n) {
    if (n > SHORT) {
        std::sort(x, x + n, std::greater<double>());
        return;
    }
    for (std::size_t i = 1; i < n; ++i) {
        const double value = x[i];
        std::size_t k = i;
        for (; k > 0 && x[k - 1] < value; --k) x[k] = x[k - 1];
        x[k] = value;
    }
}

// Project n numbers, `stride` apart, onto the simplex: with u sorted downwards the threshold is
// (u_1 + .. + u_k - 1) / k for the largest k at which it still lies below u_k.
void project(double *x, std::size_t n, std::size_t stride, std::vector<double> &scratch) {
    for (std::size_t i = 0; i < n; ++i) scratch[i] = x[i * stride];
    sort_down(scratch.data(), n);
    double sum = -1.0, threshold = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
        sum += scratch[k];
        const double candidate = sum / static_cast<double>(k + 1);
        // The first one always counts, also where 1 is lost in its rounding.
        if (k > 0 && scratch[k] <= candidate) break;
        threshold = candidate;
    }
    for (std::size_t i = 0; i < n; ++i) x[i * stride] = std::max(x[i * stride] - threshold, 0.0);
}

// The same for all columns of a matrix of few rows at once: the threshold is that of all numbers, then
// of those above it, and so on (Michelot 1986). Numbers are of moderate size, as in steps of ADMM.
REJOINT_CLONES
void project_together(double *REJOINT_RESTRICT x, std::size_t rows, std::size_t columns,
                      double *REJOINT_RESTRICT threshold, double *REJOINT_RESTRICT sum,
                      double *REJOINT_RESTRICT count) {
    for (std::size_t f = 0; f < columns; ++f) threshold[f] = -1e300;
    for (std::size_t round = 0; round < rows; ++round) {
        for (std::size_t f = 0; f < columns; ++f) sum[f] = -1.0;
        for (std::size_t f = 0; f < columns; ++f) count[f] = 0.0;
        for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t f = 0; f < columns; ++f) {
                const bool counts = x[i * columns + f] > threshold[f];
                sum[f] += counts ? x[i * columns + f] : 0.0;
                count[f] += counts ? 1.0 : 0.0;
            }
        double change = 0.0;
        for (std::size_t f = 0; f < columns; ++f) {
            // None are above it where 1 is lost in their rounding: it is right by then.
            const double next = count[f] > 0.0 ? sum[f] / count[f] : threshold[f];
            change = next > threshold[f] ? 1.0 : change;
            threshold[f] = next > threshold[f] ? next : threshold[f];
        }
        if (change == 0.0) break;
    }
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t f = 0; f < columns; ++f) {
            const double left = x[i * columns + f] - threshold[f];
            x[i * columns + f] = left > 0.0 ? left : 0.0;
        }
}

// out (rows, n) = left (rows, n) times right (n, n), rows of the latter running innermost.
REJOINT_CLONES
void multiply(const double *REJOINT_RESTRICT left, const double *REJOINT_RESTRICT right,
              double *REJOINT_RESTRICT out, std::size_t rows, std::size_t n) {
    for (std::size_t i = 0; i < rows; ++i) {
        double *o = out + i * n;
        std::fill(o, o + n, 0.0);
        std::size_t k = 0;
        for (; k + 4 <= n; k += 4) {  // four at once: each sum is loaded and stored less often
            const double *a = left + i * n + k, *r = right + k * n;
            for (std::size_t j = 0; j < n; ++j)
                o[j] += a[0] * r[j] + a[1] * r[n + j] + a[2] * r[2 * n + j] + a[3] * r[3 * n + j];
        }
        for (; k < n; ++k) {
            const double a = left[i * n + k];
            const double *r = right + k * n;
            for (std::size_t j = 0; j < n; ++j) o[j] += a * r[j];
        }
    }
}

void admm_steps(const ConstMatrix &inverse, const ConstMatrix &target, Matrix &factor,
                Matrix &dual, double rho, std::size_t steps, bool along_rows) {
    nb::gil_scoped_release release;
    take_admm_steps(inverse.data(), target.data(), factor.data(), dual.data(), factor.shape(0),
                    factor.shape(1), rho, steps, along_rows);
}

void project_columns(Matrix &matrix) {
    nb::gil_scoped_release release;
    const std::size_t rows = matrix.shape(0), columns = matrix.shape(1);
    std::vector<double> scratch(rows);
    for (std::size_t f = 0; f < columns; ++f) project(matrix.data() + f, rows, columns, scratch);
}

}  // namespace

void take_admm_steps(const double *inverse, const double *target, double *a, double *u,
                     std::size_t rows, std::size_t rank, double rho, std::size_t steps,
                     bool along_rows) {
    const std::size_t size = rows * rank;
    std::vector<double> pushed(size), unbound(size), scratch(std::max(rows, 3 * rank));
    for (std::size_t step = 0; step < steps; ++step) {
        for (std::size_t i = 0; i < size; ++i) pushed[i] = target[i] + rho * (a[i] + u[i]);
        multiply(pushed.data(), inverse, unbound.data(), rows, rank);
        for (std::size_t i = 0; i < size; ++i) a[i] = unbound[i] - u[i];
        if (along_rows)
            for (std::size_t i = 0; i < rows; ++i) project(a + i * rank, rank, 1, scratch);
        else if (rows <= FEW)
            project_together(a, rows, rank, scratch.data(), scratch.data() + rank,
                             scratch.data() + 2 * rank);
        else
            for (std::size_t f = 0; f < rank; ++f) project(a + f, rows, rank, scratch);
        for (std::size_t i = 0; i < size; ++i) u[i] += a[i] - unbound[i];
    }
}

void register_simplex(nb::module_ &m) {
    m.def("admm_steps", &admm_steps);
    m.def("project_columns", &project_columns);
}

}  // namespace rejoint
