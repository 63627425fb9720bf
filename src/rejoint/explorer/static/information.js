// How much one variable tells about another, or about the classes; in bits.

import { conditionalFactor, marginal } from "./inference.js";

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
  const within = state.shares.has(n)
    ? classEntropies(conditionalFactor(joint, state, n), joint.rank)
    : knownEntropies(joint, n);
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
  const { rank } = joint;
  const top = conditionalFactor(joint, state, target);
  const size = joint.variables[target].size;
  // Class masses per level of the target, once for all variables.
  const masses = new Float64Array(top.length);
  for (let at = 0; at < top.length; at++) masses[at] = top[at] * state.classes[at % rank];
  const p = marginal(joint, state, target);
  return joint.variables.map((_, n) =>
    n === target ? 0 : pairInformation(joint, state, n, masses, size, p),
  );
}

function pairInformation(joint, state, n, masses, size, p) {
  const { rank } = joint;
  const factor = conditionalFactor(joint, state, n);
  const q = marginal(joint, state, n);
  let sum = 0;
  for (let i = 0; i < q.length; i++) {
    if (q[i] === 0) continue;
    for (let t = 0; t < size; t++) {
      let both = 0;
      for (let f = 0; f < rank; f++) both += factor[i * rank + f] * masses[t * rank + f];
      if (both > 0) sum += both * Math.log2(both / (p[t] * q[i]));
    }
  }
  return Math.max(sum, 0);
}
