// Counts of one chunk of rows after another (count_plan.hpp says how each table is counted).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "count_plan.hpp"
#include "simd.hpp"

namespace rejoint {

constexpr std::size_t ROWS = 2048;  // of a chunk: columns and bytes stay in the cache
constexpr std::size_t WORDS = ROWS / 64;
constexpr std::uint8_t FULL = 255;  // rows after which byte counters must be emptied

using Mask = std::array<std::uint64_t, WORDS>;  // one bit for each row of a chunk

// Rows of a chunk, and a cell for each.
struct List {
    std::array<std::uint32_t, ROWS> rows, cells;
    std::size_t size = 0;
};

// Add the bytes of listed rows, from i on, to those of their cells until one of these is full;
// return how far it went. A cell has 32 * units bytes.
std::size_t add_bytes(std::size_t units, std::uint8_t *sums, std::uint8_t *seen,
                      const std::uint8_t *bytes, std::size_t stride, const List &list,
                      std::size_t i);

// Counts rows into the runs [begin, end) of a plan. Code is the type of the codes, Cell that of
// the output: whole numbers, or, with weights, double.
template <typename Code, typename Cell>
class Counter {
  public:
    Counter(const Plan &plan, std::size_t begin, std::size_t end, const Code *codes,
            const double *weight, Cell *out)
        : plan_(plan), begin_(begin), end_(end), codes_(codes), weight_(weight), out_(out),
          n_(plan.levels.size()), columns_(n_), masks_(n_), cells_(plan.depth + 1),
          prefix_masks_(plan.depth + 1) {
        for (int v : plan.columns) columns_[v].resize(ROWS);
        for (auto &cells : cells_) cells.resize(ROWS);
        path_.reserve(plan.depth);
        const std::size_t runs = plan.runs.size();
        first_sum_ = begin < runs ? plan.runs[begin].sums : plan.sums;
        first_seen_ = begin < runs ? plan.runs[begin].seen : plan.seen;
        sums_.resize((end < runs ? plan.runs[end].sums : plan.sums) - first_sum_);
        seen_.resize((end < runs ? plan.runs[end].seen : plan.seen) - first_seen_);
        std::size_t widest = 0;
        for (const Panel &panel : plan.panels) widest = std::max(widest, panel.width);
        if (!sums_.empty()) bytes_.resize(ROWS * widest + UNIT);  // rows are read past their end
    }

    void count(std::size_t row, std::size_t stop) {
        for (; row < stop; row += ROWS) {
            size_ = std::min(ROWS, stop - row);
            read_columns(row);
            int panel = -1;
            for (std::size_t r = begin_; r < end_; ++r) {
                const Run &run = plan_.runs[r];
                if (run.panel != panel) read_panel(row, panel = run.panel);
                make_list(run.listed);
                if (run.panel >= 0)
                    by_bytes(run);
                else
                    by_list(run, row);
            }
        }
        for (std::size_t r = begin_; r < end_; ++r) {
            const Run &run = plan_.runs[r];
            for (std::size_t cell = 0; run.panel >= 0 && cell < run.cells; ++cell)
                if (seen_of(run)[cell]) empty(run, cell);
        }
    }

  private:
    std::uint8_t *sums_of(const Run &run) { return sums_.data() + (run.sums - first_sum_); }
    std::uint8_t *seen_of(const Run &run) { return seen_.data() + (run.seen - first_seen_); }

    void read_columns(std::size_t row) {
        for (std::size_t w = 0; w < WORDS; ++w) {
            const std::size_t first = std::min(64 * w, size_);
            const std::size_t n = std::min<std::size_t>(64, size_ - first);
            prefix_masks_[0][w] = n < 64 ? (std::uint64_t{1} << n) - 1 : ~std::uint64_t{0};
            for (int v : plan_.columns) {
                const Code *REJOINT_RESTRICT from = codes_ + (row + first) * n_ + v;
                Code *REJOINT_RESTRICT to = columns_[v].data() + first;
                std::uint64_t bits = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    to[i] = from[i * n_];
                    bits |= std::uint64_t{to[i] >= 0} << i;
                }
                masks_[v][w] = bits;
            }
        }
        path_.clear();
        built_ = 0;
    }

    void read_panel(std::size_t row, int which) {
        const Panel &panel = plan_.panels[which];
        const std::size_t n = panel.variables.size();
        const int *REJOINT_RESTRICT variables = panel.variables.data();
        const std::size_t *REJOINT_RESTRICT first = panel.first.data();
        stride_ = panel.width;
        std::memset(bytes_.data(), 0, size_ * stride_);
        for (std::size_t i = 0; i < size_; ++i) {
            std::uint8_t *REJOINT_RESTRICT to = bytes_.data() + i * stride_;
            const Code *REJOINT_RESTRICT from = codes_ + (row + i) * n_;
            for (std::size_t k = 0; k < n; ++k) {
                const Code code = from[variables[k]];  // a missing value writes a zero
                to[first[k] + static_cast<std::size_t>(std::max<Code>(code, 0))] = code >= 0;
            }
        }
    }

    // List the rows where some variables are observed. Masks and cells of the variables that the
    // path before shares are kept; cells are built only where longer paths need them.
    void make_list(const std::vector<int> &path) {
        std::size_t same = 0;
        while (same < path.size() && same < path_.size() && path_[same] == path[same]) ++same;
        built_ = std::min(built_, same);
        path_ = path;
        for (std::size_t d = same; d < path.size(); ++d)
            for (std::size_t w = 0; w < WORDS; ++w)
                prefix_masks_[d + 1][w] = prefix_masks_[d][w] & masks_[path[d]][w];
        for (; built_ + 1 < path.size(); ++built_) {
            const int v = path[built_];
            const auto levels = static_cast<std::uint32_t>(plan_.levels[v]);
            const std::uint32_t *REJOINT_RESTRICT from = cells_[built_].data();
            const Code *REJOINT_RESTRICT column = columns_[v].data();
            std::uint32_t *REJOINT_RESTRICT to = cells_[built_ + 1].data();
            for (std::size_t i = 0; i < ROWS; ++i)
                to[i] = from[i] * levels + static_cast<std::uint32_t>(column[i]);
        }
        list_rows(path);
    }

    void list_rows(const std::vector<int> &path) {
        const Mask &mask = prefix_masks_[path.size()];
        std::uint32_t *REJOINT_RESTRICT rows = list_.rows.data();
        std::uint32_t *REJOINT_RESTRICT cells = list_.cells.data();
        const std::uint32_t *parent = path.empty() ? nullptr : cells_[path.size() - 1].data();
        const Code *column = path.empty() ? nullptr : columns_[path.back()].data();
        const auto levels =
            path.empty() ? 0u : static_cast<std::uint32_t>(plan_.levels[path.back()]);
        std::size_t size = 0;
        for (std::size_t w = 0; w < WORDS; ++w)
            for (std::uint64_t bits = mask[w]; bits; bits &= bits - 1, ++size) {
                const std::uint32_t row = static_cast<std::uint32_t>(64 * w) + lowest_bit(bits);
                rows[size] = row;
                cells[size] =
                    column ? parent[row] * levels + static_cast<std::uint32_t>(column[row]) : 0;
            }
        list_.size = size;
    }

    void by_bytes(const Run &run) {
        std::uint8_t *sums = sums_of(run), *seen = seen_of(run);
        for (std::size_t i = 0; i < list_.size;) {
            i = add_bytes(padded(run.width) / UNIT, sums, seen, bytes_.data() + run.first, stride_,
                          list_, i);
            const std::uint32_t cell = list_.cells[i - 1];
            if (seen[cell] == FULL) empty(run, cell);
        }
    }

    // Move the byte counters of one cell to the tables.
    void empty(const Run &run, std::size_t cell) {
        std::uint8_t *sums = sums_of(run) + cell * padded(run.width);
        for (const Table &table : run.tables) {
            const std::size_t levels = plan_.levels[table.last];
            const std::uint8_t *from = sums + plan_.first_of[table.last] - run.first;
            Cell *to = out_ + table.start + cell * levels;
            for (std::size_t c = 0; c < levels; ++c) to[c] += from[c];
        }
        std::memset(sums, 0, padded(run.width));
        seen_of(run)[cell] = 0;
    }

    void by_list(const Run &run, std::size_t row) {
        Cell *to = out_ + run.tables.front().start;
        for (std::size_t i = 0; i < list_.size; ++i) {
            if constexpr (std::is_same_v<Cell, double>)
                to[list_.cells[i]] += weight_[row + list_.rows[i]];
            else
                ++to[list_.cells[i]];
        }
    }

    const Plan &plan_;
    std::size_t begin_, end_;
    const Code *codes_;
    const double *weight_;
    Cell *out_;
    std::size_t n_;                    // variables
    std::size_t size_ = 0, stride_ = 0;  // rows of the chunk, bytes of a row
    std::vector<std::vector<Code>> columns_;
    std::vector<Mask> masks_;  // where each variable is observed
    std::vector<std::vector<std::uint32_t>> cells_;  // of the first d variables of the path
    std::vector<Mask> prefix_masks_;
    std::vector<int> path_;
    std::size_t built_ = 0;  // for how many variables of the path cells are there
    List list_;
    std::size_t first_sum_ = 0, first_seen_ = 0;
    std::vector<std::uint8_t> bytes_, sums_, seen_;
};

}  // namespace rejoint
