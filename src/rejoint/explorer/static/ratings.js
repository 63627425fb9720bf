// Ratings mode, for models whose variables are items that people rate on one scale: rate a few,
// see what is expected of the others and which of them go together. A recommender answers as its
// `recommend` and `bundle` do, any other model by its joint.

import { barChart } from "./chart.js";
import { answerUser, readRecommender } from "./recommender.js";
import { classInformation } from "./information.js";
import { greedySet } from "./bundles.js";
import { h, replace, select } from "./dom.js";
import { panel } from "./target.js";
import { percent } from "./format.js";
import { python, question, recommendCommand, recommendPython } from "./code.js";
import { shareBar } from "./share.js";
import { withPiece } from "./evidence.js";

const LISTED = 12;
const SIZES = [2, 3, 4, 5];
const ORDERS = { score: "Score", probability: "Chosen and liked", like: "Liked if chosen", expected: "Rating" };

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
    const plain = app.model.doc.recommender;
    this.recommender = plain ? readRecommender(plain, this.scale) : null;
    if (plain) {
      this.prior = answerUser(this.recommender, new Map());
      this.query = null; // questions are answered by the joint of anybody's ratings
      this.command = () => recommendCommand(app.model, this.levels, LISTED, this.order);
    }
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
      this.recommender && this.levels.size < rated.length
        ? h("p", { class: "note", text: "Evidence that leaves several ratings of an item is not used here." })
        : null,
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

  /** The levels that were given, by item: evidence of several levels is no rating. */
  get levels() {
    const rated = [...this.app.evidence].filter(([, { kind, levels }]) => kind === "in" && levels.length === 1);
    return new Map(rated.map(([n, { levels }]) => [n, levels[0]]));
  }

  /** What the recommender answers, worked out once for each evidence. */
  get answer() {
    if (this.answered !== this.app.evidence) {
      this.answered = this.app.evidence;
      this.answers = this.levels.size ? answerUser(this.recommender, this.levels) : this.prior;
    }
    return this.answers;
  }

  get order() {
    const asked = this.app.get("by", "score");
    return this.recommender ? (ORDERS[asked] ? asked : "score") : "expected";
  }

  /** Items that are not rated, the best first. */
  expected() {
    const { app, order } = this;
    const open = [...app.model.variables.keys()].filter((n) => !app.evidence.has(n));
    const rows = open.map((n) => ({ n, label: app.model.variables[n].name, ...this.figures(n) }));
    return rows.sort((a, b) => b[order] - a[order] || a.n - b.n);
  }

  figures(n) {
    if (this.recommender) {
      const { expected, like, choice, chosen, liked } = this.answer;
      const both = chosen.reduce((sum, shares, k) => sum + shares[n] * liked[k][n], 0) / chosen.length;
      const figures = { score: choice[n] * Math.sqrt(like[n]), probability: both, expected: expected[n] };
      return { ...figures, before: this.prior.expected[n], after: expected[n], like: like[n] };
    }
    const [before, bars] = [this.mean(this.app.before(n)), this.app.after(n)];
    const [after, like] = [this.mean(bars), bars.reduce((sum, p, i) => (this.liked[i] ? sum + p : sum), 0)];
    return { before, after, expected: after, like };
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
    const orders = select("Order", Object.entries(ORDERS), this.order, (by) =>
      this.app.set("by", by === "score" ? null : by),
    );
    return panel(
      this.recommender ? "Recommended" : "Expected ratings",
      this.recommender ? orders : null,
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
    const likes = open.map((n) => this.likes(n));
    const count = likes[0].length;
    const classes = this.recommender ? new Float64Array(count).fill(1 / count) : app.beliefs.state.classes;
    const found = greedySet(classes, likes, this.size);
    const least = this.scale.find((_, i) => this.liked[i]);
    const what = this.recommender ? "chosen and rated" : "rated";
    const words = `${percent(found.probability)} that all are ${what} ${least} or more.`;
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

  /** Probability that an item is liked, of a recommender chosen and liked, class by class. */
  likes(n) {
    if (this.recommender)
      return Float64Array.from(this.answer.liked, (liked, k) => this.answer.chosen[k][n] * liked[n]);
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
    if (this.recommender) return recommendPython(this.app.model, this.levels, LISTED, this.order);
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
