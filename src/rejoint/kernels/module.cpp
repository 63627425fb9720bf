// The compiled kernels as one Python module; each family lives in a file of its own.
#include "kernels.hpp"

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels; rejoint.kernels wraps them and holds their NumPy twins.";
    rejoint::register_classes(m);
    rejoint::register_codes(m);
    rejoint::register_count(m);
    rejoint::register_count_cells(m);
    rejoint::register_sampling(m);
    rejoint::register_simplex(m);
    rejoint::register_symmetric(m);
    rejoint::register_triples(m);
}
