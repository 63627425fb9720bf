// The two loops in which passes over records spend their time: products of rows, and sums of rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd.hpp"

namespace rejoint {

constexpr std::size_t RECORDS = 64;  // of a small block: its results fit in an L1 cache
constexpr std::size_t PANEL = 64;    // classes of a panel

// Some records, each a list of offsets of rows in a table; rows have `width` numbers.
struct Lists {
    const std::uint32_t *offsets;
    const std::size_t *begins;  // of each list in the offsets
    const std::uint32_t *sizes;
    std::size_t count, width;
};

// Some of the classes: rows that are larger than a cache are gone through class by class.
struct Panel {
    std::size_t first, last;
};

// How rows are joined: by products, by sums of logarithms, or by products with the result so far.
enum class Join { PRODUCT, LOGARITHMS, MORE };

// joint[i] = product (or sum) of the rows that record i lists; prob[i] = sum of the numbers in
// joint[i], to which each panel adds its own. Four partial sums on any hardware, so that the result is
// the same everywhere.
template <int WIDTH, int QUADS, Join JOIN>
REJOINT_INLINE void join_lists(Panel panel, const double *REJOINT_RESTRICT table,
                               const Lists &lists, double *REJOINT_RESTRICT joint,
                               double *REJOINT_RESTRICT prob) {
    constexpr int N = 4 * QUADS / WIDTH, SUMS = 4 / WIDTH;
    for (std::size_t i = 0; i < lists.count; ++i) {
        const std::uint32_t *REJOINT_RESTRICT list = lists.offsets + lists.begins[i];
        const std::uint32_t size = lists.sizes[i];
        if (JOIN == Join::MORE && !size) continue;
        Lanes<WIDTH> x[N], row, sums[SUMS] = {};
        for (std::size_t f = panel.first; f < panel.last; f += 4 * QUADS) {
            const double *first =
                JOIN == Join::MORE ? joint + i * lists.width : table + list[0];
            for (int k = 0; k < N; ++k) load(x[k], first + f + k * WIDTH);
            for (std::uint32_t j = JOIN == Join::MORE ? 0 : 1; j < size; ++j)
                for (int k = 0; k < N; ++k) {
                    load(row, table + list[j] + f + k * WIDTH);
                    if constexpr (JOIN == Join::LOGARITHMS)
                        add(x[k], row);
                    else
                        multiply(x[k], row);
                }
            for (int k = 0; k < N; ++k) store(x[k], joint + i * lists.width + f + k * WIDTH);
            for (int k = 0; k < N; ++k) add(sums[k % SUMS], x[k]);
        }
        double sum[4];
        for (int k = 0; k < SUMS; ++k) store(sums[k], sum + k * WIDTH);
        const double more = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        prob[i] = panel.first ? prob[i] + more : more;
    }
}

// Add scale[i] * joint[i] to each of the rows that record i lists.
template <int WIDTH, int QUADS>
REJOINT_INLINE void add_to_lists(Panel panel, const double *REJOINT_RESTRICT joint,
                                 const double *REJOINT_RESTRICT scale, const Lists &lists,
                                 double *REJOINT_RESTRICT sums) {
    constexpr int N = 4 * QUADS / WIDTH;
    for (std::size_t i = 0; i < lists.count; ++i) {
        const std::uint32_t *REJOINT_RESTRICT list = lists.offsets + lists.begins[i];
        const std::uint32_t size = lists.sizes[i];
        if (!size) continue;
        const double factors[4] = {scale[i], scale[i], scale[i], scale[i]};
        Lanes<WIDTH> x[N], row, factor;
        load(factor, factors);
        for (std::size_t f = panel.first; f < panel.last; f += 4 * QUADS) {
            for (int k = 0; k < N; ++k) load(x[k], joint + i * lists.width + f + k * WIDTH);
            for (int k = 0; k < N; ++k) multiply(x[k], factor);
            for (std::uint32_t j = 0; j < size; ++j)
                for (int k = 0; k < N; ++k) {
                    load(row, sums + list[j] + f + k * WIDTH);
                    add(row, x[k]);
                    store(row, sums + list[j] + f + k * WIDTH);
                }
        }
    }
}

template <int WIDTH, int QUADS>
REJOINT_INLINE void join_lists(Panel panel, Join join, const double *table, const Lists &lists,
                               double *joint, double *prob) {
    switch (join) {
        case Join::PRODUCT:
            return join_lists<WIDTH, QUADS, Join::PRODUCT>(panel, table, lists, joint, prob);
        case Join::LOGARITHMS:
            return join_lists<WIDTH, QUADS, Join::LOGARITHMS>(panel, table, lists, joint, prob);
        case Join::MORE:
            return join_lists<WIDTH, QUADS, Join::MORE>(panel, table, lists, joint, prob);
    }
}

// Call a template for the number of quads in `width`; wide rows go by blocks of four quads.
#define REJOINT_BY_QUADS(function, WIDTH, width, ...)          \
    switch ((width) / 4) {                                     \
        case 1: return function<WIDTH, 1>(__VA_ARGS__);        \
        case 2: return function<WIDTH, 2>(__VA_ARGS__);        \
        case 3: return function<WIDTH, 3>(__VA_ARGS__);        \
        case 5: return function<WIDTH, 5>(__VA_ARGS__);        \
        case 6: return function<WIDTH, 6>(__VA_ARGS__);        \
        case 7: return function<WIDTH, 7>(__VA_ARGS__);        \
        case 8: return function<WIDTH, 8>(__VA_ARGS__);        \
        default: return function<WIDTH, 4>(__VA_ARGS__);       \
    }

void join_rows(Join join, const double *table, const Lists &lists, double *joint, double *prob);
void add_rows(const double *joint, const double *scale, const Lists &lists, double *sums);

}  // namespace rejoint
