// The rows of the model whose product each record of a block is, for a table of codes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "classes_model.hpp"
#include "classes_rows.hpp"
#include "codes.hpp"
#include "simd.hpp"

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

constexpr std::size_t PROBES = 128;  // records that show which codes are common; an eighth of few

// What is to be known of the records before a pass; false if a code is out of range.
template <typename Code>
bool look_at(const Table<Code> &table, const std::int64_t *levels, std::size_t n, Profile &profile) {
    if (!n) return true;
    if (!Limits<Code>(levels, n).survey(table.codes, table.records, profile.missing)) return false;
    std::vector<std::size_t> begins(n + 1);
    for (std::size_t v = 0; v < n; ++v)
        begins[v + 1] = begins[v] + static_cast<std::size_t>(levels[v]) + 1;
    std::vector<std::uint32_t> found(begins[n]);
    const std::size_t probes = std::min(PROBES, (table.records + 7) / 8);
    for (std::size_t i = 0; i < probes; ++i) {
        const Code *code = table.codes + table.records * i / probes * n;
        for (std::size_t v = 0; v < n; ++v)
            ++found[begins[v] + static_cast<std::size_t>(code[v] + 1)];
    }
    for (std::size_t v = 0; probes && v < n; ++v) {
        const auto first = found.begin() + static_cast<std::ptrdiff_t>(begins[v]);
        const auto most = std::max_element(first, first + levels[v] + 1);
        profile.common[v] = static_cast<std::int32_t>(most - first) - 1;
        profile.share[v] = static_cast<double>(*most) / static_cast<double>(probes);
    }
    return true;
}

template <typename Code>
class TableLister {
  public:
    TableLister(const Model &model, const Table<Code> &table, std::size_t room)
        : model_(model), codes_(table.codes), groups_of_(model.n), skipped_(model.groups.size()), zeros_(model.n),
          steps_(model.begins[model.n]), common_(std::max<std::size_t>(model.n, 64)), stride_(model.groups.size() + 1),
          offsets_(room * stride_), begins_(room), sizes_(room) {
        std::copy(model.common.begin(), model.common.end(), common_.begin());
        for (std::size_t g = 0; g < model.groups.size(); ++g) {
            const Group &group = model.groups[g];
            skipped_[g] = group.skips ? group.common : 0;  // no group has the row of the weights
            skips_ = skips_ || group.skips;
            for (std::size_t v = group.first; v < group.last; ++v) {
                const std::size_t begin = model.begins[v], from = model.common_cell(v);
                groups_of_[v] = static_cast<std::uint32_t>(g);
                zeros_[v] = static_cast<std::int32_t>(begin + model.missing[v]);
                for (std::size_t c = 0; c < model.cells(v); ++c)
                    steps_[begin + c] = static_cast<std::uint32_t>(c - from) * model.strides[v];
            }
        }
    }

    // List records first .. last, as many as there is room for. Their codes are in range.
    bool read(std::size_t first, std::size_t last) {
        const Code *codes = codes_ + first * model_.n;
        first_ = first;
        count_ = last - first;
        departures_ = 0;
        if (way_ == Way::SEEK) {
            std::size_t to = 0;
            for (std::size_t i = 0; i < count_; ++i) {
                begins_[i] = to;
                list_departures(codes + i * model_.n, i);
                to += sizes_[i];
            }
            return true;
        }
        for (std::size_t i = 0; i < count_; ++i) {
            begins_[i] = i * stride_;
            offsets_[i * stride_] = 0;  // the weights
        }
        list_all(codes);
        if (way_ == Way::DROP)
            for (std::size_t i = 0; i < count_; ++i) drop_common(i);
        return true;
    }

    // Leave out common cells of groups where these records show that it pays. Products and sums
    // are the same either way: a common cell multiplies by one.
    void choose(std::size_t first, std::size_t last) {
        way_ = Way::ALL;
        if (!skips_) return;
        way_ = Way::SEEK;
        read(first, last);
        double seen = 0.0;
        for (std::size_t i = 0; i < count_; ++i) seen += sizes_[i] - 1.0;
        const double row = Costs::row(model_.width), records = static_cast<double>(count_);
        const double groups = records * static_cast<double>(model_.groups.size());
        const double codes = records * static_cast<double>(model_.n);
        const double all = groups * row, drop = seen * row + groups * Costs::DROP;
        const double seek = seen * row + Costs::DEPARTURE * static_cast<double>(departures_) -
                            (Costs::CODE - Costs::WORD) * codes;
        way_ = seek < std::min(all, drop) ? Way::SEEK : drop < all ? Way::DROP : Way::ALL;
    }

    Lists lists() const {
        return {offsets_.data(), begins_.data(), sizes_.data(), count_, model_.width};
    }

    // Exponent of the power of two that was divided out of the rows of record i.
    double exponent(std::size_t i) const {
        const Code *code = codes_ + (first_ + i) * model_.n;
        int sum = model_.exponents[0];
        for_departures(code, [&](std::size_t v) { sum += model_.exponents[cell(v, code[v])]; });
        return sum;  // common cells have none
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
        std::uint32_t begin = group.offset;
        for (std::size_t v = 0; v < size; ++v) begin += model_.missing[group.first + v] * strides[v];
        for (std::size_t i = 0; i < count_; ++i, code += n, to += stride_) {
            std::uint32_t offset = begin;
            for (std::size_t v = 0; v < size; ++v)
                offset += static_cast<std::uint32_t>(code[v]) * strides[v];
            *to = offset;
        }
    }

    // No branch depends on codes: half of the predictions would be wrong.
    void drop_common(std::size_t i) {
        std::uint32_t *REJOINT_RESTRICT list = offsets_.data() + i * stride_;
        std::uint32_t size = 1;
        for (std::size_t g = 0; g < model_.groups.size(); ++g) {
            const std::uint32_t offset = list[1 + g];
            list[size] = offset;
            size += offset != skipped_[g];
        }
        sizes_[i] = size;
    }

    void list_departures(const Code *code, std::size_t i) {
        std::uint32_t *const list = offsets_.data() + begins_[i];
        std::uint32_t *to = list, last = std::numeric_limits<std::uint32_t>::max();
        *to = 0;  // the weights
        for_departures(code, [&](std::size_t v) {
            if (groups_of_[v] != last) {
                last = groups_of_[v];
                *++to = model_.groups[last].common;
            }
            *to += steps_[cell(v, code[v])];
            ++departures_;
        });
        sizes_[i] = static_cast<std::uint32_t>(to - list) + 1;
    }

    // Call a function for the variables whose codes differ from the common ones; those of groups
    // that are always listed differ from a code that none has.
    template <typename Function>
    void for_departures(const Code *code, Function &&function) const {
        const std::size_t n = model_.n, whole = n / 64 * 64;
        for (std::size_t v = 0; v < whole; v += 64)
            for_bits(v, unequal(code + v, common_.data() + v), function);
        if (whole == n) return;
        if (n > 64) {  // the last 64, without those that were compared before
            const std::uint64_t last = unequal(code + n - 64, common_.data() + n - 64);
            return for_bits(whole, last >> (64 - (n - whole)), function);
        }
        Code some[64] = {};
        std::copy(code, code + n, some);
        for_bits(0, unequal(some, common_.data()), function);
    }

    template <typename Function>
    static void for_bits(std::size_t first, std::uint64_t bits, Function &function) {
        for (; bits; bits &= bits - 1) function(first + lowest_bit(bits));
    }

    // The number of a cell among those of all variables.
    std::size_t cell(std::size_t v, std::int32_t code) const {
        return static_cast<std::size_t>(zeros_[v] + code);
    }

    const Model &model_;
    const Code *codes_;
    std::vector<std::uint32_t> groups_of_, skipped_;  // group of a variable; row that is not listed
    std::vector<std::int32_t> zeros_;                 // cell of the code 0 of each variable
    std::vector<std::uint32_t> steps_;    // to the row of each cell from that of the common one
    std::vector<Code> common_;            // code of each variable that need not be listed
    std::size_t stride_, first_ = 0, count_ = 0, departures_ = 0;
    std::vector<std::uint32_t, Unset<std::uint32_t>> offsets_;  // (records, groups and one)
    std::vector<std::size_t> begins_;
    std::vector<std::uint32_t> sizes_;
    bool skips_ = false;                                 // whether any group need not be listed
    enum class Way { ALL, DROP, SEEK } way_ = Way::ALL;  // how common cells are handled
};

}  // namespace rejoint
