// Passes over records with a hidden class: chunks, threads, and the interface to Python.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <atomic>
#include <memory>
#include <optional>

#include "classes_sums.hpp"
#include "kernels.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace rejoint {
namespace {

constexpr std::size_t CHUNKS = 64;      // at most; each has its own sums, which are added in order
constexpr std::size_t SHORTEST = 4096;  // least number of records of a chunk
constexpr std::size_t SPARE = std::size_t{1} << 27;  // bytes that sums of chunks may take
constexpr std::size_t WORTH = 48;  // values per level of a chunk: making its sums is work, too

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Outputs = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Observed = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// How records are split into chunks: this depends on their number and the size of the sums, never
// on the number of threads.
struct Chunks {
    std::size_t records, count;
    Chunks(std::size_t records, std::size_t bytes, std::size_t most) : records(records) {
        most = std::min(most, SPARE / std::max<std::size_t>(bytes, 1));
        count = std::clamp<std::size_t>(std::min(most, records / SHORTEST), 1, CHUNKS);
    }
    std::size_t begin(std::size_t chunk) const { return records * chunk / count; }
    std::size_t length() const { return records / count; }
};

// Hand all blocks of all chunks to the workers, one per thread; false if a code is out of range.
template <typename Rows, typename Worker>
bool go_through(const Model &model, const Rows &rows, const Chunks &chunks,
                std::vector<Worker> &workers) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> good{true};
    std::vector<std::unique_ptr<Block<Rows>>> blocks;
    for (std::size_t t = 0; t < workers.size(); ++t)
        blocks.push_back(std::make_unique<Block<Rows>>(model, rows));
    in_parallel(workers.size(), [&](std::size_t t) {
        Block<Rows> &block = *blocks[t];
        for (std::size_t chunk; good && (chunk = next++) < chunks.count;) {
            std::size_t row = chunks.begin(chunk);
            const std::size_t end = chunks.begin(chunk + 1);
            block.begin(row, std::min(row + RECORDS, end));
            for (; good && row < end; row += block.room())
                if (block.read(row, std::min(row + block.room(), end)))
                    workers[t].take(block, row);
                else
                    good = false;
            workers[t].finish(chunk);
        }
    });
    return good;
}

// Records that share the work of joining variables into groups: none for SparseCodes, whose values
// belong to one variable each.
template <typename Code>
std::size_t sharing(const Table<Code> &, std::size_t records) { return records; }
std::size_t sharing(const SparseCodes &, std::size_t) { return 0; }

// The number of chunks that are worth sums of their own.
template <typename Code>
std::size_t worthwhile(const Table<Code> &, std::size_t) { return CHUNKS; }
std::size_t worthwhile(const SparseCodes &rows, std::size_t levels) {
    return static_cast<std::size_t>(rows.starts[rows.records]) / (WORTH * levels);
}

// Count all records; `make` makes one of the classes of classes_sums.hpp.
template <typename Rows, typename Make>
std::optional<double> count_classes(const Rows &rows, const Vector &weights, const Matrix &factors,
                                    const Integers &levels, Output &counts, std::size_t threads,
                                    Make make) {
    nb::gil_scoped_release release;
    const Chunks chunks(rows.records, counts.size() * sizeof(double),
                        worthwhile(rows, factors.shape(0)));
    Profile profile(levels.shape(0));
    if (!look_at(rows, levels.data(), levels.shape(0), profile)) return std::nullopt;
    const Model model(weights.data(), weights.shape(0), factors.data(), levels.data(),
                      levels.shape(0), sharing(rows, chunks.length()), profile);
    std::vector<Sums> sums;
    for (std::size_t i = 0; i < chunks.count; ++i) sums.emplace_back(counts.size());
    std::vector<decltype(make(model, sums))> workers;
    const std::size_t n = std::clamp<std::size_t>(threads, 1, chunks.count);
    for (std::size_t t = 0; t < n; ++t) workers.push_back(make(model, sums));
    if (!go_through(model, rows, chunks, workers)) return std::nullopt;
    double log_likelihood = 0.0;
    for (const Sums &part : sums) {
        log_likelihood += part.log_likelihood;
        const double *from = part.counts.data();
        for (std::size_t i = 0; i < counts.size(); ++i) counts.data()[i] += from[i];
    }
    return log_likelihood;
}

template <typename Rows>
std::optional<double> add_posteriors(const Rows &rows, const std::optional<Vector> &weight,
                                     const Vector &weights, const Matrix &factors,
                                     const Integers &levels, Output &counts, std::size_t threads) {
    const double *mass = weight ? weight->data() : nullptr;
    return count_classes(rows, weights, factors, levels, counts, threads,
                         [&](const Model &m, std::vector<Sums> &s) { return Expected(m, mass, s); });
}

template <typename Rows>
std::optional<double> add_draws(const Rows &rows, const std::optional<Vector> &weight,
                                const Vector &weights, const Matrix &factors,
                                const Integers &levels, Output &counts, std::uint64_t seed,
                                std::size_t threads) {
    const double *mass = weight ? weight->data() : nullptr;
    return count_classes(
        rows, weights, factors, levels, counts, threads,
        [&](const Model &m, std::vector<Sums> &s) { return Drawn(m, mass, seed, s); });
}

// Writes the posterior of each record, where there is room for it, and its log-probability.
struct Writer {
    const Model &model;
    double *log_prob, *posterior;

    template <typename Rows>
    void take(const Block<Rows> &block, std::size_t first) {
        for (std::size_t i = 0; i < block.size(); ++i) {
            log_prob[first + i] = std::log(block.sum(i)) + block.shift(i) + block.lacking(i);
            if (!posterior) continue;
            const double scale = block.sum(i) > 0.0 ? 1.0 / block.sum(i) : 0.0;
            double *to = posterior + (first + i) * model.rank;
            for (std::size_t f = 0; f < model.rank; ++f) to[f] = block.joint(i)[f] * scale;
        }
    }
    void finish(std::size_t) {}
};

template <typename Rows>
bool write_posteriors(const Rows &rows, const Vector &weights, const Matrix &factors,
                      const Integers &levels, Outputs &log_prob, std::optional<Output> &posterior,
                      std::size_t threads) {
    nb::gil_scoped_release release;
    const Chunks chunks(rows.records, 1, CHUNKS);
    Profile profile(levels.shape(0));
    if (!look_at(rows, levels.data(), levels.shape(0), profile)) return false;
    const Model model(weights.data(), weights.shape(0), factors.data(), levels.data(),
                      levels.shape(0), sharing(rows, rows.records), profile);
    std::vector<Writer> writers(std::clamp<std::size_t>(threads, 1, chunks.count),
                                {model, log_prob.data(), posterior ? posterior->data() : nullptr});
    return go_through(model, rows, chunks, writers);
}

// The functions that Python calls, for records in either form: the arrays that hold them come first.
template <typename Rows, typename... Arrays>
void register_for(nb::module_ &m, Rows (*read)(const Arrays &...)) {
    m.def("class_pass", [read](const Arrays &...arrays, const std::optional<Vector> &weight,
                               const Vector &weights, const Matrix &factors, const Integers &levels,
                               Output counts, std::size_t threads) {
        return add_posteriors(read(arrays...), weight, weights, factors, levels, counts, threads);
    });
    m.def("class_draws", [read](const Arrays &...arrays, const std::optional<Vector> &weight,
                                const Vector &weights, const Matrix &factors,
                                const Integers &levels, Output counts, std::uint64_t seed,
                                std::size_t threads) {
        return add_draws(read(arrays...), weight, weights, factors, levels, counts, seed, threads);
    });
    m.def("class_posterior", [read](const Arrays &...arrays, const Vector &weights,
                                    const Matrix &factors, const Integers &levels, Outputs log_prob,
                                    std::optional<Output> posterior, std::size_t threads) {
        return write_posteriors(read(arrays...), weights, factors, levels, log_prob, posterior,
                                threads);
    });
}

template <typename Code>
Table<Code> read_table(const Codes<Code> &codes) { return {codes.data(), codes.shape(0)}; }

SparseCodes read_sparse(const Integers &starts, const Observed &cells) {
    return {starts.data(), cells.data(), starts.shape(0) - 1};
}

}  // namespace

void register_classes(nb::module_ &m) {
    register_for(m, &read_table<std::int8_t>);
    register_for(m, &read_table<std::int16_t>);
    register_for(m, &read_table<std::int32_t>);
    register_for(m, &read_sparse);
}

}  // namespace rejoint
