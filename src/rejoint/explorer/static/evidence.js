// What is given: pieces of evidence by variable, undo and redo, and the state as part of a link.
//
// A piece is {kind: "in", levels} (one of these), {kind: "out", levels} (none of these) or
// {kind: "soft", weights} (likelihood of each level). A whole state of evidence is a Map from a
// variable's position to its piece, never changed in place: undo keeps the old Maps.

import { readsAsNumber } from "./words.js";

/** Likelihood of each level under a piece. */
export function likelihood(piece, size) {
  if (piece.kind === "soft") return Float64Array.from(piece.weights);
  const inside = piece.kind === "in";
  const out = new Float64Array(size).fill(inside ? 0 : 1);
  for (const level of piece.levels) out[level] = inside ? 1 : 0;
  return out;
}

export function likelihoods(model, evidence) {
  return new Map([...evidence].map(([n, piece]) => [n, likelihood(piece, model.variables[n].size)]));
}

/** What a click does. `how`: "set" (this level only), "add" (this one too), "not" (exclude it). */
export function clicked(evidence, n, level, how, size) {
  const old = evidence.get(n);
  const same = (kind) => (old?.kind === kind ? old.levels : []);
  const toggled = (levels) =>
    levels.includes(level) ? levels.filter((x) => x !== level) : [...levels, level].sort((a, b) => a - b);
  let piece;
  if (how === "not") {
    // Of several accepted levels one is taken back; else the level joins the excluded ones.
    piece =
      same("in").length > 1 && same("in").includes(level)
        ? { kind: "in", levels: toggled(same("in")) }
        : { kind: "out", levels: toggled(same("out")) };
  } else if (how === "add") {
    piece = { kind: "in", levels: toggled(same("in")) };
  } else if (same("out").includes(level)) {
    piece = { kind: "out", levels: toggled(same("out")) };
  } else {
    const alone = same("in").length === 1 && same("in")[0] === level;
    piece = { kind: "in", levels: alone ? [] : [level] };
  }
  return withPiece(evidence, n, piece, size);
}

/** The evidence with one piece changed; a piece that says nothing is left out. */
export function withPiece(evidence, n, piece, size) {
  const next = new Map(evidence);
  next.delete(n);
  if (piece && !empty(piece, size)) next.set(n, piece);
  return next;
}

function empty(piece, size) {
  if (piece.kind === "soft") return piece.weights.every((w) => w === piece.weights[0]);
  return piece.levels.length === 0 || (piece.kind === "in" && piece.levels.length === size);
}

/** Whether a piece leaves one level alone. */
export function isSettled(piece, size) {
  return likelihood(piece, size).filter((x) => x > 0).length === 1;
}

/** A piece in words: "smoke = yes", "age in {a, b}", "not …", "weighed". */
export function describe(variable, piece) {
  const labels = piece.kind === "soft" ? [] : piece.levels.map((i) => variable.labels[i]);
  if (piece.kind === "soft") return `${variable.name} weighed`;
  if (piece.kind === "in" && labels.length === 1) return `${variable.name} = ${labels[0]}`;
  if (piece.kind === "in") return `${variable.name} in {${labels.join(", ")}}`;
  if (labels.length === 1) return `${variable.name} ≠ ${labels[0]}`;
  return `${variable.name} not in {${labels.join(", ")}}`;
}

/** A piece as a condition of the query language; `at` is where errors point to. */
export function asItem(variable, piece, at = 0) {
  const name = { kind: "name", text: variable.name, at };
  const label = (i) => asLevelLabel(variable, i, at);
  if (piece.kind === "soft") {
    const number = (w) => ({ text: numberText(w), number: true, at });
    return { kind: "soft", name, pairs: piece.weights.map((w, i) => [label(i), number(w)]) };
  }
  return { kind: "among", name, labels: piece.levels.map(label), negated: piece.kind === "out" };
}

function asLevelLabel(variable, i, at) {
  const text = variable.labels[i];
  return { text, number: typeof variable.levels[i] === "number" && readsAsNumber(text), at };
}

export function numberText(number) {
  return String(+number.toPrecision(12));
}

/** Undo and redo over states that are never changed in place. */
export class History {
  constructor(first) {
    this.states = [first];
    this.at = 0;
  }

  get now() {
    return this.states[this.at];
  }

  get canUndo() {
    return this.at > 0;
  }

  get canRedo() {
    return this.at < this.states.length - 1;
  }

  push(state) {
    this.states = [...this.states.slice(0, this.at + 1), state].slice(-200);
    this.at = this.states.length - 1;
  }

  /** For a slider that moves: many values, one step to undo. */
  amend(state) {
    this.states[this.at] = state;
  }

  move(step) {
    this.at = Math.min(Math.max(this.at + step, 0), this.states.length - 1);
  }
}

/** Evidence as parameters of a link, by name and label, so that it survives a refitted model. */
export function toParams(model, evidence) {
  const params = new URLSearchParams();
  for (const [n, piece] of evidence) {
    const variable = model.variables[n];
    if (piece.kind === "soft") {
      params.append(`soft.${variable.name}`, piece.weights.map((w) => +w.toFixed(6)).join(" "));
    } else {
      const key = `${piece.kind === "in" ? "is" : "not"}.${variable.name}`;
      for (const level of piece.levels) params.append(key, levelKey(variable, level));
    }
  }
  return params;
}

/** Evidence of a link; what this model does not know is listed, not guessed. */
export function fromParams(model, params) {
  let evidence = new Map();
  const unknown = [];
  for (const key of new Set(params.keys())) {
    const [kind, name] = splitKey(key);
    if (!["is", "not", "soft"].includes(kind)) continue;
    const n = model.index.get(name);
    const piece = n === undefined ? null : readPiece(model.variables[n], kind, params.getAll(key));
    if (piece) evidence = withPiece(evidence, n, piece, model.variables[n].size);
    else unknown.push(name);
  }
  return { evidence, unknown };
}

function splitKey(key) {
  const dot = key.indexOf(".");
  return dot < 0 ? [key, ""] : [key.slice(0, dot), key.slice(dot + 1)];
}

function readPiece(variable, kind, texts) {
  if (kind === "soft") {
    const weights = texts[0].split(/[ +]/).map(Number);
    const good = weights.length === variable.size && weights.every((w) => w >= 0 && w < Infinity);
    return good && weights.some((w) => w > 0) ? { kind: "soft", weights } : null;
  }
  const levels = [...new Set(texts.map((text) => findLevel(variable, text)))].sort((a, b) => a - b);
  return levels.includes(-1) ? null : { kind: kind === "is" ? "in" : "out", levels };
}

/** The label, or "@" and its position where labels look alike (the number 1 and the text "1"). */
function levelKey(variable, level) {
  const label = variable.labels[level];
  return label.startsWith("@") || variable.labels.indexOf(label) !== variable.labels.lastIndexOf(label)
    ? `@${level}`
    : label;
}

function findLevel(variable, text) {
  if (/^@\d+$/.test(text)) return Number(text.slice(1)) < variable.size ? Number(text.slice(1)) : -1;
  return variable.labels.indexOf(text);
}
