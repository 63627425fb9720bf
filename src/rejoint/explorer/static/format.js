// Numbers and labels as people read them.

/** 0.453 as "45.3 %"; what is neither none nor all is never rounded to 0 or 100. */
export function percent(p, digits = 1) {
  if (!Number.isFinite(p)) return "–";
  const least = 10 ** -digits;
  const value = 100 * p;
  if (p > 1 - 1e-12) return "100 %"; // given, but for rounding
  if (p > 0 && value < least / 2) return `<${least.toFixed(digits)} %`;
  if (p < 1 && value > 100 - least / 2) return `>${(100 - least).toFixed(digits)} %`;
  return `${value.toFixed(digits)} %`;
}

/** Change in percentage points, with an arrow; empty where there is none to speak of. */
export function points(change) {
  const value = 100 * change;
  if (!(Math.abs(value) >= 0.05)) return "";
  return `${value > 0 ? "▲" : "▼"} ${Math.abs(value).toFixed(1)}`;
}

/** A probability of any size, from its logarithm. */
export function probability(log) {
  if (log === -Infinity) return "0";
  const p = Math.exp(log);
  if (p >= 0.0995) return percent(p, 1);
  if (p >= 0.000995) return percent(p, 2);
  const tens = Math.floor(log / Math.LN10 + 1e-12);
  const lead = Math.exp(log - tens * Math.LN10);
  return `${lead.toFixed(1)} × 10${superscript(tens)}`;
}

function superscript(number) {
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  return String(number).replace(/./g, (c) => (c === "-" ? "⁻" : digits[Number(c)]));
}

export function count(number) {
  return Math.round(number).toLocaleString("en-US");
}

export function bits(value) {
  if (value < 0.0005) return value > 1e-9 ? "<0.001 bit" : "0 bit";
  return `${value.toFixed(value >= 0.0995 ? 2 : 3)} bit`;
}

export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}
