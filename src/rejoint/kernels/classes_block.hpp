// Records by the block: which rows of the model each is made of, and how probable its classes are.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "classes_model.hpp"
#include "classes_rows.hpp"

namespace rejoint {

constexpr std::size_t RECORDS = 64;  // of a block: what is computed of them stays in an L1
constexpr double TINY = 0x1p-600;    // a less probable record is computed by logarithms
constexpr double LN2 = 0.693147180559945309417;

template <typename Code>
class Block {
  public:
    Block(const Model &model, const Code *codes)
        : model_(model), codes_(codes), steps_(RECORDS * model.n), joint_(RECORDS * model.width),
          stride_(model.groups.size() + 1), offsets_(RECORDS * stride_) {}

    // Compute records first .. last, at most RECORDS; false if a code is out of range.
    bool read(std::size_t first, std::size_t last) {
        first_ = first;
        count_ = last - first;
        if (!look_up(codes_ + first * model_.n, count_, model_.n, model_.levels.data(),
                     model_.strides.data(), steps_.data()))
            return false;
        list_rows();
        if (!by_logarithms_)
            join_rows(false, model_.table.data(), lists(), joint_.data(), prob_.data());
        std::size_t joined = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            if (by_logarithms_ || !(prob_[i] >= TINY)) {
                join_logarithms(i);
                ++joined;
            } else
                shift_[i] = model_.scaled ? LN2 * exponent(i) : 0.0;
        }
        by_logarithms_ = 2 * joined > count_;
        return true;
    }

    // Start afresh: whatever was read before, what follows will be computed the same way.
    void forget() { by_logarithms_ = false; }

    std::size_t size() const { return count_; }
    Lists lists() const {
        return {offsets_.data(), sizes_.data(), stride_, count_, model_.width};
    }
    // Numbers in proportion to the probabilities of the classes of record i, and their sum: zero
    // if the record is possible in no class.
    const double *joint(std::size_t i) const { return joint_.data() + i * model_.width; }
    double sum(std::size_t i) const { return prob_[i]; }
    double log_prob(std::size_t i) const { return std::log(prob_[i]) + shift_[i]; }

  private:
    // List the row of each group; where most groups are wholly missing, only those of the rest.
    void list_rows() {
        std::size_t seen = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            const std::uint32_t *REJOINT_RESTRICT step = steps_.data() + i * model_.n;
            std::uint32_t *REJOINT_RESTRICT list = offsets_.data() + i * stride_;
            std::uint32_t size = 0;
            list[size++] = 0;  // the weights
            for (const Group &group : model_.groups) {
                std::uint32_t cell = 0;
                for (std::size_t v = group.first; v < group.last; ++v) cell += step[v];
                list[size] = group.offset + cell;
                size += dense_ || cell;
                seen += cell != 0;
            }
            sizes_[i] = size;
        }
        dense_ = 2 * seen > count_ * model_.groups.size();
    }

    void join_logarithms(std::size_t i) {
        double *x = joint_.data() + i * model_.width;
        Lists one = lists();
        one.offsets += i * stride_;
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
    std::size_t first_ = 0, count_ = 0;
    std::vector<std::uint32_t> steps_;  // (records, variables): level times stride
    Aligned joint_;                     // (records, classes)
    std::array<double, RECORDS> prob_;  // their sums
    std::array<double, RECORDS> shift_;  // logarithms of what was divided out of them
    std::size_t stride_;
    std::vector<std::uint32_t> offsets_;  // (records, at most one per group and one)
    std::array<std::uint32_t, RECORDS> sizes_;
    bool dense_ = false, by_logarithms_ = false;
};

}  // namespace rejoint
