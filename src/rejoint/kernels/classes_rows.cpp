// The loops of classes_rows.hpp, compiled for the processors there are.
#include "classes_rows.hpp"

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

#if defined(REJOINT_AVX2)
REJOINT_AVX2 void join_wide(Join join, const double *table, const Lists &lists, double *joint,
                            double *prob) {
    REJOINT_BY_QUADS(join_lists, 4, lists.width, join, table, lists, joint, prob)
}
REJOINT_AVX2 void add_wide(const double *joint, const double *scale, const Lists &lists,
                           double *sums) {
    REJOINT_BY_QUADS(add_to_lists, 4, lists.width, joint, scale, lists, sums)
}
#endif

void join_narrow(Join join, const double *table, const Lists &lists, double *joint, double *prob) {
    REJOINT_BY_QUADS(join_lists, 2, lists.width, join, table, lists, joint, prob)
}
void add_narrow(const double *joint, const double *scale, const Lists &lists, double *sums) {
    REJOINT_BY_QUADS(add_to_lists, 2, lists.width, joint, scale, lists, sums)
}

}  // namespace

REJOINT_CLONES bool in_range(const std::int16_t *codes, const std::uint16_t *limits,
                             std::size_t n) {
    return codes_in_range(codes, limits, n);
}
REJOINT_CLONES bool in_range(const std::int32_t *codes, const std::uint32_t *limits,
                             std::size_t n) {
    return codes_in_range(codes, limits, n);
}

void join_rows(Join join, const double *table, const Lists &lists, double *joint, double *prob) {
#if defined(REJOINT_AVX2)
    if (has_avx2()) return join_wide(join, table, lists, joint, prob);
#endif
    join_narrow(join, table, lists, joint, prob);
}

void add_rows(const double *joint, const double *scale, const Lists &lists, double *sums) {
#if defined(REJOINT_AVX2)
    if (has_avx2()) return add_wide(joint, scale, lists, sums);
#endif
    add_narrow(joint, scale, lists, sums);
}

}  // namespace rejoint
