// Characters of the query language: what may stand without quotes, and how quotes are written.

const WORD = /^[\p{L}\p{M}\p{N}_.+-]+$/u;
const RESERVED = ["in", "not"];

function isWord(text) {
  return WORD.test(text);
}

/** Digits, at most one point, an exponent, a sign. */
export function readsAsNumber(text) {
  return /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(text);
}

/** A text in double quotes that reads back the same. */
export function quote(text) {
  const plain = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r" };
  const escape = (c) =>
    plain[c] ?? (/^[\p{C}\p{Zl}\p{Zp}]$/u.test(c) ? `\\u{${c.codePointAt(0).toString(16)}}` : c);
  return `"${Array.from(text, escape).join("")}"`;
}

export function nameText(name) {
  return isWord(name) && !readsAsNumber(name) && !RESERVED.includes(name) ? name : quote(name);
}
