// Classes given evidence and what follows for each variable. Everything is in the log domain up
// to the class posterior: with hundreds of pieces of evidence plain products would underflow.
//
// Evidence is a Map from a variable's position to a Float64Array with the likelihood of each level.

/** Posterior of the classes, log probability of the evidence, and what the bars need. */
export function infer(joint, likelihoods) {
  const logs = Float64Array.from(joint.logWeights);
  const shares = new Map();
  for (const [n, likelihood] of likelihoods) {
    const share = classShares(joint, n, likelihood);
    shares.set(n, share);
    for (let f = 0; f < logs.length; f++) logs[f] += share.logScale + Math.log(share.sums[f]);
  }
  const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
  const classes = new Float64Array(logs.length);
  if (top === -Infinity) return { possible: false, logProb: -Infinity, logs, classes, shares };
  let total = 0;
  for (let f = 0; f < logs.length; f++) total += classes[f] = Math.exp(logs[f] - top);
  for (let f = 0; f < logs.length; f++) classes[f] /= total;
  return { possible: true, logProb: top + Math.log(total), logs, classes, shares };
}

/** Per class, the probability of the evidence on one variable, in units of its largest likelihood. */
function classShares(joint, n, likelihood) {
  const scale = likelihood.reduce((a, b) => Math.max(a, b), 0);
  const factor = joint.factors[n];
  const sums = new Float64Array(joint.rank);
  const scaled = likelihood.map((value) => (scale > 0 ? value / scale : 0));
  for (let i = 0, at = 0; i < scaled.length; i++, at += joint.rank) {
    if (scaled[i] === 0) continue;
    for (let f = 0; f < sums.length; f++) sums[f] += scaled[i] * factor[at + f];
  }
  return { scaled, sums, logScale: Math.log(scale) };
}

/** Distribution of one variable given all evidence, its own included. */
export function marginal(joint, state, n) {
  const { rank } = joint;
  const factor = joint.factors[n];
  const share = state.shares.get(n);
  const mix = share ? perShare(state.classes, share.sums) : state.classes;
  const out = new Float64Array(joint.variables[n].size);
  for (let i = 0, at = 0; i < out.length; i++, at += rank) {
    if (share && share.scaled[i] === 0) continue;
    let sum = 0;
    for (let f = 0; f < rank; f++) sum += factor[at + f] * mix[f];
    out[i] = share ? share.scaled[i] * sum : sum;
  }
  return out;
}

function perShare(classes, sums) {
  return classes.map((value, f) => (value > 0 ? value / sums[f] : 0));
}

/** Distributions of the levels in each class given the evidence on the variable itself. */
export function conditionalFactor(joint, state, n) {
  const share = state.shares.get(n);
  if (!share) return joint.factors[n];
  const { rank } = joint;
  return joint.factors[n].map((value, at) => {
    const total = share.sums[at % rank];
    return total > 0 ? (value * share.scaled[(at / rank) | 0]) / total : 0;
  });
}

/** Joint table of some variables given the evidence: flat, the last variable changes fastest. */
export function jointTable(joint, state, positions) {
  return productTable(
    state.classes,
    positions.map((n) => conditionalFactor(joint, state, n)),
  );
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
  const names = [...likelihoods.keys()].sort((a, b) => a - b);
  const alive = names.map((n) => classShares(joint, n, likelihoods.get(n)).sums.map((x) => (x > 0 ? 1 : 0)));
  const after = [new Float64Array(joint.rank).fill(1)];
  for (const ok of [...alive].reverse()) after.push(after.at(-1).map((x, f) => x * ok[f]));
  let possible = joint.weights.map((w) => (w > 0 ? 1 : 0));
  const kept = [];
  names.forEach((n, k) => {
    // Left out if what was kept before and all that comes after contradict without it.
    if (possible.some((x, f) => x && after[names.length - 1 - k][f])) {
      kept.push(n);
      possible = possible.map((x, f) => x * alive[k][f]);
    }
  });
  return kept;
}

export function logSum(logs) {
  const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
  if (top === -Infinity) return top;
  return top + Math.log(logs.reduce((sum, x) => sum + Math.exp(x - top), 0));
}
