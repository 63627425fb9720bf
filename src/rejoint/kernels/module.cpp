// The compiled kernels as one Python module; each family lives in a file of its own.
#include "kernels.hpp"

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels; rejoint.kernels wraps them and holds their NumPy twins.";
    rejoint::register_classes(m);
    rejoint::register_codes(m);
    rejoint::register_count(m);
    rejoint::register_count_sparse(m);
    rejoint::register_draw_levels(m);
    rejoint::register_simplex(m);
    rejoint::register_trait_steps(m);
    rejoint::register_triples(m);
}
