// Counts of records in many tables at once: threads, and the interface to Python.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <atomic>
#include <optional>

#include "codes.hpp"
#include "count_chunk.hpp"
#include "kernels.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace rejoint {

template <std::size_t UNITS>
static REJOINT_INLINE std::size_t add_units(std::uint8_t *REJOINT_RESTRICT sums,
                                            std::uint8_t *REJOINT_RESTRICT seen,
                                            const std::uint8_t *REJOINT_RESTRICT bytes,
                                            std::size_t stride, const List &list, std::size_t i) {
    for (; i < list.size; ++i) {
        const std::size_t cell = list.cells[i];
        std::uint8_t *REJOINT_RESTRICT sum = sums + cell * UNITS * UNIT;
        const std::uint8_t *REJOINT_RESTRICT row = bytes + list.rows[i] * stride;
        for (std::size_t b = 0; b < UNITS * UNIT; ++b) sum[b] += row[b];
        if (++seen[cell] == FULL) return i + 1;
    }
    return i;
}

REJOINT_CLONES std::size_t add_bytes(std::size_t units, std::uint8_t *sums, std::uint8_t *seen,
                                     const std::uint8_t *bytes, std::size_t stride,
                                     const List &list, std::size_t i) {
    switch (units) {
        case 1: return add_units<1>(sums, seen, bytes, stride, list, i);
        case 2: return add_units<2>(sums, seen, bytes, stride, list, i);
        case 3: return add_units<3>(sums, seen, bytes, stride, list, i);
        case 4: return add_units<4>(sums, seen, bytes, stride, list, i);
        case 5: return add_units<5>(sums, seen, bytes, stride, list, i);
        case 6: return add_units<6>(sums, seen, bytes, stride, list, i);
        case 7: return add_units<7>(sums, seen, bytes, stride, list, i);
        default: return add_units<8>(sums, seen, bytes, stride, list, i);
    }
}
static_assert(PANEL == 8 * UNIT, "add_bytes has one case for each width");

constexpr std::size_t SPARE = std::size_t{1} << 28;  // bytes that copies of all tables may take

// Each thread counts some of the rows into its own tables, which are added in the end: they are
// whole numbers, so the order does not matter.
template <typename Code>
void count_rows(const Plan &plan, const Code *codes, std::size_t m, std::uint64_t *out,
                std::size_t cells, std::size_t threads) {
    std::vector<std::vector<std::uint64_t>> copies(threads - 1, std::vector<std::uint64_t>(cells));
    std::vector<Counter<Code, std::uint64_t>> counters;
    for (std::size_t t = 0; t < threads; ++t)
        counters.emplace_back(plan, 0, plan.runs.size(), codes, nullptr,
                              t ? copies[t - 1].data() : out);
    in_parallel(threads, [&](std::size_t t) {
        counters[t].count(m * t / threads, m * (t + 1) / threads);
    });
    for (const auto &copy : copies)
        for (std::size_t i = 0; i < cells; ++i) out[i] += copy[i];
}

// Each thread counts all rows into some of the tables. This is used with weights, whose sums depend
// on the order of rows, and where copies of all tables would take too much memory.
template <typename Code, typename Cell>
void count_tables(const Plan &plan, const Code *codes, std::size_t m, const double *weight,
                  Cell *out, std::size_t threads) {
    const std::size_t runs = plan.runs.size();
    std::vector<Counter<Code, Cell>> counters;
    for (std::size_t t = 0; t < threads; ++t)
        counters.emplace_back(plan, runs * t / threads, runs * (t + 1) / threads, codes, weight,
                              out);
    in_parallel(threads, [&](std::size_t t) { counters[t].count(0, m); });
}

using Weight = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Convert the whole numbers that were counted into the memory of the output to doubles.
void to_double(std::uint64_t *whole, std::size_t cells) {
    for (std::size_t i = 0; i < cells; ++i) {
        const double value = static_cast<double>(whole[i]);
        std::memcpy(whole + i, &value, sizeof value);
    }
}

// Whether all codes are in range: counting writes where they say.
template <typename Code>
bool all_in_range(const Codes<Code> &codes, const Integers &levels, std::size_t threads) {
    const Limits<Code> limits(levels.data(), levels.shape(0));
    const std::size_t m = codes.shape(0), n = codes.shape(1);
    threads = std::clamp<std::size_t>(threads, 1, m / ROWS + 1);
    std::atomic<bool> good{true};
    in_parallel(threads, [&](std::size_t t) {
        const std::size_t begin = m * t / threads, end = m * (t + 1) / threads;
        if (!limits.hold(codes.data() + begin * n, end - begin)) good = false;
    });
    return good;
}

// False if a code is out of range: nothing is counted then.
template <typename Code>
bool count(const Codes<Code> &codes, const std::optional<Weight> &weight, const Integers &levels,
           const Integers &sizes, const Integers &members, Output &output, std::size_t threads) {
    nb::gil_scoped_release release;
    if (!all_in_range(codes, levels, threads)) return false;
    std::vector<std::vector<int>> subsets;
    const std::int64_t *member = members.data();
    for (std::size_t s = 0; s < sizes.shape(0); member += sizes.data()[s++])
        subsets.emplace_back(member, member + sizes.data()[s]);
    const Plan plan = make_plan({levels.data(), levels.data() + levels.shape(0)}, subsets,
                                weight.has_value());
    const std::size_t m = codes.shape(0), cells = output.shape(0);
    if (weight) {
        threads = std::max<std::size_t>(1, std::min(threads, plan.runs.size()));
        count_tables(plan, codes.data(), m, weight->data(), output.data(), threads);
        return true;
    }
    // Counting into the output itself, as whole numbers, spares large tables a second copy.
    static_assert(sizeof(std::uint64_t) == sizeof(double));
    auto *whole = reinterpret_cast<std::uint64_t *>(output.data());
    threads = std::max<std::size_t>(1, std::min(threads, m / ROWS));
    if ((threads - 1) * (cells * sizeof *whole + plan.sums) <= SPARE)
        count_rows(plan, codes.data(), m, whole, cells, threads);
    else
        count_tables(plan, codes.data(), m, nullptr, whole,
                     std::max<std::size_t>(1, std::min(threads, plan.runs.size())));
    to_double(whole, cells);
    return true;
}

void register_count(nb::module_ &m) {
    m.def("count", &count<std::int8_t>);
    m.def("count", &count<std::int16_t>);
    m.def("count", &count<std::int32_t>);
}

}  // namespace rejoint
