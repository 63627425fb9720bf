// The loops of classes_rows.hpp, compiled for several instruction sets.
#include "classes_rows.hpp"

namespace rejoint {
namespace {

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
