// Counts beside the answers: a page that is served asks rejoint, which has the records of the fit or
// their small tables. Bars are then the best of count and model, and a tick is the count.

import { evidenceKey } from "./basis.js";
import { post } from "./post.js";

const WAIT = 250; // ms without new evidence before counts are asked for

/** The bars of a variable by count and model together, {value, interval, counted}; null without. */
export function countedBars(model, n, likelihoods) {
  return model.askedCounts?.get(evidenceKey(likelihoods))?.[n] ?? null;
}

let timer = 0;

/** Ask for all bars given evidence, and without; `done` is called when they are there. */
export function askCounts(model, likelihoods, done) {
  clearTimeout(timer);
  if (!model.doc.can_count) return;
  model.askedCounts ??= new Map();
  const wanted = [new Map(), likelihoods].filter((each) => !model.askedCounts.has(evidenceKey(each)));
  if (!wanted.length) return;
  timer = setTimeout(async () => {
    for (const each of wanted) {
      const found = await post(
        "counts",
        [...each].map(([n, found]) => [n, [...found]]),
      );
      if (!found) return;
      const bars = Object.entries(found).map(([n, plain]) => [n, readAnswer(plain)]);
      model.askedCounts.set(evidenceKey(each), Object.fromEntries(bars));
    }
    done();
  }, WAIT);
}

/** An answer of the page with what rejoint makes of it; null where the model answers alone. */
export async function askCounted(model, answer) {
  if (!model.doc.can_count || !["probability", "table", "expectation"].includes(answer.kind)) return null;
  const plain = await post("counts", answer.query);
  if (!plain?.counted && plain?.counted !== 0) return null;
  return { ...answer, ...readAnswer(plain), notes: plain.notes };
}

/** Numbers of an answer in JSON as arrays; the value of a single one stays a number. */
function readAnswer({ value, interval, counted, records, model }) {
  const array = (x) => Float64Array.from([x].flat(Infinity), (each) => each ?? NaN);
  return {
    value: typeof value === "number" ? value : array(value),
    interval: interval && { ...interval, low: array(interval.low), high: array(interval.high) },
    counted: array(counted),
    records: array(records),
    byModel: array(model),
  };
}
