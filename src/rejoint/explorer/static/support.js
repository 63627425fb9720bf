// How many records show the evidence. Without records in the page, what the model expects of the
// number of records it was fitted to; without that number, nothing is claimed.

import { integers } from "./model.js";
import { likelihood } from "./evidence.js";

export const FEW = 30;

/** Records of the page: codes by variable (columns), how many times each occurs. */
export function readRecords(model) {
  const plain = model.doc.records;
  if (!plain) return null;
  const size = plain.rows;
  const codes = integers(plain.codes);
  const columns = model.variables.map((_, n) => codes.subarray(n * size, (n + 1) * size));
  return { size, total: plain.total, columns, counts: plain.counts ?? null, sampled: Boolean(plain.sampled) };
}

export function supportOf(model, evidence, state) {
  model.records ??= readRecords(model);
  const hard = [...evidence].filter(([, piece]) => piece.kind !== "soft");
  if (model.records) return { ...counted(model, hard), soft: evidence.size - hard.length };
  const total = model.doc.record_count ?? null;
  if (total === null) return null;
  return { number: total * Math.exp(state.logProb), total, expected: true, soft: 0 };
}

/** Records whose cells show every hard piece; a missing cell shows nothing. */
function counted(model, hard) {
  const { size, total, columns, counts, sampled } = model.records;
  const tests = hard.map(([n, piece]) => [columns[n], likelihood(piece, model.variables[n].size)]);
  let number = 0;
  let rows = 0;
  for (let row = 0; row < size; row++) {
    const weight = counts ? counts[row] : 1;
    rows += weight;
    if (tests.every(([column, allowed]) => column[row] >= 0 && allowed[column[row]] > 0)) number += weight;
  }
  return { number: sampled && rows > 0 ? (number * total) / rows : number, total, expected: false, sampled };
}
