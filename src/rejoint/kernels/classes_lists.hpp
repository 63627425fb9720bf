// The rows of the model whose product each record of a block is, for a table of codes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "classes_model.hpp"
#include "classes_rows.hpp"
#include "codes.hpp"

namespace rejoint {

// Records as a table of codes, -1 where a value is missing.
template <typename Code>
class TableLister;

template <typename Code>
struct Table {
    using Lister = TableLister<Code>;
    const Code *codes;
    std::size_t records;
};

template <typename Code>
class TableLister {
    static constexpr std::size_t STEP = sizeof(std::uint64_t) / sizeof(Code);

  public:
    TableLister(const Model &model, const Table<Code> &table, std::size_t room)
        : model_(model), codes_(table.codes), limits_(model.levels.data(), model.n), groups_of_(model.n),
          missing_(model.groups.size()), stride_(model.groups.size() + 1),
          offsets_(room * stride_), begins_(room), sizes_(room) {
        for (std::size_t i = 0; i < room; ++i) begins_[i] = i * stride_;
        for (std::size_t g = 0; g < model.groups.size(); ++g) {
            missing_[g] = model.groups[g].offset;
            for (std::size_t v = model.groups[g].first; v < model.groups[g].last; ++v)
                groups_of_[v] = static_cast<std::uint32_t>(g);
        }
    }

    // Typical number of rows that a record lists.
    static std::size_t typical(const Model &model, const Table<Code> &) {
        return model.groups.size() + 1;
    }

    // List records first .. last, as many as there is room for; false if a code is out of range.
    bool read(std::size_t first, std::size_t last) {
        const Code *codes = codes_ + first * model_.n;
        const std::size_t count = last - first;
        first_ = first;
        if (!limits_.hold(codes, count)) return false;
        count_ = count;
        for (std::size_t i = 0; i < count; ++i) offsets_[i * stride_] = 0;  // the weights
        if (way_ == Way::SEEK)
            for (std::size_t i = 0; i < count; ++i) list_observed(codes + i * model_.n, i);
        else
            list_all(codes);
        if (way_ == Way::DROP)
            for (std::size_t i = 0; i < count; ++i) drop_missing(i);
        return true;
    }

    // Leave out groups whose variables are all missing where these records show that it pays.
    // Products and sums are the same either way: a missing group multiplies by one.
    void choose(std::size_t first, std::size_t last) {
        way_ = Way::SEEK;
        if (!read(first, last)) return;
        std::size_t seen = 0;
        for (std::size_t i = 0; i < count_; ++i) seen += sizes_[i] - 1;
        const std::size_t all = count_ * model_.groups.size();
        way_ = 5 * seen < all ? Way::SEEK : 5 * seen < 4 * all ? Way::DROP : Way::ALL;
    }

    Lists lists() const {
        return {offsets_.data(), begins_.data(), sizes_.data(), count_, model_.width};
    }

    // Exponent of the power of two that was divided out of the rows of record i.
    double exponent(std::size_t i) const {
        double sum = model_.exponents[0];
        const Code *code = codes_ + (first_ + i) * model_.n;
        for (std::size_t v = 0; v < model_.n; ++v)
            if (code[v] >= 0)
                sum += model_.exponents[1 + model_.starts[v] + static_cast<std::size_t>(code[v])];
        return sum;
    }

  private:
    void list_all(const Code *codes) {
        std::fill(sizes_.begin(), sizes_.end(), static_cast<std::uint32_t>(stride_));
        std::uint32_t *to = offsets_.data() + 1;
        for (const Group &group : model_.groups) {
            switch (group.last - group.first) {
                case 1: list_group<1>(group, codes, to++); break;
                case 2: list_group<2>(group, codes, to++); break;
                case 3: list_group<3>(group, codes, to++); break;
                case 4: list_group<4>(group, codes, to++); break;
                default: list_group<0>(group, codes, to++);
            }
        }
    }

    // SIZE is the number of variables of the group, or zero for any.
    template <std::size_t SIZE>
    void list_group(const Group &group, const Code *codes, std::uint32_t *REJOINT_RESTRICT to) {
        const std::size_t n = model_.n, size = SIZE ? SIZE : group.last - group.first;
        const std::uint32_t *REJOINT_RESTRICT strides = model_.strides.data() + group.first;
        const Code *REJOINT_RESTRICT code = codes + group.first;
        for (std::size_t i = 0; i < count_; ++i, code += n, to += stride_) {
            std::uint32_t offset = group.offset;
            for (std::size_t v = 0; v < size; ++v)
                offset += (static_cast<std::uint32_t>(code[v]) + 1u) * strides[v];
            *to = offset;
        }
    }

    // No branch depends on missing values: half of the predictions would be wrong.
    void drop_missing(std::size_t i) {
        std::uint32_t *REJOINT_RESTRICT list = offsets_.data() + i * stride_;
        std::uint32_t size = 1;
        for (std::size_t g = 0; g < model_.groups.size(); ++g) {
            const std::uint32_t offset = list[1 + g];
            list[size] = offset;
            size += offset != missing_[g];
        }
        sizes_[i] = size;
    }

    void list_observed(const Code *code, std::size_t i) {
        std::uint32_t *REJOINT_RESTRICT list = offsets_.data() + i * stride_;
        std::uint32_t size = 1, last = std::numeric_limits<std::uint32_t>::max();
        for (std::size_t v = 0; v < model_.n;) {
            std::uint64_t word = 0;
            if (v + STEP <= model_.n && (std::memcpy(&word, code + v, sizeof word), !~word)) {
                v += STEP;  // all of these are missing
                continue;
            }
            for (const std::size_t end = std::min(v + STEP, model_.n); v < end; ++v) {
                if (code[v] < 0) continue;
                if (groups_of_[v] != last) {
                    last = groups_of_[v];
                    list[size++] = model_.groups[last].offset;
                }
                list[size - 1] += (static_cast<std::uint32_t>(code[v]) + 1u) * model_.strides[v];
            }
        }
        sizes_[i] = size;
    }

    const Model &model_;
    const Code *codes_;
    Limits<Code> limits_;
    std::vector<std::uint32_t> groups_of_, missing_;  // group of a variable; row of a missing group
    std::size_t stride_, first_ = 0, count_ = 0;
    std::vector<std::uint32_t> offsets_;  // (records, groups and one)
    std::vector<std::size_t> begins_;
    std::vector<std::uint32_t> sizes_;
    enum class Way { ALL, DROP, SEEK } way_ = Way::ALL;  // how missing groups are handled
};

}  // namespace rejoint
