// The query language: from text to a question, and back.
//
// A question is {verb, asked, given, against, count, at}; an item of a list is
//   {kind: "name", text, at}                       a variable
//   {kind: "among", name, labels, negated}         a = x, a in {x, y}
//   {kind: "between", name, low, high, negated}    a < x, x <= a < y; an end is {label, included}
//   {kind: "soft", name, pairs}                    a ~ {x: 0.8, y: 0.2}
//   {kind: "applies", name, negated}               a applies
// and a label is {text, number, at}. Places are those of characters in the text.

import { nameText, quote, readsAsNumber } from "./words.js";

const VERBS = ["P", "E", "H", "MI", "argmax", "sample"];
const ORDER = ["<", "<=", ">", ">="];
const MIRRORED = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };
const OPPOSITE = { "<": ">=", "<=": ">", ">": "<=", ">=": "<" };
const MEANING = { "==": "=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!=" };
const LETTERS = { n: "\n", t: "\t", r: "\r" };
const MAX_LENGTH = 10_000;
const MOST_RECORDS = 100_000;
const TOKEN =
  /(?<space>\s+)|(?<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<sign><=|>=|!=|==|<>|[≤≥≠(){},;|:~=<>])|(?<word>[\p{L}\p{M}\p{N}_.+-]+)/suy;

export class QueryError extends Error {
  constructor(reason, text, position) {
    super(reason);
    Object.assign(this, { reason, text, position });
  }
}

function tokenize(text) {
  if (text.length > MAX_LENGTH) throw new QueryError("This question is too long.", text, MAX_LENGTH);
  const tokens = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const { quoted, sign, word } = TOKEN.exec(text)?.groups ?? { sign: null };
    if (sign === null) throw new QueryError(`${quote(text[at])} has no meaning here: use quotes.`, text, at);
    if (quoted) tokens.push({ kind: "quoted", text: unescape(quoted.slice(1, -1), text, at), at });
    else if (sign) tokens.push({ kind: "sign", text: MEANING[sign] ?? sign, at });
    else if (word) tokens.push({ kind: "word", text: word, at });
  }
  return [...tokens, { kind: "end", text: "", at: text.length }];
}

function unescape(inside, text, at) {
  return inside.replace(/\\(?:([\\"'ntr])|u\{([0-9a-fA-F]{1,6})\})?/g, (_, letter, digits) => {
    if (letter) return LETTERS[letter] ?? letter;
    if (digits && parseInt(digits, 16) <= 0x10ffff) return String.fromCodePoint(parseInt(digits, 16));
    throw new QueryError("Unknown escape in a quoted text: a backslash itself is written \\\\.", text, at);
  });
}

export function parse(text) {
  return new Parser(text).query();
}

class Parser {
  constructor(text) {
    this.text = text;
    this.tokens = tokenize(text);
  }

  get token() {
    return this.tokens[0];
  }

  fail(wanted, token = this.token) {
    const found = token.kind === "end" ? "the end" : quote(token.text);
    throw new QueryError(`Expected ${wanted}, found ${found}.`, this.text, token.at);
  }

  refuse(reason, at) {
    throw new QueryError(reason, this.text, at);
  }

  sees(kind, ...texts) {
    return this.token.kind === kind && texts.includes(this.token.text);
  }

  take() {
    return this.token.kind === "end" ? this.token : this.tokens.shift();
  }

  skip(kind, text) {
    return this.sees(kind, text) && Boolean(this.take());
  }

  expect(kind, text) {
    if (!this.skip(kind, text)) this.fail(quote(text));
  }

  query() {
    const first = this.take();
    const { at, text: verb } = first;
    if (first.kind !== "word" || !VERBS.includes(verb)) this.fail(VERBS.join(", "), first);
    const loose = verb === "argmax" || verb === "sample";
    const closed = this.skip("sign", "(");
    if (!closed && !loose) this.fail('"("');
    const count = verb === "sample" ? this.count() : null;
    const isOver = this.token.kind === "end" || this.sees("sign", "|", ...(closed ? [")"] : []));
    const asked = loose && isOver ? [] : this.list(() => this.item());
    if (verb === "MI") this.expect("sign", ";");
    const against = verb === "MI" ? this.list(() => this.item()) : [];
    const given = this.skip("sign", "|") ? this.list(() => this.item()) : [];
    if (closed) this.expect("sign", ")");
    if (this.token.kind !== "end") this.fail('"," or the end');
    for (const item of [...asked, ...against]) {
      if (verb === "P" && item.kind === "soft") this.refuse("Soft evidence (~) is given, not asked.", item.name.at);
      if (verb !== "P" && item.kind !== "name") this.refuse(`${verb} takes variables.`, item.name.at);
    }
    if (verb === "E" && asked.length > 1) this.refuse("E takes one variable.", asked[1].at);
    return { verb, asked, given, against, count, at };
  }

  count() {
    const token = this.take();
    if (!/^[0-9]{1,9}$/.test(token.text)) this.fail("the number of records", token);
    if (Number(token.text) > MOST_RECORDS) this.refuse(`At most ${MOST_RECORDS} records.`, token.at);
    this.skip("sign", ",");
    return Number(token.text);
  }

  list(read) {
    const items = [read()];
    while (this.skip("sign", ",")) items.push(read());
    return items;
  }

  within(read) {
    this.expect("sign", "{");
    const items = this.list(read);
    this.expect("sign", "}");
    return items;
  }

  item() {
    let negated = this.skip("word", "not");
    const left = this.operand(negated ? "a condition" : "a variable or a condition");
    if (this.sees("sign", ...ORDER)) return this.order(left, negated);
    if (this.sees("sign", "=", "!=")) {
      negated = negated !== (this.take().text === "!=");
      return { kind: "among", name: this.name(left), labels: [this.label()], negated };
    }
    if (this.sees("word", "in", "not")) {
      negated = negated !== this.skip("word", "not");
      this.expect("word", "in");
      return { kind: "among", name: this.name(left), labels: distinct(this.within(() => this.label())), negated };
    }
    if (this.sees("word", "applies", "does")) {
      if (this.take().text === "does") {
        for (const word of ["not", "apply"]) this.expect("word", word);
        negated = !negated;
      }
      return { kind: "applies", name: this.name(left), negated };
    }
    if (negated) this.fail("a condition");
    return this.skip("sign", "~") ? this.soft(left) : this.name(left);
  }

  operand(what) {
    const token = this.take();
    if (token.kind !== "word" && token.kind !== "quoted") this.fail(what, token);
    return token;
  }

  name(token) {
    if (token.kind === "word" && ["in", "not"].includes(token.text)) this.fail("a variable", token);
    return { kind: "name", text: token.text, at: token.at };
  }

  label() {
    return asLabel(this.operand("a label"));
  }

  soft(left) {
    const pairs = this.within(() => {
      const label = this.label();
      this.expect("sign", ":");
      const likelihood = this.label();
      if (!likelihood.number || likelihood.text.startsWith("-")) this.fail("a number of zero or more", likelihood);
      return [label, likelihood];
    });
    const labels = pairs.map(([label]) => label);
    if (distinct(labels).length < labels.length) this.refuse("A label appears twice.", left.at);
    return { kind: "soft", name: this.name(left), pairs };
  }

  order(left, negated) {
    let sign = this.take().text;
    let right = this.operand("a label");
    if (this.sees("sign", ...ORDER)) return this.range(left, sign, right, negated);
    if (asLabel(left).number && !asLabel(right).number) [left, sign, right] = [right, MIRRORED[sign], left];
    if (negated) sign = OPPOSITE[sign];
    const end = { label: asLabel(right), included: sign.endsWith("=") };
    const [low, high] = sign.startsWith(">") ? [end, null] : [null, end];
    return { kind: "between", name: this.name(left), low, high, negated: false };
  }

  range(left, sign, middle, negated) {
    if (this.token.text[0] !== sign[0]) this.fail(`"${sign[0]}": both must point the same way`);
    const second = this.take().text;
    const ends = [
      { label: asLabel(left), included: sign.endsWith("=") },
      { label: this.label(), included: second.endsWith("=") },
    ];
    const [low, high] = sign[0] === "<" ? ends : ends.reverse();
    return { kind: "between", name: this.name(middle), low, high, negated };
  }
}

function asLabel({ kind, text, at }) {
  return { text, number: kind === "word" && readsAsNumber(text), at };
}

function distinct(labels) {
  return [...new Map([...labels].reverse().map((label) => [labelText(label), label])).values()].reverse();
}

export function labelText(label) {
  return label.number ? label.text : nameText(label.text);
}

/** A question as text, its items written by `text`. */
export function queryText({ verb, asked, given, against, count }, text = itemText) {
  const list = (items) => items.map((item) => text(item)).join(", ");
  const left = against.length ? `${list(asked)}; ${list(against)}` : list(asked);
  const inner = [left, given.length ? `| ${list(given)}` : ""].filter(Boolean).join(" ");
  if (verb !== "argmax" && verb !== "sample") return `${verb}(${inner})`;
  return [verb, count === null ? "" : String(count), inner].filter(Boolean).join(" ");
}

/** An item as text; `shown` writes its labels. */
export function itemText(item, shown = labelText) {
  if (item.kind === "name") return nameText(item.text);
  const name = nameText(item.name.text);
  const { negated, labels, pairs, low, high } = item;
  if (item.kind === "applies") return `${name} ${negated ? "does not apply" : "applies"}`;
  if (item.kind === "soft") return `${name} ~ {${pairs.map(([label, x]) => `${shown(label)}: ${x.text}`).join(", ")}}`;
  if (item.kind === "among") {
    const texts = [...new Set(labels.map(shown))];
    const isBin = texts.length === 1 && labels.some((label) => shown(label) !== labelText(label));
    if (isBin && !texts[0].startsWith("[")) return `${negated ? "not " : ""}${name} ${texts[0]}`;
    if (texts.length > 1 || isBin)
      return `${name} ${negated ? "not in" : "in"} ${isBin ? texts[0] : `{${texts.join(", ")}}`}`;
    return `${name} ${negated ? "!=" : "="} ${texts[0]}`;
  }
  const sign = (end, mark) => `${mark}${end.included ? "=" : ""}`;
  const before = low && high ? `${labelText(low.label)} ${sign(low, "<")} ` : "";
  const after = high
    ? `${sign(high, "<")} ${labelText(high.label)}`
    : `${sign(low, ">")} ${labelText(low.label)}`;
  return `${negated ? "not " : ""}${before}${name} ${after}`;
}
