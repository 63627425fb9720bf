// Comparisons of codes with levels, and which records have a value at all.
#include "codes.hpp"

#include <cstring>

#include "kernels.hpp"
#include "simd.hpp"

namespace nb = nanobind;

namespace rejoint {
namespace {

template <typename Code, typename Limit>
REJOINT_INLINE bool codes_in_range(const Code *REJOINT_RESTRICT codes,
                                   const Limit *REJOINT_RESTRICT limits, std::size_t n) {
    Limit bad = 0;
    for (std::size_t i = 0; i < n; ++i)
        bad |= static_cast<Limit>(static_cast<Limit>(static_cast<Limit>(codes[i]) + 1u) > limits[i]);
    return !bad;
}

template <typename Code, typename Limit>
REJOINT_INLINE bool survey_codes(const Code *REJOINT_RESTRICT codes,
                                 const Limit *REJOINT_RESTRICT limits, std::size_t n,
                                 Code *REJOINT_RESTRICT seen) {
    Limit bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        bad |= static_cast<Limit>(static_cast<Limit>(static_cast<Limit>(codes[i]) + 1u) > limits[i]);
        seen[i] = static_cast<Code>(seen[i] | codes[i]);
    }
    return !bad;
}

// Whether any of n codes is not negative. A word of 64 bits holds several: one of them is not
// negative if its highest bit is zero.
template <typename Code>
bool any_observed(const Code *codes, std::size_t n) {
    constexpr std::size_t STEP = sizeof(std::uint64_t) / sizeof(Code);
    std::uint64_t signs = 0;
    for (std::size_t k = 0; k < STEP; ++k)
        signs |= std::uint64_t{1} << (8 * sizeof(Code) * (k + 1) - 1);
    std::size_t v = 0;
    for (; v + STEP <= n; v += STEP) {
        std::uint64_t word;
        std::memcpy(&word, codes + v, sizeof word);
        if (~word & signs) return true;
    }
    for (; v < n; ++v)
        if (codes[v] >= 0) return true;
    return false;
}

using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Code>
void has_value(const Codes<Code> &codes, Flags &out) {
    nb::gil_scoped_release release;
    const std::size_t n = codes.shape(1), records = std::min(codes.shape(0), out.shape(0));
    for (std::size_t i = 0; i < records; ++i)
        out.data()[i] = any_observed(codes.data() + i * n, n);
}

}  // namespace

REJOINT_CLONES bool in_range(const std::int8_t *codes, const std::uint8_t *limits, std::size_t n) {
    return codes_in_range(codes, limits, n);
}
REJOINT_CLONES bool in_range(const std::int16_t *codes, const std::uint16_t *limits,
                             std::size_t n) {
    return codes_in_range(codes, limits, n);
}
REJOINT_CLONES bool in_range(const std::int32_t *codes, const std::uint32_t *limits,
                             std::size_t n) {
    return codes_in_range(codes, limits, n);
}

REJOINT_CLONES bool survey(const std::int8_t *codes, const std::uint8_t *limits, std::size_t n,
                           std::int8_t *seen) {
    return survey_codes(codes, limits, n, seen);
}
REJOINT_CLONES bool survey(const std::int16_t *codes, const std::uint16_t *limits, std::size_t n,
                           std::int16_t *seen) {
    return survey_codes(codes, limits, n, seen);
}
REJOINT_CLONES bool survey(const std::int32_t *codes, const std::uint32_t *limits, std::size_t n,
                           std::int32_t *seen) {
    return survey_codes(codes, limits, n, seen);
}

void register_codes(nb::module_ &m) {
    m.def("has_value", &has_value<std::int8_t>);
    m.def("has_value", &has_value<std::int16_t>);
    m.def("has_value", &has_value<std::int32_t>);
}

}  // namespace rejoint
