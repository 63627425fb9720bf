// A model of hidden classes, laid out for passes over records.
//
// Adjacent variables are joined into groups. A group has one row for each cell of its
// variables, missing being a level (number 0) of each: the product of their factors, one number
// per class. A record is then a product of one row per group, and of row 0, the weights. Sums over
// records go into rows of the same layout, which are summed to the levels in the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace rejoint {

constexpr std::size_t TABLE = std::size_t{1} << 18;  // bytes of joined rows, which fit in an L2 cache
constexpr std::size_t PART = std::size_t{1} << 20;   // bytes of rows that are processed at once
constexpr std::size_t LARGEST = 2048;                // cells of a group of several variables
constexpr std::size_t SHARED = 2;  // records for each row: making and folding rows is work, too
constexpr std::size_t WIDE = 32;  // classes that fit in registers; more are processed in blocks of
constexpr std::size_t BLOCK = 16;
constexpr double FLOOR = 0x1p-1000;  // smaller numbers are zero in products (not in logarithms)

// Leaves numbers uninitialized: pages that are never written to are never allocated.
template <typename T>
struct Unset : std::allocator<T> {
    template <typename U>
    struct rebind {
        using other = Unset<U>;
    };
    template <typename U>
    void construct(U *at) noexcept {
        ::new (static_cast<void *>(at)) U;
    }
    template <typename U, typename... More>
    void construct(U *at, More &&...more) {
        ::new (static_cast<void *>(at)) U(std::forward<More>(more)...);
    }
};

// Uninitialized doubles, aligned to a cache line.
class Aligned {
  public:
    explicit Aligned(std::size_t size = 0) : store_(size + 8) {}
    Aligned(Aligned &&) = default;
    Aligned &operator=(Aligned &&) = default;
    Aligned(const Aligned &other) : store_(other.store_.size()) {  // its alignment may differ
        std::copy(other.data(), other.data() + other.size(), data());
    }
    double *data() { return store_.data() + shift(); }
    const double *data() const { return store_.data() + shift(); }
    std::size_t size() const { return store_.size() - 8; }

  private:
    std::size_t shift() const {
        return (64 - reinterpret_cast<std::uintptr_t>(store_.data()) % 64) % 64 / sizeof(double);
    }
    std::vector<double, Unset<double>> store_;
};

struct Group {
    std::size_t first, last;  // variables
    std::size_t row, cells;   // its rows
    std::uint32_t offset;     // of the first of them
};

class Model {
  public:
    // `records` share the work of making the rows: the fewer there are, the fewer rows.
    Model(const double *weights, std::size_t rank, const double *factors,
          const std::int64_t *levels, std::size_t n, std::size_t records)
        : n(n), rank(rank),
          width(rank > WIDE ? (rank + BLOCK - 1) / BLOCK * BLOCK : (rank + 3) / 4 * 4),
          levels(levels, levels + n), starts(n + 1), strides(n) {
        for (std::size_t v = 0; v < n; ++v) starts[v + 1] = starts[v] + this->levels[v];
        gather(std::min(TABLE / (width * sizeof(double)), records / SHARED));
        part();
        if (rows > std::numeric_limits<std::uint32_t>::max() / width)
            throw std::length_error("Too many levels times classes for the compiled kernels.");
        levels_.assign(weights, weights + rank);
        levels_.insert(levels_.end(), factors, factors + starts[n] * rank);
        table = Aligned(rows * width);
        logs_ = Aligned(rows * width);  // here, since threads that ask for them must not throw
        for_cells([](double &x, double factor) { x *= factor; }, scale_down(), table, 1.0);
        for (std::size_t i = 0; i < rows * width; ++i)
            if (table.data()[i] < FLOOR) table.data()[i] = 0.0;
    }

    // Rows as logarithms, for records whose product underflows; filled when first asked for.
    const double *logarithms() const {
        std::call_once(asked_, [this] {
            for_cells([](double &x, double factor) { x += std::log(factor); }, levels_, logs_, 0.0);
            std::fill(logs_.data() + rank, logs_.data() + width, std::log(0.0));
        });
        return logs_.data();
    }

    // Add rows of sums up to one row per level, and one for the classes: (1 + levels, rank).
    void fold(const double *sums, double *counts) const {
        for (std::size_t f = 0; f < rank; ++f) counts[f] += sums[f];
        for_levels([&](std::size_t row, std::size_t level) {
            const double *from = sums + row * width;
            double *to = counts + level * rank;
            for (std::size_t f = 0; f < rank; ++f) to[f] += from[f];
        });
    }

    const std::size_t n, rank, width;    // width: rank, padded
    std::vector<std::uint32_t> levels;
    std::vector<std::size_t> starts;     // first level of each variable
    std::vector<std::uint32_t> strides;  // of each variable within its group, times width
    std::vector<Group> groups;
    std::size_t rows = 1;
    std::vector<std::uint32_t> parts;  // where parts of the rows begin, as offsets, and end
    Aligned table;
    std::vector<int> exponents;  // of two, taken out of the weights and of each level in the table
    bool scaled = false;         // whether any is not zero

  private:
    // Call a function for each row of a group and each level that its cell holds: with the number
    // of the row, and that of the level among all (from 1 on; row 0 of numbers is the weights).
    template <typename Function>
    void for_levels(Function function) const {
        for (const Group &group : groups)
            for (std::size_t v = group.first; v < group.last; ++v) {
                const std::size_t inner = strides[v] / width, size = std::size_t{levels[v]} + 1;
                for (std::size_t begin = 0; begin < group.cells; begin += inner * size)
                    for (std::size_t code = 1; code < size; ++code)  // 0 is missing
                        for (std::size_t k = 0; k < inner; ++k)
                            function(group.row + begin + code * inner + k, starts[v] + code);
            }
    }

    // Join neighbours into groups as large as the number of all rows allows.
    void gather(std::size_t most) {
        for (std::size_t cells = LARGEST; cells; cells /= 2) {
            groups.clear();
            rows = 1;
            for (std::size_t v = 0; v < n; ++v) {
                const std::size_t size = std::size_t{levels[v]} + 1;
                if (!groups.empty() && groups.back().cells * size <= cells) {
                    groups.back().cells *= size;
                    ++groups.back().last;
                } else
                    groups.push_back({v, v + 1, 0, size, 0});
            }
            for (Group &group : groups) {
                group.row = rows;
                group.offset = static_cast<std::uint32_t>(rows * width);
                rows += group.cells;
            }
            if (rows <= most || groups.size() == n) break;
        }
        for (const Group &group : groups) {
            std::size_t stride = width;
            for (std::size_t v = group.last; v-- > group.first; stride *= levels[v] + 1)
                strides[v] = static_cast<std::uint32_t>(stride);
        }
    }

    // Split rows that are larger than a cache into parts that are not.
    void part() {
        parts.assign(1, 0);
        for (const Group &group : groups)
            if (((group.row + group.cells) * width - parts.back()) * sizeof(double) > PART &&
                group.offset > parts.back())
                parts.push_back(group.offset);
        parts.push_back(static_cast<std::uint32_t>(rows * width));
    }

    // Weights and factors, rows with numbers above one divided by powers of two: products then
    // only ever get smaller.
    std::vector<double> scale_down() {
        std::vector<double> numbers = levels_;
        exponents.resize(1 + starts[n]);
        for (std::size_t i = 0; i < exponents.size(); ++i) {
            double *row = numbers.data() + i * rank;
            const double top = *std::max_element(row, row + rank);
            if (!(top > 1.0)) continue;
            exponents[i] = std::ilogb(top) + 1;
            scaled = true;
            for (std::size_t f = 0; f < rank; ++f) row[f] = std::ldexp(row[f], -exponents[i]);
        }
        return numbers;
    }

    // Set all rows to a value, then join to each, class by class, the levels of its cell.
    template <typename Join>
    void for_cells(Join join, const std::vector<double> &numbers, Aligned &to, double value) const {
        std::fill(to.data(), to.data() + to.size(), value);
        for (std::size_t f = 0; f < rank; ++f) join(to.data()[f], numbers[f]);
        std::fill(to.data() + rank, to.data() + width, 0.0);
        for_levels([&](std::size_t row, std::size_t level) {
            double *x = to.data() + row * width;
            const double *factor = numbers.data() + level * rank;
            for (std::size_t f = 0; f < rank; ++f) join(x[f], factor[f]);
        });
    }

    std::vector<double> levels_;  // weights and factors, (1 + levels, rank)
    mutable std::once_flag asked_;
    mutable Aligned logs_;
};

}  // namespace rejoint
