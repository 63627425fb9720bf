// Steps of a model of traits: moments of graded choices, Newton steps of many rows at once, products
// and sums at the cells of a sparse matrix, levels of given means. Numbers are of single precision;
// levels of given means are of double precision, too, for users who are asked about one by one.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <nanobind/ndarray.h>

#include "kernels.hpp"
#include "simd.hpp"

namespace nb = nanobind;

namespace rejoint {
namespace {

template <typename T, int Axes>
using Array = nb::ndarray<T, nb::ndim<Axes>, nb::c_contig, nb::device::cpu>;

using Matrix = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstMatrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr float LARGEST = 60.0f;    // of a logit: its exponential is a finite float
constexpr double LARGEST_TILT = 1e6;   // of the log-odds of levels, per unit of their values
constexpr double LEAST_SPREAD = 2e-3;  // variance of levels that a Newton step divides by
constexpr std::size_t LANES = 16;   // rows or cells that are processed at once

// exp(x) for |x| <= 80: 2^k times a polynomial on [-ln 2 / 2, ln 2 / 2]; relative error 2e-7.
REJOINT_INLINE float exponential(float x) {
    const float shifted = x * 1.44269504f + 12582912.0f;  // rounds to a whole number
    const float whole = shifted - 12582912.0f;
    const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
    const std::int32_t bits = (static_cast<std::int32_t>(whole) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return y * power;
}

REJOINT_INLINE double exponential(double x) { return std::exp(x); }

// One row: logits become means of the grades, `variance` their variances; shares of the grades are
// added to `low`, `middle` and `high`, column by column.
REJOINT_CLONES
void moments_of_row(float *REJOINT_RESTRICT logits, const float *REJOINT_RESTRICT bias,
                    float *REJOINT_RESTRICT variance, float first, float second,
                    float *REJOINT_RESTRICT low, float *REJOINT_RESTRICT middle,
                    float *REJOINT_RESTRICT high, std::size_t columns) {
    for (std::size_t j = 0; j < columns; ++j) {
        const float x = logits[j] + bias[j], above = x < -LARGEST ? -LARGEST : x;
        const float t = exponential(0.1f * (above > LARGEST ? LARGEST : above));
        const float t3 = t * t * t, t7 = t3 * t3 * t;
        const float a = first * t3, b = second * t7, c = t7 * t3;
        const float share = 1.0f / (1.0f + a + b + c);
        const float mean = (0.3f * a + 0.7f * b + c) * share;
        // Around the mean: nothing is lost by cancellation where it is near one.
        const float p = 0.3f - mean, q = 0.7f - mean, r = 1.0f - mean;
        variance[j] = (mean * mean + a * p * p + b * q * q + c * r * r) * share;
        logits[j] = mean;
        low[j] += a * share;
        middle[j] += b * share;
        high[j] += c * share;
    }
}

void grade_moments(Matrix logits, const ConstVector &bias, Matrix variance,
                   const ConstVector &offsets, Sums sums) {
    nb::gil_scoped_release release;
    const std::size_t columns = logits.shape(1);
    std::vector<float> shares(3 * columns);  // of all rows, by column: they sum without a chain
    for (std::size_t i = 0; i < logits.shape(0); ++i)
        moments_of_row(logits.data() + i * columns, bias.data(), variance.data() + i * columns,
                       offsets.data()[0], offsets.data()[1], shares.data(),
                       shares.data() + columns, shares.data() + 2 * columns, columns);
    for (std::size_t k = 0; k < 3 * columns; ++k)
        sums.data()[k / columns] += static_cast<double>(shares[k]);
}

// Cholesky factors L of LANES matrices in place; the upper triangle by rows, lanes together.
// L' is stored: entry (j, k), k >= j, is L_kj; the diagonal holds reciprocals.
REJOINT_CLONES
void factor(float *REJOINT_RESTRICT h, std::size_t d) {
    std::size_t row = 0;
    for (std::size_t j = 0; j < d; ++j) {
        float *pivot = h + row * LANES;
        float inverse[LANES];
        for (std::size_t l = 0; l < LANES; ++l) inverse[l] = 1.0f / std::sqrt(pivot[l]);
        for (std::size_t l = 0; l < LANES; ++l) pivot[l] = inverse[l];
        for (std::size_t k = 1; k < d - j; ++k)
            for (std::size_t l = 0; l < LANES; ++l) pivot[k * LANES + l] *= inverse[l];
        std::size_t next = row + (d - j);
        for (std::size_t i = j + 1; i < d; ++i) {
            const float *REJOINT_RESTRICT from = pivot + (i - j) * LANES;
            float *REJOINT_RESTRICT to = h + next * LANES;
            for (std::size_t k = 0; k < d - i; ++k)
                for (std::size_t l = 0; l < LANES; ++l)
                    to[k * LANES + l] -= from[l] * from[k * LANES + l];
            next += d - i;
        }
        row += d - j;
    }
}

// x = L^-1 x.
REJOINT_CLONES
void solve_lower(const float *REJOINT_RESTRICT h, float *REJOINT_RESTRICT x, std::size_t d) {
    std::size_t row = 0;
    for (std::size_t j = 0; j < d; ++j) {
        const float *from = h + row * LANES;
        float *at = x + j * LANES;
        for (std::size_t l = 0; l < LANES; ++l) at[l] *= from[l];
        for (std::size_t k = 1; k < d - j; ++k)
            for (std::size_t l = 0; l < LANES; ++l)
                at[k * LANES + l] -= from[k * LANES + l] * at[l];
        row += d - j;
    }
}

// x = L'^-1 x.
REJOINT_CLONES
void solve_upper(const float *REJOINT_RESTRICT h, float *REJOINT_RESTRICT x, std::size_t d) {
    std::size_t row = d * (d + 1) / 2;
    for (std::size_t j = d; j-- > 0;) {
        row -= d - j;
        const float *from = h + row * LANES;
        float *at = x + j * LANES;
        for (std::size_t k = 1; k < d - j; ++k)
            for (std::size_t l = 0; l < LANES; ++l)
                at[l] -= from[k * LANES + l] * at[k * LANES + l];
        for (std::size_t l = 0; l < LANES; ++l) at[l] *= from[l];
    }
}

// points += H^-1 gradient, no coordinate by more than `longest`; noise = points + L'^-1 noise.
void newton_draws(Matrix points, const ConstMatrix &gradient, const ConstMatrix &hessian,
                  Matrix noise, float longest) {
    nb::gil_scoped_release release;
    const std::size_t rows = points.shape(0), d = points.shape(1), size = d * (d + 1) / 2;
    std::vector<float> h(size * LANES), step(d * LANES), drawn(d * LANES);
    for (std::size_t start = 0; start < rows; start += LANES) {
        const std::size_t count = std::min(LANES, rows - start);
        for (std::size_t l = 0; l < LANES; ++l) {
            const std::size_t i = start + std::min(l, count - 1);  // the last row fills up
            for (std::size_t k = 0; k < size; ++k)
                h[k * LANES + l] = hessian.data()[i * size + k];
            for (std::size_t k = 0; k < d; ++k) {
                step[k * LANES + l] = gradient.data()[i * d + k];
                drawn[k * LANES + l] = noise.data()[i * d + k];
            }
        }
        factor(h.data(), d);
        solve_lower(h.data(), step.data(), d);
        solve_upper(h.data(), step.data(), d);
        solve_upper(h.data(), drawn.data(), d);
        for (std::size_t l = 0; l < count; ++l) {
            float *point = points.data() + (start + l) * d, *draw = noise.data() + (start + l) * d;
            float length = 0.0f;
            for (std::size_t k = 0; k < d; ++k)
                length = std::max(length, std::fabs(step[k * LANES + l]));
            const float scale = length > longest ? longest / length : 1.0f;
            for (std::size_t k = 0; k < d; ++k) {
                point[k] += scale * step[k * LANES + l];
                draw[k] = point[k] + drawn[k * LANES + l];
            }
        }
    }
}

REJOINT_CLONES
void products_of_row(const float *REJOINT_RESTRICT a, const float *REJOINT_RESTRICT b,
                     const std::int32_t *places, float *REJOINT_RESTRICT out, std::size_t count,
                     std::size_t d) {
    for (std::size_t k = 0; k < count; ++k) {
        const float *row = b + static_cast<std::size_t>(places[k]) * d;
        float sum = 0.0f;
        for (std::size_t j = 0; j < d; ++j) sum += a[j] * row[j];
        out[k] = sum;
    }
}

// Inner products of rows of a and of b at the cells of a CSR matrix.
void cell_products(const ConstMatrix &a, const ConstMatrix &b, const Places &starts,
                   const Places &places, Vector out) {
    nb::gil_scoped_release release;
    const std::size_t d = a.shape(1);
    for (std::size_t i = 0; i < a.shape(0); ++i) {
        const auto start = static_cast<std::size_t>(starts.data()[i]);
        const auto end = static_cast<std::size_t>(starts.data()[i + 1]);
        products_of_row(a.data() + i * d, b.data(), places.data() + start, out.data() + start,
                        end - start, d);
    }
}

REJOINT_CLONES
void add_scaled(float *REJOINT_RESTRICT to, const float *REJOINT_RESTRICT from, float scale,
                std::size_t size) {
    for (std::size_t k = 0; k < size; ++k) to[k] += scale * from[k];
}

// slope = T a and bend = W b for two CSR matrices T and W with the same cells.
void cell_sums(const ConstVector &targets, const ConstVector &weights, const ConstMatrix &a,
               const ConstMatrix &b, const Places &starts, const Places &places, Matrix slope,
               Matrix bend) {
    nb::gil_scoped_release release;
    const std::size_t d = a.shape(1), size = b.shape(1);
    for (std::size_t i = 0; i < slope.shape(0); ++i) {
        float *left = slope.data() + i * d, *right = bend.data() + i * size;
        std::fill(left, left + d, 0.0f);
        std::fill(right, right + size, 0.0f);
        for (auto k = static_cast<std::size_t>(starts.data()[i]);
             k < static_cast<std::size_t>(starts.data()[i + 1]); ++k) {
            const auto row = static_cast<std::size_t>(places.data()[k]);
            add_scaled(left, a.data() + row * d, targets.data()[k], d);
            add_scaled(right, b.data() + row * size, weights.data()[k], size);
        }
    }
}

// One Newton step of LANES cells: shares of levels are proportional to exp(base + tilt value), and
// the tilt moves towards the target mean, halfway between `low` and `high` where the step would
// leave these. Returns how far the means are from the targets.
template <typename T>
REJOINT_INLINE T tilt_lanes(const T *REJOINT_RESTRICT target, T *REJOINT_RESTRICT tilt,
                            T *REJOINT_RESTRICT low, T *REJOINT_RESTRICT high,
                            const T *REJOINT_RESTRICT base, const T *REJOINT_RESTRICT values,
                            T *REJOINT_RESTRICT shares, T longest, T near, std::size_t levels) {
    T top[LANES], total[LANES], first[LANES], second[LANES], off[LANES];
    for (std::size_t l = 0; l < LANES; ++l) {
        top[l] = base[0] + tilt[l] * values[0];
        total[l] = first[l] = second[l] = T(0);
    }
    for (std::size_t v = 1; v < levels; ++v)
        for (std::size_t l = 0; l < LANES; ++l) {
            const T x = base[v] + tilt[l] * values[v];
            top[l] = x > top[l] ? x : top[l];
        }
    for (std::size_t v = 0; v < levels; ++v) {
        T *REJOINT_RESTRICT share = shares + v * LANES;
        const T value = values[v];
        for (std::size_t l = 0; l < LANES; ++l) {
            const T x = base[v] + tilt[l] * value - top[l];
            const T found = exponential(x < T(-80) ? T(-80) : x);
            share[l] = found;
            total[l] += found;
            first[l] += found * value;
            second[l] += found * value * value;
        }
    }
    for (std::size_t l = 0; l < LANES; ++l) {
        total[l] = T(1) / total[l];
        const T mean = first[l] * total[l];
        const T spread = second[l] * total[l] - mean * mean;
        off[l] = target[l] - mean;
        const T move = off[l] / (spread > T(LEAST_SPREAD) ? spread : T(LEAST_SPREAD));
        const T above = move < -longest ? -longest : move;
        const T next = tilt[l] + (above > longest ? longest : above);
        low[l] = off[l] > T(0) ? tilt[l] : low[l];
        high[l] = off[l] > T(0) ? high[l] : tilt[l];
        const T inside = next > low[l] && next < high[l] ? next : T(0.5) * (low[l] + high[l]);
        tilt[l] = std::fabs(off[l]) < near ? tilt[l] : inside;  // a cell ends whatever others do
    }
    for (std::size_t v = 0; v < levels; ++v)
        for (std::size_t l = 0; l < LANES; ++l) shares[v * LANES + l] *= total[l];
    T far = T(0);
    for (std::size_t l = 0; l < LANES; ++l) far = std::max(far, std::fabs(off[l]));
    return far;
}

REJOINT_CLONES
float step_lanes(const float *target, float *tilt, float *low, float *high, const float *base,
                 const float *values, float *shares, float longest, float near,
                 std::size_t levels) {
    return tilt_lanes(target, tilt, low, high, base, values, shares, longest, near, levels);
}

double step_lanes(const double *target, double *tilt, double *low, double *high,
                  const double *base, const double *values, double *shares, double longest,
                  double near, std::size_t levels) {
    return tilt_lanes(target, tilt, low, high, base, values, shares, longest, near, levels);
}

// Shares of levels with given means; variance and base (log use of levels) are those of the row.
template <typename T>
void tilted_levels(const Array<const T, 2> &means, const Array<const T, 1> &variance,
                   const Array<const T, 2> &base, const Array<const T, 1> &values,
                   Array<T, 2> out, T near, int steps) {
    nb::gil_scoped_release release;
    const std::size_t rows = means.shape(0), columns = means.shape(1), levels = values.shape(0);
    std::vector<T> logs(levels), shares(levels * LANES);
    T target[LANES], tilt[LANES], low[LANES], high[LANES];
    for (std::size_t i = 0; i < rows; ++i) {
        const T precision = T(1) / variance.data()[i];
        for (std::size_t v = 0; v < levels; ++v) {
            const T value = values.data()[v];
            logs[v] = base.data()[i * levels + v] - T(0.5) * precision * value * value;
        }
        for (std::size_t start = 0; start < columns; start += LANES) {
            const std::size_t count = std::min(LANES, columns - start);
            for (std::size_t l = 0; l < LANES; ++l) {
                target[l] = means.data()[i * columns + start + std::min(l, count - 1)];
                tilt[l] = target[l] * precision;
                low[l] = T(-LARGEST_TILT);
                high[l] = T(LARGEST_TILT);
            }
            for (int step = 0; step <= steps; ++step)
                if (step_lanes(target, tilt, low, high, logs.data(), values.data(), shares.data(),
                               precision, near, levels) < near)
                    break;
            for (std::size_t l = 0; l < count; ++l)
                for (std::size_t v = 0; v < levels; ++v)
                    out.data()[(i * columns + start + l) * levels + v] = shares[v * LANES + l];
        }
    }
}

}  // namespace

void register_trait_steps(nb::module_ &m) {
    m.def("grade_moments", &grade_moments);
    m.def("newton_draws", &newton_draws);
    m.def("cell_products", &cell_products);
    m.def("cell_sums", &cell_sums);
    m.def("tilted_levels", &tilted_levels<float>);
    m.def("tilted_levels", &tilted_levels<double>);
}

}  // namespace rejoint
