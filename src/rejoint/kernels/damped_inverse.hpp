// (G + rho I)^-1 of a small positive semidefinite matrix, rho from its extreme eigenvalues.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "simd.hpp"

namespace rejoint {

constexpr int CUTS = 4;  // of an interval at once
constexpr double LEAST_SHARE = 1e-10;  // of the largest eigenvalue that the smallest counts as
constexpr double ENOUGH = 1e-10;       // relative error of eigenvalues

// Number of eigenvalues of a tridiagonal matrix below each of some points.
REJOINT_CLONES
inline void count_below(const double *d, const double *e, std::size_t n, const double *x,
                        int *counts) {
    constexpr double LEAST = 0x1p-1000;
    double q[2 * CUTS];
    for (int c = 0; c < 2 * CUTS; ++c) {
        q[c] = d[0] - x[c];
        counts[c] = q[c] < 0.0;
    }
    for (std::size_t i = 1; i < n; ++i) {
        const double square = e[i] * e[i];
        for (int c = 0; c < 2 * CUTS; ++c) {
            const double divisor = q[c] > -LEAST && q[c] < LEAST ? LEAST : q[c];
            q[c] = d[i] - x[c] - square / divisor;
            counts[c] += q[c] < 0.0;
        }
    }
}

// Gauss and Jordan without pivots, which a positive definite matrix does not need.
REJOINT_CLONES
inline void invert_in_place(double *REJOINT_RESTRICT a, std::size_t n) {
    for (std::size_t k = 0; k < n; ++k) {
        double *pivot = a + k * n;
        const double scale = 1.0 / pivot[k];
        pivot[k] = 1.0;
        for (std::size_t j = 0; j < n; ++j) pivot[j] *= scale;
        for (std::size_t i = 0; i < n; ++i) {
            if (i == k) continue;
            double *row = a + i * n;
            const double times = row[k];
            row[k] = 0.0;
            for (std::size_t j = 0; j < n; ++j) row[j] -= times * pivot[j];
        }
    }
}

// A - v q^T - q v^T on rows and columns from `first` on, q being such that A is reflected along v.
REJOINT_CLONES
inline void reflect(double *REJOINT_RESTRICT a, const double *REJOINT_RESTRICT v,
                    double *REJOINT_RESTRICT q, double scale, std::size_t first, std::size_t n) {
    std::fill(q, q + n, 0.0);
    for (std::size_t i = first; i < n; ++i)  // rows are columns as well
        for (std::size_t j = first; j < n; ++j) q[j] += scale * v[i] * a[(i - first) * n + j];
    double along = 0.0;
    for (std::size_t i = first; i < n; ++i) along += q[i] * v[i];
    along *= 0.5 * scale;
    for (std::size_t i = first; i < n; ++i) q[i] -= along * v[i];
    for (std::size_t i = first; i < n; ++i)
        for (std::size_t j = first; j < n; ++j)
            a[(i - first) * n + j] -= v[i] * q[j] + q[i] * v[j];
}

// Smallest and largest eigenvalue: Householder's tridiagonal form, then sections by Sturm's count.
class Spectrum {
  public:
    explicit Spectrum(std::size_t n) : n_(n), a_(n * n), d_(n), e_(n), p_(n) {}

    void read(const double *matrix, double &least, double &most) {
        std::copy(matrix, matrix + n_ * n_, a_.begin());
        reduce();
        double low = d_[0], high = d_[0];
        for (std::size_t i = 0; i < n_; ++i) {
            const double reach = (i ? std::abs(e_[i]) : 0.0) + (i + 1 < n_ ? std::abs(e_[i + 1]) : 0.0);
            low = std::min(low, d_[i] - reach);
            high = std::max(high, d_[i] + reach);
        }
        narrow(low, high, least, most);
    }

  private:
    // Diagonal into d, what is beside it into e[1 ..].
    void reduce() {
        for (std::size_t k = 0; k + 2 < n_; ++k) {
            double *column = a_.data() + k * n_;  // row k: the matrix is symmetric
            double norm = 0.0;
            for (std::size_t i = k + 1; i < n_; ++i) norm += column[i] * column[i];
            norm = std::sqrt(norm);
            e_[k + 1] = column[k + 1] > 0.0 ? -norm : norm;
            if (norm == 0.0) continue;
            column[k + 1] -= e_[k + 1];  // the vector to reflect along
            double square = 0.0;
            for (std::size_t i = k + 1; i < n_; ++i) square += column[i] * column[i];
            if (square == 0.0) continue;
            reflect(a_.data() + (k + 1) * n_, column, p_.data(), 2.0 / square, k + 1, n_);
        }
        for (std::size_t i = 0; i < n_; ++i) d_[i] = a_[i * n_ + i];
        if (n_ > 1) e_[n_ - 1] = a_[(n_ - 1) * n_ + n_ - 2];
    }

    // Narrow the bounds of both at once, eight points a round: counts of eigenvalues below a point
    // (Sturm) are chains of divisions, and chains side by side cost little more than one.
    void narrow(double low, double high, double &least, double &most) const {
        double from[2] = {low, low}, to[2] = {high, high};
        const std::size_t wanted[2] = {1, n_};
        const double fine = 1e-15 * std::max(std::abs(low), std::abs(high));
        for (int round = 0; round < 60; ++round) {
            double x[2 * CUTS];
            int counts[2 * CUTS] = {};
            for (int side = 0; side < 2; ++side)
                for (int c = 0; c < CUTS; ++c)
                    x[side * CUTS + c] = from[side] + (to[side] - from[side]) * (c + 1) / (CUTS + 1);
            count_below(d_.data(), e_.data(), n_, x, counts);
            for (int side = 0; side < 2; ++side) {
                double left = from[side], right = to[side];
                for (int c = 0; c < CUTS; ++c)
                    if (static_cast<std::size_t>(counts[side * CUTS + c]) >= wanted[side])
                        right = std::min(right, x[side * CUTS + c]);
                    else
                        left = std::max(left, x[side * CUTS + c]);
                from[side] = left;
                to[side] = right;
            }
            // A step size needs no more digits; what is small enough counts as the least anyway.
            const double width = std::max(from[0], LEAST_SHARE * from[1]);
            if (to[1] - from[1] <= ENOUGH * from[1] &&
                (to[0] - from[0] <= ENOUGH * width || to[0] <= LEAST_SHARE * from[1]))
                break;
            if (to[0] - from[0] <= fine && to[1] - from[1] <= fine) break;
        }
        least = 0.5 * (from[0] + to[0]);
        most = 0.5 * (from[1] + to[1]);
    }

    std::size_t n_;
    std::vector<double> a_, d_, e_, p_;
};

// As damped_inverse in simplex.py: rho is the geometric mean of the extreme eigenvalues, of
// which the smallest counts as 1e-10 of the largest.
class Damped {
  public:
    explicit Damped(std::size_t n) : inverse(n * n), n_(n), spectrum_(n) {}

    void read(const double *matrix) {
        double least, most;
        spectrum_.read(matrix, least, most);
        most = std::max(most, std::numeric_limits<double>::min());
        rho = std::sqrt(std::max(least, LEAST_SHARE * most) * most);
        invert(matrix);
    }

    std::vector<double> inverse;
    double rho = 0.0;

  private:
    void invert(const double *matrix) {
        std::copy(matrix, matrix + n_ * n_, inverse.begin());
        for (std::size_t i = 0; i < n_; ++i) inverse[i * n_ + i] += rho;
        invert_in_place(inverse.data(), n_);
    }

    std::size_t n_;
    Spectrum spectrum_;
};

}  // namespace rejoint
