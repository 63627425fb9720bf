// Blocks of records: the probability of each, and of each of its classes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "classes_lists.hpp"
#include "classes_sparse.hpp"

namespace rejoint {

constexpr double TINY = 0x1p-600;  // less probable records are computed by logarithms

// Rows: the form of the records, a Table of codes or SparseCodes.
//
// Where the rows of the model are larger than a cache, blocks are large and processed part by part
// and panel by panel: a part of the rows is then loaded once for many records. Each record is still the product of its
// rows in their order, and sums over records are in the order of records: the result is the same.
template <typename Rows>
class Block {
  public:
    Block(const Model &model, const Rows &rows)
        : model_(model), capacity_(std::max(RECORDS, std::min(model.block, rows.records))), lister_(model, rows, capacity_),
          joint_(capacity_ * model.width), prob_(capacity_), shift_(capacity_),
          spare_(capacity_) {
        if (parts() == 1) return;
        begins_.resize(parts() * capacity_);
        sizes_.resize(parts() * capacity_);
    }

    // Records that are computed at once.
    std::size_t room() const { return capacity_; }

    // Forget what was read before: the result of a chunk must not depend on the thread. `last`
    // is that of its first block.
    void begin(std::size_t first, std::size_t last) {
        by_logarithms_ = false;
        lister_.choose(first, last);
    }

    // Compute records first .. last, as many as there is room for; false if a code is out of range.
    bool read(std::size_t first, std::size_t last) {
        if (!lister_.read(first, last)) return false;
        if (parts() > 1) split();
        for (std::size_t p = 0; p < parts() && !by_logarithms_; ++p)
            join_rows(p ? Join::MORE : Join::PRODUCT, model_.table.data(), part(p), joint_.data(),
                      prob_.data());
        std::size_t joined = 0;
        for (std::size_t i = 0; i < last - first; ++i) {
            if (by_logarithms_ || !(prob_[i] >= TINY)) {
                join_logarithms(i);
                ++joined;
            } else
                shift_[i] = 0.0;
        }
        by_logarithms_ = 2 * joined > last - first;
        return true;
    }

    std::size_t parts() const { return model_.parts.size() - 1; }
    // The lists of the records, for one part of the rows.
    Lists part(std::size_t p) const {
        Lists found = lists();
        if (parts() == 1) return found;
        found.begins = begins_.data() + p * capacity_;
        found.sizes = sizes_.data() + p * capacity_;
        return found;
    }
    std::size_t size() const { return lists().count; }
    Lists lists() const { return lister_.lists(); }
    // Numbers proportional to the probabilities of the classes of record i, and their sum, which
    // is zero if no class allows the record.
    const double *joint(std::size_t i) const { return joint_.data() + i * model_.width; }
    double sum(std::size_t i) const { return prob_[i]; }
    // The log-probability of record i is the logarithm of the sum plus this shift, and plus what the
    // rows of the model lack, which sums over records add at once.
    double shift(std::size_t i) const { return shift_[i]; }
    double lacking(std::size_t i) const { return model_.scaled ? LN2 * lister_.exponent(i) : 0.0; }
    // Scratch memory, a number per record: threads must not allocate.
    double *spare() const { return spare_.data(); }

  private:
    // Split the lists of records, which are increasing, at the boundaries of the parts.
    void split() {
        const Lists all = lists();
        for (std::size_t i = 0; i < all.count; ++i) {
            const std::uint32_t *list = all.offsets + all.begins[i], *from = list;
            const std::uint32_t *const end = list + all.sizes[i];
            for (std::size_t p = 0; p < parts(); ++p) {
                const std::uint32_t *to = std::lower_bound(from, end, model_.parts[p + 1]);
                begins_[p * capacity_ + i] = static_cast<std::size_t>(from - all.offsets);
                sizes_[p * capacity_ + i] = static_cast<std::uint32_t>(to - from);
                from = to;
            }
        }
    }

    void join_logarithms(std::size_t i) {
        double *x = joint_.data() + i * model_.width;
        Lists one = lists();
        one.begins += i;
        one.sizes += i;
        one.count = 1;
        join_rows(Join::LOGARITHMS, model_.logarithms(), one, x, prob_.data() + i);
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
    const std::size_t capacity_;
    typename Rows::Lister lister_;
    Aligned joint_;              // (records, classes)
    std::vector<double> prob_;   // their sums
    std::vector<double> shift_;  // logarithms of what was divided out of them
    mutable std::vector<double> spare_;
    std::vector<std::size_t> begins_;   // of lists, (parts, records), where there are several parts
    std::vector<std::uint32_t> sizes_;  // of the same
    bool by_logarithms_ = false;
};

}  // namespace rejoint
