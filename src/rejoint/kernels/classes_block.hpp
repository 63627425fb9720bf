// Records by the block: how probable each is, and each of its classes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "classes_cells.hpp"
#include "classes_lists.hpp"

namespace rejoint {

constexpr double TINY = 0x1p-600;  // a less probable record is computed by logarithms
constexpr double LN2 = 0.693147180559945309417;

// Rows: where records are read from, a Table of codes or the Cells that are observed.
template <typename Rows>
class Block {
  public:
    Block(const Model &model, const Rows &rows)
        : model_(model), lister_(model, rows), joint_(RECORDS * model.width) {}

    // Forget what was read before: a chunk is computed the same way whoever computes it. `last`
    // is that of its first block.
    void begin(std::size_t first, std::size_t last) {
        by_logarithms_ = false;
        lister_.choose(first, last);
    }

    // Compute records first .. last, at most RECORDS; false if a code is out of range.
    bool read(std::size_t first, std::size_t last) {
        if (!lister_.read(first, last)) return false;
        if (!by_logarithms_)
            join_rows(false, model_.table.data(), lists(), joint_.data(), prob_.data());
        std::size_t joined = 0;
        for (std::size_t i = 0; i < last - first; ++i) {
            if (by_logarithms_ || !(prob_[i] >= TINY)) {
                join_logarithms(i);
                ++joined;
            } else
                shift_[i] = model_.scaled ? LN2 * lister_.exponent(i) : 0.0;
        }
        by_logarithms_ = 2 * joined > last - first;
        return true;
    }

    std::size_t size() const { return lists().count; }
    Lists lists() const { return lister_.lists(); }
    // Numbers in proportion to the probabilities of the classes of record i, and their sum: zero
    // if the record is possible in no class.
    const double *joint(std::size_t i) const { return joint_.data() + i * model_.width; }
    double sum(std::size_t i) const { return prob_[i]; }
    // Logarithm of the probability of record i is that of the sum, and this much more.
    double shift(std::size_t i) const { return shift_[i]; }

  private:
    void join_logarithms(std::size_t i) {
        double *x = joint_.data() + i * model_.width;
        Lists one = lists();
        one.begins += i;
        one.sizes += i;
        one.count = 1;
        join_rows(true, model_.logarithms(), one, x, prob_.data() + i);
        const double top = *std::max_element(x, x + model_.rank);
        const bool possible = top > -std::numeric_limits<double>::infinity();
        prob_[i] = 0.0;
        for (std::size_t f = 0; f < model_.width; ++f) {
            x[f] = possible ? std::exp(x[f] - top) : 0.0;
            prob_[i] += x[f];
        }
        shift_[i] = possible ? top : 0.0;
    }

    const Model &model_;
    typename Rows::Lister lister_;
    Aligned joint_;                      // (records, classes)
    std::array<double, RECORDS> prob_;   // their sums
    std::array<double, RECORDS> shift_;  // logarithms of what was divided out of them
    bool by_logarithms_ = false;
};

}  // namespace rejoint
