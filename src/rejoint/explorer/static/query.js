// The query box: a question as text, its answer as a table or a picture.

import { ask } from "./ask.js";
import { askCounted } from "./counts.js";
import { barChart, heatMap, room } from "./chart.js";
import { count, formatInterval, formatNumber, percent, percentInterval, probability } from "./format.js";
import { describe } from "./evidence.js";
import { describeBounds } from "./intervals.js";
import { h, note, plainTable, replace, scroll } from "./dom.js";
import { levelsAt } from "./tables.js";
import { QueryError } from "./grammar.js";
import { askPython, question } from "./code.js";
import { shareBar } from "./share.js";

const MOST_ROWS = 300;
const EXAMPLES = [
  "P(a, b | c = x)",
  "P(a = x | b in {y, z})",
  "E(a | b)",
  "argmax | a = x",
  "H(a | b)",
  "MI(a; b)",
  "sample 10 | a = x",
];

export class QueryView {
  static id = "ask";
  static title = "Ask";

  constructor(app) {
    this.app = app;
    this.box = h("input", {
      type: "text",
      id: "question",
      class: "question",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      "aria-describedby": "question-help",
    });
    this.uses = h("input", {
      type: "checkbox",
      id: "use-evidence",
      on: { change: () => app.set("evidence", this.uses.checked ? null : "off") },
    });
    const form = h(
      "form",
      { class: "toolbar", on: { submit: (event) => this.submit(event) } },
      h(
        "label",
        { class: "field grow wide" },
        h("span", { class: "field-name", text: "Question" }),
        this.box,
      ),
      h("button", { class: "small", type: "submit", text: "Ask" }),
      h("button", {
        class: "small",
        type: "button",
        text: "From the evidence",
        on: { click: () => this.start() },
      }),
      h("label", { class: "check" }, this.uses, "Use the evidence"),
    );
    this.help = h("p", {
      class: "note",
      id: "question-help",
      text: `Examples: ${EXAMPLES.join(",  ")}`,
    });
    this.body = h("div", { class: "panel", role: "status" });
    this.share = h("div", {});
    this.element = h(
      "div",
      {},
      h("h2", { class: "quiet", text: "Ask" }),
      form,
      this.help,
      this.body,
      this.share,
    );
  }

  /** A question about the first variable that is not given, given what is. */
  start() {
    const { model, evidence } = this.app;
    const open = model.variables.findIndex((_, n) => !evidence.has(n));
    this.app.set("ask", question(model, "P", [model.variables[Math.max(open, 0)].name], evidence));
  }

  submit(event) {
    event.preventDefault();
    this.app.set("ask", this.box.value);
  }

  /** What is added to the question: the evidence of the page, or nothing. */
  get evidence() {
    return this.app.get("evidence") === "off" ? new Map() : this.app.evidence;
  }

  update(what) {
    const asked = this.app.get("ask", "");
    this.uses.checked = this.app.get("evidence") !== "off";
    if (what === "evidence" && this.asked === asked && !this.uses.checked) return; // it says all by itself
    this.asked = asked;
    if (this.box.value !== asked) this.box.value = asked;
    this.answer = null;
    if (!asked) {
      replace(this.body, h("p", { class: "note", text: "The answer appears here." }));
      replace(this.share);
      return;
    }
    try {
      this.show(ask(this.app.model, asked, this.evidence));
      this.addCounts(this.answer);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      replace(this.body, pointed(error));
      replace(this.share);
    }
  }

  show(answer) {
    this.answer = answer;
    replace(this.body, this.drawn());
    replace(this.share, shareBar(this.app, this.takeaways()), h("p", {}, this.evidenceButton()));
  }

  /** Show the answer of count and model together, once rejoint has given it. */
  async addCounts(answer) {
    const found = await askCounted(this.app.model, answer);
    if (found && this.answer === answer) this.show(found);
  }

  evidenceButton() {
    if (!this.answer.own.size) return null;
    return h("button", {
      class: "small apart",
      type: "button",
      text: "Use its evidence on the page",
      on: { click: () => this.give() },
    });
  }

  /** To what was added to the question; where nothing was, in place of what is there. */
  give() {
    const pieces = [...this.answer.own].map(([n, found]) => {
      const hard = found.every((x) => x === 0 || x === 1);
      return [
        n,
        hard
          ? { kind: "in", levels: [...found.keys()].filter((i) => found[i] === 1) }
          : { kind: "soft", weights: [...found] },
      ];
    });
    this.app.give(new Map([...this.evidence, ...pieces]));
  }

  drawn() {
    const { answer } = this;
    const tail = [
      note(answer.basis?.text),
      note(answer.evidence < 1 && `The evidence has probability ${probability(Math.log(answer.evidence))}.`),
      note(answer.interval && `low and high: ${describeBounds(answer.interval)}.`),
      this.overruled(),
      answer.notes.map(note),
    ];
    const title = this.chart() ? null : h("p", { class: "panel-title", text: answer.headline }); // a picture has it
    return [title, this.value(), tail];
  }

  /** The evidence that is not used, as the question says otherwise, or asks for it. */
  overruled() {
    const { app, answer } = this;
    const pieces = answer.unused.map((n) => describe(app.model.variables[n], app.evidence.get(n)));
    if (!pieces.length) return null;
    const text = `Not used, because the question names ${pieces.length > 1 ? "them" : "it"}: ${pieces.join(", ")}.`;
    return h("p", { class: "note", text });
  }

  value() {
    const { kind, value, unit } = this.answer;
    if (kind === "mode")
      return [this.grid(), h("p", { class: "note", text: `Together ${probability(Math.log(value.prob))}.` })];
    if (typeof value === "number") {
      const { low, high } = this.limits ?? {};
      const [middle, ...ends] = this.numbers([value, ...(low ? [low[0], high[0]] : [])]);
      const range = low ? `low ${ends[0]}, high ${ends[1]}` : "";
      return [
        h("p", { class: "single", text: `${middle}${unit ? ` ${unit}` : ""}` }),
        note(range),
        note(this.answer.counted && this.besides()),
      ];
    }
    const picture = this.chart();
    return [
      picture && scroll("Picture of the answer", picture),
      this.grid(),
    ];
  }

  /** "counted 58 % of 1,325, model 58 %". */
  besides() {
    const { counted, byModel, records } = this.answer;
    const [one, other] = this.numbers([counted[0], byModel[0]]);
    return `counted ${one} of ${count(records[0])}, model ${other}`;
  }

  /** The ends of each number: of a credible interval, or of what joints with the given tables allow. */
  get limits() {
    return this.answer.interval ?? this.answer.basis?.range ?? null;
  }

  /** Rows of the answer with labels, header first. */
  rows() {
    const { model } = this.app;
    const { kind, value, axes } = this.answer;
    const label = (n, i) => model.variables[n].labels[i];
    if (kind === "mode")
      return [
        ["variable", "level"],
        ...value.positions.map((n, k) => [model.variables[n].name, label(n, value.levels[k])]),
      ];
    if (kind === "records")
      return [
        value.positions.map((n) => model.variables[n].name),
        ...value.rows.map((row) => row.map((i, k) => label(value.positions[k], i))),
      ];
    const { low, high } = this.limits ?? {};
    const { counted, records } = this.answer;
    const more = [...(low ? ["low", "high"] : []), ...(counted ? ["counted", "of"] : [])];
    const ends = (at) => [
      ...(low ? [low[at], high[at]] : []),
      ...(counted ? [counted[at], records[at % records.length]] : []),
    ];
    if (typeof value === "number")
      return [
        [kind, ...more],
        [value, ...ends(0)],
      ];
    const number = kind === "expectation" ? "mean" : "prob";
    const labels = (at) => levelsAt(model.variables, axes, at).map((i, k) => label(axes[k], i));
    return [
      [...axes.map((n) => model.variables[n].name), number, ...more],
      ...Array.from(value, (x, at) => [...labels(at), x, ...ends(at)]),
    ];
  }

  /** A number, or a number and its bounds, with the digits that matter; probabilities in percent. */
  numbers(cells) {
    const probable = this.answer.kind === "probability" || this.answer.kind === "table";
    if (cells.length === 3) return (probable ? percentInterval : formatInterval)(...cells);
    return cells.map((x) => (probable ? percent(x, 2) : formatNumber(x)));
  }

  /** The numbers of a row: the answer with its bounds, then the counted share and of how many. */
  texts(cells) {
    if (!this.answer.counted) return this.numbers(cells);
    const [share, size] = cells.slice(-2);
    return [...this.numbers(cells.slice(0, -2)), ...this.numbers([share]), count(size)];
  }

  grid() {
    const [header, ...rows] = this.rows();
    const cells = (row) => {
      const labels = row.filter((x) => typeof x !== "number");
      return [
        ...labels.map((x) => h("td", {}, h("bdi", { text: x }))),
        ...this.texts(row.slice(labels.length)).map((text) => h("td", { class: "number", text })),
      ];
    };
    const columns = header.map((text, k) => [text, typeof rows[0]?.[k] === "number" ? "number" : null]);
    const left = rows.length - MOST_ROWS;
    const more = left > 0 ? note(`and ${count(left)} more rows; the CSV has them all`) : null;
    return [plainTable("Answer", columns, rows.slice(0, MOST_ROWS).map(cells)), more];
  }

  chart() {
    const { kind, value, axes, headline } = this.answer;
    const { limits } = this;
    if (typeof value === "number" || !axes.length || kind === "mode" || kind === "records") return null;
    const { model } = this.app;
    const number = (x) => (kind === "expectation" ? formatNumber(x) : percent(x));
    const most = [...value].reduce((a, b) => (b > a ? b : a), 0);
    if (axes.length === 1 && value.length <= 40) {
      return barChart(
        model.variables[axes[0]].labels.map((label, i) => ({
          label,
          after: value[i],
          text: limits ? this.numbers([value[i], limits.low[i], limits.high[i]])[0] : undefined,
          low: limits?.low[i],
          high: limits?.high[i],
          tick: this.answer.counted?.[i],
        })),
        { title: headline, unit: number, most: kind === "expectation" ? most : 1, width: room() },
      );
    }
    if (axes.length !== 2 || value.length > 400) return null;
    let [rows, columns] = axes.map((n) => model.variables[n].labels);
    let corner = axes.map((n) => model.variables[n].name);
    let values = rows.map((_, i) => [...value.subarray(i * columns.length, (i + 1) * columns.length)]);
    if (columns.length > Math.max(rows.length, 6)) {
      // Down rather than across: a page is longer than it is wide.
      values = columns.map((_, j) => values.map((line) => line[j]));
      [rows, columns] = [columns, rows];
      corner = corner.reverse();
    }
    return heatMap(
      { rows, columns, values, corner: corner.join(" \\ ") },
      { title: headline, unit: number, most },
    );
  }

  takeaways() {
    const { answer, app } = this;
    return {
      query: () => answer.query,
      python: () => askPython(app.model, [answer.query]),
      table: () => this.rows(),
      chart: this.chart() ? () => this.chart() : null,
    };
  }
}

/** What is wrong with a question, and a mark below the place. */
function pointed({ reason, text, position }) {
  const line = text.replace(/\s/gu, " ");
  return [
    h("p", { class: "warning", text: reason }),
    h("pre", { class: "caret", text: `${line}\n${" ".repeat(position)}^` }),
  ];
}
