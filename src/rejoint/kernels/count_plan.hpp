// How a list of subsets is counted: which of them share work, and which of two methods is used.
//
//  * By bytes, for small tables without weights. Tables that differ only in their last variable
//    form a run. The levels of these last variables are laid out as one-hot bytes, row by row;
//    each row where the others are observed adds its bytes, 32 at a time, to those of the cell
//    of the others that it falls into, for any number of tables.
//  * By list, for all else: the rows where all variables are observed, and the cell of each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace rejoint {

constexpr std::size_t UNIT = 32;            // bytes added at a time
constexpr std::size_t PANEL = 8 * UNIT;     // most one-hot bytes of a row: a chunk stays in cache
constexpr std::size_t RUN_BYTES = 1 << 18;  // most byte counters of a run, for the same reason

inline std::size_t padded(std::size_t width) { return (width + UNIT - 1) / UNIT * UNIT; }

struct Table {
    std::size_t start;  // of its cells in the output
    int last;           // its last variable
};

// Tables counted together.
struct Run {
    std::vector<int> listed;  // variables that must be observed: all but the last, or all
    std::size_t cells = 1;    // of these
    std::vector<Table> tables;
    int panel = -1;                    // of one-hot bytes; -1: by list
    std::size_t first = 0, width = 0;  // its bytes within a row of the panel
    std::size_t sums = 0, seen = 0;    // where its byte counters and row counters start
};

// Variables whose one-hot bytes lie side by side.
struct Panel {
    std::vector<int> variables;
    std::vector<std::size_t> first;  // byte of each
    std::size_t width = 0;
};

struct Plan {
    std::vector<std::size_t> levels;
    std::vector<Panel> panels;
    std::vector<int> panel_of;          // of each variable; -1 if it has too many levels
    std::vector<std::size_t> first_of;  // byte of each variable in its panel
    std::vector<Run> runs;              // by panel, then by the variables listed
    std::vector<int> columns;           // variables that are listed somewhere
    std::size_t sums = 0, seen = 0;     // sizes of all byte counters and row counters
    std::size_t depth = 0;              // most variables listed
};

inline void make_panels(Plan &plan) {
    plan.panel_of.assign(plan.levels.size(), -1);
    plan.first_of.assign(plan.levels.size(), 0);
    for (std::size_t v = 0; v < plan.levels.size(); ++v) {
        if (plan.levels[v] > PANEL) continue;
        if (plan.panels.empty() || plan.panels.back().width + plan.levels[v] > PANEL)
            plan.panels.emplace_back();
        Panel &panel = plan.panels.back();
        plan.panel_of[v] = static_cast<int>(plan.panels.size()) - 1;
        plan.first_of[v] = panel.width;
        panel.variables.push_back(static_cast<int>(v));
        panel.first.push_back(panel.width);
        panel.width += plan.levels[v];
    }
}

// Add a table to the last run, if it is one by bytes that can take it, or to a new one.
inline void add_table(Plan &plan, const std::vector<int> &subset, std::size_t start,
                      bool weighted) {
    const int last = subset.back();
    const std::vector<int> prefix(subset.begin(), subset.end() - 1);
    std::size_t cells = 1;
    for (int v : prefix) cells *= plan.levels[v];
    const std::size_t begin = plan.first_of[last], end = begin + plan.levels[last];
    const int panel = weighted ? -1 : plan.panel_of[last];
    if (panel < 0 || cells * padded(end - begin) > RUN_BYTES) {
        Run run;
        run.listed = subset;
        run.cells = cells * plan.levels[last];
        if (run.cells > UINT32_MAX)
            throw std::invalid_argument("A table of more than 4,294,967,295 cells is too large.");
        run.tables = {{start, last}};
        plan.runs.push_back(run);
        return;
    }
    Run *run = plan.runs.empty() ? nullptr : &plan.runs.back();
    const bool joins = run && run->panel == panel && run->listed == prefix &&
                       cells * padded(end - run->first) <= RUN_BYTES &&
                       begin <= run->first + run->width + UNIT;  // else the gap costs more
    if (!joins) {
        plan.runs.emplace_back();
        run = &plan.runs.back();
        run->listed = prefix;
        run->cells = cells;
        run->panel = panel;
        run->first = begin;
    }
    run->width = end - run->first;
    run->tables.push_back({start, last});
}

// Sort the runs and find out what they need.
inline void finish(Plan &plan) {
    std::stable_sort(plan.runs.begin(), plan.runs.end(), [](const Run &a, const Run &b) {
        return a.panel != b.panel ? a.panel < b.panel : a.listed < b.listed;
    });
    std::vector<char> needed(plan.levels.size(), 0);
    for (Run &run : plan.runs) {
        plan.depth = std::max(plan.depth, run.listed.size());
        for (int v : run.listed) needed[v] = 1;
        run.sums = plan.sums;
        run.seen = plan.seen;
        if (run.panel < 0) continue;
        plan.sums += run.cells * padded(run.width);
        plan.seen += run.cells;
    }
    for (std::size_t v = 0; v < needed.size(); ++v)
        if (needed[v]) plan.columns.push_back(static_cast<int>(v));
}

inline Plan make_plan(const std::vector<std::size_t> &levels,
                      const std::vector<std::vector<int>> &subsets, bool weighted) {
    Plan plan;
    plan.levels = levels;
    make_panels(plan);
    std::vector<std::size_t> order(subsets.size()), start(subsets.size() + 1, 0);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = 0; i < subsets.size(); ++i) {
        std::size_t cells = 1;
        for (int v : subsets[i]) cells *= levels[v];
        start[i + 1] = start[i] + cells;
    }
    // By length first, so that tables that differ only in the last variable follow one another.
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
        const auto &a = subsets[i], &b = subsets[j];
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    for (std::size_t i : order) add_table(plan, subsets[i], start[i], weighted);
    finish(plan);
    return plan;
}

}  // namespace rejoint
