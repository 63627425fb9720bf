// The model as the page holds it: variables with their labels as text, and joints as typed arrays.
//
// A joint is {variables, index, rank, weights, logWeights, factors, blocks, unitOf}: what inference takes;
// variables of a block have its place for a unit, others one of their own. The mixture
// answers every question; the representative model has the classes that are shown and named; both are
// one where the model has no posterior. A classifier has an ensemble of models that predict its targets.

import { makeBlock, tabulate } from "./block.js";

const FORMAT = "rejoint.explorer";
const SCHEMA = 3;

/** An error whose words are meant for the person in front of the page. */
export class PageError extends Error {}

/** Read a document; whatever is wrong with it is said in words. */
export function readModel(doc) {
  if (doc === null || typeof doc !== "object" || doc.format !== FORMAT) {
    throw new PageError("This is not a model of rejoint's explorer: its format is not known.");
  }
  if (!(doc.schema <= SCHEMA)) {
    throw new PageError(
      `The model has schema version ${doc.schema}; this page reads versions up to ${SCHEMA}. ` +
        "Update rejoint and open it again.",
    );
  }
  const variables = (doc.variables ?? []).map(readVariable);
  if (!variables.length) throw new PageError("The model has no variables, so there is nothing to show.");
  const index = new Map(variables.map((variable, n) => [variable.name, n]));
  const representative = readJoint({ variables, index }, doc);
  return {
    title: String(doc.title ?? "Model"),
    source: doc.source ?? null,
    note: doc.note ?? null,
    doc,
    variables,
    index,
    representative,
    mixture: doc.mixture ? readJoint({ variables, index }, doc.mixture, " of the mixture") : representative,
    ensemble: doc.ensemble ? readEnsemble({ variables, index }, doc.ensemble) : null,
    classNames: readClassNames(doc.class_names, representative.rank),
  };
}

/** A joint over the variables of a model; `of` says in errors which one. Sums of numbers in single
 * precision are a little off one: weights and columns are divided by them, as Python does it. */
function readJoint({ variables, index }, plain, of = "", layouts = readLayouts(plain.blocks)) {
  const weights = floats(plain.weights, `weights${of}`);
  const rank = weights.length;
  if (!rank) throw new PageError("The model has no classes, so there is nothing to show.");
  const parts = cutFactors(floats(plain.factors, `factors${of}`), [...variables, ...layouts], rank);
  if (plain.weights.f4) {
    normalize(weights, 1);
    for (const part of parts) normalize(part, rank);
  }
  const factors = parts.slice(0, variables.length);
  const blocks = layouts.map((layout, k) => makeBlock(layout, parts[variables.length + k], factors, rank));
  // In single precision factors are a little off the margins of their tables.
  if (plain.weights.f4)
    for (const block of blocks) for (const n of block.members) factors[n] = tabulate(block, [n]);
  const unitOf = variables.map((_, n) => blocks.length + n);
  blocks.forEach(({ members }, k) => members.forEach((n) => (unitOf[n] = k)));
  return { variables, index, rank, weights, logWeights: weights.map(Math.log), factors, blocks, unitOf };
}

/** Which variables each block tabulates jointly, and by which groups of their levels. */
function readLayouts(plain = []) {
  return plain.map((layout) => {
    const shape = layout.groups.map((group) => group.reduce((a, b) => Math.max(a, b), 0) + 1);
    return { ...layout, shape, size: shape.reduce((a, b) => a * b, 1) };
  });
}

/** The models that predict the targets, with a row of weights for each kind of row of features. */
function readEnsemble(model, plain) {
  const members = plain.members.map((member) => readJoint(model, member, " of the ensemble"));
  const weights = floats(plain.member_weights, "weights of the ensemble");
  const targets = plain.targets.map((name) => model.index.get(name));
  const limits = plain.missing_limits;
  if (weights.length !== (limits.length + 2) * members.length || targets.includes(undefined))
    throw new PageError("The model is damaged: its ensemble does not fit its variables.");
  return { targets, members, weights, alwaysThere: plain.always_there, missingLimits: limits };
}

/** The posterior draws as joints, each with its `share` of them; read when first asked for. */
export function drawsOf(model) {
  model.draws ??= readDraws(model);
  return model.draws;
}

function readDraws(model) {
  const plain = model.doc.draws ?? [];
  const shares = model.doc.draw_weights
    ? floats(model.doc.draw_weights, "weights of the draws")
    : new Float64Array(plain.length).fill(1 / plain.length);
  const layouts = readLayouts(model.doc.draw_blocks);
  return plain.map((draw, k) => ({ ...readJoint(model, draw, " of the draws", layouts), share: shares[k] }));
}

/** Divide each of `columns` interleaved columns by its sum. */
function normalize(numbers, columns) {
  const sums = new Float64Array(columns);
  for (let at = 0; at < numbers.length; at++) sums[at % columns] += numbers[at];
  for (let at = 0; at < numbers.length; at++) if (sums[at % columns] > 0) numbers[at] /= sums[at % columns];
}

function readVariable(plain) {
  const labels = plain.labels.map(String);
  return {
    name: String(plain.name),
    kind: plain.kind ?? "nominal",
    labels,
    levels: plain.levels ?? labels,
    values: plain.values ?? null,
    contents: plain.contents ?? null,
    empty: plain.empty ?? null, // which empty cells are the last level; that one has no number
    size: labels.length,
    valued: labels.length - (plain.empty ? 1 : 0),
  };
}

/** One Float64Array per variable or block, level after level, the classes side by side. */
function cutFactors(rows, parts, rank) {
  const levels = parts.reduce((sum, { size }) => sum + size, 0);
  if (rows.length !== levels * rank) {
    throw new PageError(
      `The model is damaged: ${levels} levels and ${rank} classes need ${levels * rank} numbers, ` +
        `and there are ${rows.length}.`,
    );
  }
  let start = 0;
  return parts.map(({ size }) => rows.subarray(start * rank, (start += size) * rank));
}

function readClassNames(names, rank) {
  return Array.from({ length: rank }, (_, f) => String(names?.[f] ?? ""));
}

/** Numbers of a member: base64 of little-endian float64, or a plain (nested) list. */
export function floats(member, name) {
  if (Array.isArray(member)) return Float64Array.from(member.flat(Infinity));
  if (typeof member?.f8 === "string") return new Float64Array(bytes(member.f8).buffer);
  if (typeof member?.f4 === "string") return Float64Array.from(new Float32Array(bytes(member.f4).buffer));
  throw new PageError(`The model is damaged: it has no readable ${name}.`);
}

/** Codes of a member: base64 of little-endian int16 or int32. */
export function integers(member) {
  if (typeof member?.i2 === "string") return new Int16Array(bytes(member.i2).buffer);
  return new Int32Array(bytes(member.i4).buffer);
}

function bytes(text) {
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

/** What a class is called: the name that was given to it, or its number. */
export function className(model, f) {
  return model.classNames[f] || `Class ${f + 1}`;
}
