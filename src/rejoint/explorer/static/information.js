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
  const p = marginal(joint, state, target);
  return joint.variables.map((_, n) => {
    if (n === target) return 0;
    const q = marginal(joint, state, n);
    const table = jointTable(joint, state, [target, n]);
    let sum = 0;
    table.forEach((both, at) => {
      const alone = p[(at / q.length) | 0] * q[at % q.length];
      if (both > 0) sum += both * Math.log2(both / alone);
    });
    return Math.max(sum, 0);
  });
}
