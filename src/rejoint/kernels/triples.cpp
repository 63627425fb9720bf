// A sweep of ADMM over all triples of many variables, as a whole.
//
// Tables lie pair by pair, (j, k) with j < k: a matrix of I_j I_k rows, whose columns are the levels
// of all variables after k. Two products with each matrix do for all three modes. With factors
// before the variable in turn new and those after it old, at the turn of n
//   S = sum over l of X_nkl A_l   is the first mode's, and, with the new A_n, the second mode's of k;
//   X_jn^T (A_j o A_n), both new, is the last mode's of all variables after n.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include <nanobind/ndarray.h>

#include "classes_model.hpp"
#include "classes_rows.hpp"
#include "damped_inverse.hpp"
#include "kernels.hpp"
#include "simd.hpp"
#include "simplex.hpp"

namespace nb = nanobind;

namespace rejoint {
namespace {

using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

#if defined(__x86_64__) && defined(__GNUC__)
#define REJOINT_FMA __attribute__((target("avx2,fma")))
#define REJOINT_AVX512 __attribute__((target("avx512f")))
bool has_fma() { return has_avx2() && __builtin_cpu_supports("fma"); }
bool has_avx512() { return __builtin_cpu_supports("avx512f"); }
#else
bool has_avx512() { return false; }
#endif

// Numbers of a row, padded: to fours or eights where they fit in registers, else to blocks.
std::size_t padded(std::size_t rank) {
    const std::size_t unit = rank > (has_avx512() ? 24 : WIDE) ? BLOCK : has_avx512() ? 8 : 4;
    return (rank + unit - 1) / unit * unit;
}

// out[r] (+)= sum over c of x[r step_r + c step_c] b[c], for rows of `width` numbers, of which
// 4 QUADS are summed up at once, for two r at a time.
template <int WIDTH, int QUADS, bool ADD>
REJOINT_INLINE void product(const double *REJOINT_RESTRICT x, std::size_t rows, std::size_t step_r,
                            std::size_t columns, std::size_t step_c,
                            const double *REJOINT_RESTRICT b, double *REJOINT_RESTRICT out,
                            std::size_t width) {
    constexpr int N = 4 * QUADS / WIDTH;
    for (std::size_t f = 0; f < width; f += 4 * QUADS)
        for (std::size_t r = 0; r < rows; r += 2) {
            const std::size_t next = r + 1 < rows ? r + 1 : r;  // the last one of an odd number
            const double *one = x + r * step_r, *two = x + next * step_r;
            Lanes<WIDTH> s[N] = {}, t[N] = {}, row, left, right;
            for (std::size_t c = 0; c < columns; ++c) {
                spread(left, one[c * step_c]);
                spread(right, two[c * step_c]);
                for (int k = 0; k < N; ++k) {
                    load(row, b + c * width + f + k * WIDTH);
                    add_product(s[k], left, row);
                    add_product(t[k], right, row);
                }
            }
            double *to = out + r * width + f, *other = out + next * width + f;
            for (int k = 0; k < N; ++k) {
                if (ADD) {
                    load(row, to + k * WIDTH);
                    add(s[k], row);
                    load(row, other + k * WIDTH);
                    add(t[k], row);
                }
                store(s[k], to + k * WIDTH);
                store(t[k], other + k * WIDTH);
            }
        }
}

template <int WIDTH, int QUADS>
REJOINT_INLINE void product(bool add, const double *x, std::size_t rows, std::size_t step_r,
                            std::size_t columns, std::size_t step_c, const double *b, double *out,
                            std::size_t width) {
    if (add)
        product<WIDTH, QUADS, true>(x, rows, step_r, columns, step_c, b, out, width);
    else
        product<WIDTH, QUADS, false>(x, rows, step_r, columns, step_c, b, out, width);
}

#if defined(REJOINT_AVX512)
// Arrays of vectors stay in registers only where loops over them are unrolled.
#if defined(__clang__)
#define REJOINT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define REJOINT_UNROLL _Pragma("GCC unroll 16")
#endif

// The same by eights, N of them and R rows at a time; the last row stands in for those beyond it.
template <int N, int R>
REJOINT_AVX512 void product_by_eights(bool adds, const double *REJOINT_RESTRICT x, std::size_t rows,
                                      std::size_t step_r, std::size_t columns, std::size_t step_c,
                                      const double *REJOINT_RESTRICT b,
                                      double *REJOINT_RESTRICT out, std::size_t width) {
    for (std::size_t f = 0; f < width; f += 8 * N)
        for (std::size_t r = 0; r < rows; r += R) {
            const double *from[R];
            double *to[R];
            __m512d s[R][N];
            REJOINT_UNROLL for (int q = 0; q < R; ++q) {
                const std::size_t at = std::min(r + q, rows - 1);
                from[q] = x + at * step_r;
                to[q] = out + at * width + f;
                REJOINT_UNROLL for (int k = 0; k < N; ++k) s[q][k] =
                    adds ? _mm512_loadu_pd(to[q] + k * 8) : _mm512_setzero_pd();
            }
            for (std::size_t c = 0; c < columns; ++c) {
                __m512d row[N];
                REJOINT_UNROLL for (int k = 0; k < N; ++k) row[k] =
                    _mm512_loadu_pd(b + c * width + f + k * 8);
                REJOINT_UNROLL for (int q = 0; q < R; ++q) {
                    const __m512d left = _mm512_set1_pd(from[q][c * step_c]);
                    REJOINT_UNROLL for (int k = 0; k < N; ++k) s[q][k] =
                        _mm512_fmadd_pd(left, row[k], s[q][k]);
                }
            }
            REJOINT_UNROLL for (int q = 0; q < R; ++q)
                REJOINT_UNROLL for (int k = 0; k < N; ++k)
                    _mm512_storeu_pd(to[q] + k * 8, s[q][k]);
        }
}

REJOINT_AVX512 void widest_product(bool add, const double *x, std::size_t rows, std::size_t step_r,
                                   std::size_t columns, std::size_t step_c, const double *b,
                                   double *out, std::size_t width) {
    switch (width / 8) {
        case 1: return product_by_eights<1, 8>(add, x, rows, step_r, columns, step_c, b, out, width);
        case 3: return product_by_eights<3, 5>(add, x, rows, step_r, columns, step_c, b, out, width);
        default:
            return product_by_eights<2, 5>(add, x, rows, step_r, columns, step_c, b, out, width);
    }
}
#endif

#if defined(REJOINT_FMA)
REJOINT_FMA void wide_product(bool add, const double *x, std::size_t rows, std::size_t step_r,
                              std::size_t columns, std::size_t step_c, const double *b, double *out,
                              std::size_t width) {
    REJOINT_BY_QUADS(product, 4, width, add, x, rows, step_r, columns, step_c, b, out, width)
}
#endif

void narrow_product(bool add, const double *x, std::size_t rows, std::size_t step_r,
                    std::size_t columns, std::size_t step_c, const double *b, double *out,
                    std::size_t width) {
    REJOINT_BY_QUADS(product, 2, width, add, x, rows, step_r, columns, step_c, b, out, width)
}

void any_product(bool add, const double *x, std::size_t rows, std::size_t step_r,
                 std::size_t columns, std::size_t step_c, const double *b, double *out,
                 std::size_t width) {
#if defined(REJOINT_AVX512)
    if (has_avx512()) return widest_product(add, x, rows, step_r, columns, step_c, b, out, width);
#endif
#if defined(REJOINT_FMA)
    if (has_fma()) return wide_product(add, x, rows, step_r, columns, step_c, b, out, width);
#endif
    narrow_product(add, x, rows, step_r, columns, step_c, b, out, width);
}

// to += sum over rows of a b, number by number.
REJOINT_CLONES
void add_sum(double *REJOINT_RESTRICT to, const double *REJOINT_RESTRICT a,
             const double *REJOINT_RESTRICT b, std::size_t rows, std::size_t width) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t f = 0; f < width; ++f) to[f] += a[r * width + f] * b[r * width + f];
}

// Each row of to += the same one of a times b.
REJOINT_CLONES
void add_each(double *REJOINT_RESTRICT to, const double *REJOINT_RESTRICT a,
              const double *REJOINT_RESTRICT b, std::size_t rows, std::size_t width) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t f = 0; f < width; ++f) to[r * width + f] += a[r * width + f] * b[f];
}

// Each row of to = the same one of a times b.
REJOINT_CLONES
void set_each(double *REJOINT_RESTRICT to, const double *REJOINT_RESTRICT a,
              const double *REJOINT_RESTRICT b, std::size_t rows, std::size_t width) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t f = 0; f < width; ++f) to[r * width + f] = a[r * width + f] * b[f];
}

// out = a^T a for some rows.
REJOINT_CLONES
void square_up(const double *REJOINT_RESTRICT rows, std::size_t size, std::size_t rank,
               double *REJOINT_RESTRICT out) {
    for (std::size_t f = 0; f < rank; ++f) {
        double *to = out + f * rank;
        std::fill(to, to + rank, 0.0);
        for (std::size_t i = 0; i < size; ++i) {
            const double x = rows[i * rank + f];
            for (std::size_t g = 0; g < rank; ++g) to[g] += x * rows[i * rank + g];
        }
    }
}

// one += p and two += p one, of the old one: elementary symmetric polynomials of one more matrix.
REJOINT_CLONES
void include(double *REJOINT_RESTRICT one, double *REJOINT_RESTRICT two,
             const double *REJOINT_RESTRICT p, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        two[i] += p[i] * one[i];
        one[i] += p[i];
    }
}

REJOINT_CLONES
void exclude(double *REJOINT_RESTRICT one, double *REJOINT_RESTRICT two,
             const double *REJOINT_RESTRICT p, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        one[i] -= p[i];
        two[i] -= p[i] * one[i];
    }
}

class Triples {
  public:
    Triples(const double *tables, const std::int64_t *levels, std::size_t n, std::size_t rank)
        : n_(n), rank_(rank), width_(padded(rank)), starts_(n + 1), pairs_(n * n) {
        for (std::size_t v = 0; v < n; ++v) starts_[v + 1] = starts_[v] + levels[v];
        const double *at = tables;
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t k = j + 1; k < n; ++k) {
                pairs_[j * n + k] = at;
                at += size(j) * size(k) * after(k);
            }
        std::size_t most = 1;
        for (std::size_t v = 0; v < n; ++v) most = std::max(most, size(v));
        factors_ = zeros(starts_[n] * width_);
        middle_ = zeros(starts_[n] * width_);
        last_ = zeros(starts_[n] * width_);
        first_ = zeros(most * starts_[n] * width_);
        rows_ = zeros(most * most * width_);
        target_ = zeros(most * width_);
    }

    void set(const double *factors) {
        for (std::size_t i = 0; i < starts_[n_]; ++i)
            std::copy(factors + i * rank_, factors + (i + 1) * rank_, factors_.data() + i * width_);
    }

    // V_n without the weights, (I_n, width); factors before n are new.
    const double *target(std::size_t n) {
        std::copy(middle_.data() + starts_[n] * width_, middle_.data() + starts_[n + 1] * width_,
                  target_.data());
        for (std::size_t i = 0; i < size(n) * width_; ++i)
            target_.data()[i] += last_.data()[starts_[n] * width_ + i];
        for (std::size_t k = n + 1; k + 1 < n_; ++k) {
            double *sums = first(k, n);
            any_product(false, pairs_[n * n_ + k], size(n) * size(k), after(k), after(k), 1,
                        factor(k + 1), sums, width_);
            for (std::size_t i = 0; i < size(n); ++i)
                add_sum(target_.data() + i * width_, sums + i * size(k) * width_, factor(k),
                        size(k), width_);
        }
        return target_.data();
    }

    // Take note of a new factor n, (I_n, rank).
    void move(std::size_t n, const double *rows) {
        for (std::size_t i = 0; i < size(n); ++i)
            std::copy(rows + i * rank_, rows + (i + 1) * rank_, factor(n) + i * width_);
        for (std::size_t k = n + 1; k + 1 < n_; ++k)
            for (std::size_t i = 0; i < size(n); ++i)
                add_each(middle_.data() + starts_[k] * width_, first(k, n) + i * size(k) * width_,
                         factor(n) + i * width_, size(k), width_);
        if (after(n))
            for (std::size_t j = 0; j < n; ++j) finish_pair(j, n);
    }

    // v of the weights, once all factors are new.
    void total(double *v) const {
        for (std::size_t i = 0; i < starts_[n_]; ++i)
            for (std::size_t f = 0; f < rank_; ++f)
                v[f] += last_.data()[i * width_ + f] * factors_.data()[i * width_ + f];
    }

    // The last mode's share of all variables, for factors that are all there.
    void finish() {
        for (std::size_t k = 1; k + 1 < n_; ++k)
            for (std::size_t j = 0; j < k; ++j) finish_pair(j, k);
    }

    std::size_t size(std::size_t n) const { return starts_[n + 1] - starts_[n]; }
    std::size_t start(std::size_t n) const { return starts_[n]; }
    std::size_t width() const { return width_; }

  private:
    static Aligned zeros(std::size_t size) {
        Aligned made(size);
        std::fill(made.data(), made.data() + size, 0.0);
        return made;
    }
    std::size_t after(std::size_t k) const { return starts_[n_] - starts_[k + 1]; }
    double *factor(std::size_t n) { return factors_.data() + starts_[n] * width_; }
    double *first(std::size_t k, std::size_t n) {
        return first_.data() + starts_[k] * size(n) * width_;
    }

    void finish_pair(std::size_t j, std::size_t k) {
        for (std::size_t i = 0; i < size(j); ++i)
            set_each(rows_.data() + i * size(k) * width_, factor(k), factor(j) + i * width_,
                     size(k), width_);
        any_product(true, pairs_[j * n_ + k], after(k), 1, size(j) * size(k), after(k),
                    rows_.data(), last_.data() + starts_[k + 1] * width_, width_);
    }

    std::size_t n_, rank_, width_;
    std::vector<std::size_t> starts_;
    std::vector<const double *> pairs_;
    Aligned factors_, middle_, last_, first_, rows_, target_;
};

// Sums of products of Gram matrices, kept up to date while one factor changes after another.
class Grams {
  public:
    Grams(const double *factors, const Triples &triples, std::size_t n, std::size_t rank)
        : rank_(rank), products_(n, std::vector<double>(rank * rank)), sum_(rank * rank),
          pairs_(rank * rank), found_(rank * rank) {
        for (std::size_t v = 0; v < n; ++v) {
            square_up(factors + triples.start(v) * rank, triples.size(v), rank,
                      products_[v].data());
            include(sum_.data(), pairs_.data(), products_[v].data(), rank * rank);
        }
    }

    // Sum over all pairs of other variables, times w w^T and a number.
    const double *without(std::size_t n, const double *weights, double times) {
        for (std::size_t f = 0; f < rank_; ++f)
            for (std::size_t g = 0; g < rank_; ++g) {
                const std::size_t i = f * rank_ + g;
                const double p = products_[n][i];
                found_[i] = times * weights[f] * weights[g] * (pairs_[i] - p * (sum_[i] - p));
            }
        return found_.data();
    }

    void move(std::size_t n, const double *rows, std::size_t size) {
        exclude(sum_.data(), pairs_.data(), products_[n].data(), rank_ * rank_);
        square_up(rows, size, rank_, products_[n].data());
        include(sum_.data(), pairs_.data(), products_[n].data(), rank_ * rank_);
    }

    // Sum over all triples of variables, times a number.
    const double *whole(double times) {
        std::vector<double> one(rank_ * rank_), two(rank_ * rank_);
        std::fill(found_.begin(), found_.end(), 0.0);
        for (const std::vector<double> &product : products_) {
            add_sum(found_.data(), product.data(), two.data(), 1, rank_ * rank_);
            include(one.data(), two.data(), product.data(), rank_ * rank_);
        }
        for (double &x : found_) x *= times;
        return found_.data();
    }

  private:
    std::size_t rank_;
    std::vector<std::vector<double>> products_;
    std::vector<double> sum_, pairs_, found_;
};

// w G w / 2 - v w.
double half_square(const double *gram, const double *v, const double *weights, std::size_t rank) {
    double value = 0.0;
    for (std::size_t f = 0; f < rank; ++f) {
        double sum = 0.0;
        for (std::size_t g = 0; g < rank; ++g) sum += gram[f * rank + g] * weights[g];
        value += weights[f] * (0.5 * sum - v[f]);
    }
    return value;
}

// Update each factor (L, F) and its dual in turn, then the weights and theirs, all in place. Returns
// half the sum of squared residuals, less that of the tables.
double triples_sweep(const ConstVector &tables, const Integers &levels, double weight,
                     Vector &weights, Vector &weights_dual, Matrix &factors, Matrix &dual,
                     std::size_t steps) {
    nb::gil_scoped_release release;
    const std::size_t n = levels.shape(0), rank = weights.shape(0);
    Triples triples(tables.data(), levels.data(), n, rank);
    triples.set(factors.data());
    Grams grams(factors.data(), triples, n, rank);
    Damped damped(rank);
    std::vector<double> target(rank);
    for (std::size_t v = 0; v < n; ++v) {
        const double *sums = triples.target(v);
        double *factor = factors.data() + triples.start(v) * rank;
        target.resize(triples.size(v) * rank);
        for (std::size_t i = 0; i < triples.size(v); ++i)
            for (std::size_t f = 0; f < rank; ++f)
                target[i * rank + f] = weight * weights.data()[f] * sums[i * triples.width() + f];
        damped.read(grams.without(v, weights.data(), weight));
        take_admm_steps(damped.inverse.data(), target.data(), factor,
                        dual.data() + triples.start(v) * rank, triples.size(v), rank, damped.rho,
                        steps, false);
        grams.move(v, factor, triples.size(v));
        triples.move(v, factor);
    }
    std::vector<double> v(rank);
    triples.total(v.data());
    for (double &x : v) x *= weight;
    const double *gram = grams.whole(weight);
    damped.read(gram);
    take_admm_steps(damped.inverse.data(), v.data(), weights.data(), weights_dual.data(), 1, rank,
                    damped.rho, 2 * steps, true);
    return half_square(gram, v.data(), weights.data(), rank);
}

// The objective of a model, less what the tables themselves add to it.
double triples_value(const ConstVector &tables, const Integers &levels, double weight,
                     const ConstVector &weights, const ConstMatrix &factors) {
    nb::gil_scoped_release release;
    const std::size_t n = levels.shape(0), rank = weights.shape(0);
    Triples triples(tables.data(), levels.data(), n, rank);
    triples.set(factors.data());
    triples.finish();
    std::vector<double> v(rank);
    triples.total(v.data());
    for (double &x : v) x *= weight;
    Grams grams(factors.data(), triples, n, rank);
    return half_square(grams.whole(weight), v.data(), weights.data(), rank);
}

}  // namespace

void register_triples(nb::module_ &m) {
    m.def("triples_sweep", &triples_sweep);
    m.def("triples_value", &triples_value);
}

}  // namespace rejoint
