// What the tests ask of the page's scripts in Node: plain data in, plain data out.

import { ask } from "./ask.js";
import { askCounted, askCounts } from "./counts.js";
import { Beliefs } from "./beliefs.js";
import { cellGivenOthers, readCells } from "./cells.js";
import { classInformation, targetInformation } from "./information.js";
import { contradiction, infer, jointTable } from "./inference.js";
import { formatInterval, formatNumber } from "./format.js";
import { givenRows } from "./given.js";
import { QueryError } from "./grammar.js";
import { mostProbable } from "./modes.js";
import { answerUser, readRecommender } from "./recommender.js";
import { greedySet } from "./bundles.js";
import { readModel } from "./model.js";

/** Bars of every variable, their bounds, and the probability of the evidence. */
export function bars([doc, pieces]) {
  const model = readModel(doc);
  const beliefs = new Beliefs(model, new Map(pieces));
  const { possible, worth, state } = beliefs;
  const all = model.variables.map((_, n) => ({ bars: beliefs.bars(n), ...beliefs.bounds(n) }));
  return { possible, worth, logProb: state.logProb, all };
}

/** Answers to questions, each with the evidence of the page; errors as their reason and place. */
export function answers([doc, questions]) {
  const model = readModel(doc);
  return questions.map(([text, pieces]) => {
    try {
      const { own, ...answer } = ask(model, text, new Map(pieces));
      return answer;
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      return { reason: error.reason, position: error.position };
    }
  });
}

/** What the models of a classifier predict of a variable. */
export function predictions([doc, pieces]) {
  const model = readModel(doc);
  const beliefs = new Beliefs(model, new Map(pieces));
  return model.variables.map((_, n) => beliefs.prediction(n));
}

/** What the bars of every variable rest on. */
export function bases([doc, pieces]) {
  const model = readModel(doc);
  const beliefs = new Beliefs(model, new Map(pieces));
  return model.variables.map((_, n) => beliefs.basis(n));
}

/** Figures of every item for somebody who gives levels by item, and the best set of some items. */
export function recommendations([doc, levels, open, size]) {
  const recommender = readRecommender(doc.recommender, readModel(doc).variables[0].values);
  const answer = answerUser(recommender, new Map(levels));
  const likes = open.map((n) => Float64Array.from(answer.liked, (liked, k) => answer.chosen[k][n] * liked[n]));
  const set = greedySet(new Float64Array(likes[0].length).fill(1 / likes[0].length), likes, size);
  return { ...answer, items: set.items.map((k) => open[k]), together: set.probability };
}

/** Numbers, and numbers with their bounds, as the page writes them. */
export function texts([numbers, intervals]) {
  return [numbers.map(formatNumber), intervals.map((ends) => formatInterval(...ends))];
}

/** Rows of each table as it was given. */
export function given(doc) {
  const model = readModel(doc);
  return doc.given.tables.map((table) => givenRows(model, table));
}

/** Bars and an answer of a page to which rejoint sends these replies, evidence or question to JSON. */
export async function counted([doc, pieces, question, replies]) {
  globalThis.fetch = async (path, { body }) => ({ ok: body in replies, json: async () => replies[body] });
  const model = readModel(doc);
  const beliefs = new Beliefs(model, new Map(pieces));
  if (doc.can_count) await new Promise((done) => askCounts(model, beliefs.likelihoods, done));
  const bars = model.variables.map((_, n) => ({
    bars: beliefs.bars(n),
    bounds: beliefs.bounds(n),
    counted: beliefs.counted(n)?.counted ?? null,
  }));
  return { bars, answer: await askCounted(model, ask(model, question, new Map())) };
}

/** What the views show of a model given evidence: tables, the most probable completion, classes, and
 * what each variable tells about a target and about the class. */
export function views([doc, pieces, axes, target]) {
  const model = readModel(doc);
  const { state, likelihoods } = new Beliefs(model, new Map(pieces));
  const all = [...model.variables.keys()];
  return {
    table: jointTable(model.mixture, state, axes),
    mode: mostProbable(model.mixture, state, all),
    classes: infer(model.representative, likelihoods).classes,
    told: targetInformation(model.mixture, state, target),
    ofClass: all.map((n) => classInformation(model.mixture, state, n)),
  };
}

/** Distribution of each cell of a record given the others. */
export function cells([doc, codes]) {
  const { mixture } = readModel(doc);
  const record = readCells(mixture, codes);
  return codes.map((code, n) => (code < 0 ? null : cellGivenOthers(mixture, record, n)));
}

/** Evidence that contradicts itself, by position. */
export function contradictions([doc, pieces]) {
  const model = readModel(doc);
  return contradiction(model.mixture, new Beliefs(model, new Map(pieces)).likelihoods);
}

/** Milliseconds, the median of nine, that a click takes: the bars of all variables given evidence. */
export function clickTime([doc, sets]) {
  const model = readModel(doc);
  const times = Array.from({ length: 9 }, (_, k) => {
    const start = performance.now();
    const beliefs = new Beliefs(model, new Map(sets[k % sets.length]));
    model.variables.forEach((_, n) => beliefs.bars(n));
    return performance.now() - start;
  });
  return times.sort((a, b) => a - b)[4];
}
