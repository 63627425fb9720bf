// Credible intervals: the same question asked of every posterior draw. A draw counts by its weight,
// which evidence multiplies by the probability of the evidence under that draw.

import { drawsOf } from "./model.js";
import { infer } from "./inference.js";

const LEVEL = 0.9;

/** The draws given evidence, [{joint, state, weight}]; draws that exclude the evidence are left out. */
export function condition(model, likelihoods) {
  const states = drawsOf(model).map((joint) => ({ joint, state: infer(joint, likelihoods) }));
  const logs = states.map(({ joint, state }) => Math.log(joint.share) + state.logProb);
  const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
  const kept = states.filter((_, k) => logs[k] > -Infinity);
  const shares = logs.filter((log) => log > -Infinity).map((log) => Math.exp(log - top));
  const total = shares.reduce((a, b) => a + b, 0);
  return kept.map((found, k) => ({ ...found, weight: shares[k] / total }));
}

/** Bounds of each cell of an answer: {low, high, draws, effective}.
 *
 * `weights` has an array for each draw, with a weight for each column of the tables: for one column
 * all that the draw weighs, for a table by some variables its weight given each of their levels.
 * `effective` says for each column how many equal draws its bounds are worth. */
export function bounds(answer, tables, weights) {
  const columns = weights[0].length;
  const low = new Float64Array(answer.length).fill(NaN);
  const high = new Float64Array(answer.length).fill(NaN);
  const effective = new Float64Array(columns);
  for (let column = 0; column < columns; column++) {
    const found = positive(weights, column);
    effective[column] = found.effective;
    for (let at = column; at < answer.length; at += columns) {
      if (Number.isNaN(answer[at])) continue;
      const pairs = found.draws.map(({ k, weight }) => [tables[k][at], weight]);
      const sorted = pairs.sort(([a], [b]) => a - b);
      // Stretched to the answer where it lies outside: it is nearer to the mean than to the draws.
      low[at] = Math.min(quantile(sorted, found.effective, (1 - LEVEL) / 2), answer[at]);
      high[at] = Math.max(quantile(sorted, found.effective, (1 + LEVEL) / 2), answer[at]);
    }
  }
  return { low, high, draws: tables.length, effective };
}

/** The draws of positive weight in a column, the weights summing to one, and their worth. */
function positive(weights, column) {
  const draws = [];
  let total = 0;
  weights.forEach((row, k) => {
    if (row[column] > 0) draws.push({ k, weight: row[column] });
    total += row[column];
  });
  let squares = 0;
  for (const draw of draws) squares += (draw.weight /= total) ** 2;
  return { draws, effective: draws.length ? 1 / squares : 0 };
}

/** Of values with weights, by rank, linear between, as Python has it; for equal weights at k / (n + 1):
 * the next draw then falls inside as often as is said. */
function quantile(sorted, n, q) {
  let sum = 0;
  let before = null;
  for (const [value, weight] of sorted) {
    const place = (n * (sum + weight / 2) + 0.5) / (n + 1);
    sum += weight;
    if (place >= q) {
      if (before === null) return value;
      return before.value + ((q - before.place) / (place - before.place)) * (value - before.value);
    }
    before = { place, value };
  }
  return before === null ? NaN : before.value;
}

/** "90 % credible interval, worth about 23 of 40 draws". */
export function describeBounds(found) {
  return `${100 * LEVEL} % credible interval, ${describeWorth(found)}`;
}

/** "worth about 23 of 40 draws"; over several columns the least and the most. */
export function describeWorth({ draws, effective }) {
  const [least, most] = [Math.min(...effective), Math.max(...effective)].map(Math.round);
  return `worth about ${least === most ? "" : `${least} to `}${most} of ${draws} draws`;
}
