// Credible intervals of the bars: the same evidence asked of every posterior draw.

import { floats } from "./model.js";
import { infer, marginal } from "./inference.js";
import { likelihoods } from "./evidence.js";

const LEVEL = 0.9;

/** Bounds of a variable's distribution, or null where the model has no draws. */
export function intervals(app, n) {
  const draws = drawsOf(app.model);
  if (!draws.length || !app.state.possible) return null;
  if (app.drawn?.evidence !== app.evidence) {
    const given = likelihoods(app.model, app.evidence);
    const states = draws.map((draw) => [draw, infer(draw, given)]).filter(([, state]) => state.possible);
    app.drawn = { evidence: app.evidence, states };
  }
  const { states } = app.drawn;
  if (!states.length) return null;
  return bounds(states.map(([draw, state]) => marginal(draw, state, n)));
}

/** The posterior draws as models, which answer what models answer. */
export function drawsOf(model) {
  model.draws ??= (model.doc.draws ?? []).map((plain) => {
    const weights = floats(plain.weights, "draws");
    const rows = floats(plain.factors, "draws");
    let start = 0;
    const factors = model.variables.map(({ size }) =>
      rows.subarray(start * weights.length, (start += size) * weights.length),
    );
    return {
      variables: model.variables,
      index: model.index,
      rank: weights.length,
      weights,
      logWeights: weights.map(Math.log),
      factors,
    };
  });
  return model.draws;
}

/** Lower and upper bound of each cell; draws in which it is undefined are left out. */
export function bounds(tables) {
  const size = tables[0].length;
  const low = new Float64Array(size);
  const high = new Float64Array(size);
  for (let i = 0; i < size; i++) {
    const sorted = Float64Array.from(tables, (table) => table[i]).filter(Number.isFinite).sort();
    low[i] = sorted.length ? quantile(sorted, (1 - LEVEL) / 2) : NaN;
    high[i] = sorted.length ? quantile(sorted, (1 + LEVEL) / 2) : NaN;
  }
  return { low, high };
}

/** At k / (n + 1), linear between, as Python has it: the next draw falls inside as often as is said. */
function quantile(sorted, q) {
  const at = Math.min(Math.max(q * (sorted.length + 1) - 1, 0), sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}
