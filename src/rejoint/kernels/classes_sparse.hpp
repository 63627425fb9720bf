// The rows of the model whose product each record of a block is, for SparseCodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "classes_model.hpp"
#include "classes_rows.hpp"

namespace rejoint {

class SparseLister;

// Records by their observed values, one record after another: levels, numbered through all
// variables. Missing values take neither memory nor time.
struct SparseCodes {
    using Lister = SparseLister;
    const std::int64_t *starts;  // of each record among the values, and their number at the end
    const std::int32_t *cells;
    std::size_t records;
};

// Missing values need no rows, and each value is checked as it is read.
inline bool look_at(const SparseCodes &codes, const std::int64_t *, std::size_t, Profile &profile) {
    const auto cells = static_cast<double>(codes.starts[codes.records]);
    profile.listed = 1.0 + cells / static_cast<double>(std::max<std::size_t>(codes.records, 1));
    return true;
}

class SparseLister {
  public:
    SparseLister(const Model &model, const SparseCodes &rows, std::size_t room)
        : model_(model), rows_(rows), offset_of_(model.starts[model.n]), begins_(room),
          sizes_(room) {
        for (const Group &group : model.groups)
            for (std::size_t level = 0; level < group.cells; ++level)
                offset_of_[model.starts[group.first] + level] =
                    static_cast<std::uint32_t>((group.row + level) * model.width);
        std::size_t most = 0;  // values of a block: threads must not run out of memory
        for (std::size_t i = 0; i < rows.records; ++i)
            most = std::max(most, cells_between(i, std::min(i + room, rows.records)));
        offsets_.resize(most + room);
    }

    // List records first .. last, as many as there is room for; false if a value is no level.
    bool read(std::size_t first, std::size_t last) {
        first_ = first;
        count_ = last - first;
        std::size_t to = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            const std::size_t size = cells_between(first + i, first + i + 1);
            const std::int32_t *cell = rows_.cells + rows_.starts[first + i];
            begins_[i] = to;
            sizes_[i] = static_cast<std::uint32_t>(size + 1);
            offsets_[to++] = 0;  // the weights
            for (std::size_t j = 0; j < size; ++j) {
                if (static_cast<std::uint32_t>(cell[j]) >= offset_of_.size()) return false;
                offsets_[to++] = offset_of_[static_cast<std::uint32_t>(cell[j])];
            }
        }
        return true;
    }

    void choose(std::size_t, std::size_t) {}  // there is only one way to list them

    Lists lists() const {
        return {offsets_.data(), begins_.data(), sizes_.data(), count_, model_.width};
    }

    // Exponent of the power of two that was divided out of the rows of record i.
    double exponent(std::size_t i) const {
        double sum = model_.exponents[0];
        for (std::int64_t j = rows_.starts[first_ + i]; j < rows_.starts[first_ + i + 1]; ++j)
            sum += model_.exponents[1 + static_cast<std::size_t>(rows_.cells[j])];
        return sum;
    }

  private:
    std::size_t cells_between(std::size_t first, std::size_t last) const {
        return static_cast<std::size_t>(rows_.starts[last] - rows_.starts[first]);
    }

    const Model &model_;
    const SparseCodes &rows_;
    std::vector<std::uint32_t> offset_of_;  // of each level, all groups being of one variable
    std::size_t first_ = 0, count_ = 0;
    std::vector<std::uint32_t> offsets_;
    std::vector<std::size_t> begins_;
    std::vector<std::uint32_t> sizes_;
};

}  // namespace rejoint
