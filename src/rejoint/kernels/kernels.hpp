// One register_* function per kernel file, called by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace rejoint {

void register_classes(nanobind::module_ &m);
void register_codes(nanobind::module_ &m);
void register_count(nanobind::module_ &m);
void register_count_sparse(nanobind::module_ &m);
void register_draw_levels(nanobind::module_ &m);
void register_simplex(nanobind::module_ &m);
void register_trait_steps(nanobind::module_ &m);
void register_triples(nanobind::module_ &m);

}  // namespace rejoint
