// Tables of codes as Python passes them: which types they have, and whether they are in range.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <nanobind/ndarray.h>

namespace rejoint {

template <typename Code>
using Codes = nanobind::ndarray<const Code, nanobind::ndim<2>, nanobind::c_contig,
                                nanobind::device::cpu>;

// Whether codes lie between -1 (missing) and limits minus one.
bool in_range(const std::int8_t *codes, const std::uint8_t *limits, std::size_t n);
bool in_range(const std::int16_t *codes, const std::uint16_t *limits, std::size_t n);
bool in_range(const std::int32_t *codes, const std::uint32_t *limits, std::size_t n);

// The same for n codes, each of which is also added by "or" to one of `seen`, which then is negative
// where any code was.
bool survey(const std::int8_t *codes, const std::uint8_t *limits, std::size_t n, std::int8_t *seen);
bool survey(const std::int16_t *codes, const std::uint16_t *limits, std::size_t n,
            std::int16_t *seen);
bool survey(const std::int32_t *codes, const std::uint32_t *limits, std::size_t n,
            std::int32_t *seen);

// The number of levels of each variable, repeated for several records so that these are compared
// at once.
template <typename Code>
class Limits {
    static constexpr std::size_t TILE = 16;  // records
    using Limit = std::make_unsigned_t<Code>;

  public:
    template <typename Integer>
    Limits(const Integer *levels, std::size_t n) : n_(n), limits_(TILE * n) {
        // All codes of the type are allowed where a variable has more levels than the type can hold.
        constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<Code>::max()) + 1u;
        for (std::size_t i = 0; i < limits_.size(); ++i)
            limits_[i] = static_cast<Limit>(
                std::min(static_cast<std::uint64_t>(levels[i % n]), most));
    }

    bool hold(const Code *codes, std::size_t records) const {
        for (std::size_t i = 0; i < records; i += TILE)
            if (!in_range(codes + i * n_, limits_.data(), std::min(TILE, records - i) * n_))
                return false;
        return true;
    }

    // The same, and which variables are missing in some record.
    bool survey(const Code *codes, std::size_t records, std::vector<std::uint8_t> &missing) const {
        std::vector<Code> seen(limits_.size());
        for (std::size_t i = 0; i < records; i += TILE)
            if (!rejoint::survey(codes + i * n_, limits_.data(), std::min(TILE, records - i) * n_,
                                 seen.data()))
                return false;
        for (std::size_t i = 0; i < seen.size(); ++i) missing[i % n_] |= seen[i] < 0;
        return true;
    }

  private:
    std::size_t n_;
    std::vector<Limit> limits_;
};

}  // namespace rejoint
