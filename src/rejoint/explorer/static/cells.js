// The cells of a record, each given all others.

import { infer, marginal } from "./inference.js";

/** The record as evidence, `given`; by block, or lone variable, its pieces and their logarithm in each class;
 * the finite sum of these, and how many of them are impossible, so that one can be left out. */
export function readCells(joint, codes) {
  const given = new Map();
  const units = new Map();
  const flat = { ...joint, logWeights: new Float64Array(joint.rank) };
  codes.forEach((code, n) => {
    if (code < 0) return;
    given.set(n, Float64Array.from({ length: joint.variables[n].size }, (_, i) => (i === code ? 1 : 0)));
    const unit = joint.unitOf[n];
    units.set(unit, { pieces: (units.get(unit)?.pieces ?? new Map()).set(n, given.get(n)) });
  });
  for (const unit of units.values()) unit.logs = infer(flat, unit.pieces).logs;
  const finite = new Float64Array(joint.rank);
  const zeros = new Int32Array(joint.rank);
  for (const logs of [joint.logWeights, ...[...units.values()].map((unit) => unit.logs)])
    logs.forEach((x, f) => (x === -Infinity ? zeros[f]++ : (finite[f] += x)));
  return { given, units, finite, zeros };
}

/** Distribution of a variable given all cells but its own; null where these are impossible. */
export function cellGivenOthers(joint, { units, finite, zeros }, n) {
  const { pieces, logs } = units.get(joint.unitOf[n]);
  const logWeights = finite.map((x, f) => {
    const own = logs[f] === -Infinity;
    return zeros[f] > Number(own) ? -Infinity : x - (own ? 0 : logs[f]);
  });
  const others = [...pieces].filter(([m]) => m !== n);
  const state = infer({ ...joint, logWeights }, others);
  return state.possible ? marginal(joint, state, n) : null;
}
