// Counts of SparseCodes in tables: time grows with the number of observed values, not with records
// times variables.
//
// Subsets are a tree: each node is a prefix of some of them, its children extend it by a variable.
// Each observed value that starts a subset is extended by the later values of its record, where
// there is a child for them. Tables are counted variable by variable, so that those in turn stay in
// a cache; within them record by record, so that sums of weights equal those of a table of codes to
// the last bit.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include "kernels.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace rejoint {
namespace {

using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Node {
    std::int64_t table = -1;     // where its table starts; -1 if none is asked for
    std::size_t begin = 0, end = 0;  // its children
};

// Children lie side by side, in the order of their variables.
class Tree {
  public:
    Tree(const Integers &sizes, const Integers &members, const Integers &starts)
        : sizes_(sizes.data()), starts_(starts.data()), first_(sizes.shape(0)),
          order_(sizes.shape(0)) {
        const std::int64_t *at = members.data();
        for (std::size_t s = 0; s < first_.size(); at += sizes_[s++]) first_[s] = at;
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        const auto before = [this](std::size_t a, std::size_t b) {
            return std::lexicographical_compare(first_[a], first_[a] + sizes_[a], first_[b],
                                                first_[b] + sizes_[b]);
        };
        if (!std::is_sorted(order_.begin(), order_.end(), before))
            std::sort(order_.begin(), order_.end(), before);
        nodes.resize(1);
        variables.resize(1);
        grow(0, 0, order_.size(), 0);
    }

    // The child of a node by a variable, a place from `from` on, or the end of its children.
    std::size_t find(const Node &node, std::size_t from, std::int32_t variable) const {
        const std::int32_t *all = variables.data();
        if (from == node.end || variable < all[from]) return node.end;
        // Where all variables in between are there it is just so far away, else nearer.
        const std::size_t most = from + static_cast<std::size_t>(variable - all[from]);
        if (most < node.end && all[most] == variable) return most;
        const std::int32_t *last = all + std::min(most, node.end);
        const std::int32_t *found = std::lower_bound(all + from, last, variable);
        return found < last && *found == variable ? static_cast<std::size_t>(found - all)
                                                  : node.end;
    }

    std::vector<Node> nodes;  // the first one is the root
    std::vector<std::int32_t> variables;  // of each node

  private:
    // Subsets low .. high of the order begin with a node of some depth.
    void grow(std::size_t node, std::size_t low, std::size_t high, std::int64_t depth) {
        for (; low < high && sizes_[order_[low]] == depth; ++low) {
            if (nodes[node].table >= 0)
                throw std::invalid_argument(
                    "subsets for SparseCodes must differ: one is given twice.");
            nodes[node].table = starts_[order_[low]];
        }
        std::vector<std::size_t> ends;
        const std::size_t begin = nodes.size();
        for (std::size_t s = low; s < high; ends.push_back(s)) {
            const std::int64_t variable = first_[order_[s]][depth];
            while (s < high && first_[order_[s]][depth] == variable) ++s;
            nodes.emplace_back();
            variables.push_back(static_cast<std::int32_t>(variable));
        }
        nodes[node].begin = begin;
        nodes[node].end = begin + ends.size();
        for (std::size_t k = 0; k < ends.size(); ++k)
            grow(begin + k, k ? ends[k - 1] : low, ends[k], depth + 1);
    }

    const std::int64_t *sizes_, *starts_;
    std::vector<const std::int64_t *> first_;
    std::vector<std::size_t> order_;
};

struct Records {
    const std::int64_t *starts;
    const std::int32_t *cells, *variables;
    const std::int64_t *levels;
    std::vector<std::int64_t> first;  // level of each variable
};

// Adds the records to tables that begin with one variable after another.
class Counter {
  public:
    Counter(const Tree &tree, const Records &records, double *out)
        : tree_(tree), records_(records), out_(out), child_(records.first.size()) {}

    // Look up the children of a node, those of the root, by their variables.
    void begin(const Node &node) {
        for (std::size_t n = node.begin; n < node.end; ++n) child_[tree_.variables[n]] = n;
    }
    void finish(const Node &node) {
        for (std::size_t n = node.begin; n < node.end; ++n) child_[tree_.variables[n]] = 0;
    }

    // Go on from the node that was begun by the cells from .. end of a record.
    void take(std::int64_t from, std::int64_t end, std::int64_t cell, double mass) {
        for (; from < end; ++from)
            if (const std::size_t found = child_[records_.variables[from]])
                add(found, from, end, cell, mass);
    }

  private:
    // Add a record, of which a cell has led to a node, to its table, and go on from there.
    void add(std::size_t place, std::int64_t at, std::int64_t end, std::int64_t cell,
             double mass) {
        const Node &node = tree_.nodes[place];
        const std::int32_t variable = records_.variables[at];
        cell = cell * records_.levels[variable] + records_.cells[at] - records_.first[variable];
        if (node.table >= 0) out_[node.table + cell] += mass;
        for (std::size_t next = node.begin; ++at < end && next < node.end;) {
            const std::size_t found = tree_.find(node, next, records_.variables[at]);
            if (found == node.end) continue;
            next = found + 1;
            add(found, at, end, cell, mass);
        }
    }

    const Tree &tree_;
    const Records &records_;
    double *out_;
    std::vector<std::size_t> child_;  // the root, which is none, where there is no child
};

void count_sparse(const Integers &starts, const Indices &cells, const Indices &variables,
                 const std::optional<Vector> &weight, const Integers &levels, const Integers &sizes,
                 const Integers &members, const Integers &tables, Output &out,
                 std::size_t threads) {
    nb::gil_scoped_release release;
    const Tree tree(sizes, members, tables);
    const Node &root = tree.nodes[0];
    Records records{starts.data(), cells.data(), variables.data(), levels.data(), {0}};
    for (std::size_t v = 0; v < levels.shape(0); ++v)
        records.first.push_back(records.first.back() + levels.data()[v]);
    // Values by variable, and the record of each.
    std::vector<std::size_t> ends(levels.shape(0) + 1);
    for (std::size_t j = 0; j < cells.shape(0); ++j) ++ends[records.variables[j] + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<std::int64_t> place(cells.shape(0)), row(cells.shape(0));
    for (std::int64_t i = 0; i + 1 < static_cast<std::int64_t>(starts.shape(0)); ++i)
        for (std::int64_t j = records.starts[i]; j < records.starts[i + 1]; ++j) {
            const std::size_t to = ends[records.variables[j]]++;
            place[to] = j;
            row[to] = i;
        }
    // Tables belong to their first variable, and so to one thread.
    threads = std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(root.end - root.begin, 1));
    std::vector<Counter> counters(threads, Counter(tree, records, out.data()));
    in_parallel(threads, [&](std::size_t t) {
        for (std::size_t n = root.begin + t; n < root.end; n += threads) {
            const Node &node = tree.nodes[n];
            const std::size_t variable = static_cast<std::size_t>(tree.variables[n]);
            counters[t].begin(node);
            for (std::size_t k = variable ? ends[variable - 1] : 0; k < ends[variable]; ++k) {
                const std::int64_t code = records.cells[place[k]] - records.first[variable];
                const double mass = weight ? weight->data()[row[k]] : 1.0;
                if (node.table >= 0) out.data()[node.table + code] += mass;
                if (node.begin < node.end)
                    counters[t].take(place[k] + 1, records.starts[row[k] + 1], code, mass);
            }
            counters[t].finish(node);
        }
    });
}

}  // namespace

void register_count_sparse(nb::module_ &m) { m.def("count_sparse", &count_sparse); }

}  // namespace rejoint
