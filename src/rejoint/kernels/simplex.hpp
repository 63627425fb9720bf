// The inner steps of ADMM, for sweeps that are compiled as a whole.
#pragma once

#include <cstddef>

namespace rejoint {

// The steps of kernels.admm_steps on a factor `a` (rows, rank) and its dual `u`, in place. The
// simplex runs down the columns, or, for the weights, along the one row that there is.
void take_admm_steps(const double *inverse, const double *target, double *a, double *u,
                     std::size_t rows, std::size_t rank, double rho, std::size_t steps,
                     bool along_rows);

}  // namespace rejoint
