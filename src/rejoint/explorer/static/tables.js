// Flat tables over some variables, the last of which changes fastest.

/** Number of cells of a table. */
export function countCells(variables, axes) {
  return axes.reduce((product, n) => product * variables[n].size, 1);
}

/** Levels of the cell at a place. */
export function levelsAt(variables, axes, at) {
  const out = new Array(axes.length);
  for (let k = axes.length - 1; k >= 0; k--) {
    const { size } = variables[axes[k]];
    out[k] = at % size;
    at = Math.floor(at / size);
  }
  return out;
}

/** A table with its axes in another order. */
export function reorder(variables, table, from, to) {
  if (from.every((n, k) => n === to[k])) return table;
  const out = new Float64Array(table.length);
  const steps = from.map((n) => countCells(variables, to.slice(to.indexOf(n) + 1)));
  table.forEach((x, at) => {
    out[levelsAt(variables, from, at).reduce((place, i, k) => place + i * steps[k], 0)] = x;
  });
  return out;
}

/** P(.. | by) from P(.., by), `by` being the last axes, and P(by): undefined cells are NaN, with a note. */
export function divideColumns(variables, by, values, total) {
  const out = values.map((x, at) =>
    total[at % total.length] === 0 ? NaN : Math.min(x / total[at % total.length], 1),
  );
  const empty = [...total.keys()].filter((at) => total[at] === 0);
  if (!empty.length) return { values: out, notes: [] };
  const first = levelsAt(variables, by, empty[0]).map(
    (i, k) => `${variables[by[k]].name} = ${variables[by[k]].labels[i]}`,
  );
  const more = empty.length > 1 ? ` (and ${(empty.length - 1).toLocaleString("en-US")} more)` : "";
  return {
    values: out,
    notes: [`Undefined, shown as nan, because it is impossible here: ${first.join(", ")}${more}.`],
  };
}
