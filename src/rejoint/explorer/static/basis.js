// What the answers of a model from tables rest on: published, implied, identified or open. The page has
// the sets of variables that are published together, and ranges over all joints with the tables for
// evidence on one level; a page that is served asks rejoint for the ranges of other evidence.

import { infer, marginal } from "./inference.js";
import { percent, plural } from "./format.js";
import { post } from "./post.js";

const ONE_VALUE = 1e-6; // width of a range below which every joint gives the same
const WAIT = 250; // ms without new evidence before ranges are asked for

/** The four marks, and what each means. */
export const MARKS = [
  ["published", "Published", "one of the given tables holds the variable and all evidence"],
  ["implied", "Implied", "every joint with these tables gives it"],
  ["identified", "Identified", "every joint of this rank with these tables gives it; others need not"],
  ["open", "Open", "joints with these tables differ: the line is what they give, where it is known"],
];

/** Evidence as text; for a single level as Python has it. */
export function evidenceKey(likelihoods) {
  const pieces = [...likelihoods].sort(([a], [b]) => a - b);
  return pieces
    .map(([n, found]) => {
      const levels = [...found.keys()].filter((i) => found[i] > 0);
      return levels.length === 1 ? `${n}=${levels[0]}` : `${n}~${[...found].join(",")}`;
    })
    .join("&");
}

/** Whether one published table holds all of some variables. */
function isPublished(tables, used) {
  return tables.published.some((subset) => used.every((n) => subset.includes(n)));
}

/** What the bars of a variable rest on given evidence: {name, levels, range, text}; null without tables.
 *
 * `levels` has the mark of each level, `range` the ends of each level where they are known. */
export function basisOf(model, n, likelihoods) {
  const { tables } = model.doc;
  if (!tables) return null;
  const { size } = model.variables[n];
  const own = likelihoods.get(n);
  const all = (name) => Array.from({ length: size }, () => name);
  if (own && [...own].filter((x) => x > 0).length === 1)
    return { name: "given", levels: all("given"), range: null, text: "" };
  const used = [...new Set([n, ...likelihoods.keys()])];
  if (isPublished(tables, used))
    return {
      name: "published",
      levels: all("published"),
      range: null,
      text: describeBasis(model, used, "published"),
    };
  const range = rangeOf(model, n, likelihoods);
  const rest = tables.identified ? "identified" : "open";
  const settled = range ?? settledBy(model, n, likelihoods);
  const levels = all(rest).map((name, i) =>
    settled.high[i] - settled.low[i] < ONE_VALUE ? "implied" : name,
  );
  const name = levels.every((level) => level === "implied") ? "implied" : rest;
  return { name, levels, range, text: describeBasis(model, used, name, range) };
}

/** Ranges of the levels of a variable: of the page, or as rejoint has answered; null if not known. */
function rangeOf(model, n, likelihoods) {
  const key = evidenceKey(likelihoods);
  const found = model.doc.tables.ranges[key] ?? model.askedRanges?.get(key);
  return found?.[n] ?? null;
}

/** Ranges that parts of the evidence settle: what is impossible or certain given one of its pieces by
 * the tables stays so given all of it. */
function settledBy(model, n, likelihoods) {
  const { size } = model.variables[n];
  const low = new Array(size).fill(0);
  const high = new Array(size).fill(1);
  for (const [m, found] of likelihoods) {
    if (m === n || [...found].filter((x) => x > 0).length !== 1) continue;
    const piece = new Map([[m, found]]);
    const range = isPublished(model.doc.tables, [n, m]) ? valuesGiven(model, n, piece) : rangeOf(model, n, piece);
    if (!range) continue;
    for (let i = 0; i < size; i++) {
      if (range.high[i] < ONE_VALUE) high[i] = 0;
      if (range.low[i] > 1 - ONE_VALUE) low[i] = 1;
    }
  }
  return { low, high };
}

function valuesGiven(model, n, piece) {
  const state = infer(model.mixture, piece);
  if (!state.possible) return null;
  const values = marginal(model.mixture, state, n);
  return { low: values, high: values };
}

/** The basis of the probability of one level, {name, range, text}. */
export function basisOfLevel(model, n, level, likelihoods) {
  const found = basisOf(model, n, likelihoods);
  if (!found || found.name === "given") return null;
  const { low, high, sharp } = found.range ?? {};
  const range = low ? { low: [low[level]], high: [high[level]], sharp } : null;
  const used = [...new Set([n, ...likelihoods.keys()])];
  const name = found.levels[level];
  return { name, range, text: describeBasis(model, used, name, range) };
}

/** What an answer about some variables rests on, in a sentence. */
export function describeBasis(model, used, name, range = null) {
  const { tables } = model.doc;
  const note = tables.note && range ? ` ${tables.note}` : "";
  if (name === "published") {
    const subset = tables.published.find((each) => used.every((n) => each.includes(n)));
    return `published: in the table of ${list(model, subset)}`;
  }
  if (name === "implied") return `implied: every joint with these tables gives it.${note}`;
  const drawn = range ? `; ${describeReach(range)}` : "; its range is not computed here";
  if (name === "identified")
    return `identified at rank ${tables.rank}: ${tables.identified.replace(/\.$/, "")}${drawn}.${note}`;
  return `open: ${describeHole(model, used)}${drawn}.${note}`;
}

/** The basis of an answer of which no range is known. */
export function basisOfAnswer(model, used) {
  const { tables } = model.doc;
  if (!tables || !used.length) return null;
  const rest = tables.identified ? "identified" : "open";
  const name = isPublished(tables, used) ? "published" : rest;
  return { name, text: describeBasis(model, used, name) };
}

function describeReach({ low, high, sharp }) {
  if (low.length > 1)
    return sharp
      ? "the lines are what any joint with these tables gives"
      : "no joint with these tables gives a number outside the lines";
  const ends = `${percent(low[0])} to ${percent(high[0])}`;
  return sharp
    ? `any joint with these tables gives ${ends}`
    : `no joint with these tables gives a number outside ${ends}`;
}

/** Why the tables do not give the answer. */
function describeHole(model, used) {
  const { published } = model.doc.tables;
  const sorted = [...used].sort((a, b) => a - b);
  const apart = sorted.flatMap((a, k) =>
    sorted
      .slice(k + 1)
      .filter((b) => !published.some((subset) => subset.includes(a) && subset.includes(b)))
      .map((b) => [a, b]),
  );
  if (apart.length && sorted.length > 2) {
    const pairs = apart.slice(0, 2).map((pair) => list(model, pair));
    const more = apart.length > 2 ? ` (and ${plural(apart.length - 2, "more pair")})` : "";
    return `no table holds ${pairs.join(", or ")}${pairs.length > 1 ? "," : ""} together${more}`;
  }
  if (sorted.length === 1) return `no table holds all of ${list(model, sorted)}`;
  return `no table holds ${list(model, sorted)} together`;
}

function list(model, positions) {
  const names = positions.map((n) => model.variables[n].name);
  return [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" and ");
}

let timer = 0;

/** Ask the rejoint that serves the page for ranges that the page does not have; `done` is called then. */
export function askRanges(model, likelihoods, done) {
  const { doc } = model;
  clearTimeout(timer);
  if (!doc.tables || !doc.can_bound) return;
  model.askedRanges ??= new Map();
  const key = evidenceKey(likelihoods);
  if (doc.tables.ranges[key] || model.askedRanges.has(key)) return;
  timer = setTimeout(async () => {
    const found = await post(
      "bounds",
      [...likelihoods].map(([n, found]) => [n, [...found]]),
    );
    if (!found) return; // the page has the ranges that it came with
    model.askedRanges.set(key, found);
    done();
  }, WAIT);
}
