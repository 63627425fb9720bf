// A set of items that are probably liked all together, as JointRecommender.bundle finds it: the best
// item is added again and again to each of the best single ones.

const STARTS = 8;

/** {items, probability}; `likes` has, for each item, its probability to be liked by class. */
export function greedySet(classes, likes, size) {
  const single = likes.map((like) => score(classes, like));
  const starts = [...likes.keys()].sort((a, b) => single[b] - single[a]).slice(0, STARTS);
  const sets = starts.map((first) => grow(classes, likes, size, first));
  return sets.reduce((best, set) => (set.probability > best.probability ? set : best));
}

function grow(classes, likes, size, first) {
  const items = [first];
  let masses = classes.map((mass, f) => mass * likes[first][f]);
  while (items.length < size) {
    const values = likes.map((like, j) => (items.includes(j) ? -1 : score(masses, like)));
    const top = values.reduce((best, value, j) => (value > values[best] ? j : best), 0);
    items.push(top);
    masses = masses.map((mass, f) => mass * likes[top][f]);
  }
  return { items, probability: masses.reduce((total, mass) => total + mass, 0) };
}

function score(masses, like) {
  return masses.reduce((total, mass, f) => total + mass * like[f], 0);
}
