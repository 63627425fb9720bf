// What a classifier predicts of a target: the average of several models that were trained for it, as
// rejoint.JointClassifier.predict_proba has it. The joint of the page answers everything else.

import { logSum, productTable } from "./inference.js";

/** Probabilities of the labels of a target given single levels of features; null where the evidence is
 * not of this kind, or the models predict another variable. */
export function prediction({ variables, ensemble }, target, likelihoods) {
  if (!ensemble?.targets.includes(target)) return null;
  const levels = new Int32Array(variables.length).fill(-1);
  for (const [n, likelihood] of likelihoods) {
    const left = [...likelihood.keys()].filter((i) => likelihood[i] > 0);
    if (left.length > 1 || ensemble.targets.includes(n)) return null;
    levels[n] = left[0];
  }
  const { members, weights } = ensemble;
  const features = [...variables.keys()].filter((n) => levels[n] >= 0);
  const kind = kindOf(ensemble, levels, features);
  const shares = new Float64Array(variables[target].size);
  members.forEach((member, k) => {
    const classes = leastContradicted(member, features, levels);
    const weight = weights[kind * members.length + k];
    productTable(classes, [member.factors[target]]).forEach((share, i) => (shares[i] += weight * share));
  });
  return shares;
}

/** How many limits are below the share that a row misses of the features that were always there; one
 * more than all of them where none of the `features` is known. */
function kindOf({ alwaysThere, missingLimits }, levels, features) {
  if (!features.length) return missingLimits.length + 1;
  const missing = alwaysThere.filter((n) => levels[n] < 0).length / Math.max(alwaysThere.length, 1);
  return missingLimits.filter((limit) => limit < missing).length;
}

/** Class posterior of a row. Of a row that is impossible, the limit of a vanishing floor under all
 * zeros: only the classes with the fewest zeros count. */
function leastContradicted(joint, features, levels) {
  const { rank, weights, factors } = joint;
  const terms = (f) => [weights[f], ...features.map((n) => factors[n][levels[n] * rank + f])];
  const all = Array.from({ length: rank }, (_, f) => terms(f));
  const zeros = all.map((list) => list.filter((x) => x === 0).length);
  const fewest = Math.min(...zeros);
  const logs = all.map((list, f) =>
    zeros[f] === fewest ? list.reduce((sum, x) => (x > 0 ? sum + Math.log(x) : sum), 0) : -Infinity,
  );
  const sum = logSum(logs);
  return Float64Array.from(logs, (x) => Math.exp(x - sum));
}
