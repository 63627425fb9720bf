// Credible intervals: the same question asked of every posterior draw. A draw counts by its weight,
// which evidence multiplies by the probability of the evidence under that draw.

import { drawsOf } from "./model.js";
import { infer } from "./inference.js";

const LEVEL = 0.9;

/** The draws given evidence, [{joint, state, weight}]; draws that exclude the evidence are left out. */
export function condition(model, likelihoods) {
  const draws = drawsOf(model).map((joint) => ({ joint, state: infer(joint, likelihoods) }));
  const logs = draws.map(({ joint, state }) => Math.log(joint.share) + state.logProb);
  const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
  const shares = logs.map((log) => (log > -Infinity ? Math.exp(log - top) : 0));
  const total = shares.reduce((a, b) => a + b, 0);
  return draws.map((draw, k) => ({ ...draw, weight: shares[k] / total })).filter(({ weight }) => weight > 0);
}

/** Bounds of each cell of an answer: {low, high, draws, effective}.
 *
 * `weights` has an array for each draw, with a weight for each column of the tables: for one column
 * all that the draw weighs, for a table by some variables its weight given each of their levels.
 * `effective` is the number of equal draws that the bounds are worth, the least over the cells. */
export function bounds(answer, tables, weights, [least, most] = [0, 1]) {
  const columns = weights[0].length;
  const low = new Float64Array(answer.length).fill(NaN);
  const high = new Float64Array(answer.length).fill(NaN);
  const used = new Set();
  let effective = Infinity;
  for (let at = 0; at < answer.length; at++) {
    const found = counted(tables, weights, at, at % columns);
    if (!found.draws.length) continue;
    for (const { k } of found.draws) used.add(k);
    effective = Math.min(effective, found.effective);
    // Moved by the distance of the answer from the mean of the draws, and stretched to the answer
    // where it lies outside.
    const away = answer[at] - found.mean;
    const move = (bound) => Math.min(Math.max(bound + (Number.isFinite(away) ? away : 0), least), most);
    low[at] = Math.min(move(quantile(found, (1 - LEVEL) / 2)), answer[at]);
    high[at] = Math.max(move(quantile(found, (1 + LEVEL) / 2)), answer[at]);
  }
  return { low, high, draws: used.size, effective: used.size ? effective : 0 };
}

/** The draws that count for a cell, by value, their weights summing to one, and what they are worth. */
function counted(tables, weights, at, column) {
  const draws = [];
  let total = 0;
  tables.forEach((table, k) => {
    const weight = weights[k][column];
    if (!(weight > 0 && Number.isFinite(table[at]))) return;
    draws.push({ k, value: table[at], weight });
    total += weight;
  });
  let squares = 0;
  for (const draw of draws) squares += (draw.weight /= total) ** 2;
  const mean = draws.reduce((sum, { value, weight }) => sum + weight * value, 0);
  return { draws: draws.sort((a, b) => a.value - b.value), effective: 1 / squares, mean };
}

/** At (n c + 1/2) / (n + 1) for c the mass below the middle of a draw, linear between, as Python has
 * it. For n equal draws that is k / (n + 1): the next draw then falls inside as often as is said. */
function quantile({ draws, effective }, q) {
  let below = 0;
  let last = null;
  for (const { value, weight } of draws) {
    const place = (effective * (below + weight / 2) + 0.5) / (effective + 1);
    if (place >= q)
      return last ? last.value + ((q - last.place) / (place - last.place)) * (value - last.value) : value;
    below += weight;
    last = { place, value };
  }
  return last.value;
}

/** "90 % credible interval, worth about 23 of 40 draws". */
export function describeBounds(found) {
  if (!found.draws) return `${100 * LEVEL} % interval of count and model together`;
  return `${100 * LEVEL} % credible interval, ${describeWorth(found)}`;
}

/** "worth about 23 of 40 draws", or "of 40 draws" where all count alike. */
export function describeWorth(found) {
  return `${isReduced(found) ? `worth about ${Math.round(found.effective)} ` : ""}of ${found.draws} draws`;
}

/** Whether draws of unequal weights are worth less than their number. */
export function isReduced({ draws, effective }) {
  return effective < draws - 0.5;
}
