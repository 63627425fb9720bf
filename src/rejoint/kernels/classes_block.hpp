// Records by the block: how probable each is, and each of its classes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "classes_lists.hpp"

namespace rejoint {

constexpr double TINY = 0x1p-600;  // a less probable record is computed by logarithms
constexpr double LN2 = 0.693147180559945309417;

template <typename Code>
class Block {
  public:
    Block(const Model &model, const Code *codes)
        : model_(model), codes_(codes), lister_(model), joint_(RECORDS * model.width) {}

    // Forget what was read before: a chunk is computed the same way whoever computes it. `last`
    // is that of its first block.
    void begin(std::size_t first, std::size_t last) {
        by_logarithms_ = false;
        lister_.choose(codes_ + first * model_.n, last - first);
    }

    // Compute records first .. last, at most RECORDS; false if a code is out of range.
    bool read(std::size_t first, std::size_t last) {
        first_ = first;
        if (!lister_.read(codes_ + first * model_.n, last - first)) return false;
        if (!by_logarithms_)
            join_rows(false, model_.table.data(), lists(), joint_.data(), prob_.data());
        std::size_t joined = 0;
        for (std::size_t i = 0; i < last - first; ++i) {
            if (by_logarithms_ || !(prob_[i] >= TINY)) {
                join_logarithms(i);
                ++joined;
            } else
                shift_[i] = model_.scaled ? LN2 * exponent(i) : 0.0;
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
        one.offsets += i * one.stride;
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

    double exponent(std::size_t i) const {
        double sum = model_.exponents[0];
        const Code *code = codes_ + (first_ + i) * model_.n;
        for (std::size_t v = 0; v < model_.n; ++v)
            if (code[v] >= 0)
                sum += model_.exponents[1 + model_.starts[v] + static_cast<std::size_t>(code[v])];
        return sum;
    }

    const Model &model_;
    const Code *codes_;
    Lister<Code> lister_;
    std::size_t first_ = 0;
    Aligned joint_;                      // (records, classes)
    std::array<double, RECORDS> prob_;   // their sums
    std::array<double, RECORDS> shift_;  // logarithms of what was divided out of them
    bool by_logarithms_ = false;
};

}  // namespace rejoint
