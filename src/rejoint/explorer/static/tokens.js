// From text to tokens, as rejoint.language.tokens has it. Places count code points.

import { quote } from "./words.js";

const MAX_LENGTH = 10_000;
const SIGNS = ["<=", ">=", "!=", "==", "<>", "≤", "≥", "≠", ..."(){},;|:~=<>"];
const MEANING = { "==": "=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!=" };
const ESCAPES = { "\\": "\\", '"': '"', "'": "'", n: "\n", t: "\t", r: "\r" };
const SPACE = /^[\t\n\v\f\r\ufeff\p{Z}]$/u;
const LETTER = /^[_.+\-\p{L}\p{M}\p{N}]$/u;

/** A question that cannot be read; `position` counts code points from zero. */
export class QueryError extends Error {
  constructor(reason, text, position) {
    super(reason);
    this.reason = reason;
    this.text = text;
    this.position = position;
  }
}

export function tokenize(text) {
  const chars = Array.from(text);
  if (chars.length > MAX_LENGTH) {
    const [most, got] = [MAX_LENGTH, chars.length].map((n) => n.toLocaleString("en-US"));
    throw new QueryError(`A question has at most ${most} characters; this one has ${got}.`, text, MAX_LENGTH);
  }
  const tokens = [];
  let at = 0;
  while (at < chars.length) {
    if (SPACE.test(chars[at])) {
      at++;
      continue;
    }
    const [token, end] = next(chars, at, text);
    tokens.push(token);
    at = end;
  }
  return [...tokens, { kind: "end", text: "", at: chars.length }];
}

function next(chars, at, text) {
  const char = chars[at];
  if (char === '"' || char === "'") return quoted(chars, at, text);
  if (LETTER.test(char)) {
    let end = at + 1;
    while (end < chars.length && LETTER.test(chars[end])) end++;
    return [{ kind: "word", text: chars.slice(at, end).join(""), at }, end];
  }
  for (const sign of SIGNS) {
    if (sign === chars.slice(at, at + sign.length).join(""))
      return [{ kind: "sign", text: MEANING[sign] ?? sign, at }, at + sign.length];
  }
  const advice = /^[\p{Pi}\p{Pf}]$/u.test(char)
    ? "quotes are written \" or '"
    : "put names and labels that contain it in quotes.";
  throw new QueryError(`The character ${quote(char)} has no meaning here: ${advice}`, text, at);
}

function quoted(chars, start, text) {
  const parts = [];
  let at = start + 1;
  while (at < chars.length) {
    if (chars[at] === chars[start]) return [{ kind: "quoted", text: parts.join(""), at: start }, at + 1];
    if (chars[at] === "\\") {
      const [char, end] = escape(chars, at, text);
      parts.push(char);
      at = end;
    } else {
      parts.push(chars[at++]);
    }
  }
  throw new QueryError(`This quote is never closed: expected another ${chars[start]}`, text, start);
}

function escape(chars, at, text) {
  const letter = chars[at + 1];
  if (letter !== undefined && Object.hasOwn(ESCAPES, letter)) return [ESCAPES[letter], at + 2];
  if (letter === "u" && chars[at + 2] === "{") {
    let end = at + 3;
    while (end < chars.length && /^[0-9a-fA-F]$/.test(chars[end]) && end < at + 9) end++;
    const digits = chars.slice(at + 3, end).join("");
    if (digits && chars[end] === "}" && parseInt(digits, 16) <= 0x10ffff)
      return [String.fromCodePoint(parseInt(digits, 16)), end + 1];
  }
  throw new QueryError(
    "Unknown escape in a quoted text: expected \\\\, \\\", \\', \\n, \\t, \\r or \\u{...}; a backslash itself is written \\\\",
    text,
    at,
  );
}
