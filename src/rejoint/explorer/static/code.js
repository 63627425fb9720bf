// The same question in Python and on the command line, for the clipboard.

import { asItem, numberText } from "./evidence.js";
import { itemText } from "./grammar.js";
import { nameText } from "./words.js";

/** Evidence as the query language has it: "smoke = yes, age in {a, b}". */
function givenText(model, evidence) {
  return [...evidence].map(([n, piece]) => itemText(asItem(model.variables[n], piece))).join(", ");
}

/** A question of some variables given the evidence; `verb` is P, E, H or argmax. */
export function question(model, verb, names, evidence) {
  const asked = names.map(nameText).join(", ");
  const given = evidence.size ? `| ${givenText(model, evidence)}` : "";
  const inner = [asked, given].filter(Boolean).join(" ");
  return verb === "argmax" ? `argmax ${inner}`.trim() : `${verb}(${inner})`;
}

export function command(model, query) {
  return `rejoint ask ${sourceFile(model)} ${shell(query)}`;
}

export function inspection(model) {
  return `rejoint inspect ${sourceFile(model)}`;
}

function sourceFile(model) {
  return shell(model.source ?? "model.rejoint");
}

function shell(text) {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Questions, as text, asked of the model. */
export function askPython(model, questions) {
  const calls = questions.map((query) => `print(p.ask(${text(query)}))\n`).join("");
  return `import rejoint as rj\n\np = ${load(model)}\n${calls}`;
}

/** The best items for somebody who has given some levels, as text. */
export function recommendPython(model, levels, count, by) {
  const { items } = model.doc.recommender;
  const given = [...levels].map(([n, i]) => `${text(items[n])}: ${model.variables[n].values[i]}`);
  const load = `rj.load(${text(model.source ?? "model.rejoint")})`;
  return `import rejoint as rj\n\nmodel = ${load}\nmodel.recommend({${given.join(", ")}}, ${count}, by=${text(by)})\n`;
}

/** `rejoint recommend` for the same. */
export function recommendCommand(model, levels, count, by) {
  const given = [...levels].map(([n, i]) => {
    const { name, values } = model.variables[n];
    return `--rated ${shell(`${name}=${values[i]}`)}`;
  });
  return ["rejoint recommend", sourceFile(model), ...given, `-k ${count} --by ${by}`].join(" ");
}

/** The model that answers: of the file of an estimator, its joint. */
function load(model) {
  return `rj.load(${text(model.source ?? "model.rejoint")})${model.doc?.is_estimator || model.ensemble ? ".pmf_" : ""}`;
}

/** Every variable given the evidence. */
export function allPython(model, evidence) {
  const call = (given) => `table(name${given ? `, ${given}` : ""})`;
  return python(model, call, evidence).replace(
    /p\.table.*\n$/,
    (line) => `for name in p.domain.names:\n    print(${line.trim()})\n`,
  );
}

/** Lines of Python; `call` is a method of the joint with its arguments, `given` added to it. */
export function python(model, call, evidence) {
  const soft = [...evidence.values()].some((piece) => piece.kind === "soft");
  const given = evidence.size ? `given = ${pythonGiven(model, evidence)}\n` : "";
  return (
    (soft ? "import numpy as np\n" : "") +
    `import rejoint as rj\n\np = ${load(model)}\n` +
    given +
    `p.${call(evidence.size ? "given=given" : "")}\n`
  );
}

/** What tables of three variables say about the model's rank. */
export function reportPython(model) {
  const call = "rj.identifiability.report(p.domain, order=3, rank=p.rank).verdict";
  return python(model, () => "", new Map()).replace(/p\.\n$/, `${call}\n`);
}

function pythonGiven(model, evidence) {
  const parts = [...evidence].map(([n, piece]) => {
    const variable = model.variables[n];
    return `${text(variable.name)}: ${pythonPiece(variable, piece)}`;
  });
  return `{${parts.join(", ")}}`;
}

function pythonPiece(variable, piece) {
  if (piece.kind === "soft") return `np.array([${piece.weights.map(numberText).map(float).join(", ")}])`;
  const kept = [...variable.labels.keys()].filter((i) => piece.levels.includes(i) === (piece.kind === "in"));
  const levels = kept.map((i) => pythonLevel(variable, i));
  return levels.length === 1 ? levels[0] : `[${levels.join(", ")}]`;
}

function float(digits) {
  return /[.e]/.test(digits) ? digits : `${digits}.0`;
}

function pythonLevel(variable, i) {
  const level = variable.levels[i];
  if (typeof level === "boolean") return level ? "True" : "False";
  return typeof level === "number" ? variable.labels[i] : text(variable.labels[i]);
}

/** A Python string; JSON's escapes are Python's, too, but for characters beyond 16 bits. */
export function text(value) {
  return JSON.stringify(value);
}

export function names(list) {
  return list.length === 1 ? text(list[0]) : `[${list.map(text).join(", ")}]`;
}
