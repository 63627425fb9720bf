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

const DIGITS = 4;
const MOST_DECIMALS = 6;
const [SMALL, LARGE] = [1e-4, 1e15];

/** A number with four significant digits, and no digit before the point left out: as Python has it. */
export function formatNumber(value) {
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf").replace("NaN", "nan");
  if (value === 0) return "0";
  if (!(SMALL <= Math.abs(value) && Math.abs(value) < LARGE))
    return value
      .toExponential(DIGITS - 1)
      .replace(/\.?0*e/, "e")
      .replace("+", "");
  const text = rounded(value, Math.min(tens(value) - DIGITS + 1, 0));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A number and its bounds with the digits that matter, two of the distance of the bounds: as Python
 * has it. */
export function formatInterval(value, low, high) {
  const numbers = [value, low, high];
  if (!numbers.every(Number.isFinite) || !(high > low)) return numbers.map(formatNumber);
  const largest = Math.max(...numbers.map(Math.abs));
  if (!(SMALL <= largest && largest < LARGE)) {
    const last = tens(high - low) - 1;
    const decimals = (/** @type {number} */ x) => Math.min(Math.max(tens(x) - last, 1), MOST_DECIMALS);
    return numbers.map((x) => (x === 0 ? "0" : x.toExponential(decimals(x)).replace("+", "")));
  }
  return numbers.map((x) => rounded(x, Math.max(lastPlace(value, low, high), -MOST_DECIMALS)));
}

/** The power of ten of the last digit that matters. */
function lastPlace(value, low, high) {
  let place = tens(high - low) - 1;
  if (value !== 0) place = Math.min(place, tens(value));
  if (value > 0 && value < 1) place = Math.min(place, tens(1 - value));
  return place;
}

/** A probability and its bounds in percent, with the same digits. */
export function percentInterval(value, low, high) {
  const numbers = [value, low, high];
  if (!numbers.every(Number.isFinite) || !(high > low)) return numbers.map((x) => percent(x, 2));
  const place = Math.max(lastPlace(value, low, high) + 2, -MOST_DECIMALS);
  return numbers.map((x) => `${rounded(100 * x, place)} %`);
}

/** The power of ten of the first digit. */
function tens(value) {
  return Number(value.toExponential().split("e")[1]);
}

/** Rounded to a power of ten, halves away from zero, with commas between thousands. */
function rounded(value, place) {
  const text = place > 0 ? `${(value / 10 ** place).toFixed(0)}${"0".repeat(place)}` : value.toFixed(-place);
  const [, sign, whole, rest] = /^(-?)(\d+)(.*)$/.exec(text);
  const shown = `${whole.replace(/^0+(?=\d)/, "").replace(/\B(?=(\d{3})+$)/g, ",")}${rest}`;
  return /[1-9]/.test(shown) ? `${sign}${shown}` : shown;
}
