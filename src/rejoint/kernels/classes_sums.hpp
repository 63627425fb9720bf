// Sums over blocks of records: of their posteriors, or of classes drawn for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "classes_block.hpp"
#include "draws.hpp"
#include "simd.hpp"

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

// Draws a class for each record, or as many as its weight says: a binomial number of each class that
// is expected often, and the others one by one.
class Drawn : public Tally {
  public:
    Drawn(const Model &model, const double *weight, std::uint64_t seed, std::vector<Sums> &out)
        : Tally(model, weight, out), seed_(seed), cumulative_(model.rank), rare_(model.rank),
          left_(model.rank), drawn_(model.width), often_(model.rank), classes_(model.rank + 1) {}

    template <typename Rows>
    void take(const Block<Rows> &block, std::size_t first) {
        const Lists lists = block.lists();
        for (std::size_t i = 0; i < block.size(); ++i) {
            const double mass = weight(first + i);
            add_log(block, i, mass);
            if (!(mass > 0.0 && block.sum(i) > 0.0)) continue;
            Stream stream(seed_, first + i);
            const std::uint32_t *const list = lists.offsets + lists.begins[i];
            if (mass == 1.0) {
                std::size_t found;
                accumulate(block.joint(i));
                draw<1>(stream, &found);
                count(list, lists.sizes[i], found, 1.0);
            } else {
                draw_many(block.joint(i), block.sum(i), mass, stream);
                count_all(list, lists.sizes[i]);
            }
        }
    }

  private:
    // Expected draws of a class from which one binomial number is cheaper. Not a round number, which
    // rounding would take for more or less.
    static constexpr double OFTEN = 12.345678;
    static constexpr std::size_t RUN = 8;       // classes whose sums do not wait for those before
    static constexpr std::size_t TOGETHER = 8;  // draws that do not wait for each other

    void count(const std::uint32_t *list, std::uint32_t size, std::size_t f, double number) {
        for (std::uint32_t j = 0; j < size; ++j) rows_.data()[list[j] + f] += number;
    }

    // Count what was drawn for a record, class by class or all classes at once, and forget it.
    void count_all(const std::uint32_t *list, std::uint32_t size) {
        if (8 * found_ < model_.width) {
            for (std::size_t k = 0; k < found_; ++k)
                count(list, size, classes_[k], drawn_[classes_[k]]);
        } else {
            for (std::uint32_t j = 0; j < size; ++j) {
                double *REJOINT_RESTRICT row = rows_.data() + list[j];
                const double *REJOINT_RESTRICT more = drawn_.data();
                for (std::size_t f = 0; f < model_.width; ++f) row[f] += more[f];
            }
        }
        for (std::size_t k = 0; k < found_; ++k) drawn_[classes_[k]] = 0.0;
        found_ = 0;
    }

    // A class that was drawn before is written beyond the end, where the next one is written.
    void add(std::size_t f, double number) {
        classes_[found_] = static_cast<std::uint32_t>(f);
        found_ += drawn_[f] == 0.0;
        drawn_[f] += number;
    }

    void accumulate(const double *joint) {
        double before = 0.0;
        std::size_t f = 0;
        for (; f + RUN <= model_.rank; f += RUN) {
            double sum = 0.0;
            for (std::size_t k = 0; k < RUN; ++k) cumulative_[f + k] = before + (sum += joint[f + k]);
            before = cumulative_[f + RUN - 1];
        }
        for (; f < model_.rank; ++f) cumulative_[f] = before += joint[f];
        for (last_ = model_.rank - 1; last_ && joint[last_] == 0.0;) --last_;
    }

    // The first class at which the cumulative probability exceeds a share u of the whole, for several
    // draws at once: no branch is to be guessed.
    template <std::size_t SIZE>
    void draw(Stream &stream, std::size_t *found) const {
        double targets[SIZE];
        for (std::size_t k = 0; k < SIZE; ++k) {
            targets[k] = stream.next() * cumulative_.back();
            found[k] = 0;
        }
        for (std::size_t size = model_.rank; size > 1;) {
            const std::size_t half = size / 2;
            const double *const middle = cumulative_.data() + half - 1;
            for (std::size_t k = 0; k < SIZE; ++k) {
                const std::size_t beyond = middle[found[k]] <= targets[k];
                found[k] += half & (std::size_t{0} - beyond);
            }
            size -= half;
        }
        for (std::size_t k = 0; k < SIZE; ++k)  // more by rounding alone
            found[k] = std::min(found[k], last_);
    }

    void draw_many(const double *joint, double sum, double number, Stream &stream) {
        accumulate(joint);
        if (number >= OFTEN) number -= draw_often(joint, sum, number, stream);
        std::size_t found[TOGETHER];
        for (; number >= TOGETHER; number -= TOGETHER) {
            draw<TOGETHER>(stream, found);
            for (const std::size_t f : found) add(f, 1.0);
        }
        for (; number > 0.0; --number) {
            draw<1>(stream, found);
            add(found[0], 1.0);
        }
    }

    // Draw the classes that are expected often and return the number of draws; what is accumulated
    // are the others then. A binomial number of the draws that are left are of a class; the
    // probability that is left is summed from the last one up, and so equals that of the last one
    // if it is the only one.
    double draw_often(const double *joint, double sum, double number, Stream &stream) {
        const double limit = OFTEN * sum / number;
        std::size_t found = 0;
        for (std::size_t f = 0; f < model_.rank; ++f) {
            often_[found] = static_cast<std::uint32_t>(f);
            found += joint[f] >= limit;
        }
        if (!found) return 0.0;
        std::copy(joint, joint + model_.rank, rare_.begin());
        for (std::size_t j = 0; j < found; ++j) rare_[often_[j]] = 0.0;
        accumulate(rare_.data());
        double rest = cumulative_.back(), left = number;
        for (std::size_t j = found; j-- > 0;) left_[j] = rest += joint[often_[j]];
        for (std::size_t j = 0; j < found && left > 0.0; ++j) {
            const double some = binomial(left, joint[often_[j]] / left_[j], stream);
            if (some > 0.0) add(often_[j], some);
            left -= some;
        }
        return number - left;
    }

    std::uint64_t seed_;
    std::vector<double> cumulative_, rare_, left_, drawn_;  // drawn_ is zero between records
    std::vector<std::uint32_t> often_, classes_;            // classes_: those that were drawn
    std::size_t found_ = 0, last_ = 0;                      // number of these; last possible class
};

}  // namespace rejoint
