// Blocks: variables that are tabulated jointly in each class, by groups of their levels; within a group a
// level is independent of the other members. As rejoint.queries.mixture has it.
//
// A block is {members, groups, shape, size, table, shares, ratios, sums}. The table has a row with all
// classes for each combination of groups, the last member fastest; `shares` are those of levels of a member
// in their group. Evidence leaves the table as it is: `ratios` have the `rows` by which it multiplies those
// of groups of a member, and the groups that are still `live`; `sums` are its probability in each class.

/** A block without evidence. */
export function makeBlock(layout, table, factors, rank) {
  const shares = layout.members.map((n, i) => split(factors[n], layout.groups[i], layout.shape[i], rank).shares);
  const sums = new Float64Array(rank).fill(1);
  return { ...layout, table, shares, ratios: layout.members.map(() => null), sums };
}

/** Sums of rows over the groups of levels, and the share of each level in its group. */
function split(rows, group, count, rank) {
  const total = new Float64Array(count * rank);
  group.forEach((g, i) => {
    for (let f = 0; f < rank; f++) total[g * rank + f] += rows[i * rank + f];
  });
  const shares = new Float64Array(rows.length);
  group.forEach((g, i) => {
    for (let f = 0; f < rank; f++) {
      const x = rows[i * rank + f];
      if (x > 0) shares[i * rank + f] = x / total[g * rank + f];
    }
  });
  return { total, shares };
}

/** The block given likelihoods of the levels of a member. */
export function narrow(block, n, likelihood) {
  const i = block.members.indexOf(n);
  const [count, own, rank] = [block.shape[i], block.ratios[i], block.sums.length];
  const { total: rows, shares } = split(scaleRows(block.shares[i], likelihood), block.groups[i], count, rank);
  if (own) for (let at = 0; at < rows.length; at++) rows[at] *= own.rows[at];
  const live = [...Array(count).keys()].filter((g) => rows.subarray(g * rank, (g + 1) * rank).some((x) => x > 0));
  const put = (list, value) => list.map((old, j) => (j === i ? value : old));
  return { ...block, ratios: put(block.ratios, { rows, live }), shares: put(block.shares, shares) };
}

/** Rows times a number for each. */
export function scaleRows(rows, numbers) {
  const rank = rows.length / numbers.length;
  const out = new Float64Array(rows.length);
  numbers.forEach((x, i) => {
    if (x > 0) for (let at = i * rank; at < (i + 1) * rank; at++) out[at] = rows[at] * x;
  });
  return out;
}

/** What evidence leaves of the table: its sum in each class, and those of the groups of each member. */
export function sumUp({ shape, table, ratios, sums: { length: rank } }) {
  const margins = shape.map((count) => new Float64Array(count * rank));
  const ones = new Float64Array(rank).fill(1);
  const add = (i, cell, masses) => {
    const { rows, live } = ratios[i] ?? { rows: null, live: Array(shape[i]).keys() };
    const [margin, ratio, total] = [margins[i], rows ?? ones, new Float64Array(rank)];
    for (const g of live) {
      const [row, from, own] = [g * rank, rows ? g * rank : 0, cell * shape[i] + g];
      const isLast = i + 1 === shape.length;
      const inside = isLast ? table : add(i + 1, own, masses.map((x, f) => x * ratio[from + f]));
      const at = isLast ? own * rank : 0;
      for (let f = 0; f < rank; f++) {
        const x = isLast ? masses[f] * ratio[from + f] * inside[at + f] : inside[f];
        margin[row + f] += x;
        total[f] += x;
      }
    }
    return total;
  };
  return { sums: add(0, 0, ones), margins };
}

/** Sum what evidence leaves of the table to the groups of some members, axes as asked. */
export function project({ members, shape, table, ratios, sums }, asked) {
  const rank = sums.length;
  const steps = members.map(() => 0);
  let size = 1;
  for (const n of [...asked].reverse()) {
    const i = members.indexOf(n);
    steps[i] = size;
    size *= shape[i];
  }
  const out = new Float64Array(size * rank);
  const add = (i, cell, place, masses) => {
    const { rows, live } = ratios[i] ?? { rows: null, live: Array(shape[i]).keys() };
    for (const g of live) {
      const row = rows?.subarray(g * rank, (g + 1) * rank);
      const product = row ? masses.map((x, f) => x * row[f]) : masses;
      const [own, to] = [cell * shape[i] + g, place + g * steps[i]];
      if (i + 1 < shape.length) add(i + 1, own, to, product);
      else for (let f = 0; f < rank; f++) out[to * rank + f] += table[own * rank + f] * product[f];
    }
  };
  add(0, 0, 0, new Float64Array(rank).fill(1));
  return out;
}

/** Joint table of the levels of some members in each class, given the evidence, axes as asked. */
export function tabulate(block, asked) {
  const rank = block.sums.length;
  const axes = asked.map((n) => block.members.indexOf(n));
  const table = (axes.length === 1 && block.margins?.[axes[0]]) || project(block, asked);
  const size = axes.reduce((cells, i) => cells * block.groups[i].length, 1);
  const out = new Float64Array(size * rank);
  let at = 0;
  const fill = (k, cell, masses) => {
    const [group, count, share] = [block.groups[axes[k]], block.shape[axes[k]], block.shares[axes[k]]];
    group.forEach((g, i) => {
      const own = cell * count + g;
      const product = masses.map((x, f) => x * share[i * rank + f]);
      if (k + 1 < axes.length) fill(k + 1, own, product);
      else for (let f = 0; f < rank; f++) out[at++] = table[own * rank + f] * product[f];
    });
  };
  const scale = block.sums.map((x) => (x > 0 ? 1 / x : 0));
  fill(0, 0, scale);
  return out;
}
