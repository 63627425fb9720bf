// How much one variable tells about another, or about the classes; in bits.

import { factorOf, jointTable, marginal } from "./inference.js";

export function entropy(p) {
  let sum = 0;
  for (const x of p) if (x > 0) sum -= x * Math.log2(x);
  return sum;
}

/** Half the sum of absolute differences: the largest change of any event's probability. */
export function distance(p, q) {
  let sum = 0;
  for (let i = 0; i < p.length; i++) sum += Math.abs(p[i] - q[i]);
  return sum / 2;
}

/** What variable n would tell about the hidden class, and through it about all the others. */
export function classInformation(joint, state, n) {
  const factor = factorOf(state, n);
  const within = factor === joint.factors[n] ? knownEntropies(joint, n) : classEntropies(factor, joint.rank);
  let mean = 0;
  for (let f = 0; f < joint.rank; f++) mean += state.classes[f] * within[f];
  return Math.max(entropy(marginal(joint, state, n)) - mean, 0);
}

/** Without evidence on the variable its entropy in each class never changes. */
function knownEntropies(joint, n) {
  joint.entropies ??= [];
  return (joint.entropies[n] ??= classEntropies(joint.factors[n], joint.rank));
}

function classEntropies(factor, rank) {
  const out = new Float64Array(rank);
  for (let at = 0; at < factor.length; at++) {
    const x = factor[at];
    if (x > 0) out[at % rank] -= x * Math.log2(x);
  }
  return out;
}

/** Mutual information of the target with every other variable, given the evidence. */
export function targetInformation(joint, state, target) {
  const { rank, unitOf } = joint;
  const p = marginal(joint, state, target);
  const top = factorOf(state, target);
  // Class masses per level of the target, once for all variables.
  const masses = Array.from(p, (_, t) => state.classes.map((x, f) => x * top[t * rank + f]));
  return joint.variables.map((_, n) => {
    if (n === target) return 0;
    const q = marginal(joint, state, n);
    const isJoint = unitOf[n] === unitOf[target];
    const table = isJoint ? jointTable(joint, state, [target, n]) : pairTable(masses, factorOf(state, n), rank);
    let sum = 0;
    for (let t = 0, at = 0; t < p.length; t++)
      for (let i = 0; i < q.length; i++, at++)
        if (table[at] > 0) sum += table[at] * Math.log2(table[at] / (p[t] * q[i]));
    return Math.max(sum, 0);
  });
}

function pairTable(masses, factor, rank) {
  const out = new Float64Array((masses.length * factor.length) / rank);
  let at = 0;
  for (const mass of masses)
    for (let start = 0; start < factor.length; start += rank) {
      let sum = 0;
      for (let f = 0; f < rank; f++) sum += mass[f] * factor[start + f];
      out[at++] = sum;
    }
  return out;
}
