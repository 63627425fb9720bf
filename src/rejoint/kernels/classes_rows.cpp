// The loops of classes_rows.hpp, compiled for several instruction sets.
#include "classes_rows.hpp"

#include <algorithm>

namespace rejoint {
namespace {

#if defined(REJOINT_AVX2)
REJOINT_AVX2 void join_wide(Panel panel, Join join, const double *table, const Lists &lists,
                            double *joint, double *prob) {
    REJOINT_BY_QUADS(join_lists, 4, lists.width, panel, join, table, lists, joint, prob)
}
REJOINT_AVX2 void add_wide(Panel panel, const double *joint, const double *scale,
                           const Lists &lists, double *sums) {
    REJOINT_BY_QUADS(add_to_lists, 4, lists.width, panel, joint, scale, lists, sums)
}
#endif

void join_narrow(Panel panel, Join join, const double *table, const Lists &lists, double *joint,
                 double *prob) {
    REJOINT_BY_QUADS(join_lists, 2, lists.width, panel, join, table, lists, joint, prob)
}
void add_narrow(Panel panel, const double *joint, const double *scale, const Lists &lists,
                double *sums) {
    REJOINT_BY_QUADS(add_to_lists, 2, lists.width, panel, joint, scale, lists, sums)
}

// Call a function for each panel of rows, which are used by several records.
template <typename Function>
void for_panels(const Lists &lists, Function function) {
    const std::size_t size = lists.count > 1 ? PANEL : lists.width;
    for (std::size_t first = 0; first < lists.width; first += size)
        function(Panel{first, std::min(first + size, lists.width)});
}

}  // namespace

void join_rows(Join join, const double *table, const Lists &lists, double *joint, double *prob) {
    for_panels(lists, [&](Panel panel) {
#if defined(REJOINT_AVX2)
        if (has_avx2()) return join_wide(panel, join, table, lists, joint, prob);
#endif
        join_narrow(panel, join, table, lists, joint, prob);
    });
}

void add_rows(const double *joint, const double *scale, const Lists &lists, double *sums) {
    for_panels(lists, [&](Panel panel) {
#if defined(REJOINT_AVX2)
        if (has_avx2()) return add_wide(panel, joint, scale, lists, sums);
#endif
        add_narrow(panel, joint, scale, lists, sums);
    });
}

}  // namespace rejoint
