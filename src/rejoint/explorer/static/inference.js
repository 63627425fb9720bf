// Classes given evidence and what follows for each variable. Everything is in the log domain up
// to the class posterior: with hundreds of pieces of evidence plain products would underflow.
//
// Evidence is a Map from a variable's position to a Float64Array with the likelihood of each level.

import { levelsAt, reorder } from "./tables.js";
import { narrow, scaleRows, sumUp, tabulate } from "./block.js";

/** The joint given evidence: class posterior, updated factors and blocks, log probability of the evidence. */
export function infer(joint, likelihoods) {
  const { rank } = joint;
  const logs = Float64Array.from(joint.logWeights);
  const factors = [...joint.factors];
  const blocks = [...joint.blocks];
  const touched = new Set();
  for (const [n, likelihood] of likelihoods) {
    const scale = likelihood.reduce((a, b) => Math.max(a, b), 0);
    const scaled = likelihood.map((x) => x / (scale || 1));
    for (let f = 0; f < rank; f++) logs[f] += Math.log(scale);
    const k = joint.unitOf[n];
    if (!blocks[k]) factors[n] = normalize(scaleRows(factors[n], scaled), logs);
    else {
      touched.add(k);
      blocks[k] = narrow(blocks[k], n, scaled);
    }
  }
  for (const k of touched) {
    const { sums, margins } = sumUp(blocks[k]);
    for (let f = 0; f < rank; f++) logs[f] += Math.log(sums[f]) - Math.log(blocks[k].sums[f] || 1);
    blocks[k] = { ...blocks[k], sums, margins };
    for (const n of blocks[k].members) factors[n] = null; // made when first asked for
  }
  const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
  const classes = new Float64Array(rank);
  if (top === -Infinity) return { ...joint, possible: false, logProb: top, logs, classes };
  let total = 0;
  for (let f = 0; f < rank; f++) total += classes[f] = Math.exp(logs[f] - top);
  for (let f = 0; f < rank; f++) classes[f] /= total;
  const logProb = top + Math.log(total);
  const logWeights = logs.map((x) => x - logProb);
  return { ...joint, possible: true, logProb, logs, classes, logWeights, factors, blocks };
}

/** Divide the columns of a factor by their sums, the logarithms of which are added to `logs`. */
function normalize(factor, logs) {
  const rank = logs.length;
  const sums = new Float64Array(rank);
  for (let at = 0; at < factor.length; at += rank) for (let f = 0; f < rank; f++) sums[f] += factor[at + f];
  for (let f = 0; f < rank; f++) logs[f] += Math.log(sums[f]);
  for (let at = 0; at < factor.length; at += rank)
    for (let f = 0; f < rank; f++) if (factor[at + f] > 0) factor[at + f] /= sums[f];
  return factor;
}

/** Distributions of the levels of a variable in each class given the evidence. */
export function factorOf(state, n) {
  state.factors[n] ??= tabulate(state.blocks[state.unitOf[n]], [n]);
  return state.factors[n];
}

/** Distribution of one variable given all evidence, its own included. */
export function marginal(joint, state, n) {
  return productTable(state.classes, [factorOf(state, n)]);
}

/** Variables that share a block, and their table in each class given the evidence: {members, factor}. */
export function partsOf(joint, state, positions) {
  return positions.flatMap((n) => {
    const unit = joint.unitOf[n];
    const members = joint.blocks[unit] ? positions.filter((m) => joint.unitOf[m] === unit) : [n];
    if (members[0] !== n) return [];
    const factor = members.length > 1 ? tabulate(state.blocks[unit], members) : factorOf(state, n);
    return [{ members, factor }];
  });
}

/** Levels of the variables at `positions` from a cell of each part. */
export function levelsOf(joint, parts, cells, positions) {
  const levels = new Map();
  parts.forEach(({ members }, k) =>
    levelsAt(joint.variables, members, cells[k]).forEach((i, j) => levels.set(members[j], i)),
  );
  return positions.map((n) => levels.get(n));
}

/** Joint table of some variables given the evidence: flat, the last variable changes fastest. */
export function jointTable(joint, state, positions) {
  const parts = partsOf(joint, state, positions);
  const factors = parts.map(({ factor }) => factor);
  const order = parts.flatMap(({ members }) => members);
  return reorder(joint.variables, productTable(state.classes, factors), order, positions);
}

/** Sum over classes of masses times one row of each factor, for every combination of rows. */
export function productTable(masses, factors) {
  const rank = masses.length;
  const out = new Float64Array(factors.reduce((product, factor) => product * (factor.length / rank), 1));
  let at = 0;
  // Depth first: of the products only one row a factor is ever kept.
  const fill = (k, part) => {
    if (k === factors.length) {
      out[at++] = part.reduce((a, b) => a + b, 0);
      return;
    }
    const factor = factors[k];
    const last = k === factors.length - 1;
    for (let start = 0; start < factor.length; start += rank) {
      if (last) {
        let sum = 0;
        for (let f = 0; f < rank; f++) sum += part[f] * factor[start + f];
        out[at++] = sum;
      } else {
        fill(
          k + 1,
          part.map((mass, f) => mass * factor[start + f]),
        );
      }
    }
  };
  fill(0, masses);
  return out;
}

/** A smallest set of variables (none can be left out) whose evidence cannot all be true. */
export function contradiction(joint, likelihoods) {
  const { unitOf, rank, weights } = joint;
  const kept = new Map([...likelihoods].sort(([a], [b]) => a - b));
  // Whether evidence on the unit of a variable excludes a class: all of it, or but for one piece.
  const excluded = (unit, left) => {
    const pieces = [...kept].filter(([m]) => unitOf[m] === unit && m !== left);
    return infer({ ...joint, logWeights: new Float64Array(rank) }, pieces).logs.map((x) => Number(x === -Infinity));
  };
  let count = new Float64Array(rank);
  for (const unit of new Set([...kept.keys()].map((n) => unitOf[n])))
    count = excluded(unit).map((x, f) => x + count[f]);
  for (const n of [...kept.keys()]) {
    const [before, after] = [excluded(unitOf[n]), excluded(unitOf[n], n)];
    const rest = count.map((x, f) => x - before[f] + after[f]);
    // Left out if the others contradict without it.
    if (rest.some((x, f) => weights[f] > 0 && x === 0)) continue;
    count = rest;
    kept.delete(n);
  }
  return [...kept.keys()];
}

export function logSum(logs) {
  const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
  if (top === -Infinity) return top;
  return top + Math.log(logs.reduce((sum, x) => sum + Math.exp(x - top), 0));
}
