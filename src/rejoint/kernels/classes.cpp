// Passes over records with a hidden class: threads, sums, and the face towards Python.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <atomic>
#include <memory>
#include <optional>

#include "classes_block.hpp"
#include "kernels.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace rejoint {
namespace {

constexpr std::size_t CHUNKS = 64;       // at most; each has sums of its own, added up in order
constexpr std::size_t SHORTEST = 4096;   // records of a chunk, at least
constexpr std::size_t SPARE = std::size_t{1} << 27;  // bytes that sums of chunks may take

template <typename Code>
using Codes = nb::ndarray<const Code, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// How records are split: by their number and the size of the sums, never by that of threads.
struct Chunks {
    std::size_t records, count;
    Chunks(std::size_t records, std::size_t bytes) : records(records) {
        const std::size_t most = std::clamp<std::size_t>(SPARE / std::max<std::size_t>(bytes, 1),
                                                         1, CHUNKS);
        count = std::clamp<std::size_t>(records / SHORTEST, 1, most);
    }
    std::size_t begin(std::size_t chunk) const { return records * chunk / count; }
};

// Hand all blocks of all chunks to the workers, one per thread; false if a code is out of range.
template <typename Code, typename Worker>
bool go_through(const Model &model, const Code *codes, const Chunks &chunks,
                std::vector<Worker> &workers) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> good{true};
    std::vector<std::unique_ptr<Block<Code>>> blocks;
    for (std::size_t t = 0; t < workers.size(); ++t)
        blocks.push_back(std::make_unique<Block<Code>>(model, codes));
    in_parallel(workers.size(), [&](std::size_t t) {
        Block<Code> &block = *blocks[t];
        for (std::size_t chunk; good && (chunk = next++) < chunks.count;) {
            block.forget();
            const std::size_t end = chunks.begin(chunk + 1);
            for (std::size_t row = chunks.begin(chunk); row < end; row += RECORDS) {
                if (!block.read(row, std::min(row + RECORDS, end))) {
                    good = false;
                    return;
                }
                workers[t].take(block, row);
            }
            workers[t].finish(chunk);
        }
    });
    return good;
}

// What is summed up of a chunk.
struct Sums {
    double log_likelihood;
    std::vector<double> counts;  // of the classes and of the levels, (1 + levels, rank)
};

// Adds the posterior of each record, times its weight, to the rows it is made of.
class Adder {
  public:
    Adder(const Model &model, const double *weight, std::vector<Sums> &sums)
        : model_(model), weight_(weight), out_(sums), rows_(model.rows * model.width) {}

    template <typename Code>
    void take(const Block<Code> &block, std::size_t row) {
        for (std::size_t i = 0; i < block.size(); ++i) {
            const double weight = weight_ ? weight_[row + i] : 1.0;
            scale_[i] = block.sum(i) > 0.0 ? weight / block.sum(i) : 0.0;
            if (weight > 0.0) log_likelihood_ += weight * block.log_prob(i);
        }
        add_rows(block.joint(0), scale_.data(), block.lists(), rows_.data());
    }

    void finish(std::size_t chunk) {
        out_[chunk].log_likelihood = log_likelihood_;
        model_.fold(rows_.data(), out_[chunk].counts.data());
        std::fill(rows_.data(), rows_.data() + rows_.size(), 0.0);
        log_likelihood_ = 0.0;
    }

  private:
    const Model &model_;
    const double *weight_;
    std::vector<Sums> &out_;
    Aligned rows_;  // sums, laid out as the rows of the model
    std::array<double, RECORDS> scale_;
    double log_likelihood_ = 0.0;
};

template <typename Code>
std::optional<double> class_pass(const Codes<Code> &codes, const std::optional<Vector> &weight,
                                 const Vector &weights, const Matrix &factors,
                                 const Integers &levels, Output &counts, std::size_t threads) {
    nb::gil_scoped_release release;
    const Chunks chunks(codes.shape(0), counts.size() * sizeof(double));
    const Model model(weights.data(), weights.shape(0), factors.data(), levels.data(),
                      levels.shape(0), codes.shape(0) / chunks.count);
    std::vector<Sums> sums(chunks.count, {0.0, std::vector<double>(counts.size())});
    threads = std::clamp<std::size_t>(threads, 1, chunks.count);
    std::vector<Adder> adders(threads, Adder(model, weight ? weight->data() : nullptr, sums));
    if (!go_through(model, codes.data(), chunks, adders)) return std::nullopt;
    double log_likelihood = 0.0;
    for (const Sums &part : sums) {
        log_likelihood += part.log_likelihood;
        for (std::size_t i = 0; i < part.counts.size(); ++i) counts.data()[i] += part.counts[i];
    }
    return log_likelihood;
}

}  // namespace

void register_classes(nb::module_ &m) {
    m.def("class_pass", &class_pass<std::int16_t>);
    m.def("class_pass", &class_pass<std::int32_t>);
}

}  // namespace rejoint
