// From tokens to a question, as rejoint.language.grammar has it: the same trees, the same errors.

import { QueryError, tokenize } from "./tokens.js";
import { nameText, quote, readsAsNumber } from "./words.js";

const VERBS = ["P", "E", "H", "MI", "argmax", "sample"];
const RESERVED = ["in", "not"];
const ORDER = ["<", "<=", ">", ">="];
const MIRRORED = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };
const OPPOSITE = { "<": ">=", "<=": ">", ">": "<=", ">=": "<" };
const MOST_RECORDS = 100_000;

/** A question: {verb, asked, given, against, count, at}. Items have a `kind`. */
export function parse(text) {
  return new Parser(text).query();
}

class Parser {
  constructor(text) {
    this.text = text;
    this.tokens = tokenize(text);
    this.place = 0;
  }

  get token() {
    return this.tokens[this.place];
  }

  take() {
    const { token } = this;
    if (token.kind !== "end") this.place++;
    return token;
  }

  sees(kind, ...texts) {
    return this.token.kind === kind && texts.includes(this.token.text);
  }

  skip(sign) {
    const seen = this.sees("sign", sign);
    if (seen) this.place++;
    return seen;
  }

  expect(sign, others = [], hint = "") {
    if (this.skip(sign)) return;
    const advice = hint || (others.includes(",") ? this.hint() : "");
    const wanted = [...others, sign].map((other) => `"${other}"`);
    const listed = wanted.length > 1 ? `${wanted.slice(0, -1).join(", ")} or ${wanted.at(-1)}` : wanted[0];
    this.fail(`Expected ${listed}, found ${found(this.token)}.${advice}`);
  }

  hint() {
    if (!["word", "quoted"].includes(this.token.kind)) return "";
    return " Separate items with commas, and put names and labels of several words in quotes.";
  }

  fail(reason, at = this.token.at) {
    throw new QueryError(reason, this.text, at);
  }

  query() {
    const first = this.take();
    if (first.kind !== "word" || !VERBS.includes(first.text)) this.fail(noVerb(first), first.at);
    const verb = first.text;
    const loose = verb === "argmax" || verb === "sample";
    const closed = this.skip("(");
    if (!closed && !loose) this.expect("(");
    const [at, count] = verb === "sample" ? this.count() : [first.at, null];
    const what = verb === "P" ? "a variable or a condition" : "a variable";
    const asked = loose && this.atBarOrEnd(closed) ? [] : this.items(what);
    let against = [];
    if (verb === "MI") {
      this.expect(";", [","], " MI takes two sides: MI(a; b).");
      against = this.items(what);
    }
    const given = this.skip("|") ? this.items("a variable or a condition") : [];
    this.close(closed, !given.length);
    this.checkNames(verb, [...asked, ...against]);
    return { verb, asked, given, against, count, at };
  }

  atBarOrEnd(closed) {
    return this.token.kind === "end" || this.sees("sign", "|", ...(closed ? [")"] : []));
  }

  count() {
    const token = this.take();
    if (token.kind !== "word" || !/^[0-9]+$/.test(token.text))
      this.fail(`Expected the number of records to sample, found ${found(token)}.`, token.at);
    if (token.text.length > 9 || Number(token.text) > MOST_RECORDS)
      this.fail(`A question samples at most ${MOST_RECORDS.toLocaleString("en-US")} records.`, token.at);
    this.skip(",");
    return [token.at, Number(token.text)];
  }

  close(closed, bar) {
    const others = bar ? [",", "|"] : [","];
    if (closed) this.expect(")", others);
    else if (this.token.kind !== "end") {
      const wanted = others.map((other) => `"${other}"`).join(", ");
      this.fail(`Expected ${wanted} or the end, found ${found(this.token)}.${this.hint()}`);
    }
    if (this.token.kind !== "end") this.fail(`Expected the end, found ${found(this.token)}.`);
  }

  checkNames(verb, asked) {
    if (verb === "P") {
      for (const item of asked)
        if (item.kind === "soft") this.fail("Soft evidence (~) must be to the right of the bar.", item.name.at);
      return;
    }
    for (const item of asked) {
      if (item.kind !== "name")
        this.fail(`${verb} takes variables, not conditions; P takes both.`, item.name.at);
    }
    if (verb === "E" && asked.length > 1)
      this.fail("E takes one variable: ask about each one separately.", asked[1].at);
  }

  items(what) {
    const items = [this.item(what)];
    while (this.skip(",")) items.push(this.item(what));
    return items;
  }

  item(what) {
    const negation = this.sees("word", "not") ? this.take() : null;
    if (negation && this.sees("word", "not")) this.fail('Expected a condition after not, found "not".');
    const left = this.operand(negation ? "a condition after not" : what);
    if (this.sees("sign", "=", "!=")) return this.equality(left, negation);
    if (this.sees("word", "in", "not")) return this.membership(left, negation);
    if (this.sees("sign", ...ORDER)) return this.order(left, negation);
    if (this.sees("word", "applies", "does")) return this.applies(left, negation);
    if (negation) {
      if (this.sees("sign", "~")) this.fail("Soft evidence (~) cannot be negated.", negation.at);
      this.fail(`Expected a condition after not, found ${found(this.token)}.`);
    }
    return this.sees("sign", "~") ? this.soft(left) : this.name(left);
  }

  operand(what) {
    const token = this.take();
    if (token.kind !== "word" && token.kind !== "quoted")
      this.fail(`Expected ${what}, found ${found(token)}.`, token.at);
    return token;
  }

  name(token) {
    if (token.kind === "word" && RESERVED.includes(token.text)) {
      this.fail(`Expected a variable, found "${token.text}": put it in quotes if that is its name.`, token.at);
    }
    return { kind: "name", text: token.text, at: token.at };
  }

  label() {
    if (this.sees("sign", "{")) this.fail("Expected a label; for one of several, write: in {x, y}.");
    if (this.sees("sign", ...ORDER, "=", "!="))
      this.fail(`Expected a label, found ${found(this.token)}: a label with symbols needs quotes.`);
    return asLabel(this.operand("a label"));
  }

  equality(left, negation) {
    const negated = (this.take().text === "!=") !== Boolean(negation);
    return { kind: "among", name: this.name(left), labels: [this.label()], negated };
  }

  membership(left, negation) {
    const name = this.name(left);
    let negated = Boolean(negation);
    if (this.sees("word", "not")) {
      this.take();
      negated = !negated;
    }
    if (!this.sees("word", "in")) this.fail(`Expected "in", found ${found(this.token)}.`);
    this.take();
    this.expect("{");
    const labels = [this.label()];
    while (this.skip(",")) {
      const label = this.label();
      if (!labels.some((other) => sameLabel(other, label))) labels.push(label);
    }
    this.expect("}", [","]);
    return { kind: "among", name, labels, negated };
  }

  applies(left, negation) {
    const name = this.name(left);
    let negated = Boolean(negation);
    if (this.take().text === "does") {
      for (const word of ["not", "apply"]) {
        if (!this.sees("word", word)) this.fail(`Expected "${word}", found ${found(this.token)}.`);
        this.take();
      }
      negated = !negated;
    }
    return { kind: "applies", name, negated };
  }

  soft(left) {
    const name = this.name(left);
    this.take();
    this.expect("{");
    const pairs = [];
    do {
      const label = this.label();
      if (pairs.some(([other]) => sameLabel(other, label)))
        this.fail(`The label ${labelText(label)} appears twice.`, label.at);
      this.expect(":");
      pairs.push([label, this.likelihood()]);
    } while (this.skip(","));
    this.expect("}", [","]);
    return { kind: "soft", name, pairs };
  }

  likelihood() {
    const number = asLabel(this.operand("a number"));
    if (!number.number || number.text.startsWith("-"))
      this.fail(`Expected a number of zero or more, found ${quote(number.text)}.`, number.at);
    return number;
  }

  order(left, negation) {
    let sign = this.take().text;
    let right = this.operand("a label");
    if (this.sees("sign", ...ORDER)) return this.range(left, sign, right, Boolean(negation));
    if (asLabel(left).number && !asLabel(right).number) [left, sign, right] = [right, MIRRORED[sign], left];
    if (negation) sign = OPPOSITE[sign];
    const bound = { label: asLabel(right), included: sign.endsWith("=") };
    const above = sign.startsWith(">");
    return {
      kind: "between",
      name: this.name(left),
      low: above ? bound : null,
      high: above ? null : bound,
      negated: false,
    };
  }

  range(left, sign, middle, negated) {
    const { at } = this.token;
    const second = this.take().text;
    const right = this.operand("a label");
    if (sign[0] !== second[0])
      this.fail(`Expected "${sign[0]}" or "${sign[0]}=": both must point the same way.`, at);
    const ends = [
      { label: asLabel(left), included: sign.endsWith("=") },
      { label: asLabel(right), included: second.endsWith("=") },
    ];
    const [low, high] = sign[0] === "<" ? ends : ends.reverse();
    return { kind: "between", name: this.name(middle), low, high, negated };
  }
}

function asLabel(token) {
  return { text: token.text, number: token.kind === "word" && readsAsNumber(token.text), at: token.at };
}

function sameLabel(a, b) {
  return a.text === b.text && a.number === b.number;
}

function found(token) {
  return token.kind === "end" ? "the end" : quote(token.text);
}

function noVerb(token) {
  const reason = `Expected P(...), E(...), H(...), MI(...), argmax or sample, found ${found(token)}.`;
  const near = VERBS.find((verb) => token.kind === "word" && verb.toLowerCase() === token.text.toLowerCase());
  return near ? `${reason} Did you mean ${near}?` : reason;
}

export function labelText(label) {
  return label.number ? label.text : nameText(label.text);
}

/** The one canonical text of a question; `text` is that of an item. */
export function queryText(query, text = itemText) {
  const list = (items) => items.map((item) => text(item)).join(", ");
  const asked = list(query.asked) + (query.against.length ? `; ${list(query.against)}` : "");
  const given = query.given.length ? `| ${list(query.given)}` : "";
  const inner = [asked, given].filter(Boolean).join(" ");
  if (query.verb === "argmax" || query.verb === "sample") {
    return [query.verb, query.count === null ? "" : String(query.count), inner].filter(Boolean).join(" ");
  }
  return `${query.verb}(${inner})`;
}

export function itemText(item) {
  if (item.kind === "name") return nameText(item.text);
  const name = nameText(item.name.text);
  if (item.kind === "applies") return `${name} ${item.negated ? "does not apply" : "applies"}`;
  if (item.kind === "soft")
    return `${name} ~ {${item.pairs.map(([label, number]) => `${labelText(label)}: ${number.text}`).join(", ")}}`;
  if (item.kind === "among") {
    if (item.labels.length === 1) return `${name} ${item.negated ? "!=" : "="} ${labelText(item.labels[0])}`;
    return `${name} ${item.negated ? "not in" : "in"} {${item.labels.map(labelText).join(", ")}}`;
  }
  return rangeText(item, name);
}

function rangeText({ low, high, negated }, name) {
  const sign = (bound, mark) => `${mark}${bound.included ? "=" : ""}`;
  let text;
  if (low && high)
    text = `${labelText(low.label)} ${sign(low, "<")} ${name} ${sign(high, "<")} ${labelText(high.label)}`;
  else if (low) text = `${name} ${sign(low, ">")} ${labelText(low.label)}`;
  else text = `${name} ${sign(high, "<")} ${labelText(high.label)}`;
  return negated ? `not ${text}` : text;
}
