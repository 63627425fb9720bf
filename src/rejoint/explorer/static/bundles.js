// A set of items that are probably liked all together, as rejoint.estimators.recommender.greedy_set
// finds it: one item after another from each of the best single ones, then exchanges while they help.

const TIE = 1e-9;
const STARTS = 8;

/** {items, probability}; `likes` has, for each item, its probability to be liked by class. */
export function greedySet(classes, likes, size) {
  const single = likes.map((like) => score(classes, like));
  const starts = [...likes.keys()].sort((a, b) => single[b] - single[a]).slice(0, STARTS);
  const sets = starts.map((first) => grow(classes, likes, size, first, single[first]));
  return sets.reduce((best, set) => (set.probability > best.probability ? set : best));
}

function grow(classes, likes, size, first, single) {
  const found = { items: [first], probability: single };
  for (let start = 1, before = -1; found.probability !== before; start = 0) {
    before = found.probability;
    for (let place = start; place < size; place++) {
      const others = found.items.filter((_, k) => k !== place);
      const masses = others.reduce((parts, j) => parts.map((mass, f) => mass * likes[j][f]), classes);
      const values = likes.map((like, j) => (others.includes(j) ? -1 : score(masses, like)));
      const top = values.reduce((best, value, j) => (value > values[best] ? j : best), 0);
      if (place < found.items.length && values[top] <= found.probability * (1 + TIE)) continue;
      found.items[place] = top;
      found.probability = values[top];
    }
  }
  return found;
}

function score(masses, like) {
  return masses.reduce((total, mass, f) => total + mass * like[f], 0);
}
