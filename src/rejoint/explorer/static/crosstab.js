// Two or three variables against each other, given the evidence.

import { basisOfAnswer } from "./basis.js";
import { heatMap } from "./chart.js";
import { count, percent } from "./format.js";
import { h, replace, scroll, select, setText } from "./dom.js";
import { jointTable } from "./inference.js";
import { names, python, question } from "./code.js";
import { panel } from "./target.js";
import { pick } from "./pick.js";
import { shareBar } from "./share.js";

const SHARES = [
  ["joint", "of all"],
  ["row", "of each row"],
  ["column", "of each column"],
];
const MOST_SHOWN = 1_500; // cells; all of a larger table are in the CSV
const MOST = 1_000_000;

export class CrosstabView {
  static id = "table";
  static title = "Table";
  static fits = (model) => model.variables.length > 1;

  constructor(app) {
    this.app = app;
    this.bar = h("div", { class: "toolbar" });
    this.basis = h("p", { class: "note" });
    this.body = h("div", { class: "tables" });
    this.element = h(
      "div",
      {},
      h("h2", { class: "quiet", text: "Table" }),
      this.bar,
      this.basis,
      this.body,
      shareBar(app, this),
    );
  }

  /** Positions of two or three different variables. */
  get axes() {
    const { app } = this;
    const asked = app.options
      .getAll("of")
      .map((name) => app.model.index.get(name))
      .filter((n) => n !== undefined);
    const chosen = [...new Set(asked)].slice(0, 3);
    for (let n = 0; chosen.length < 2; n++) if (!chosen.includes(n)) chosen.push(n);
    return chosen;
  }

  setAxis(k, n) {
    const axes = [...this.axes];
    if (n === null) axes.splice(k, 1);
    else {
      const other = axes.indexOf(n);
      if (other >= 0) axes[other] = axes[k]; // picked twice: they change places
      axes[k] = n;
    }
    this.app.set(
      "of",
      axes.filter((x) => x !== undefined).map((x) => this.app.model.variables[x].name),
    );
  }

  update() {
    const { app, axes } = this;
    replace(
      this.bar,
      pick(app, "Rows", axes[0], (n) => n !== null && this.setAxis(0, n), { empty: "" }),
      pick(app, "Columns", axes[1], (n) => n !== null && this.setAxis(1, n), { empty: "" }),
      pick(app, "One table for each", axes[2] ?? null, (n) => this.setAxis(2, n)),
      select("Shares", SHARES, this.shares, (value) => app.set("shares", value === "joint" ? null : value), {
        id: "shares",
      }),
    );
    const used = [...new Set([...axes, ...app.beliefs.likelihoods.keys()])];
    setText(this.basis, basisOfAnswer(app.model, used)?.text ?? "");
    replace(this.body, this.tables());
  }

  get shares() {
    return this.app.get("shares", "joint");
  }

  tables() {
    const cells = this.axes.reduce((product, n) => product * this.app.model.variables[n].size, 1);
    if (cells > MOST)
      return h("p", {
        class: "message",
        text: `This table would have ${count(cells)} cells: pick variables of fewer levels.`,
      });
    if (cells > MOST_SHOWN)
      return h("p", {
        class: "message",
        text: `This table has ${count(cells)} cells, too many to show; the CSV has them all.`,
      });
    return this.layers().map((layer) => panel(layer.title, this.htmlTable(layer)));
  }

  /** One table for each level of the third variable, shares taken as chosen. */
  layers() {
    const { app, axes } = this;
    const { model } = app;
    const [rows, columns, third] = axes.map((n) => model.variables[n]);
    const order = third ? [axes[2], axes[0], axes[1]] : axes;
    const flat = jointTable(model.mixture, app.beliefs.state, order);
    const size = rows.size * columns.size;
    return (third ? third.labels : [null]).map((label, k) => {
      const layer = flat.subarray(k * size, (k + 1) * size);
      const values = rows.labels.map((_, i) => [...layer.subarray(i * columns.size, (i + 1) * columns.size)]);
      const title = `${rows.name} by ${columns.name}${label === null ? "" : `, ${third.name} = ${label}`}`;
      return {
        title,
        label,
        rows: rows.labels,
        columns: columns.labels,
        values: shared(values, this.shares),
      };
    });
  }

  htmlTable({ title, rows, columns, values }) {
    const [first, second] = this.axes.map((n) => this.app.model.variables[n].name);
    const peak =
      this.shares === "joint" ? Math.max(...this.layers().flatMap((layer) => layer.values.flat())) : 1;
    const cell = (value) => {
      const box = h("td", { text: percent(value) });
      if (Number.isFinite(value))
        box.style.setProperty("--share", (0.55 * Math.min(value / (peak || 1), 1)).toFixed(3));
      return box;
    };
    return scroll(
      title,
      h(
        "table",
        { class: "heat-table" },
        h("caption", {
          class: "quiet",
          text: `${title}, shares ${SHARES.find(([key]) => key === this.shares)[1]}`,
        }),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col", text: `${first} \\ ${second}` }),
            columns.map((label) => h("th", { scope: "col" }, h("bdi", { text: label }))),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((label, i) =>
            h("tr", {}, h("th", { scope: "row" }, h("bdi", { text: label })), values[i].map(cell)),
          ),
        ),
      ),
    );
  }

  chart() {
    const layers = this.layers();
    return heatMap(layers[0], { title: layers[0].title, most: this.shares === "joint" ? undefined : 1 });
  }

  table() {
    const { axes } = this;
    const [rows, columns, third] = axes.map((n) => this.app.model.variables[n]);
    const header = [
      ...(third ? [third.name] : []),
      rows.name,
      columns.name,
      this.shares === "joint" ? "prob" : `prob_of_${this.shares}`,
    ];
    const out = [header];
    for (const { label, values } of this.layers()) {
      values.forEach((line, i) =>
        line.forEach((value, j) =>
          out.push([...(third ? [label] : []), rows.labels[i], columns.labels[j], value]),
        ),
      );
    }
    return out;
  }

  query() {
    return question(
      this.app.model,
      "P",
      this.axes.map((n) => this.app.model.variables[n].name),
      this.app.evidence,
    );
  }

  python() {
    const list = names(this.axes.map((n) => this.app.model.variables[n].name));
    return python(
      this.app.model,
      (given) => `table(${[list, given].filter(Boolean).join(", ")})`,
      this.app.evidence,
    );
  }
}

function shared(values, shares) {
  if (shares === "row") return values.map((line) => scaled(line, sum(line)));
  if (shares === "column") {
    const totals = values[0].map((_, j) => sum(values.map((line) => line[j])));
    return values.map((line) => line.map((value, j) => (totals[j] > 0 ? value / totals[j] : NaN)));
  }
  return values;
}

function scaled(line, total) {
  return line.map((value) => (total > 0 ? value / total : NaN));
}

function sum(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}
