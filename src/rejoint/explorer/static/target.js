// One variable of interest: where it stands, what to ask next, what moved it.

import { barChart, room } from "./chart.js";
import { bits, percent } from "./format.js";
import { Beliefs } from "./beliefs.js";
import { describe, isSettled, likelihood, withPiece } from "./evidence.js";
import { describeBounds } from "./intervals.js";
import { distance, entropy, targetInformation } from "./information.js";
import { h, note, replace } from "./dom.js";
import { names, python, question } from "./code.js";
import { pick, picked } from "./pick.js";
import { shareBar } from "./share.js";

const SHOWN = 12;
const LEVELS = 30;
const PREDICTED = 3; // labels of a prediction that are shown
const BUTTONS = 4; // answers that are buttons; more are a list
const TELLING = 1e-9; // bits; what tells less is rounding

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

  /** Evidence that leaves the target one level says all of it: it is set aside here. */
  get evidence() {
    const { app, target } = this;
    return this.settled === null ? app.evidence : withPiece(app.evidence, target, null, 0);
  }

  /** The level that is given of the target, or null. */
  get settled() {
    const { app, target } = this;
    const { size } = app.model.variables[target];
    const piece = app.evidence.get(target);
    return piece && isSettled(piece, size) ? likelihood(piece, size).findIndex((x) => x > 0) : null;
  }

  update() {
    const { app, target } = this;
    const now = this.settled === null ? app.now : new Beliefs(app.model, this.evidence);
    this.beliefs = now.possible ? now : app.prior;
    this.bounds = this.beliefs.bounds(target);
    replace(
      this.bar,
      pick(app, "Target", target, (n) => app.set("target", app.model.variables[n ?? 0].name), { empty: "" }),
    );
    const ranked = targetInformation(app.model.mixture, this.beliefs.state, target)
      .map((value, n) => ({ n, value }))
      .filter(({ n, value }) => value > TELLING && !app.evidence.has(n))
      .sort((a, b) => b.value - a.value || a.n - b.n);
    replace(this.body, h("div", { class: "stack" }, this.standing(), this.movers()), this.next(ranked));
  }

  standing() {
    const { app, target } = this;
    const variable = app.model.variables[target];
    const { settled } = this;
    const now = this.beliefs.bars(target);
    const piece = app.evidence.get(target);
    const partly = piece
      ? note(`The evidence on the target itself is used: ${describe(variable, piece)}.`)
      : null;
    return panel(
      settled === null ? `${variable.name} now` : `${variable.name} is given: ${variable.labels[settled]}`,
      settled === null ? partly : this.setAside(now[settled]),
      this.chart(room(560)),
      note(`${bits(entropy(now))} of uncertainty, ${bits(entropy(app.before(target)))} before any evidence.`),
      note(this.predicted(variable)),
      this.bounds ? note(`Lines on the bars: ${describeBounds(this.bounds)}.`) : null,
    );
  }

  /** In words, what the models of a classifier predict, where they do. */
  predicted({ labels }) {
    const shares = this.beliefs.prediction(this.target);
    if (!shares) return "";
    const best = [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, PREDICTED);
    const texts = best.map((i) => `${labels[i]} ${percent(shares[i])}`).join(", ");
    return `Models that were trained to predict it say ${texts}. The bars are the joint model's.`;
  }

  /** What the target would be if it were not given, and a way to take that back. */
  setAside(share) {
    const { app, target } = this;
    const variable = app.model.variables[target];
    const given = describe(variable, app.evidence.get(target));
    const rest = this.evidence.size ? "The rest of the evidence alone" : "Without that the model";
    return [
      note(`${rest} gives ${variable.labels[this.settled]} ${percent(share)}, as the bars show.`),
      h("button", {
        class: "small apart",
        type: "button",
        text: `Remove ${given}`,
        on: { click: () => app.give(this.evidence) },
      }),
    ];
  }

  next(ranked) {
    const rows = this.settled === null ? ranked.slice(0, SHOWN) : [];
    const list = h(
      "ol",
      { class: "ranking" },
      rows.map(({ n, value }) => this.offer(n, value, rows[0].value)),
    );
    let words = "What an answer would tell about the target, on average.";
    if (this.settled !== null) words = "The target is given: no answer would tell more about it.";
    else if (!rows.length) words = "No remaining question would tell more about the target.";
    return panel("Ask next", note(words), rows.length ? list : null);
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
    const { beliefs, evidence, target } = this;
    const { model } = this.app;
    if (!evidence.size || beliefs === this.app.prior)
      return panel("What changed it", note("Give evidence to see which piece of it matters."));
    const now = beliefs.bars(target);
    const rows = [...evidence]
      .filter(([n]) => n !== target)
      .map(([n, piece]) => {
        const bars = new Beliefs(model, withPiece(evidence, n, null, 0)).bars(target);
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
      "What changed it",
      note("Largest first; each against all the other evidence."),
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
    const [before, after, range] = [app.before(target), this.beliefs.bars(target), this.bounds];
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
    return question(this.app.model, "P", [this.app.model.variables[this.target].name], this.evidence);
  }

  python() {
    const { name } = this.app.model.variables[this.target];
    return python(
      this.app.model,
      (given) => `table(${[names([name]), given].filter(Boolean).join(", ")})`,
      this.evidence,
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
