// A whole record: the most probable completion of the evidence, or a record of the data with its
// missing cells filled and its surprising cells marked.

import { barChart } from "./chart.js";
import { count, percent, probability } from "./format.js";
import { h, note, plainTable, replace } from "./dom.js";
import { cellGivenOthers, readCells } from "./cells.js";
import { infer, marginal } from "./inference.js";
import { mostProbable } from "./modes.js";
import { python, question } from "./code.js";
import { readRecords } from "./support.js";
import { shareBar } from "./share.js";

const SURPRISING = 0.05;
const MOST_ROWS = 400;
const DRAWN = 80; // bars of a picture

export class RecordView {
  static id = "record";
  static title = "Record";

  constructor(app) {
    this.app = app;
    this.records = app.model.records ??= readRecords(app.model);
    this.bar = h("div", { class: "toolbar" });
    this.words = h("p", { class: "note" });
    this.body = h("div", { class: "panel" });
    this.element = h(
      "div",
      {},
      h("h2", { class: "quiet", text: "Record" }),
      this.bar,
      this.words,
      this.body,
      shareBar(app, this),
    );
  }

  /** Number of the record shown, from 1; 0 for the completion of the evidence. */
  get number() {
    const asked = Number(this.app.get("record", "0"));
    return this.records && asked >= 1 && asked <= this.records.size ? Math.floor(asked) : 0;
  }

  show(number) {
    this.app.set("record", number ? String(number) : null);
  }

  update() {
    this.drawBar();
    const { cells, words } = this.number ? this.recorded() : this.completed();
    this.cells = cells;
    this.words.textContent = words;
    const shown = cells.slice(0, MOST_ROWS);
    const left = cells.length - shown.length;
    replace(this.body, cellTable(shown), note(left && `and ${count(left)} more cells; the CSV has them all`));
  }

  drawBar() {
    const { number, records } = this;
    const button = (text, act, disabled = false) =>
      h("button", { class: "small", type: "button", text, disabled, on: { click: act } });
    if (!records)
      return replace(
        this.bar,
        note("Most probable completion of the evidence. You can step through records if the page was made with data."),
      );
    const box = h("input", {
      type: "number",
      min: 1,
      max: records.size,
      value: number || "",
      id: "record-number",
      on: { change: () => this.show(Number(box.value)) },
    });
    replace(
      this.bar,
      h(
        "label",
        { class: "field" },
        h("span", { class: "field-name", text: `Record, 1 to ${count(records.size)}` }),
        box,
      ),
      button("Previous", () => this.show(number - 1), number < 1),
      button("Next", () => this.show(number + 1), number >= records.size),
      button("Most surprising", () => this.show(this.oddest())),
      button("Give its cells", () => this.give(), number === 0),
      button("Back to the evidence", () => this.show(0), number === 0),
    );
  }

  codes(number) {
    return this.records.columns.map((column) => column[number - 1]);
  }

  give() {
    const pieces = this.codes(this.number).map((code, n) => [n, { kind: "in", levels: [code] }]);
    this.app.give(
      new Map(pieces.filter(([n, piece]) => piece.levels[0] >= 0 && this.app.model.variables[n].size > 1)),
    );
  }

  completed() {
    const { app } = this;
    if (!app.now.possible)
      return { cells: [], words: "The evidence is impossible under this model: nothing completes it." };
    const open = app.model.variables
      .map((_, n) => n)
      .filter((n) => app.evidence.get(n)?.levels?.length !== 1 || app.evidence.get(n).kind !== "in");
    const found = mostProbable(app.model.mixture, app.now.state, open);
    const at = new Map(open.map((n, k) => [n, found.levels[k]]));
    const cells = app.model.variables.map((variable, n) => {
      const level = at.get(n) ?? app.evidence.get(n).levels[0];
      const prob = marginal(app.model.mixture, app.now.state, n)[level];
      return { variable, n, level, prob, status: at.has(n) ? "completed" : "given" };
    });
    return { cells, words: foundWords("Most probable completion", found) };
  }

  /** A record: missing cells by the most probable completion, cells by their probability given the others. */
  recorded() {
    const joint = this.app.model.mixture;
    const codes = this.codes(this.number);
    const record = readCells(joint, codes);
    const missingCells = codes.flatMap((code, n) => (code < 0 ? [n] : []));
    const state = infer(joint, record.given);
    const found = missingCells.length && state.possible ? mostProbable(joint, state, missingCells) : null;
    const cells = joint.variables.map((variable, n) => {
      if (codes[n] >= 0)
        return { variable, n, level: codes[n], status: "recorded", ...judged(joint, record, codes[n], n) };
      if (!found) return { variable, n, level: null, prob: NaN, status: "missing" };
      const level = found.levels[missingCells.indexOf(n)];
      return { variable, n, level, prob: marginal(joint, state, n)[level], status: "imputed" };
    });
    const odd = cells.filter((cell) => cell.surprising).length;
    const words = `Record ${count(this.number)}: probability ${probability(state.logProb)}, ${missingCells.length ? `${missingCells.length} missing, ` : ""}${odd || "no"} surprising ${odd === 1 ? "cell" : "cells"}. ${found ? foundWords("Missing cells filled together", found) : ""}`;
    return { cells, words };
  }

  /** The record with the least probable cell given its others; the first of equals. */
  oddest() {
    this.app.model.oddest ??= this.findOddest();
    return this.app.model.oddest;
  }

  findOddest() {
    const joint = this.app.model.mixture;
    const levels = joint.variables.reduce((sum, { size }) => sum + size, 0);
    const most = Math.min(this.records.size, Math.ceil(20_000_000 / (levels * joint.rank)));
    let [best, least] = [1, Infinity];
    for (let number = 1; number <= most; number++) {
      const codes = this.codes(number);
      const record = readCells(joint, codes);
      codes.forEach((code, n) => {
        if (code < 0) return;
        const prob = cellGivenOthers(joint, record, n)?.[code];
        if (prob < least) [best, least] = [number, prob];
      });
    }
    return best;
  }

  table() {
    return [
      ["variable", "value", "status", "prob", "surprising"],
      ...this.cells.map(({ variable, level, prob, status, surprising }) => [
        variable.name,
        level === null ? "" : variable.labels[level],
        status,
        prob,
        surprising ? "yes" : "",
      ]),
    ];
  }

  chart() {
    const rows = this.cells
      .filter(({ prob }) => prob >= 0)
      .map(({ variable, level, prob, surprising }) => ({
        label: `${variable.name} = ${variable.labels[level]}${surprising ? " !" : ""}`,
        after: prob,
      }));
    return barChart(rows.slice(0, DRAWN), {
      title: this.number
        ? `Record ${this.number}: probability of each cell given the others`
        : "Most probable completion: probability of each level",
    });
  }

  query() {
    return question(this.app.model, "argmax", [], this.number ? this.asEvidence() : this.app.evidence);
  }

  python() {
    return python(
      this.app.model,
      (given) => `mode(${given})`,
      this.number ? this.asEvidence() : this.app.evidence,
    );
  }

  asEvidence() {
    return new Map(
      this.codes(this.number).flatMap((code, n) => (code < 0 ? [] : [[n, { kind: "in", levels: [code] }]])),
    );
  }
}

function foundWords(what, found) {
  const doubt = found.exact ? "" : ` (best found; none has more than ${probability(found.logBound)})`;
  return `${what}: probability ${probability(found.logProb)}${doubt}.`;
}

/** How probable a cell is given the others, and what would have been expected. */
function judged(joint, record, level, n) {
  const bars = cellGivenOthers(joint, record, n);
  if (!bars) return { prob: NaN, surprising: false };
  const expected = bars.indexOf(bars.reduce((a, b) => Math.max(a, b), 0));
  const surprising = bars[level] < SURPRISING && expected !== level;
  return { prob: bars[level], surprising, expected, expectedProb: bars[expected] };
}

function cellTable(cells) {
  const row = ({ variable, level, prob, status, surprising, expected, expectedProb }) =>
    h(
      "tr",
      { "data-status": status, "data-surprising": Boolean(surprising) },
      h("th", { scope: "row" }, h("bdi", { text: variable.name })),
      h("td", {}, h("bdi", { text: level === null ? "missing" : variable.labels[level] })),
      h("td", { text: status }),
      h("td", { class: "number", text: status === "given" ? "" : percent(prob) }),
      h(
        "td",
        {},
        surprising
          ? [
              h("strong", { text: "surprising" }),
              `, expected ${variable.labels[expected]} (${percent(expectedProb)})`,
            ]
          : "",
      ),
    );
  const columns = [["Variable"], ["Value"], ["Status"], ["Probability", "number"], ["Remark"]];
  return plainTable("Cells", columns, cells.map(row));
}
