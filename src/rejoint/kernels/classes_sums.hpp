// Sums over blocks of records: of their posteriors, or of classes drawn for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "classes_block.hpp"
#include "draws.hpp"

namespace rejoint {

// The sums of a chunk.
struct Sums {
    explicit Sums(std::size_t size) : counts(size) {}
    double log_likelihood = 0.0;
    Aligned counts;  // of the classes and of the levels, (1 + levels, rank); set when the chunk is done
};

// The part that both ways of counting share: weights of records, and sums in the model's layout.
class Tally {
  public:
    Tally(const Model &model, const double *weight, std::vector<Sums> &out)
        : model_(model), rows_(model.rows * model.width), weight_(weight), out_(out) {
        clear();
    }

    // Store the sums of a chunk and start again from zero.
    void finish(std::size_t chunk) {
        out_[chunk].log_likelihood =
            log_likelihood_ + std::log(product_) + model_.lacking(rows_.data());
        product_ = 1.0;
        Aligned &counts = out_[chunk].counts;
        std::fill(counts.data(), counts.data() + counts.size(), 0.0);
        model_.fold(rows_.data(), counts.data());
        clear();
        log_likelihood_ = 0.0;
    }

  protected:
    double weight(std::size_t record) const { return weight_ ? weight_[record] : 1.0; }

    // Add to the log-likelihood. One logarithm serves many records of weight one: that of their
    // product, taken before it leaves the range of doubles (sums are no less than 2^-600, or zero).
    template <typename Rows>
    void add_log(const Block<Rows> &block, std::size_t i, double weight) {
        if (weight == 1.0) {
            product_ *= block.sum(i);
            if (block.shift(i) != 0.0) log_likelihood_ += block.shift(i);
            if (product_ > 0x1p-400 && product_ < 0x1p400) return;
            log_likelihood_ += std::log(product_);
            product_ = 1.0;
        } else if (weight > 0.0)  // a record without weight may be impossible
            log_likelihood_ += weight * (std::log(block.sum(i)) + block.shift(i));
    }

    const Model &model_;
    Aligned rows_;

  private:
    void clear() { std::fill(rows_.data(), rows_.data() + rows_.size(), 0.0); }

    const double *weight_;
    std::vector<Sums> &out_;
    double log_likelihood_ = 0.0, product_ = 1.0;
};

// Adds the posterior of each record, times its weight, to the rows it is made of.
class Expected : public Tally {
  public:
    using Tally::Tally;

    template <typename Rows>
    void take(const Block<Rows> &block, std::size_t first) {
        double *const scale = block.spare();
        for (std::size_t i = 0; i < block.size(); ++i) {
            const double mass = weight(first + i), sum = block.sum(i);
            scale[i] = sum > 0.0 ? mass / sum : 0.0;
            add_log(block, i, mass);
        }
        for (std::size_t p = 0; p < block.parts(); ++p)
            add_rows(block.joint(0), scale, block.part(p), rows_.data());
    }
};

// Draws a class for each record, or as many as its weight says.
class Drawn : public Tally {
  public:
    Drawn(const Model &model, const double *weight, std::uint64_t seed, std::vector<Sums> &out)
        : Tally(model, weight, out), seed_(seed), cumulative_(model.rank), drawn_(model.rank) {}

    template <typename Rows>
    void take(const Block<Rows> &block, std::size_t first) {
        for (std::size_t i = 0; i < block.size(); ++i) {
            const double mass = weight(first + i);
            add_log(block, i, mass);
            if (!(mass > 0.0 && block.sum(i) > 0.0)) continue;
            Stream stream(seed_, first + i);
            const Lists lists = block.lists();
            const std::uint32_t *list = lists.offsets + lists.begins[i];
            if (mass == 1.0) {
                accumulate(block.joint(i));
                count(list, lists.sizes[i], draw(block.joint(i), stream), 1.0);
                continue;
            }
            draw_many(block.joint(i), mass, stream);
            for (std::size_t f = 0; f < model_.rank; ++f)
                if (drawn_[f] > 0.0) count(list, lists.sizes[i], f, drawn_[f]);
        }
    }

  private:
    static constexpr double HEAVY = 256.0;  // a record with more draws than this is drawn class by class

    void count(const std::uint32_t *list, std::uint32_t size, std::size_t f, double number) {
        for (std::uint32_t j = 0; j < size; ++j) rows_.data()[list[j] + f] += number;
    }

    void accumulate(const double *joint) {
        double sum = 0.0;
        for (std::size_t f = 0; f < model_.rank; ++f) cumulative_[f] = sum += joint[f];
    }

    // The first class at which the cumulative probability exceeds a share u of the whole.
    std::size_t draw(const double *joint, Stream &stream) const {
        const double target = stream.next() * cumulative_.back();
        std::size_t f = 0;
        for (std::size_t g = 0; g < model_.rank; ++g) f += cumulative_[g] <= target;
        if (f == model_.rank) --f;  // by rounding alone
        while (f && joint[f] == 0.0) --f;
        return f;
    }

    void draw_many(const double *joint, double number, Stream &stream) {
        std::fill(drawn_.begin(), drawn_.end(), 0.0);
        if (number <= HEAVY) {
            accumulate(joint);
            for (double k = 0.0; k < number; ++k) ++drawn_[draw(joint, stream)];
            return;
        }
        // A binomial number of the draws that are left are of this class. The probability that is
        // left is summed from the last class up, and so equals that of the last possible class.
        double sum = 0.0;
        for (std::size_t f = model_.rank; f-- > 0;) cumulative_[f] = sum += joint[f];
        for (std::size_t f = 0; f < model_.rank && number > 0.0; ++f) {
            if (!(joint[f] > 0.0)) continue;
            drawn_[f] = binomial(number, joint[f] / cumulative_[f], stream);
            number -= drawn_[f];
        }
    }

    std::uint64_t seed_;
    std::vector<double> cumulative_, drawn_;
};

}  // namespace rejoint
