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

constexpr std::size_t PROBES = 256;  // records that show which codes are common

// What is to be known of the records before a pass; false if a code is out of range.
template <typename Code>
bool look_at(const Table<Code> &table, const std::int64_t *levels, std::size_t n, Profile &profile) {
    if (!n) return true;
    if (!Limits<Code>(levels, n).survey(table.codes, table.records, profile.missing)) return false;
    std::vector<std::size_t> begins(n + 1);
    for (std::size_t v = 0; v < n; ++v)
        begins[v + 1] = begins[v] + static_cast<std::size_t>(levels[v]) + 1;
    std::vector<std::uint32_t> found(begins[n]);
    const std::size_t probes = std::min(PROBES, table.records);
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
    static constexpr std::size_t STEP = sizeof(std::uint64_t) / sizeof(Code);
    static constexpr unsigned BITS = 8 * sizeof(Code);
    static constexpr std::uint64_t SIGNS =  // the highest bit of each code in a word
        (~std::uint64_t{0} / ((std::uint64_t{1} << (BITS - 1)) * 2 - 1)) << (BITS - 1);

  public:
    TableLister(const Model &model, const Table<Code> &table, std::size_t room)
        : model_(model), codes_(table.codes), skipped_(model.groups.size()), places_(model.n),
          steps_(model.begins[model.n]), pattern_((model.n + STEP - 1) / STEP), stride_(model.groups.size() + 1),
          offsets_(room * stride_), begins_(room), sizes_(room), exponents_(room) {
        for (std::size_t g = 0; g < model.groups.size(); ++g) {
            const Group &group = model.groups[g];
            skipped_[g] = group.skips ? group.common : 0;  // no group has the row of the weights
            skips_ = skips_ || group.skips;
            for (std::size_t v = group.first; v < group.last; ++v) {
                const std::size_t begin = model.begins[v], from = model.common_cell(v);
                places_[v] = {static_cast<std::uint32_t>(g),
                              static_cast<std::int32_t>(begin + model.missing[v])};
                for (std::size_t cell = 0; cell < model.cells(v); ++cell)
                    steps_[begin + cell] = {static_cast<std::uint32_t>(cell - from) * model.strides[v],
                                            model.exponents[begin + cell]};
            }
        }
        for (std::size_t v = 0; v < model.n; ++v) {
            const Code code = static_cast<Code>(model.common[v]);
            auto *const bytes = reinterpret_cast<unsigned char *>(pattern_.data());
            std::memcpy(bytes + v * sizeof(Code), &code, sizeof code);
        }
    }

    // Typical number of rows that a record lists.
    static std::size_t typical(const Model &model, const Table<Code> &) {
        return static_cast<std::size_t>(model.listed) + 1;
    }

    // List records first .. last, as many as there is room for. Their codes are in range.
    bool read(std::size_t first, std::size_t last) {
        const Code *codes = codes_ + first * model_.n;
        count_ = last - first;
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
        if (model_.scaled)
            for (std::size_t i = 0; i < count_; ++i) add_exponents(codes + i * model_.n, i);
        return true;
    }

    // Leave out common cells of groups where these records show that it pays. Products and sums
    // are the same either way: a common cell multiplies by one.
    void choose(std::size_t first, std::size_t last) {
        way_ = Way::ALL;
        if (!skips_) return;
        way_ = Way::SEEK;
        read(first, last);
        std::size_t seen = 0;
        for (std::size_t i = 0; i < count_; ++i) seen += sizes_[i] - 1;
        const std::size_t all = count_ * model_.groups.size();
        way_ = 5 * seen < 2 * all ? Way::SEEK : 5 * seen < 4 * all ? Way::DROP : Way::ALL;
    }

    Lists lists() const {
        return {offsets_.data(), begins_.data(), sizes_.data(), count_, model_.width};
    }

    // Exponent of the power of two that was divided out of the rows of record i.
    double exponent(std::size_t i) const { return exponents_[i]; }

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

    // Go through the codes that differ from the common ones; those of groups that are always listed
    // differ from a code that none has.
    void list_departures(const Code *code, std::size_t i) {
        std::uint32_t *const list = offsets_.data() + begins_[i];
        std::uint32_t *to = list, last = std::numeric_limits<std::uint32_t>::max();
        int exponent = model_.exponents[0];
        *to = 0;  // the weights
        const auto add = [&](std::uint64_t word, std::size_t v) {
            for (std::uint64_t left = nonzero(word ^ pattern_[v / STEP]); left; left &= left - 1) {
                const std::size_t u = v + lowest_bit(left) / BITS;
                const Place place = places_[u];
                const Step &step = steps_[static_cast<std::size_t>(place.begin + code[u])];
                if (place.group != last) {
                    last = place.group;
                    *++to = model_.groups[last].common;
                }
                *to += step.offset;
                exponent += step.exponent;
            }
        };
        std::uint64_t word;
        std::size_t v = 0;
        for (; v + STEP <= model_.n; v += STEP) {
            std::memcpy(&word, code + v, sizeof word);
            add(word, v);
        }
        if (v < model_.n) {
            word = pattern_[v / STEP];
            std::memcpy(&word, code + v, (model_.n - v) * sizeof(Code));
            add(word, v);
        }
        sizes_[i] = static_cast<std::uint32_t>(to - list) + 1;
        exponents_[i] = exponent;
    }

    // The highest bits of the codes of a word that are not zero.
    static std::uint64_t nonzero(std::uint64_t word) {
        return (((word & ~SIGNS) + ~SIGNS) | word) & SIGNS;
    }

    void add_exponents(const Code *code, std::size_t i) {
        int sum = model_.exponents[0];
        for (std::size_t v = 0; v < model_.n; ++v)
            sum += steps_[static_cast<std::size_t>(places_[v].begin + code[v])].exponent;
        exponents_[i] = sum;
    }

    struct Place {  // of a variable
        std::uint32_t group;
        std::int32_t begin;  // of its steps: that of code 0
    };
    struct Step {  // to a cell, from the common one of its variable
        std::uint32_t offset;
        int exponent;
    };

    const Model &model_;
    const Code *codes_;
    std::vector<std::uint32_t> skipped_;  // row of each group that is not listed
    std::vector<Place> places_;
    std::vector<Step> steps_;
    std::vector<std::uint64_t> pattern_;  // common codes, as many as fit in a word
    std::size_t stride_, count_ = 0;
    std::vector<std::uint32_t, Unset<std::uint32_t>> offsets_;  // (records, groups and one)
    std::vector<std::size_t> begins_;
    std::vector<std::uint32_t> sizes_;
    std::vector<int> exponents_;
    bool skips_ = false;                                 // whether any group need not be listed
    enum class Way { ALL, DROP, SEEK } way_ = Way::ALL;  // how common cells are handled
};

}  // namespace rejoint
