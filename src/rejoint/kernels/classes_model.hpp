// A model of hidden classes, laid out for passes over records.
//
// Adjacent variables are joined into groups. A group has one row for each cell of its variables:
// the product of their factors, one number per class. Missing is a cell (number 0) of a variable
// that is missing in some record. A record is then a product of one row per group, and of row 0, the
// weights. Sums over records go into rows of the same layout, which are summed to the levels in the
// end.
//
// Where most records hold the same cell of a group, all rows of the group are divided by that of this
// common cell, and row 0 is multiplied by it: the row of the common cell is then one, and records that
// hold it need not list it. The sums of the common cell are what is left of the sums of the classes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "classes_rows.hpp"

namespace rejoint {

constexpr std::size_t TABLE = std::size_t{1} << 19;  // bytes of joined rows, which fit in an L2 cache
constexpr std::size_t PART = std::size_t{1} << 20;   // bytes of rows that are processed at once
constexpr std::size_t JOINT = std::size_t{1} << 19;  // bytes of the results of a block, likewise
constexpr double REUSE = 16.0;  // times that a row is used by a block where rows are larger than that
constexpr double MOST = 8192;   // records of such a block
constexpr std::size_t LARGEST = 2048;                // cells of a group of several variables
constexpr std::size_t SHARED = 2;  // records for each row: making and folding rows is work, too
constexpr std::size_t WIDE = 32;  // classes that fit in registers; more are processed in blocks of
constexpr std::size_t BLOCK = 16;
constexpr double OFTEN = 0.4;    // share of records from which a common cell of a group is not listed
constexpr double CROWDED = 0.5;   // more work per row where rows fill their cache
constexpr double LN2 = 0.693147180559945309417;

// Rough costs of listing and using rows, in cycles of a processor.
struct Costs {
    static constexpr double CODE = 1.2;       // to find the row of a code
    static constexpr double DROP = 4.0;       // to leave out a row that is found, or not
    static constexpr double WORD = 0.1;       // to compare a code with the common one
    static constexpr double DEPARTURE = 12.0;  // to find the row of a code that differs
    static constexpr double EXPONENTIAL = 20.0;  // for each class where products underflow
    static constexpr double FAR = 400.0;         // powers of two from which they mostly do
    static double row(std::size_t width) { return 6.0 + 0.6 * static_cast<double>(width); }
};
constexpr std::size_t FEW = 50;   // variables whose products hardly ever underflow
constexpr double NARROW = 1e-30;  // least factor by which rows are divided, beside the largest one
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

// What is known of the records before a pass: which cells the variables have, and which are common.
struct Profile {
    static constexpr std::int32_t NONE = -2;

    // No variable is missing, as far as rows are concerned, and nothing is common.
    explicit Profile(std::size_t n) : missing(n, 0), common(n, NONE), share(n, 0.0) {}

    std::vector<std::uint8_t> missing;  // whether a variable is missing in some record
    std::vector<std::int32_t> common;   // its most frequent code, which may be -1
    std::vector<double> share;          // of the records that hold it
    double listed = 0.0;                // rows that a record lists; 0 if the model is to say
};

struct Group {
    std::size_t first, last;  // variables
    std::size_t row, cells;   // its rows
    std::uint32_t offset;     // of the first of them
    bool skips;               // whether records that hold its common cell do not list it
    std::uint32_t common;     // offset of the row of that cell
};

class Model {
  public:
    // `records` share the work of making the rows: the fewer there are, the fewer rows. None: each
    // group has one variable.
    Model(const double *weights, std::size_t rank, const double *factors,
          const std::int64_t *levels, std::size_t n, std::size_t records, const Profile &profile)
        : n(n), rank(rank),
          width(rank > WIDE ? (rank + BLOCK - 1) / BLOCK * BLOCK : (rank + 3) / 4 * 4),
          levels(levels, levels + n), starts(n + 1), begins(n + 1, 1), missing(profile.missing),
          strides(n), common(n), divided_(n), factors_(factors) {
        for (std::size_t v = 0; v < n; ++v) {
            starts[v + 1] = starts[v] + this->levels[v];
            begins[v + 1] = begins[v] + cells(v);
        }
        gather(std::min(TABLE / (panel() * sizeof(double)), records / SHARED), survey(profile));
        if (profile.listed > 0.0) listed = profile.listed;
        block = blocks(listed).first;
        part();
        if (rows > std::numeric_limits<std::uint32_t>::max() / width)
            throw std::length_error("Too many levels times classes for the compiled kernels.");
        weights_.assign(weights, weights + rank);
        table = Aligned(rows * width);
        logs_ = Aligned(rows * width);  // here, since threads that ask for them must not throw
        for_cells([](double &x, double number) { x *= number; }, scale_down(), table, 1.0);
        for (std::size_t i = 0; i < rows * width; ++i)
            if (table.data()[i] < FLOOR) table.data()[i] = 0.0;
    }

    // Rows as logarithms, for records whose product underflows; filled when first asked for. They are
    // scaled down as the table is.
    const double *logarithms() const {
        std::call_once(asked_, [this] {
            std::vector<double> numbers(begins[n] * rank);
            for (std::size_t f = 0; f < rank; ++f) numbers[f] = std::log(weights_[f]);
            for (std::size_t v = 0; v < n; ++v) {
                double *const to = numbers.data() + begins[v] * rank;
                const double *const from = factors_ + starts[v] * rank;
                for (std::size_t i = 0; i < levels[v] * rank; ++i)
                    to[missing[v] * rank + i] = std::log(from[i]);
                for (std::size_t f = 0; divided_[v] && f < rank; ++f) {
                    const double common = std::log(divisor(v, f));
                    numbers[f] += common;
                    for (std::size_t cell = 0; cell < cells(v); ++cell) to[cell * rank + f] -= common;
                }
            }
            for (std::size_t i = 0; scaled && i < exponents.size(); ++i)
                for (std::size_t f = 0; f < rank; ++f) numbers[i * rank + f] -= LN2 * exponents[i];
            for_cells([](double &x, double number) { x += number; }, numbers, logs_, 0.0);
            std::fill(logs_.data() + rank, logs_.data() + width, std::log(0.0));
        });
        return logs_.data();
    }

    // Add rows of sums up to one row per level, and one for the classes: (1 + levels, rank). Rows
    // of common cells are set first.
    void fold(double *sums, double *counts) const {
        for (std::size_t f = 0; f < rank; ++f) counts[f] += sums[f];
        for (const Group &group : groups)
            if (group.skips) complete(group, sums);
        for_rows([&](std::size_t row, std::size_t v, std::size_t cell) {
            if (cell < missing[v]) return;
            const double *from = sums + row * width;
            double *to = counts + (1 + starts[v] + cell - missing[v]) * rank;
            for (std::size_t f = 0; f < rank; ++f) to[f] += from[f];
        });
    }

    // What log-likelihoods lack where rows are scaled: the exponents, each times the weight of the
    // records that list its row, which is the sum of their posteriors.
    double lacking(const double *sums) const {
        double total = 0.0;
        for (std::size_t row = 0; scaled && row < rows; ++row) {
            if (row_exponents_[row] == 0.0) continue;
            double mass = 0.0;
            for (std::size_t f = 0; f < rank; ++f) mass += sums[row * width + f];
            total += row_exponents_[row] * mass;
        }
        return LN2 * total;
    }

    // Classes that are gone through at once.
    std::size_t panel() const { return std::min(width, PANEL); }

    // Number of cells of a variable, and its common one; 0 where there is none.
    std::size_t cells(std::size_t v) const { return std::size_t{levels[v]} + missing[v]; }
    std::size_t common_cell(std::size_t v) const {
        return common[v] == Profile::NONE ? 0 : static_cast<std::size_t>(common[v] + missing[v]);
    }

    const std::size_t n, rank, width;    // width: rank, padded
    std::vector<std::uint32_t> levels;
    std::vector<std::size_t> starts;     // first level of each variable
    std::vector<std::size_t> begins;     // first cell of each variable, from 1 on: 0 is the weights
    std::vector<std::uint8_t> missing;   // whether cell 0 of a variable stands for a missing value
    std::vector<std::uint32_t> strides;  // of each variable within its group, times width
    std::vector<std::int32_t> common;    // code of each variable in the common cell of its group
    std::vector<Group> groups;
    std::size_t rows = 1;
    double listed = 1.0;               // rows that a record lists, as it is expected
    std::size_t block = RECORDS;       // records that are gone through at once
    std::vector<std::uint32_t> parts;  // where parts of the rows begin, as offsets, and end
    Aligned table;
    std::vector<int> exponents;  // of two, taken out of the weights and of each cell in the table
    bool scaled = false;         // whether any is not zero

  private:
    // Call a function for each row of a group and each variable's cell that it holds.
    template <typename Function>
    void for_rows(Function function) const {
        for (const Group &group : groups)
            for (std::size_t v = group.first; v < group.last; ++v) {
                const std::size_t inner = strides[v] / width, size = cells(v);
                for (std::size_t begin = 0; begin < group.cells; begin += inner * size)
                    for (std::size_t cell = 0; cell < size; ++cell)
                        for (std::size_t k = 0; k < inner; ++k)
                            function(group.row + begin + cell * inner + k, v, cell);
            }
    }

    double factor(std::size_t v, std::size_t cell, std::size_t f) const {
        return cell < missing[v] ? 1.0 : factors_[(starts[v] + cell - missing[v]) * rank + f];
    }
    double divisor(std::size_t v, std::size_t f) const {
        return divided_[v] ? factor(v, common_cell(v), f) : 1.0;
    }

    // What is expected of a variable.
    struct Habit {
        std::int32_t common;     // code that most records hold; NONE if rows are not to be divided by it
        double share;            // of these records
        double depth, departed;  // powers of two that a record loses to it, with rows as they are or divided
    };

    std::vector<Habit> survey(const Profile &profile) const {
        std::vector<Habit> habits(n);
        for (std::size_t v = 0; v < n; ++v) {
            Habit &habit = habits[v];
            habit = {Profile::NONE, 0.0, 0.0, 0.0};
            if (usual(v, profile)) habit = {profile.common[v], profile.share[v], 0.0, 0.0};
            if (n < FEW) continue;
            const std::size_t first = habit.common == 0 && levels[v] > 1;  // a level that departs
            int top = -LEAST, top_ratio = -LEAST;
            double all = 0.0, all_other = 0.0;
            for (std::size_t f = 0; f < rank; ++f) {
                const int other = power(factors_[(starts[v] + first) * rank + f]);
                const int own = habit.common < 0 ? 0 : power(factors_[(starts[v] + habit.common) * rank + f]);
                all += own;
                all_other += other;
                top = std::max(top, own);
                top_ratio = std::max(top_ratio, other - own);
            }
            const double mean = all / rank, mean_other = all_other / rank;
            habit.depth = -habit.share * mean - (1.0 - habit.share) * mean_other;
            habit.departed = habit.share * (top - mean) +
                             (1.0 - habit.share) * (top_ratio - (mean_other - mean));
        }
        return habits;
    }

    // Whether rows may be divided by that of the common code: it differs little between classes, and
    // from those of other codes, compared with the range of doubles.
    bool usual(std::size_t v, const Profile &profile) const {
        if (profile.common[v] < 0) return profile.common[v] == -1;
        if (profile.share[v] < OFTEN) return false;
        const double *first = factors_ + starts[v] * rank, *end = factors_ + starts[v + 1] * rank;
        const double *row = first + static_cast<std::size_t>(profile.common[v]) * rank;
        const double low = *std::min_element(row, row + rank), top = *std::max_element(first, end);
        return low > NARROW && low > NARROW * top && NARROW * top < 1.0;
    }

    // The power of two just below a number; zeros are as rare as classes that they rule out.
    static constexpr int LEAST = 64;
    static int power(double x) {
        std::uint64_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        return std::max(static_cast<int>(bits >> 52) - 1023, -LEAST);
    }

    // The share of records that do not list a group, zero if all of them do.
    double skipped(const Group &group, bool divide, const std::vector<Habit> &habits) const {
        double all = 1.0;
        bool absent = true;
        for (std::size_t v = group.first; v < group.last; ++v) {
            all *= habits[v].share;
            absent = absent && habits[v].common == -1;
        }
        return absent || (divide && all >= OFTEN) ? all : 0.0;
    }

    // Join neighbours into groups: of several numbers of cells, with rows divided by common ones or
    // not, what takes the least work.
    void gather(std::size_t most, const std::vector<Habit> &habits) {
        double least = std::numeric_limits<double>::infinity();
        std::vector<Group> found;
        const double room = static_cast<double>(std::max(begins[n], most));
        for (std::size_t limit = 0; limit <= (most ? LARGEST : 0); limit = limit ? 2 * limit : 1) {
            join(limit);
            if (static_cast<double>(rows) > room) continue;
            const double crowd = 1.0 + CROWDED * static_cast<double>(rows) / room;
            for (const bool divide : {false, true}) {
                const auto [work, cost] = judge(divide, crowd, habits);
                if (cost >= least) continue;
                least = cost;
                listed = work;
                found = groups;
            }
        }
        groups = std::move(found);
        rows = groups.empty() ? 1 : groups.back().row + groups.back().cells;
        for (Group &group : groups) {
            std::size_t stride = width;
            for (std::size_t v = group.last; v-- > group.first; stride *= cells(v))
                strides[v] = static_cast<std::uint32_t>(stride);
            group.common = group.offset;
            for (std::size_t v = group.first; v < group.last; ++v) {
                common[v] = group.skips ? habits[v].common : Profile::NONE;
                divided_[v] = common[v] >= 0;
                group.common += static_cast<std::uint32_t>(common_cell(v)) * strides[v];
            }
        }
    }

    // Set which groups are skipped where they hold their common cell; rows that a record lists then,
    // and what it costs.
    std::pair<double, double> judge(bool divide, double crowd, const std::vector<Habit> &habits) {
        double work = 1.0, departing = 0.0, depth = 0.0;
        for (Group &group : groups) {
            const double skip = skipped(group, divide, habits);
            group.skips = skip > 0.0;
            work += 1.0 - skip;
            for (std::size_t v = group.first; v < group.last; ++v) {
                departing += group.skips ? 1.0 - habits[v].share : 1.0;
                depth += group.skips ? habits[v].departed : habits[v].depth;
            }
        }
        const double all = static_cast<double>(n), size = static_cast<double>(groups.size());
        const double listing = std::min(Costs::CODE * all + Costs::DROP * size,
                                        Costs::WORD * all + Costs::DEPARTURE * departing);
        const double more = depth > Costs::FAR ? Costs::EXPONENTIAL * static_cast<double>(rank) : 0.0;
        return {work, crowd * work * Costs::row(width) + listing + more + blocks(work).second};
    }

    // Records of a block, and the numbers that each must wait for: where rows do not fit in a cache,
    // they are loaded once for each block, and the results as well if the block is large.
    std::pair<std::size_t, double> blocks(double listed) const {
        const double all = static_cast<double>(rows * width), least = static_cast<double>(RECORDS);
        if (width == panel() && rows * width * sizeof(double) <= PART) return {RECORDS, 0.0};
        const auto line = static_cast<double>(width);
        const double small = std::clamp(JOINT / (line * sizeof(double)), least, MOST);
        const double large = std::clamp(REUSE * static_cast<double>(rows) / listed, least, MOST);
        const double waits = 2.0 * all / small, others = 3.0 * line + 2.0 * all / large;
        if (large <= small) return {static_cast<std::size_t>(large), 2.0 * all / large};
        if (waits <= others) return {static_cast<std::size_t>(small), waits};
        return {static_cast<std::size_t>(large), others};
    }

    // Groups of at most this number of cells; of one variable each if the limit is zero.
    void join(std::size_t limit) {
        groups.clear();
        rows = 1;
        for (std::size_t v = 0; v < n; ++v) {
            const std::size_t size = cells(v);
            if (!groups.empty() && groups.back().cells * size <= limit) {
                groups.back().cells *= size;
                ++groups.back().last;
            } else
                groups.push_back({v, v + 1, 0, size, 0, false, 0});
        }
        for (Group &group : groups) {
            group.row = rows;
            group.offset = static_cast<std::uint32_t>(rows * width);
            rows += group.cells;
        }
    }

    // Split rows that are larger than a cache into parts that are not.
    void part() {
        parts.assign(1, 0);
        for (const Group &group : groups)
            if (((group.row + group.cells) - parts.back() / width) * panel() * sizeof(double) > PART &&
                group.offset > parts.back())
                parts.push_back(group.offset);
        parts.push_back(static_cast<std::uint32_t>(rows * width));
    }

    // Weights and cells, rows with numbers above one divided by powers of two: products then only
    // ever get smaller.
    std::vector<double> scale_down() {
        std::vector<double> numbers(begins[n] * rank);
        exponents.resize(begins[n]);
        weigh(numbers.data());
        for (std::size_t v = 0; v < n; ++v)
            for (std::size_t cell = 0; cell < cells(v); ++cell) {
                double *row = numbers.data() + (begins[v] + cell) * rank;
                for (std::size_t f = 0; f < rank; ++f) row[f] = factor(v, cell, f);
                if (!divided_[v]) continue;
                for (std::size_t f = 0; f < rank; ++f) row[f] /= divisor(v, f);
            }
        for (std::size_t i = 0; i < exponents.size(); ++i) {
            double *row = numbers.data() + i * rank;
            const double top = *std::max_element(row, row + rank);
            if (!(top > 1.0)) continue;
            const int exponent = std::ilogb(top) + 1;
            exponents[i] += exponent;
            for (std::size_t f = 0; f < rank; ++f) row[f] = std::ldexp(row[f], -exponent);
        }
        scaled = std::any_of(exponents.begin(), exponents.end(), [](int e) { return e != 0; });
        row_exponents_.assign(rows, 0.0);
        row_exponents_[0] = exponents[0];
        for_rows([&](std::size_t row, std::size_t v, std::size_t cell) {
            row_exponents_[row] += exponents[begins[v] + cell];
        });
        return numbers;
    }

    // Weights times all divisors, whose product may leave the range of doubles: the largest one gets
    // near to one, and numbers that vanish beside it become zero.
    void weigh(double *to) {
        std::copy(weights_.begin(), weights_.end(), to);
        if (std::none_of(divided_.begin(), divided_.end(), [](std::uint8_t d) { return d; })) return;
        std::vector<int> powers(rank);
        int top = std::numeric_limits<int>::min();
        for (std::size_t f = 0; f < rank; ++f) {
            to[f] = normalize(to[f], powers[f]);
            for (std::size_t v = 0; v < n; ++v) {
                if (!divided_[v]) continue;
                to[f] *= divisor(v, f);
                if (to[f] < 0x1p-500 || to[f] > 0x1p500) to[f] = normalize(to[f], powers[f]);
            }
            to[f] = normalize(to[f], powers[f]);
            if (to[f] > 0.0) top = std::max(top, powers[f]);
        }
        if (top == std::numeric_limits<int>::min()) return;  // there is no weight
        for (std::size_t f = 0; f < rank; ++f) to[f] = std::ldexp(to[f], std::max(powers[f] - top, -4000));
        exponents[0] = top;
    }

    // A number between 1/2 and 1, its power of two added to others.
    static double normalize(double x, int &power) {
        int own = 0;
        x = std::frexp(x, &own);
        power += own;
        return x;
    }

    // Set all rows to a value, then join to each, class by class, the cells that it holds.
    template <typename Join>
    void for_cells(Join join, const std::vector<double> &numbers, Aligned &to, double value) const {
        std::fill(to.data(), to.data() + to.size(), value);
        for (std::size_t f = 0; f < rank; ++f) join(to.data()[f], numbers[f]);
        std::fill(to.data() + rank, to.data() + width, 0.0);
        for_rows([&](std::size_t row, std::size_t v, std::size_t cell) {
            if (cell < missing[v] && !divided_[v]) return;  // as if the variable were not there
            double *x = to.data() + row * width;
            const double *number = numbers.data() + (begins[v] + cell) * rank;
            for (std::size_t f = 0; f < rank; ++f) join(x[f], number[f]);
        });
    }

    // The sums of the common cell: those of the classes less those of the other cells of the group.
    void complete(const Group &group, double *sums) const {
        double *to = sums + group.common;
        std::copy(sums, sums + rank, to);
        for (std::size_t row = group.row; row < group.row + group.cells; ++row) {
            const double *other = sums + row * width;
            if (other == to) continue;
            for (std::size_t f = 0; f < rank; ++f) to[f] -= other[f];
        }
        for (std::size_t f = 0; f < rank; ++f) to[f] = std::max(to[f], 0.0);  // less by rounding alone
    }

    std::vector<std::uint8_t> divided_;  // whether rows of a variable are divided by a common one
    std::vector<double> weights_, row_exponents_;
    const double *factors_;
    mutable std::once_flag asked_;
    mutable Aligned logs_;
};

}  // namespace rejoint
