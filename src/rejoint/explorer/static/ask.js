// Questions in the query language, answered by the model in the page.

import { asItem } from "./evidence.js";
import { basisOf, basisOfAnswer, basisOfLevel } from "./basis.js";
import { bounds, condition } from "./intervals.js";
import { contradiction, infer, jointTable, levelsOf, partsOf } from "./inference.js";
import { drawsOf } from "./model.js";
import { countCells, divideColumns, levelsAt } from "./tables.js";
import { formatNumber } from "./format.js";
import { itemText, parse, QueryError, queryText } from "./grammar.js";
import { advise, Levels } from "./levels.js";
import { mostProbable } from "./modes.js";
import { nameText, quote } from "./words.js";

const MAX_CELLS = 2_000_000; // a page keeps less at a time than Python does
const MOST_BOUNDED = 4_000_000; // cells of all draws together
const UNLIKELY = Math.log(1e-6);
const MOST_GAPS = 2; // notes on tables that differ from the records
const SOLVERS = {
  P: probability,
  E: expectation,
  argmax: mode,
  sample: records,
  H: information,
  MI: information,
};

/** {query, headline, kind, value, axes, evidence, interval, notes, ...}; errors are QueryErrors with a place.
 *
 * `evidence` is added right of the bar, but for the variables that the question names itself: `own` has
 * the likelihoods that the question gives, `unused` the positions of the evidence that it overrules. */
export function ask(model, text, evidence = new Map()) {
  const bound = bind(model, text, evidence);
  const state = infer(model.mixture, bound.evidence);
  const { interval = null, ...answer } = askJoint(model, bound, state);
  return {
    query: queryText(bound.query),
    headline: bound.headline,
    axes: [],
    evidence: bound.evidence.size ? Math.min(Math.exp(state.logProb), 1) : 1,
    own: bound.own,
    unused: bound.unused,
    ...answer,
    interval,
    basis: restsOn(model, bound),
    notes: [...bound.notes, ...unlikely(bound, state), ...answer.notes],
  };
}

function askJoint(model, bound, state) {
  if (!state.possible) throw new QueryError(impossible(model, bound), bound.text, bound.query.at);
  const answer = { notes: [], ...SOLVERS[bound.query.verb](model.mixture, bound, state) };
  const { interval, notes } = intervalOf(model, bound, answer);
  return { ...answer, interval, notes: [...gapNotes(model, bound), ...answer.notes, ...notes] };
}

/** Positions of all variables that a question names. */
function namedIn({ asked, against, by, events, evidence }) {
  return [...new Set([...asked, ...against, ...by, ...events.keys(), ...evidence.keys()])];
}

/** What an answer rests on, where the model is from tables: {name, text}, for the distribution of one
 * variable with `range`; else null. */
function restsOn(model, bound) {
  const { asked, by, events, evidence, query } = bound;
  if (query.verb === "P" && asked.length === 1 && !by.length && !events.size)
    return basisOf(model, asked[0], evidence);
  if (query.verb === "P" && !asked.length && !by.length && events.size === 1) {
    const [[n, meets]] = events;
    const levels = [...meets.keys()].filter((i) => meets[i] > 0);
    if (levels.length === 1) return basisOfLevel(model, n, levels[0], evidence);
  }
  const all = query.verb === "sample" || query.verb === "argmax";
  const used = all && !asked.length ? [...model.variables.keys()] : namedIn(bound);
  return basisOfAnswer(model, used);
}

/** Tables of the variables of a question in which the records differ from the model. */
function gapNotes({ variables, doc }, bound) {
  const names = new Set(namedIn(bound).map((n) => variables[n].name));
  return (doc?.gaps ?? [])
    .filter((gap) => gap.names.every((name) => names.has(name)))
    .slice(0, MOST_GAPS)
    .map((gap) => gap.text);
}

/** Credible bounds of an answer: the same question asked of every posterior draw. In a table by some
 * variables a draw weighs in each column as if the levels of that column were given. */
function intervalOf(model, bound, { kind, value }) {
  const without = (...notes) => ({ interval: null, notes });
  if (kind === "mode" || kind === "records" || !drawsOf(model).length) return without();
  const cells = countCells(model.variables, [...bound.asked, ...bound.against, ...bound.by]);
  if (cells * drawsOf(model).length > MOST_BOUNDED)
    return without("No credible intervals, because the table is large: ask for fewer variables.");
  const draws = condition(model, bound.evidence);
  if (!draws.length)
    return without("No credible interval: every posterior draw excludes the evidence.");
  const numbers = (found) => (typeof found === "number" ? [found] : found);
  const tables = draws.map(({ joint, state }) =>
    numbers(SOLVERS[bound.query.verb](joint, bound, state).value),
  );
  const byColumn = kind !== "entropy" && kind !== "information";
  const weights = draws.map(({ joint, state, weight }) =>
    byColumn ? columnTotals(joint, bound, state).map((total) => weight * total) : [weight],
  );
  return { interval: bounds(numbers(value), tables, weights, limitsOf(model, bound)), notes: [] };
}

/** What no answer to a question is below or above. */
function limitsOf({ variables }, { query, asked }) {
  if (query.verb === "P") return [0, 1];
  if (query.verb !== "E") return [0, Infinity];
  const { values } = variables[asked[0]];
  return [Math.min(...values), Math.max(...values)];
}

function bind(model, text, evidence) {
  const parsed = parse(text);
  const [added, unused] = addedItems(model, parsed, evidence);
  const query = { ...parsed, given: [...parsed.given, ...added] };
  refuseTwice([...query.asked, ...query.against, ...query.given], text);
  const levels = new Map(); // by variable
  const split = (items) => {
    const names = items.filter((item) => item.kind === "name").map((item) => index(model, item, text));
    const conditions = new Map();
    for (const item of items.filter((each) => each.kind !== "name")) {
      const n = index(model, item.name, text);
      if (!levels.has(n)) levels.set(n, new Levels(model.variables[n], text));
      conditions.set(n, [...(conditions.get(n) ?? []), item]);
    }
    const likelihoods = new Map([...conditions].map(([n, own]) => [n, levels.get(n).likelihood(own)]));
    return [names, likelihoods, conditions];
  };
  const [asked, events] = split(query.asked);
  const [against] = split(query.against);
  const [by, likelihoods, conditions] = split(query.given);
  const words = new Map([...conditions].map(([n, own]) => [n, own.map((item) => itemText(item)).join(", ")]));
  const notes = query.verb === "E" ? giveValue(model.variables, asked[0], likelihoods, words) : [];
  const shown = (item) => (label) => levels.get(index(model, item.name, text)).shown(label);
  const headline = queryText(query, (item) => itemText(item, shown(item)));
  const named = new Set(parsed.given.map(nameOf));
  const own = new Map([...likelihoods].filter(([n]) => named.has(model.variables[n].name)));
  const read = { query, headline, text, asked, against, by, events, notes };
  return { ...read, evidence: likelihoods, own, unused, words };
}

/** A mean is of those who have a value: evidence, and a note that says so. */
function giveValue(variables, n, likelihoods, words) {
  const { empty, name, valued, size } = variables[n];
  if (!empty) return [];
  const has = Float64Array.from({ length: size }, (_, i) => (i < valued ? 1 : 0));
  likelihoods.set(n, likelihoods.has(n) ? likelihoods.get(n).map((x, i) => x * has[i]) : has);
  const text = `${nameText(name)} applies`;
  words.set(n, words.has(n) ? `${words.get(n)}, ${text}` : text);
  return [`The mean is over ${whoHas(variables[n])}.`];
}

function whoHas({ empty, name }) {
  return empty.parent === null ? `those with a value of ${name}` : `those to whom ${name} applies`;
}

/** The evidence of the page as conditions, and the positions of what the question names itself. */
function addedItems(model, query, evidence) {
  const named = new Set([...query.asked, ...query.against, ...query.given].map(nameOf));
  const isNamed = ([n]) => named.has(model.variables[n].name);
  const added = [...evidence].filter((entry) => !isNamed(entry));
  return [
    added.map(([n, piece]) => asItem(model.variables[n], piece, query.at)),
    [...evidence].filter(isNamed).map(([n]) => n),
  ];
}

function nameOf(item) {
  return item.kind === "name" ? item.text : item.name.text;
}

function index(model, name, text) {
  const n = model.index.get(name.text);
  if (n !== undefined) return n;
  const names = model.variables.map((variable) => variable.name);
  const advice = advise(name.text, names, "The variables are");
  throw new QueryError(`No variable is called ${quote(name.text)}. ${advice}`, text, name.at);
}

function refuseTwice(items, text) {
  const seen = new Set();
  for (const item of items) {
    if (item.kind !== "name") continue;
    if (seen.has(item.text))
      throw new QueryError(`${quote(item.text)} appears twice without a value.`, text, item.at);
    seen.add(item.text);
  }
}

function impossible(model, bound) {
  const culprits = contradiction(model.mixture, bound.evidence).map((n) => bound.words.get(n));
  const out = "or fit with a prior that keeps every level possible.";
  if (culprits.length === 1)
    return `${culprits[0]} has probability zero under this model, so nothing follows from it: leave it out, ${out}`;
  return `${culprits.slice(0, -1).join(", ")} and ${culprits.at(-1)} are possible by themselves but not together: jointly they have probability zero under this model. Leave one out, ${out}`;
}

function unlikely(bound, state) {
  let evenly = 0;
  for (const found of bound.evidence.values())
    evenly += Math.log(found.reduce((a, b) => a + b, 0) / found.length);
  if (!bound.evidence.size || state.logProb - evenly >= UNLIKELY) return [];
  const shown =
    state.logProb > -700
      ? formatNumber(Math.exp(state.logProb))
      : `1e${Math.round(state.logProb / Math.LN10)}`;
  const [share, held] = state.possible ? [shown, "nearly impossible"] : ["zero", "impossible"];
  return [
    `${[...bound.words.values()].join(", ")} has probability ${share}: the answer depends on evidence that this model considers ${held}.`,
  ];
}

/** P(asked, events | evidence, by): axes as asked and then by, undefined cells NaN. */
function table(joint, bound, state) {
  const axes = [...bound.asked, ...bound.by];
  checkCells(joint, axes, bound);
  const met = infer(state, bound.events);
  const share = Math.exp(met.logProb);
  const values = jointTable(joint, met, axes).map((x) => x * share);
  if (!bound.by.length) return { axes, values, notes: [] };
  return { axes, ...divideColumns(joint.variables, bound.by, values, columnTotals(joint, bound, state)) };
}

/** Probabilities of the columns of a table, P(by | evidence); one column of one without any. */
function columnTotals(joint, bound, state) {
  return jointTable(joint, state, bound.by);
}

function checkCells(joint, axes, bound) {
  const cells = countCells(joint.variables, axes);
  if (cells > MAX_CELLS) refuseSize(cells, bound);
}

function refuseSize(cells, bound) {
  throw new QueryError(
    `The table would have ${cells.toPrecision(3)} cells, more than the ${MAX_CELLS.toLocaleString("en-US")} that a page holds: ask for fewer variables, or ask rejoint itself.`,
    bound.text,
    bound.query.at,
  );
}

function probability(joint, bound, state) {
  const found = sharesOf(table(joint, bound, state));
  if (found.kind === "table") return found;
  return { ...found, notes: [...found.notes, ...appliesNotes(joint, bound, state, found.value)] };
}

/** How probable events are among those who have a value, where others count as well. */
function appliesNotes({ variables }, { events }, state, value) {
  const others = [...events].filter(([n, meets]) => variables[n].empty && !(meets[variables[n].valued] > 0));
  const who = others.map(([n]) => whoHas(variables[n]));
  const has = others.map(([n, meets]) => [n, meets.map((_, i) => (i < variables[n].valued ? 1 : 0))]);
  const share = Math.exp(infer(state, has).logProb);
  if (!(share > 0 && share < 1 - 1e-9 && value < share * (1 - 1e-9))) return [];
  return [
    `Among ${who.join(" and ")} (${formatNumber(share)} of all): ${formatNumber(value / share)}.`,
  ];
}

function sharesOf({ axes, values, notes }) {
  if (axes.length) return { kind: "table", value: values, axes, notes };
  return { kind: "probability", value: Math.min(values[0], 1), notes };
}

function expectation(joint, bound, state) {
  checkNumeric(joint, bound);
  return meansOf(joint, bound, table(joint, bound, state));
}

function checkNumeric({ variables }, bound) {
  const { name, values } = variables[bound.asked[0]];
  if (!values)
    throw new QueryError(
      `Variable ${quote(name)} has levels that are not numbers: it has a mode, but no mean or other expectation.`,
      bound.text,
      bound.query.asked[0].at,
    );
}

function meansOf({ variables }, bound, { values, notes }) {
  const { values: numbers, size: levels } = variables[bound.asked[0]];
  const size = values.length / levels;
  const means = Float64Array.from({ length: size }, (_, k) =>
    numbers.reduce((sum, x, i) => sum + x * values[i * size + k], 0),
  );
  return { kind: "expectation", value: bound.by.length ? means : means[0], axes: bound.by, notes };
}

function mode(joint, bound, state) {
  refuseBy(bound);
  const asked = bound.asked.length
    ? bound.asked
    : [...joint.variables.keys()].filter((n) => !bound.evidence.has(n));
  if (!asked.length)
    throw new QueryError(
      "Every variable is given, so there is none left to ask about: name some.",
      bound.text,
      bound.query.at,
    );
  const found = mostProbable(joint, state, asked, 100_000);
  const most = formatNumber(Math.exp(found.logBound));
  const notes = found.exact ? [] : [`The best found; no other has a probability above ${most}.`];
  return {
    kind: "mode",
    value: {
      positions: asked,
      levels: found.levels,
      prob: Math.exp(found.logProb),
      bound: Math.exp(found.logBound),
      exact: found.exact,
    },
    notes,
  };
}

function records(joint, bound, state) {
  refuseBy(bound);
  const shown = bound.asked.length ? bound.asked : [...joint.variables.keys()];
  const count = bound.query.count;
  if (count * shown.length > MAX_CELLS)
    throw new QueryError(
      "A page cannot hold that many records: sample fewer, or ask rejoint itself.",
      bound.text,
      bound.query.at,
    );
  const parts = partsOf(joint, state, shown);
  const rows = Array.from({ length: count }, () => {
    const f = draw((k) => state.classes[k], joint.rank);
    const cells = parts.map(({ factor }) => draw((i) => factor[i * joint.rank + f], factor.length / joint.rank));
    return levelsOf(joint, parts, cells, shown);
  });
  return { kind: "records", value: { positions: shown, rows }, notes: [] };
}

function draw(share, size) {
  let rest = Math.random();
  for (let i = 0; i < size; i++) if ((rest -= share(i)) < 0) return i;
  for (let i = size - 1; i > 0; i--) if (share(i) > 0) return i; // rounding: the last that is possible
  return 0;
}

function refuseBy(bound) {
  for (const item of bound.query.given) {
    if (item.kind === "name")
      throw new QueryError(
        `${bound.query.verb} needs a value here: ${itemText(item)} = ... (P tabulates by it).`,
        bound.text,
        item.at,
      );
  }
}

/** H(a | b) and MI(a; b | c) from entropies of joint tables, in nats. */
function information(joint, bound, state) {
  const together = (...groups) => {
    const axes = [...new Set(groups.flat())];
    checkCells(joint, axes, bound);
    const p = jointTable(joint, state, axes);
    return axes.length ? p.reduce((sum, x) => (x > 0 ? sum - x * Math.log(x) : sum), 0) : 0;
  };
  const { asked, against, by } = bound;
  if (bound.query.verb === "H")
    return { kind: "entropy", value: Math.max(together(asked, by) - together(by), 0), unit: "nats" };
  const value = together(asked, by) + together(against, by) - together(asked, against, by) - together(by);
  return { kind: "information", value: Math.max(value, 0), unit: "nats" };
}
