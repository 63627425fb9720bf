// What the kernel files share: one register_* function per family, called by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace rejoint {

void register_classes(nanobind::module_ &m);
void register_codes(nanobind::module_ &m);
void register_count(nanobind::module_ &m);
void register_count_cells(nanobind::module_ &m);
void register_sampling(nanobind::module_ &m);
void register_simplex(nanobind::module_ &m);
void register_symmetric(nanobind::module_ &m);
void register_triples(nanobind::module_ &m);

}  // namespace rejoint
