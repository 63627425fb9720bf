// A new user of a recommender, placed by some ratings, step by step as JointRecommender.recommend does it
// (rejoint.estimators.recommender). Points are arrays of numbers whose first one is a bias; in each kept
// sweep of the fit, a class, users and items have others.

import { floats } from "./model.js";

const GRADES = [0.3, 0.7, 1];
const LARGEST_LOGIT = 60;
const LEAST_USE = 1e-3;
const TILT = { near: 1e-3, steps: 30, spread: 2e-3, largest: 1e6 };

/** The recommender of a document: arrays cut into sweeps, and the levels that count as fair and good. */
export function readRecommender(plain, values) {
  const part = (name) => floats(plain.arrays[name], name);
  const rows = (name, size) => {
    const numbers = part(name);
    return Array.from({ length: numbers.length / size }, (_, k) => numbers.subarray(k * size, (k + 1) * size));
  };
  const sweeps = (name) => {
    const precision = rows(`${name}_precision`, plain[`${name}_numbers`]);
    const all = rows(`${name}_items`, plain[`${name}_numbers`]);
    const size = all.length / precision.length;
    return precision.map((row, m) => ({ precision: row, items: all.slice(m * size, (m + 1) * size) }));
  };
  const [low, high] = [values[0], values.at(-1)];
  return {
    ...plain,
    choices: sweeps("choice"),
    offsets: rows("choice_offsets", 2),
    ratings: sweeps("rating"),
    variance: rows("rating_variance", 2),
    values: part("rating_values"),
    use: part("rating_use"),
    fair: values.findIndex((value) => value >= (low + high) / 2 - 1e-9),
    good: values.findIndex((value) => value >= low + 0.7 * (high - low) - 1e-9),
  };
}

/** What is expected of every item given levels by item: `expected` and `like`, and for each class the
 * probabilities `chosen` and `liked` of each item. */
export function answerUser(model, levels) {
  const places = placeChoices(model, levels);
  const user = placeRatings(model, levels);
  const chosen = model.choices.map(({ items }, m) =>
    items.map((item) => shareChosen(dot(places[m], item), model.offsets[m])),
  );
  const [low, high] = [model.values[0], model.values.at(-1)];
  const margin = 0.01 * (high - low);
  const count = model.ratings.length;
  const expected = model.ratings[0].items.map(() => 0);
  const liked = model.ratings.map(({ items }, k) =>
    items.map((item, i) => {
      const mean = Math.min(Math.max(dot(user.points[k], item), low + margin), high - margin);
      expected[i] += mean / count;
      return shareLiked(mean, user, model.values, model.good);
    }),
  );
  const perClass = liked.map((_, k) => chosen[k % chosen.length]);
  const mean = (parts, i) => sum(parts.map((part) => part[i])) / count;
  return {
    expected: expected.map((value) => model.center + model.spread * value),
    like: expected.map((_, i) => mean(liked, i)),
    choice: expected.map((_, i) => mean(perClass, i)),
    chosen: perClass,
    liked,
  };
}

/** Newton steps to the most probable place in each sweep of choices, each from the one before. */
function placeChoices(model, levels) {
  const grades = new Map([...levels].map(([n, i]) => [n, GRADES[(i >= model.fair) + (i >= model.good)]]));
  const [first, later] = model.policy.place_steps;
  const point = new Float64Array(model.choice_numbers);
  return model.choices.map(({ precision, items }, m) => {
    for (let step = 0; levels.size && step < (m ? later : first); step++) {
      const { slope, bend } = normalEquations(precision, point);
      items.forEach((item, n) => {
        const [mean, variance] = gradeMoments(dot(point, item), model.offsets[m]);
        accumulate(slope, bend, item, (grades.get(n) ?? 0) - mean, variance);
      });
      const move = solve(bend, slope);
      const longest = move.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-30);
      const scale = Math.min(1, model.policy.longest_step / longest);
      move.forEach((x, j) => (point[j] += scale * x));
    }
    return point.slice();
  });
}

/** Points in each sweep of ratings, variance of the ratings around them, and logs of the use of levels. */
function placeRatings(model, levels) {
  const { ratings, variance, values, policy } = model;
  const [first, later] = policy.place_steps;
  const rated = [...levels].map(([n, i]) => [n, values[i]]);
  let spread = variance[0][0];
  const spreads = [];
  const points = ratings.map(({ precision, items }, k) => {
    let point = new Float64Array(model.rating_numbers);
    for (let step = 0; step < (k ? later : first); step++) {
      const { slope, bend } = normalEquations(precision, new Float64Array(point.length));
      for (const [n, value] of rated)
        accumulate(slope, bend, items[n], (value - items[n][0]) / spread, 1 / spread);
      point = solve(bend, slope);
      const squares = rated.map(([n, value]) => (value - dot(point, items[n])) ** 2);
      const prior = policy.variance_ratings;
      spread = (sum(squares) + prior * variance[k][0]) / (rated.length + prior);
    }
    spreads.push(spread);
    return point;
  });
  const around = sum(spreads) / points.length + sum(variance.map((row) => row[1])) / points.length;
  const given = new Float64Array(values.length);
  const normal = new Float64Array(values.length);
  for (const [n, i] of levels) {
    const mean = sum(points.map((point, k) => dot(point, ratings[k].items[n]))) / points.length;
    given[i] += 1;
    softmax(values.map((value) => (-0.5 * (value - mean) ** 2) / around)).forEach((p, v) => (normal[v] += p));
  }
  const total = sum(normal);
  const base = values.map((value, v) => {
    const weight = policy.use_ratings * Math.max(total > 0 ? normal[v] / Math.max(total, 1e-12) : 1, LEAST_USE);
    const use = (given[v] + weight * model.use[v]) / (normal[v] + weight);
    return Math.log(use) - (0.5 * value * value) / around;
  });
  return { points, around, base };
}

/** Probability of a level of `good` at least, where levels have a given mean: their shares are normal
 * densities times the use of levels, tilted to that mean by Newton's method. */
function shareLiked(target, { base, around }, values, good) {
  let [tilt, low, high] = [target / around, -TILT.largest, TILT.largest];
  for (let step = 0; ; step++) {
    let [total, first, second, liked, top] = [0, 0, 0, 0, -Infinity];
    for (let v = 0; v < values.length; v++) top = Math.max(top, base[v] + tilt * values[v]);
    for (let v = 0; v < values.length; v++) {
      const share = Math.exp(base[v] + tilt * values[v] - top);
      total += share;
      first += share * values[v];
      second += share * values[v] ** 2;
      if (v >= good) liked += share;
    }
    const off = target - first / total;
    if (Math.abs(off) < TILT.near || step === TILT.steps) return liked / total;
    const spread = Math.max(second / total - (first / total) ** 2, TILT.spread);
    const next = tilt + Math.min(Math.max(off / spread, -1 / around), 1 / around);
    if (off > 0) low = tilt;
    else high = tilt;
    tilt = next > low && next < high ? next : 0.5 * (low + high);
  }
}

/** Mean and variance of the grade of a choice at a logit. */
function gradeMoments(logit, offsets) {
  const odds = gradeOdds(logit, offsets);
  const total = 1 + sum(odds);
  const mean = sum(odds.map((odd, k) => GRADES[k] * odd)) / total;
  const spread = sum(odds.map((odd, k) => (GRADES[k] - mean) ** 2 * odd));
  return [mean, (mean * mean + spread) / total];
}

function shareChosen(logit, offsets) {
  const odds = sum(gradeOdds(logit, offsets));
  return odds / (1 + odds);
}

function gradeOdds(logit, [low, fair]) {
  const x = Math.min(Math.max(logit, -LARGEST_LOGIT), LARGEST_LOGIT);
  return [low * Math.exp(GRADES[0] * x), fair * Math.exp(GRADES[1] * x), Math.exp(x)];
}

/** Sum of the biases of user and item, and of the products of their traits. */
function dot(user, item) {
  let total = user[0] + item[0];
  for (let j = 1; j < user.length; j++) total += user[j] * item[j];
  return total;
}

/** Slope and curvature of a normal prior around zero at a point. */
function normalEquations(precision, point) {
  const slope = precision.map((p, j) => -p * point[j]);
  const bend = Array.from(precision, (p, j) => precision.map((_, k) => (j === k ? p : 0)));
  return { slope, bend };
}

/** Add an item, its bias replaced by one, to the slope and the lower half of the curvature. */
function accumulate(slope, bend, item, off, weight) {
  for (let j = 0; j < slope.length; j++) {
    const x = j ? item[j] : 1;
    slope[j] += off * x;
    const row = bend[j];
    for (let k = 0; k <= j; k++) row[k] += weight * x * (k ? item[k] : 1);
  }
}

/** Solve a positive definite system by Cholesky's method; `matrix` has its lower half overwritten. */
function solve(matrix, vector) {
  const out = Float64Array.from(vector);
  for (let j = 0; j < out.length; j++) {
    for (let i = j; i < out.length; i++) {
      for (let k = 0; k < j; k++) matrix[i][j] -= matrix[i][k] * matrix[j][k];
      matrix[i][j] = i === j ? Math.sqrt(matrix[j][j]) : matrix[i][j] / matrix[j][j];
    }
    for (let k = 0; k < j; k++) out[j] -= matrix[j][k] * out[k];
    out[j] /= matrix[j][j];
  }
  for (let j = out.length - 1; j >= 0; j--) {
    for (let k = j + 1; k < out.length; k++) out[j] -= matrix[k][j] * out[k];
    out[j] /= matrix[j][j];
  }
  return out;
}

function softmax(logs) {
  const top = logs.reduce((a, b) => Math.max(a, b));
  const shares = logs.map((x) => Math.exp(x - top));
  const total = sum(shares);
  return shares.map((x) => x / total);
}

function sum(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}
