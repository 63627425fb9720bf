// The loops of classes_rows.hpp, compiled for the processors there are.
#include "classes_rows.hpp"

namespace rejoint {
namespace {

template <typename Code>
REJOINT_INLINE bool look_up_codes(const Code *REJOINT_RESTRICT codes, std::size_t records,
                                  std::size_t n, const std::uint32_t *REJOINT_RESTRICT levels,
                                  const std::uint32_t *REJOINT_RESTRICT strides,
                                  std::uint32_t *REJOINT_RESTRICT steps) {
    std::uint32_t bad = 0;
    for (std::size_t i = 0; i < records; ++i, codes += n, steps += n)
        for (std::size_t v = 0; v < n; ++v) {
            const auto level = static_cast<std::uint32_t>(codes[v]) + 1u;
            bad |= level > levels[v];
            steps[v] = level * strides[v];
        }
    return !bad;
}

#if defined(REJOINT_AVX2)
REJOINT_AVX2 void join_wide(bool log, const double *table, const Lists &lists, double *joint,
                            double *prob) {
    REJOINT_BY_QUADS(join_lists, 4, lists.width, log, table, lists, joint, prob)
}
REJOINT_AVX2 void add_wide(const double *joint, const double *scale, const Lists &lists,
                           double *sums) {
    REJOINT_BY_QUADS(add_to_lists, 4, lists.width, joint, scale, lists, sums)
}
#endif

void join_narrow(bool log, const double *table, const Lists &lists, double *joint, double *prob) {
    REJOINT_BY_QUADS(join_lists, 2, lists.width, log, table, lists, joint, prob)
}
void add_narrow(const double *joint, const double *scale, const Lists &lists, double *sums) {
    REJOINT_BY_QUADS(add_to_lists, 2, lists.width, joint, scale, lists, sums)
}

}  // namespace

REJOINT_CLONES bool look_up(const std::int16_t *codes, std::size_t records, std::size_t n,
                            const std::uint32_t *levels, const std::uint32_t *strides,
                            std::uint32_t *steps) {
    return look_up_codes(codes, records, n, levels, strides, steps);
}
REJOINT_CLONES bool look_up(const std::int32_t *codes, std::size_t records, std::size_t n,
                            const std::uint32_t *levels, const std::uint32_t *strides,
                            std::uint32_t *steps) {
    return look_up_codes(codes, records, n, levels, strides, steps);
}

void join_rows(bool log, const double *table, const Lists &lists, double *joint, double *prob) {
#if defined(REJOINT_AVX2)
    if (has_avx2()) return join_wide(log, table, lists, joint, prob);
#endif
    join_narrow(log, table, lists, joint, prob);
}

void add_rows(const double *joint, const double *scale, const Lists &lists, double *sums) {
#if defined(REJOINT_AVX2)
    if (has_avx2()) return add_wide(joint, scale, lists, sums);
#endif
    add_narrow(joint, scale, lists, sums);
}

}  // namespace rejoint
