// Labels and comparisons of a question into levels of a variable, as rejoint.language.levels has it.

import { labelText, QueryError } from "./grammar.js";
import { quote } from "./words.js";

/** The known text that is the same but for capitals, as advice, else what is known. */
export function advise(text, known, what) {
  const near = known.find((name) => name.toLowerCase() === text.toLowerCase());
  return near === undefined ? `${what} ${list(known)}.` : `Did you mean ${quote(near)}?`;
}

function list(texts, most = 6) {
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
  likelihood(conditions) {
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
    const met = this.contents ? this.share(found) : found;
    if (!conditions.some(({ kind }) => kind === "soft")) return met;
    const top = met.reduce((a, b) => Math.max(a, b), 0) || 1; // products may be tiny; only ratios matter
    return met.map((x) => x / top);
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
      const advice = advise(label.text, labels, "Its levels are");
      this.fail(`${quote(name)} has no level ${quote(label.text)}. ${advice}`, label);
    }
    return code;
  }

  /** A label, or the bin that it was read as. */
  shown(label) {
    return this.readAs.get(label.text) ?? labelText(label);
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
      if (seen.has(code)) this.fail("A level appears twice.", label);
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
    if (variable.kind === "nominal" && this.byNumber.size !== variable.valued)
      this.fail(`${quote(variable.name)} is nominal: its levels have no order. List those meant.`, condition.name);
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
      const bin = `${this.variable.labels[cut]} of ${quote(this.variable.name)}`;
      this.fail(`The bin ${bin} would be cut at ${label.text}, and what is within it is not known.`, label);
    }
    return below;
  }
}
