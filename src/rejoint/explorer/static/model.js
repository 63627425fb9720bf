// The model as the page holds it: weights, factors as typed arrays, labels as text.

const FORMAT = "rejoint.explorer";
const SCHEMA = 1;

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
  const model = {
    title: String(doc.title ?? "Model"),
    source: doc.source ?? null,
    variables: (doc.variables ?? []).map(readVariable),
    weights: floats(doc.weights, "weights"),
    note: doc.note ?? null,
    doc,
  };
  model.rank = model.weights.length;
  model.logWeights = model.weights.map(Math.log);
  if (!model.variables.length)
    throw new PageError("The model has no variables, so there is nothing to show.");
  if (!model.rank) throw new PageError("The model has no classes, so there is nothing to show.");
  model.factors = cutFactors(floats(doc.factors, "factors"), model.variables, model.rank);
  model.index = new Map(model.variables.map((variable, n) => [variable.name, n]));
  model.classNames = readClassNames(doc.class_names, model.rank);
  return model;
}

function readVariable(plain) {
  const labels = plain.labels.map(String);
  return {
    name: String(plain.name),
    kind: plain.kind ?? "nominal",
    labels,
    levels: plain.levels ?? labels,
    values: plain.values ?? null,
    size: labels.length,
  };
}

/** One Float64Array per variable, level after level, the classes side by side. */
function cutFactors(rows, variables, rank) {
  const levels = variables.reduce((sum, variable) => sum + variable.size, 0);
  if (rows.length !== levels * rank) {
    throw new PageError(
      `The model is damaged: ${levels} levels and ${rank} classes need ${levels * rank} numbers, ` +
        `and there are ${rows.length}.`,
    );
  }
  let start = 0;
  return variables.map(({ size }) => rows.subarray(start * rank, (start += size) * rank));
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
