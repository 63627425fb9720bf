// What a classifier says of its targets: the average of several models that were trained to predict
// them, as rejoint.pmf.label_ensemble and target_model have it. It takes single levels as evidence; the
// joint answers all other questions.

import { countCells, divideColumns, levelsAt } from "./tables.js";
import { logSum, productTable } from "./inference.js";

/** Whether evidence leaves one level, or says nothing as all levels are as likely. */
export function isLevelOrNothing(likelihood) {
  return onlyLevel(likelihood) >= 0 || (likelihood[0] > 0 && likelihood.every((x) => x === likelihood[0]));
}

/** The one level that evidence leaves, or -1. */
function onlyLevel(likelihood) {
  const found = [...likelihood.keys()].filter((i) => likelihood[i] > 0);
  return found.length === 1 ? found[0] : -1;
}

/** Whether the ensemble says how a variable is distributed given evidence. */
export function predicts({ ensemble }, n, likelihoods) {
  return Boolean(ensemble?.targets.includes(n)) && [...likelihoods.values()].every(isLevelOrNothing);
}

/** In words, who says how a target is distributed given the evidence; nothing for other variables. */
export function describeSource({ ensemble }, n, likelihoods) {
  if (!ensemble?.targets.includes(n)) return "";
  if (!predicts({ ensemble }, n, likelihoods))
    return "The joint model answers: some of the evidence is not a single level.";
  const { length } = ensemble.members;
  return `An average of ${length} ${length === 1 ? "model" : "models"} predicts this; the joint model answers everything else.`;
}

/** Numbers of a table, for the rows of features that it takes, that are worked out at once. */
export function countNumbers({ variables, ensemble }, bound) {
  const by = bound.by.filter((n) => !ensemble.targets.includes(n));
  const labels = countCells(variables, targetsOf(ensemble, bound));
  return countCells(variables, by) * Math.max(variables.length - ensemble.targets.length, labels);
}

/** Targets that a question has to do with: asked for, tabulated by, or given. */
function targetsOf({ targets }, { asked, events, by, evidence }) {
  const given = (n) => evidence.has(n) && onlyLevel(evidence.get(n)) >= 0;
  return targets.filter((n) => asked.includes(n) || by.includes(n) || events.has(n) || given(n));
}

/** P(asked, events | evidence, by) as {axes, values, notes}; null where targets that are given have
 * probability zero. `bound` has positions `asked` and `by`, likelihoods `events` and `evidence`. */
export function labelTable(model, bound) {
  const { variables, ensemble } = model;
  const levels = new Int32Array(variables.length).fill(-1);
  for (const [n, likelihood] of bound.evidence) levels[n] = onlyLevel(likelihood);
  const labels = targetsOf(ensemble, bound);
  const fixed = labels.filter((n) => levels[n] >= 0).map((n) => [n, levels[n]]);
  const by = bound.by.filter((n) => !ensemble.targets.includes(n));
  const axes = [...bound.asked, ...bound.by];
  const values = new Float64Array(countCells(variables, axes));
  const total = new Float64Array(countCells(variables, bound.by));
  const place = (names) => names.reduce((at, n) => at * variables[n].size + levels[n], 0);
  const put = (names, at) => levelsAt(variables, names, at).forEach((i, k) => (levels[names[k]] = i));
  for (let column = 0; column < countCells(variables, by); column++) {
    put(by, column);
    shares(variables, ensemble, levels, labels).forEach((share, cell) => {
      put(labels, cell);
      if (fixed.some(([n, level]) => levels[n] !== level)) return;
      total[place(bound.by)] += share;
      for (const [n, meets] of bound.events) share *= meets[levels[n]];
      values[place(axes)] += share;
    });
  }
  // Without targets among what is given the shares sum to one as they are.
  if (!fixed.length && by.length === bound.by.length)
    return { axes, values: values.map((x) => Math.min(x, 1)), notes: [] };
  if (!total.some((x) => x > 0)) return null;
  return { axes, ...divideColumns(variables, bound.by, values, total) };
}

const ALL_ORDERS = 8; // features up to which a contribution is the mean over all orders
const BEGINNINGS = 16; // where the orders begin that count beyond
const LEAST_ODDS = 1e-300;

/** What each feature that is given contributes to the log-odds of a label, in log-odds: the mean, over
 * orders in which the features become known, of how much they rise when it does. Returns {parts (a Map
 * by position), logOdds, baseline}; the parts sum to logOdds - baseline. As rejoint.pmf.label_explanation
 * has it. */
export function contributions({ variables, ensemble }, target, label, likelihoods) {
  const row = [...likelihoods].filter(([n]) => !ensemble.targets.includes(n));
  const given = row.map(([n, likelihood]) => [n, onlyLevel(likelihood)]).filter(([, level]) => level >= 0);
  given.sort(([a], [b]) => a - b);
  const seen = new Map();
  const logOdds = (known) => {
    const key = known.join();
    if (!seen.has(key)) {
      const levels = new Int32Array(variables.length).fill(-1);
      given.forEach(([n, level], k) => known[k] && (levels[n] = level));
      const found = shares(variables, ensemble, levels, [target]);
      const others = found.reduce((sum, x, i) => (i === label ? sum : sum + x), 0);
      seen.set(key, Math.log(Math.max(found[label], LEAST_ODDS) / Math.max(others, LEAST_ODDS)));
    }
    return seen.get(key);
  };
  const none = given.map(() => 0);
  const parts = given.length <= ALL_ORDERS ? overSubsets(none, logOdds) : overOrders(none, logOdds);
  return {
    parts: new Map(given.map(([n], k) => [n, parts[k]])),
    logOdds: logOdds(none.map(() => 1)),
    baseline: logOdds(none),
  };
}

/** Means over all orders, by the subsets that are known before each feature. */
function overSubsets(none, value) {
  const count = none.length;
  const factorial = (k) => (k > 1 ? k * factorial(k - 1) : 1);
  return none.map((_, k) => {
    let sum = 0;
    for (let subset = 0; subset < 2 ** count; subset++) {
      if ((subset >> k) & 1) continue;
      const known = none.map((_, i) => (subset >> i) & 1);
      const size = known.reduce((a, b) => a + b, 0);
      const share = (factorial(size) * factorial(count - 1 - size)) / factorial(count);
      sum += share * (value(known.map((x, i) => (i === k ? 1 : x))) - value(known));
    }
    return sum;
  });
}

/** Means over the order of the columns begun at evenly spaced ones, and the reverse of each. */
function overOrders(none, value) {
  const count = none.length;
  const turned = Array.from({ length: BEGINNINGS }, (_, k) => {
    const start = Math.floor((k * count) / BEGINNINGS);
    return none.map((_, i) => (start + i) % count);
  });
  const orders = [...turned, ...turned.map((order) => [...order].reverse())];
  const sums = [...none];
  for (const order of orders) {
    const known = [...none];
    for (const k of order) {
      const before = value(known);
      known[k] = 1;
      sums[k] += (value(known) - before) / orders.length;
    }
  }
  return sums;
}

/** Averaged probabilities of all combinations of some labels, given the levels of the features. */
function shares(variables, ensemble, levels, labels) {
  const { members, weights, targets } = ensemble;
  const features = [...variables.keys()].filter((n) => !targets.includes(n) && levels[n] >= 0);
  const kind = kindOf(ensemble, levels, features);
  const out = new Float64Array(countCells(variables, labels));
  members.forEach((member, k) => {
    const weight = members.length === 1 ? 1 : weights[kind * members.length + k];
    if (weight === 0) return;
    const classes = leastContradicted(member, features, levels);
    productTable(
      classes,
      labels.map((n) => member.factors[n]),
    ).forEach((share, at) => (out[at] += weight * share));
  });
  return out;
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
