// The most probable levels of several variables together, by branch and bound.
//
// As in rejoint.queries.modes: classes are scaled by their peaks m_n[f] = max_i A_n[i, f], so that
// all ratios r_n = A_n / m_n are at most one and nothing that matters underflows. A node that has
// decided some variables is worth at most the sum of its classes' masses. Variables of a block are one.

import { levelsOf, partsOf } from "./inference.js";

const TIE = 1e-12;

/** {levels, logProb, exact, logBound} of the best combination of the variables at `positions`. */
export function mostProbable(joint, state, positions, maxNodes = 20_000) {
  const parts = partsOf(joint, state, positions);
  const search = new Search(joint, state, parts, maxNodes);
  search.climbAll();
  search.run();
  const logProb = search.unit + Math.log(search.best);
  const logBound = Math.max(logProb, search.unit + Math.log(search.left));
  return { levels: levelsOf(joint, parts, search.levels, positions), logProb, logBound, exact: search.left === 0 };
}

class Search {
  constructor(joint, state, parts, maxNodes) {
    const alive = [...state.classes.keys()].filter((f) => state.classes[f] > 0);
    const logs = alive.map((f) => Math.log(state.classes[f]));
    this.rank = alive.length;
    this.ratios = parts.map(({ factor }) => this.scale(factor, joint.rank, alive, logs));
    this.unit = logs.reduce((a, b) => Math.max(a, b), -Infinity);
    this.masses = Float64Array.from(logs, (x) => Math.exp(x - this.unit));
    this.maxNodes = maxNodes;
    this.nodes = 0;
    this.best = 0;
    this.left = 0; // bound on what was left unexplored
    this.levels = [];
  }

  /** Ratios to the peak of each class; the peaks go into the logarithms. */
  scale(factor, rank, alive, logs) {
    const size = factor.length / rank;
    const out = new Float64Array(size * alive.length);
    alive.forEach((f, k) => {
      let peak = 0;
      for (let i = 0; i < size; i++) peak = Math.max(peak, factor[i * rank + f]);
      logs[k] += Math.log(peak);
      for (let i = 0; i < size; i++) out[i * alive.length + k] = factor[i * rank + f] / peak;
    });
    return out;
  }

  /** Mass of each level of a variable under some class masses. */
  values(ratio, masses) {
    const out = new Float64Array(ratio.length / this.rank);
    for (let i = 0, at = 0; i < out.length; i++, at += this.rank) {
      let sum = 0;
      for (let f = 0; f < this.rank; f++) sum += masses[f] * ratio[at + f];
      out[i] = sum;
    }
    return out;
  }

  times(masses, ratio, level) {
    return masses.map((mass, f) => mass * ratio[level * this.rank + f]);
  }

  /** Climb from the single modes and from the peaks of the heaviest classes. */
  climbAll() {
    this.climb(this.ratios.map((ratio) => peakOf(this.values(ratio, this.masses))));
    const heavy = [...this.masses.keys()].sort((a, b) => this.masses[b] - this.masses[a]).slice(0, 12);
    for (const f of heavy) {
      this.climb(this.ratios.map((ratio) => peakOf(ratio.filter((_, at) => at % this.rank === f))));
    }
  }

  /** Change one variable at a time to its best level until none improves. */
  climb(levels) {
    let improved = true;
    while (improved) {
      improved = false;
      // Products of all variables after each one, so that a pass costs one product a variable.
      const after = [this.masses.map(() => 1)];
      for (let n = levels.length - 1; n > 0; n--)
        after.push(this.times(after.at(-1), this.ratios[n], levels[n]));
      let before = this.masses;
      levels.forEach((level, n) => {
        const rest = after.pop();
        const values = this.values(
          this.ratios[n],
          before.map((mass, f) => mass * rest[f]),
        );
        const top = peakOf(values);
        if (values[top] > values[level] * (1 + TIE)) {
          levels[n] = top;
          improved = true;
        }
        before = this.times(before, this.ratios[n], levels[n]);
      });
      this.offer(levels, sum(before));
    }
  }

  offer(levels, value) {
    if (value > this.best) {
      this.best = value;
      this.levels = [...levels];
    }
  }

  run() {
    // The most telling variable first: its best level leaves least mass.
    const worth = this.ratios.map((ratio) =>
      this.values(ratio, this.masses).reduce((a, b) => Math.max(a, b), 0),
    );
    const order = [...this.ratios.keys()].sort((a, b) => worth[a] - worth[b]);
    this.visit(order, 0, this.masses, new Array(order.length).fill(0));
  }

  visit(order, depth, masses, levels) {
    if (depth === order.length) return this.offer(levels, sum(masses));
    const ratio = this.ratios[order[depth]];
    const bounds = this.values(ratio, masses);
    const children = [...bounds.keys()].sort((a, b) => bounds[b] - bounds[a]);
    for (const level of children) {
      if (bounds[level] <= this.best * (1 + TIE)) break;
      if (this.nodes >= this.maxNodes) {
        this.left = Math.max(this.left, bounds[level]);
        break;
      }
      this.nodes++;
      levels[order[depth]] = level;
      this.visit(order, depth + 1, this.times(masses, ratio, level), levels);
    }
  }
}

function peakOf(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

function sum(values) {
  return values.reduce((a, b) => a + b, 0);
}
