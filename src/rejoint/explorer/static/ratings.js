// Ratings mode, for models whose variables are items that people rate on one scale: rate a few,
// see what is expected of the others and which of them go together.

import { barChart } from "./chart.js";
import { bestSet } from "./bundles.js";
import { classInformation } from "./information.js";
import { h, replace, select } from "./dom.js";
import { panel } from "./target.js";
import { percent } from "./format.js";
import { python, question } from "./code.js";
import { shareBar } from "./share.js";
import { withPiece } from "./evidence.js";

const LISTED = 12;
const SIZES = [2, 3, 4, 5];

export class RatingsView {
  static id = "ratings";
  static title = "Ratings";

  /** Four items at least, all on the same scale of three numbers or more. */
  static fits({ variables }) {
    const scale = variables[0].values?.join();
    return (
      variables.length >= 4 &&
      (variables[0].values?.length ?? 0) >= 3 &&
      variables.every(({ values }) => values?.join() === scale)
    );
  }

  constructor(app) {
    this.app = app;
    this.sought = "";
    this.scale = app.model.variables[0].values;
    [this.low, this.high] = [Math.min(...this.scale), Math.max(...this.scale)];
    // The levels that count as liking: the upper third of the scale or so.
    this.liked = this.scale.map((value) => value >= this.low + 0.7 * (this.high - this.low) - 1e-9);
    this.search = h("input", {
      type: "search",
      placeholder: "Name of an item",
      autocomplete: "off",
      on: { input: () => this.find() },
    });
    this.rate = h("div", {});
    this.body = h("div", { class: "stack" });
    const field = h(
      "label",
      { class: "field grow" },
      h("span", { class: "field-name", text: "Search" }),
      this.search,
    );
    this.element = h(
      "div",
      {},
      h("h2", { class: "quiet", text: "Ratings" }),
      h("div", { class: "columns" }, panel("Rate", field, this.rate), this.body),
      shareBar(app, this),
    );
  }

  find() {
    this.sought = this.search.value.trim().toLowerCase();
    this.drawRate();
  }

  update() {
    this.drawRate();
    replace(this.body, this.predictions(), this.bundle());
  }

  /** Items to rate: those rated, then those searched for, or the ones that would tell most. */
  offered() {
    const { app } = this;
    const open = [...app.model.variables.keys()].filter((n) => !app.evidence.has(n));
    if (this.sought)
      return open
        .filter((n) => app.model.variables[n].name.toLowerCase().includes(this.sought))
        .slice(0, LISTED);
    const worth = new Map(open.map((n) => [n, classInformation(app.model.mixture, app.beliefs.state, n)]));
    return open.sort((a, b) => worth.get(b) - worth.get(a)).slice(0, LISTED - 4);
  }

  drawRate() {
    const rated = [...this.app.evidence.keys()];
    const offered = this.offered();
    const focused = document.activeElement?.id;
    replace(
      this.rate,
      rated.length ? h("p", { class: "note", text: "Rated; press again to remove." }) : null,
      rated.map((n) => this.item(n)),
      h("p", {
        class: "note",
        text: this.sought ? `${offered.length || "No"} found` : "Most informative to rate next.",
      }),
      offered.map((n) => this.item(n)),
    );
    if (focused?.startsWith("rate-")) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  item(n) {
    const { app } = this;
    const variable = app.model.variables[n];
    const given = app.evidence.get(n)?.levels ?? [];
    const give = (i) =>
      app.give(
        withPiece(
          app.evidence,
          n,
          given.length === 1 && given[0] === i ? null : { kind: "in", levels: [i] },
          variable.size,
        ),
      );
    const stars = variable.labels.map((label, i) =>
      h("button", {
        class: "star",
        type: "button",
        id: `rate-${n}-${i}`,
        "aria-pressed": String(given.length === 1 && given[0] === i),
        "aria-label": `${variable.name}: ${label}`,
        text: label,
        on: { click: () => give(i) },
      }),
    );
    return h(
      "div",
      { class: "rated", role: "group", "aria-label": variable.name },
      h("bdi", { class: "name", text: variable.name, title: variable.name }),
      h("div", { class: "stars" }, stars),
    );
  }

  mean(bars) {
    return bars.reduce((sum, p, i) => sum + p * this.scale[i], 0);
  }

  /** Items that are not rated, by the rating to be expected. */
  expected() {
    const { app } = this;
    const open = [...app.model.variables.keys()].filter((n) => !app.evidence.has(n));
    return open
      .map((n) => ({
        n,
        label: app.model.variables[n].name,
        before: this.mean(app.before(n)),
        after: this.mean(app.after(n)),
        like: app.after(n).reduce((sum, p, i) => (this.liked[i] ? sum + p : sum), 0),
      }))
      .sort((a, b) => b.after - a.after || a.n - b.n);
  }

  predictions() {
    const rows = this.expected().slice(0, LISTED);
    const change = ({ before, after }) =>
      Math.abs(after - before) < 0.005
        ? ""
        : `${after > before ? "▲" : "▼"} ${Math.abs(after - before).toFixed(2)}`;
    const line = (row) => {
      const meter = h("span", { class: "meter", "aria-hidden": "true" }, h("span", { class: "meter-bar" }));
      meter.firstChild.style.transform = `scaleX(${(row.after - this.low) / (this.high - this.low)})`;
      return h(
        "li",
        { class: "prediction" },
        h("bdi", { class: "name", text: row.label, title: row.label }),
        meter,
        h("span", { class: "number", text: row.after.toFixed(2) }),
        h("span", { class: "number move", text: change(row) }),
        h("span", { class: "number move", text: `liked ${percent(row.like, 0)}` }),
      );
    };
    return panel(
      "Expected ratings",
      h("p", {
        class: "note",
        text: `On the scale ${this.low} to ${this.high}; change relative to no ratings.`,
      }),
      h("ol", { class: "ranking" }, rows.map(line)),
    );
  }

  get size() {
    const asked = Number(this.app.get("bundle", "3"));
    return SIZES.includes(asked) ? asked : 3;
  }

  bundle() {
    const { app } = this;
    const open = [...app.model.variables.keys()].filter((n) => !app.evidence.has(n));
    const choice = select(
      "Items",
      SIZES.map((k) => [String(k), String(k)]),
      String(this.size),
      (value) => app.set("bundle", value === "3" ? null : value),
      { id: "bundle-size" },
    );
    if (open.length < this.size)
      return panel("Liked together", choice, h("p", { class: "note", text: "Too few items are left." }));
    const found = bestSet(
      app.beliefs.state.classes,
      open.map((n) => this.likes(n)),
      this.size,
    );
    const least = this.scale.find((_, i) => this.liked[i]);
    const words = `${percent(found.probability)} that all are rated ${least} or more${found.exact ? "" : " (the best found)"}.`;
    return panel(
      "Liked together",
      choice,
      h(
        "ol",
        { class: "ranking bundle" },
        found.items.map((k) => h("li", {}, h("bdi", { text: app.model.variables[open[k]].name }))),
      ),
      h("p", { class: "note", text: words }),
    );
  }

  /** Probability that an item is liked, class by class. */
  likes(n) {
    const { factors, rank } = this.app.model.mixture;
    const out = new Float64Array(rank);
    this.liked.forEach((liked, i) => {
      if (liked) for (let f = 0; f < rank; f++) out[f] += factors[n][i * rank + f];
    });
    return out;
  }

  table() {
    return [
      ["item", "expected", "before", "liked"],
      ...this.expected().map((row) => [row.label, row.after, row.before, row.like]),
    ];
  }

  chart() {
    const rows = this.expected()
      .slice(0, 30)
      .map((row) => ({
        ...row,
        before: row.before - this.low,
        after: row.after - this.low,
        text: row.after.toFixed(2),
      }));
    return barChart(rows, { title: "Expected ratings", most: this.high - this.low });
  }

  query() {
    const { model, evidence } = this.app;
    return this.expected()
      .slice(0, 5)
      .map((row) => question(model, "E", [row.label], evidence));
  }

  python() {
    const open = this.expected()
      .slice(0, 30)
      .map((row) => JSON.stringify(row.label));
    return python(
      this.app.model,
      (given) => `expect([${open.join(", ")}]${given ? `, ${given}` : ""})`,
      this.app.evidence,
    );
  }
}
