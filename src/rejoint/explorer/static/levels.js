// Labels and comparisons of a question into levels of a variable, as rejoint.language.levels has it.

import { QueryError } from "./tokens.js";
import { nameText, quote } from "./words.js";

/** " Did you mean ...?" for the nearest of what is known, or nothing. */
export function suggest(text, known) {
  if (text.length > 100) return "";
  const short = known.slice(0, 20_000).filter((name) => name.length <= 100);
  const same = short.find((name) => name.toLowerCase() === text.toLowerCase());
  const scored = same ? [] : short.map((name) => [likeness(text, name), name]).sort((a, b) => b[0] - a[0]);
  const near = same ?? (scored[0]?.[0] >= 0.6 ? scored[0][1] : undefined);
  return near === undefined ? "" : ` Did you mean ${quote(near)}?`;
}

/** Twice the letters in common, in order, over the letters of both. */
function likeness(a, b) {
  let row = new Array(b.length + 1).fill(0);
  for (const x of a) {
    const next = [0];
    for (let j = 1; j <= b.length; j++)
      next.push(x === b[j - 1] ? row[j - 1] + 1 : Math.max(row[j], next[j - 1]));
    row = next;
  }
  return (2 * row[b.length]) / (a.length + b.length || 1);
}

export function known(texts, most = 6) {
  const shown = texts.slice(0, most).map(quote).join(", ");
  return texts.length <= most ? shown : `${shown}, ... (${texts.length} in all)`;
}

const number = (level) =>
  typeof level === "number"
    ? level
    : level?.float !== undefined
      ? Number(level.float.replace("inf", "Infinity"))
      : null;

/** The levels of one variable as questions name them. */
export class Levels {
  constructor(variable, text) {
    this.variable = variable;
    this.text = text;
    this.readAs = new Map();
    this.byText = new Map();
    this.byNumber = new Map();
    variable.levels.forEach((level, i) => {
      const label = variable.labels[i];
      if (typeof level === "string" || !this.byText.has(label)) this.byText.set(label, i);
      if (number(level) !== null) this.byNumber.set(number(level), i);
    });
    variable.levels.forEach((level, i) => {
      if (typeof level === "boolean" && !this.byText.has(String(level))) this.byText.set(String(level), i);
    });
    this.contents = variable.contents && [...variable.contents, ...(variable.empty ? [[[NaN, 1]]] : [])];
    const sizes = this.contents?.map((within) => within.length);
    this.owner = variable.labels.flatMap((_, i) => new Array(sizes ? sizes[i] : 1).fill(i));
    this.bins = variable.levels.map((level) => (level?.bin ? level.bin.map((x) => number(x) ?? x) : null));
  }

  /** One number for each level: how likely it is made, or its share that meets all conditions. */
  likelihood(...conditions) {
    const found = new Float64Array(this.owner.length).fill(1);
    for (const condition of conditions) {
      if (condition.kind === "soft") {
        const soft = this.soft(condition);
        this.owner.forEach((level, at) => (found[at] *= soft[level]));
        continue;
      }
      const meets = this[condition.kind](condition);
      const isBetween = condition.kind === "between"; // the level of empty cells has no place in the order
      this.owner.forEach((level, at) => {
        if (meets[isBetween ? at : level] === condition.negated || (isBetween && level >= this.variable.valued))
          found[at] = 0;
      });
    }
    return this.contents ? this.share(found) : found;
  }

  /** The mean over the values of each bin; a bin that is met as a whole is met exactly. */
  share(found) {
    let at = 0;
    return Float64Array.from(this.contents, (within) => {
      const mine = found.subarray(at, (at += within.length));
      if (mine.every((x) => x === mine[0])) return mine[0];
      const total = within.reduce((sum, [, mass]) => sum + mass, 0);
      return within.reduce((sum, [, mass], k) => sum + mine[k] * (mass / total), 0);
    });
  }

  code(label) {
    let code = label.number
      ? (this.byNumber.get(Number(label.text)) ?? this.byText.get(label.text) ?? -1)
      : (this.byText.get(label.text) ?? -1);
    if (code < 0 && label.number) {
      const x = Number(label.text);
      code = this.bins.findIndex((bin) => bin && bin[0] <= x && (bin[2] ? x <= bin[1] : x < bin[1]));
      if (code >= 0) this.readAs.set(label.text, this.variable.labels[code]);
    }
    if (code < 0) {
      const { name, labels } = this.variable;
      this.fail(
        `${quote(name)} has no level ${quote(label.text)}; its levels are ${known(labels)}.${suggest(label.text, labels)}`,
        label,
      );
    }
    return code;
  }

  /** A condition with the bins that it was read as in place of numbers, as text; null if there are none. */
  inBins({ kind, name, labels, pairs, negated }, labelText) {
    const shown = (label) => this.readAs.get(label.text) ?? labelText(label);
    const text = nameText(name.text);
    if (kind === "soft" && this.readAs.size)
      return `${text} ~ {${pairs.map(([label, value]) => `${shown(label)}: ${value.text}`).join(", ")}}`;
    if (kind !== "among" || !labels.some((label) => this.readAs.has(label.text))) return null;
    const bins = [...new Set(labels.map(shown))];
    const within = negated ? "not in" : "in";
    if (bins.length > 1) return `${text} ${within} {${bins.join(", ")}}`;
    if (bins[0].startsWith("[")) return `${text} ${within} ${bins[0]}`;
    return `${negated ? "not " : ""}${text} ${bins[0]}`;
  }

  /** The position of a level that has a place in the order. */
  valueCode(label) {
    const code = this.code(label);
    if (code >= this.variable.valued)
      this.fail(`${quote(label.text)} has no place in the order of the levels.`, label);
    return code;
  }

  fail(reason, label) {
    throw new QueryError(reason, this.text, label.at);
  }

  among({ labels }) {
    const codes = new Set(labels.map((label) => this.code(label)));
    return this.variable.labels.map((_, i) => codes.has(i));
  }

  applies() {
    return this.variable.labels.map((_, i) => i < this.variable.valued);
  }

  soft({ pairs }) {
    const out = new Float64Array(this.variable.size);
    const seen = new Set();
    for (const [label, value] of pairs) {
      const code = this.code(label);
      if (seen.has(code)) this.fail(`The level ${quote(this.variable.labels[code])} appears twice.`, label);
      seen.add(code);
      out[code] = Number(value.text);
      if (!Number.isFinite(out[code])) this.fail("This number is too large.", value);
    }
    const top = out.reduce((a, b) => Math.max(a, b), 0);
    if (top === 0) this.fail("At least one likelihood must be above zero.", pairs[0][1]);
    return out.map((x) => x / top);
  }

  between(condition) {
    const { variable } = this;
    if (variable.kind === "nominal" && this.byNumber.size !== variable.valued) {
      const { name } = variable;
      throw new QueryError(
        `${quote(name)} is nominal: its levels have no order to compare by. List the levels that are meant ` +
          `(${name} in {...}), or declare the variable ordinal when the data are read.`,
        this.text,
        condition.name.at,
      );
    }
    const low = condition.low ? this.below(condition.low, !condition.low.included) : null;
    const high = condition.high ? this.below(condition.high, condition.high.included) : null;
    return this.owner.map((_, at) => !low?.[at] && (high ? high[at] : true));
  }

  /** Which values lie below a bound, or at it if that is inclusive: of levels, or within bins. */
  below({ label }, inclusive) {
    const { variable } = this;
    const value = label.number ? Number(label.text) : null;
    if (value !== null && variable.kind === "binned") return this.binsBelow(label, value, inclusive);
    if (this.byNumber.size === variable.valued) {
      const numbers = [...this.byNumber.keys()];
      const limit = value ?? numbers[this.valueCode(label)];
      return this.owner.map((i) => i < variable.valued && (inclusive ? numbers[i] <= limit : numbers[i] < limit));
    }
    const code = this.valueCode(label);
    return this.owner.map((i) => (inclusive ? i <= code : i < code));
  }

  binsBelow(label, value, inclusive) {
    if (this.contents) return this.contents.flat().map(([x]) => (inclusive ? x <= value : x < value));
    const below = this.bins.map(
      (bin) => bin && (bin[2] && Number.isFinite(bin[1]) && !inclusive ? bin[1] < value : bin[1] <= value),
    );
    const cut = this.bins.findIndex(
      (bin, i) => bin && !below[i] && !(inclusive ? bin[0] > value : bin[0] >= value),
    );
    if (cut >= 0) {
      this.fail(
        `The bin ${this.variable.labels[cut]} of ${quote(this.variable.name)} would be cut at ${label.text}, and the distribution within it is not known: ${wayOut(this.bins[cut], value)}.`,
        label,
      );
    }
    return below;
  }
}

function wayOut([left, right], value) {
  if (value === left) return `it holds ${value} itself, so write < or >=`;
  if (value === right) return `it holds ${value} itself, so write <= or >`;
  const edges = [left, right].filter(Number.isFinite);
  return edges.length ? `compare with ${edges.join(" or ")}` : "it is the only one";
}
