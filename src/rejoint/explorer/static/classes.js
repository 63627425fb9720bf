// The hidden classes: how much each weighs given the evidence, what sets it apart, what it is
// called. Names go into the model file where rejoint serves the page, else they stay in the browser.

import { barChart } from "./chart.js";
import { className } from "./model.js";
import { distance } from "./information.js";
import { h, replace, setText } from "./dom.js";
import { infer, marginal } from "./inference.js";
import { inspection, python } from "./code.js";
import { count, percent, points } from "./format.js";
import { shareBar } from "./share.js";

const CHUNK = 24;
const TRAITS = 6;

export class ClassesView {
  static id = "classes";
  static title = "Classes";

  constructor(app) {
    this.app = app;
    this.limit = CHUNK;
    this.kept = h("p", { class: "note", role: "status" });
    this.doubt = h("p", { class: "warning", hidden: true });
    this.grid = h("div", { class: "grid" });
    this.more = h("button", { class: "small more", type: "button", on: { click: () => this.showMore() } });
    const { model } = app;
    this.prior = infer(model.representative, new Map());
    const words =
      "Each class is a kind of record. Bars: weight given the evidence, before it in gray." +
      (model.mixture === model.representative
        ? ""
        : ` These are the classes of the representative model; all other answers come from the posterior mean, a mixture of ${count(model.mixture.rank)} classes.`);
    this.element = h(
      "div",
      {},
      h("h2", { class: "quiet", text: "Classes" }),
      h("p", { class: "note", text: words }),
      this.kept,
      this.doubt,
      this.grid,
      this.more,
      shareBar(app, this),
    );
    const { weights } = model.representative;
    this.order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]);
    this.build();
  }

  showMore() {
    this.limit += CHUNK;
    this.build();
    this.update();
  }

  build() {
    this.rows = this.order.slice(0, this.limit).map((f) => this.card(f));
    replace(
      this.grid,
      this.rows.map((row) => row.element),
    );
    const hidden = this.order.length - this.rows.length;
    this.more.hidden = hidden <= 0;
    setText(this.more, `Show more of ${hidden} other classes`);
  }

  card(f) {
    const { model } = this.app;
    const row = {
      f,
      bar: h("span", { class: "bar" }),
      ghost: h("span", { class: "ghost" }),
      value: h("span", { class: "value" }),
      move: h("span", { class: "move" }),
    };
    row.ghost.style.transform = `scaleX(${model.representative.weights[f]})`;
    const name = h("input", {
      type: "text",
      class: "class-name",
      value: model.classNames[f],
      placeholder: `Class ${f + 1}`,
      maxlength: 200,
      "aria-label": `Name of class ${f + 1}`,
      on: { change: () => this.rename(f, name.value.trim()) },
    });
    const traits = this.traits(f).map(({ variable, level, here, overall }) =>
      h(
        "li",
        {},
        h("bdi", { text: `${variable.name} = ${variable.labels[level]}` }),
        h("span", { class: "number", text: `${percent(here, 0)}, overall ${percent(overall, 0)}` }),
      ),
    );
    row.element = h(
      "div",
      { class: "card", role: "group", "aria-label": className(model, f) },
      name,
      h(
        "p",
        { class: "level static" },
        h("span", { class: "track", "aria-hidden": "true" }, row.ghost, row.bar),
        row.value,
        row.move,
      ),
      h("ul", { class: "traits" }, traits),
    );
    return row;
  }

  /** The variables in which a class differs most from all, each by the level it has more of. */
  traits(f) {
    const { representative } = this.app.model;
    const { factors, rank } = representative;
    const found = representative.variables.map((variable, n) => {
      const here = Float64Array.from({ length: variable.size }, (_, i) => factors[n][i * rank + f]);
      const overall = marginal(representative, this.prior, n);
      let level = 0;
      for (let i = 1; i < here.length; i++)
        if (here[i] - overall[i] > here[level] - overall[level]) level = i;
      return { variable, level, here: here[level], overall: overall[level], apart: distance(here, overall) };
    });
    return found
      .sort((a, b) => b.apart - a.apart)
      .slice(0, TRAITS)
      .filter(({ apart }) => apart > 0.005);
  }

  async rename(f, name) {
    const { model } = this.app;
    model.classNames[f] = name;
    this.rows.find((row) => row.f === f).element.setAttribute("aria-label", className(model, f));
    setText(this.kept, await keepNames(model));
  }

  update() {
    const { representative } = this.app.model;
    const state = infer(representative, this.app.now.likelihoods);
    this.now = state.possible ? state.classes : representative.weights;
    this.doubt.hidden = state.possible || !this.app.now.possible;
    if (!this.doubt.hidden)
      setText(
        this.doubt,
        "The representative model considers this evidence impossible: the weights are those before it.",
      );
    for (const { f, bar, value, move } of this.rows) {
      bar.style.transform = `scaleX(${this.now[f]})`;
      setText(value, percent(this.now[f]));
      setText(move, points(this.now[f] - representative.weights[f]));
    }
  }

  weights() {
    const { model } = this.app;
    return this.order.map((f) => ({
      label: className(model, f),
      before: model.representative.weights[f],
      after: this.now[f],
    }));
  }

  python() {
    return python(
      this.app.model,
      (given) => (given ? `condition(given).weights` : "weights"),
      this.app.evidence,
    );
  }

  command() {
    return inspection(this.app.model);
  }

  chart() {
    return barChart(this.weights().slice(0, 40), { title: "Classes given the evidence" });
  }

  table() {
    return [["class", "before", "now"], ...this.weights().map((row) => [row.label, row.before, row.after])];
  }
}

/** Keep the names where they last; says in words where that is. */
async function keepNames(model) {
  if (model.doc.can_save) {
    try {
      const answer = await fetch("class-names", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(model.classNames),
      });
      if (answer.ok) return "Names saved in the model file.";
      if (answer.status === 409) return await answer.text();
    } catch {
      // Said below: rejoint no longer answers.
    }
    return "The names could not be saved: is rejoint still running?";
  }
  try {
    localStorage.setItem(namesKey(model), JSON.stringify(model.classNames));
    return "Names kept in this browser.";
  } catch {
    return "Names kept until the page is closed.";
  }
}

/** Names that this browser kept for an exported page. */
export function recallNames(model) {
  if (model.doc.can_save) return;
  try {
    const names = JSON.parse(localStorage.getItem(namesKey(model)) ?? "[]");
    if (Array.isArray(names) && names.length === model.representative.rank)
      model.classNames = names.map(String);
  } catch {
    // No storage: the names of the file are used.
  }
}

/** By what the model is, not where it lies. */
function namesKey(model) {
  const digits = [...model.representative.weights].map((w) => w.toPrecision(8)).join(" ");
  let code = 0;
  for (const c of `${model.variables.map((variable) => variable.name)} ${digits}`)
    code = (Math.imul(code, 31) + c.codePointAt(0)) | 0;
  return `rejoint-names-${code}`;
}
