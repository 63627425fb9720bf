// The set of items that are most probably liked all together, by branch and bound, with the bound
// of rejoint.estimators.bundles: for r items still to choose and U the product so far,
// sum_f U_f prod q_jf <= sum_j c_j with c_j = (1 / r) sum_f U_f q_jf^r, as a product is at most the
// mean of r-th powers.

const TIE = 1e-9;

/** {items, probability, exact}; `likes` has, for each item, its probability to be liked by class. */
export function bestSet(classes, likes, size, maxNodes = 3_000) {
  const search = { classes, likes, size, best: 0, items: [], nodes: 0, maxNodes, cut: false };
  greedy(search);
  const single = likes.map((like) => score(classes, like, size));
  const order = [...likes.keys()].sort((a, b) => single[b] - single[a]);
  visit(search, order, 0, classes, []);
  return { items: search.items, probability: search.best, exact: !search.cut };
}

function score(masses, like, power) {
  let sum = 0;
  for (let f = 0; f < masses.length; f++) sum += masses[f] * like[f] ** power;
  return sum / power;
}

function times(masses, like) {
  return masses.map((mass, f) => mass * like[f]);
}

/** One item after another, each the best beside those chosen: where the search starts from. */
function greedy(search) {
  let masses = search.classes;
  const items = [];
  while (items.length < search.size) {
    const rest = [...search.likes.keys()].filter((j) => !items.includes(j));
    const worth = rest.map((j) => score(masses, search.likes[j], 1));
    const top = rest[worth.indexOf(worth.reduce((a, b) => Math.max(a, b), -1))];
    items.push(top);
    masses = times(masses, search.likes[top]);
  }
  search.items = items;
  search.best = masses.reduce((a, b) => a + b, 0);
}

/** Sets below a node, items in one order so that each set is met once. */
function visit(search, order, start, masses, chosen) {
  const left = search.size - chosen.length;
  const rest = order.slice(start);
  const scores = rest.map((j) => score(masses, search.likes[j], left));
  if (left === 1) {
    scores.forEach((value, k) => {
      if (value > search.best * (1 + TIE)) {
        search.best = value;
        search.items = [...chosen, rest[k]];
      }
    });
    return;
  }
  const bounds = childBounds(scores, left);
  const children = [...rest.keys()]
    .filter((k) => bounds[k] > search.best * (1 + TIE))
    .sort((a, b) => bounds[b] - bounds[a]);
  for (const k of children) {
    if (bounds[k] <= search.best * (1 + TIE)) break;
    if (search.nodes++ >= search.maxNodes) {
      search.cut = true;
      return;
    }
    visit(search, order, start + k + 1, times(masses, search.likes[rest[k]]), [...chosen, rest[k]]);
  }
}

/** Bound of taking each item and then `left - 1` of those after it. */
function childBounds(scores, left) {
  const out = new Array(scores.length);
  const top = [];
  for (let k = scores.length - 1; k >= 0; k--) {
    out[k] = top.length < left - 1 ? -Infinity : top.reduce((a, b) => a + b, scores[k]);
    top.push(scores[k]);
    top.sort((a, b) => b - a);
    top.length = Math.min(top.length, left - 1);
  }
  return out;
}
