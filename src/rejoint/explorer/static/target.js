// One variable of interest: where it stands, what to ask next, what moved it.

import { barChart, room } from "./chart.js";
import { bits, percent } from "./format.js";
import { describe, likelihoods, withPiece } from "./evidence.js";
import { distance, entropy, targetInformation } from "./information.js";
import { h, replace } from "./dom.js";
import { infer, marginal } from "./inference.js";
import { intervals } from "./intervals.js";
import { names, python, question } from "./code.js";
import { pick, picked } from "./pick.js";
import { shareBar } from "./share.js";

const SHOWN = 12;
const LEVELS = 30;
const BUTTONS = 4; // answers that are buttons; more are a list

export class TargetView {
  static id = "target";
  static title = "Target";

  constructor(app) {
    this.app = app;
    this.body = h("div", { class: "columns" });
    this.element = h(
      "div",
      {},
      h("h2", { class: "quiet", text: "Target" }),
      (this.bar = h("div", { class: "toolbar" })),
      this.body,
      shareBar(app, this),
    );
  }

  get target() {
    const { index, doc } = this.app.model;
    return picked(this.app, "target") ?? index.get([doc.target].flat()[0]) ?? 0;
  }

  update() {
    const { app, target } = this;
    replace(
      this.bar,
      pick(app, "Target", target, (n) => app.set("target", app.model.variables[n ?? 0].name), { empty: "" }),
    );
    const state = app.state.possible ? app.state : app.prior;
    const ranked = targetInformation(app.model, state, target)
      .map((value, n) => ({ n, value }))
      .filter(({ n }) => n !== target && !app.evidence.has(n))
      .sort((a, b) => b.value - a.value || a.n - b.n);
    replace(this.body, h("div", { class: "stack" }, this.standing(), this.movers()), this.next(ranked));
  }

  standing() {
    const { app, target } = this;
    const variable = app.model.variables[target];
    const unsure = entropy(app.after(target));
    const words = `${bits(unsure)} unsure, ${bits(entropy(app.before(target)))} before any evidence.`;
    return panel(`${variable.name} now`, this.chart(room(560)), h("p", { class: "note", text: words }));
  }

  next(ranked) {
    const rows = ranked.slice(0, SHOWN);
    const list = h(
      "ol",
      { class: "ranking" },
      rows.map(({ n, value }) => this.offer(n, value, rows[0].value)),
    );
    const words = rows.length
      ? "What an answer would tell about the target, on average."
      : "Nothing is left to ask.";
    return panel("Ask next", h("p", { class: "note", text: words }), list);
  }

  offer(n, value, most) {
    const { app } = this;
    const variable = app.model.variables[n];
    const give = (level) =>
      app.give(withPiece(app.evidence, n, { kind: "in", levels: [level] }, variable.size));
    const meter = h("span", { class: "meter", "aria-hidden": "true" }, h("span", { class: "meter-bar" }));
    meter.firstChild.style.transform = `scaleX(${most > 0 ? value / most : 0})`;
    const head = h(
      "div",
      { class: "ranking-head" },
      h("bdi", { class: "ranking-name", text: variable.name }),
      meter,
      h("span", { class: "number", text: bits(value) }),
    );
    return h(
      "li",
      {},
      head,
      h(
        "div",
        { class: "answers" },
        variable.size <= BUTTONS ? answerButtons(variable, give) : answerList(variable, give),
      ),
    );
  }

  /** Each piece of evidence by what the target would be without it. */
  movers() {
    const { app, target } = this;
    const { model, evidence } = app;
    if (!evidence.size || !app.state.possible)
      return panel(
        "What moved it",
        h("p", { class: "note", text: "Give evidence to see which piece of it matters." }),
      );
    const now = app.after(target);
    const rows = [...evidence]
      .filter(([n]) => n !== target)
      .map(([n, piece]) => {
        const without = new Map(evidence);
        without.delete(n);
        const bars = marginal(model, infer(model, likelihoods(model, without)), target);
        return { text: describe(model.variables[n], piece), bars, shift: distance(now, bars) };
      });
    rows.sort((a, b) => b.shift - a.shift);
    const items = rows.map((row) =>
      h(
        "li",
        {},
        h("bdi", { class: "ranking-name", text: row.text }),
        h("span", { class: "note", text: `: ${this.effect(row.bars, now)}` }),
      ),
    );
    return panel(
      "What moved it",
      h("p", { class: "note", text: "Largest first; each against all the other evidence." }),
      h("ol", { class: "ranking" }, items),
    );
  }

  effect(before, after) {
    // The level that moved most; of two that mirror each other the one that gained.
    const moved = after.map((p, i) => Math.abs(p - before[i]) + (p > before[i] ? 1e-9 : 0));
    const best = moved.indexOf(moved.reduce((a, b) => Math.max(a, b), 0));
    const { name, labels } = this.app.model.variables[this.target];
    return `${name} = ${labels[best]} ${percent(before[best])} without it, ${percent(after[best])} with it`;
  }

  rows() {
    const { app, target } = this;
    const [before, after, range] = [app.before(target), app.after(target), intervals(app, target)];
    return app.model.variables[target].labels.map((label, i) => ({
      label,
      before: before[i],
      after: after[i],
      low: range?.low[i],
      high: range?.high[i],
    }));
  }

  chart(width = 640) {
    const rows = this.rows();
    const shown = rows.length <= LEVELS ? rows : [...rows].sort((a, b) => b.after - a.after).slice(0, LEVELS);
    return barChart(shown, { title: this.query(), width });
  }

  table() {
    return [
      ["level", "before", "now", "low", "high"],
      ...this.rows().map((row) => [row.label, row.before, row.after, row.low ?? NaN, row.high ?? NaN]),
    ];
  }

  query() {
    return question(this.app.model, "P", [this.app.model.variables[this.target].name], this.app.evidence);
  }

  python() {
    const { name } = this.app.model.variables[this.target];
    return python(
      this.app.model,
      (given) => `table(${[names([name]), given].filter(Boolean).join(", ")})`,
      this.app.evidence,
    );
  }
}

export function panel(title, ...children) {
  return h("section", { class: "panel" }, h("h3", { class: "panel-title", text: title }), children);
}

function answerButtons(variable, give) {
  return variable.labels.map((label, i) =>
    h(
      "button",
      {
        class: "small answer",
        type: "button",
        "aria-label": `${variable.name} = ${label}`,
        on: { click: () => give(i) },
      },
      h("bdi", { text: label }),
    ),
  );
}

function answerList(variable, give) {
  const box = h(
    "select",
    {
      "aria-label": `Answer for ${variable.name}`,
      on: { change: () => box.value !== "" && give(Number(box.value)) },
    },
    h("option", { value: "", text: "Answer …" }),
    variable.labels.map((text, i) => h("option", { value: i, text })),
  );
  return box;
}
