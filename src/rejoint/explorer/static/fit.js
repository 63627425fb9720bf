// Fit and trust: where model and records disagree most, what the tables pin down, how sure it is.

import { barChart } from "./chart.js";
import { bits, count, percent, plural } from "./format.js";
import { givenPanel } from "./given.js";
import { h, note, plainTable, replace } from "./dom.js";
import { inspection, reportPython } from "./code.js";
import { panel } from "./target.js";
import { shareBar } from "./share.js";

export class FitView {
  static id = "fit";
  static title = "Fit";

  constructor(app) {
    this.app = app;
    this.body = h("div", { class: "columns first-wide" });
    this.element = h(
      "div",
      {},
      h("h2", { class: "quiet", text: "Fit and trust" }),
      this.body,
      shareBar(app, this.takeaways()),
    );
    this.build();
  }

  build() {
    const { doc } = this.app.model;
    const given = givenPanel(this.app.model);
    replace(
      this.body,
      doc.fit || !given ? this.tables(doc.fit) : given,
      h("div", { class: "stack" }, verdict(doc.identifiability), blocks(this.app.model), sureness(doc), made(doc.note)),
      doc.fit && given ? h("div", { class: "all-columns" }, given) : null,
    );
  }

  update() {}

  tables(fit) {
    if (!fit) {
      const words =
        "The model came without records, so its tables cannot be compared. Add records with: rejoint explore MODEL --data FILE.";
      return panel("Worst-fitting tables", note(words));
    }
    const worse = fit.tables.filter(
      ({ distance, chance }) => chance !== null && distance > 2 * chance,
    ).length;
    const drawn = fit.checked < fit.all ? ` (of ${count(fit.all)}, drawn at random)` : "";
    const words =
      `${plural(fit.checked, "table")}${drawn}: model and counts compared by total variation, largest excess over chance first. ` +
      `${worse || "None"} of those listed ${worse === 1 || !worse ? "is" : "are"} off by more than twice what chance explains.`;
    const row = ({ names, distance, chance, records }) => [
      h("th", { scope: "row" }, h("bdi", { text: names.join(" × ") })),
      h("td", { class: "number", text: percent(distance) }),
      h("td", { class: "number", text: chance === null ? "not known" : percent(chance) }),
      h("td", { class: "number", text: count(records) }),
      h(
        "td",
        { class: "action" },
        h("button", {
          class: "small",
          type: "button",
          "aria-label": `Show the table ${names.join(" by ")}`,
          text: "Show",
          on: { click: () => this.show(names) },
        }),
      ),
    ];
    const columns = [["Table"], ["Off by"], ["By chance"], ["Records"], ["View", "action"]];
    return panel("Worst-fitting tables", note(words), plainTable("Worst-fitting tables", columns, fit.tables.map(row)));
  }

  show(names) {
    this.app.set("of", names.slice(0, 3));
    this.app.set("view", "table");
  }

  takeaways() {
    const { model } = this.app;
    const { fit } = model.doc;
    const always = { command: () => inspection(model), python: () => reportPython(model) };
    if (!fit) return always;
    const rows = () =>
      fit.tables.map((t) => ({ label: t.names.join(" × "), before: t.chance ?? 0, after: t.distance }));
    const most = () => Math.max(...rows().flatMap((row) => [row.before, row.after]), 1e-9);
    return {
      ...always,
      table: () => [
        ["table", "distance", "chance", "records"],
        ...fit.tables.map((t) => [t.names.join(" × "), t.distance, t.chance ?? NaN, t.records]),
      ],
      chart: () => barChart(rows(), { title: "Off by (grey: by chance)", most: most() }),
    };
  }
}

function verdict(found) {
  if (!found) return panel("What the tables determine", note("Not computed for this model."));
  const details = (found.details ?? []).map(note);
  return panel("What the tables determine", note(found.question), h("p", { class: "verdict", text: found.verdict }), details);
}

/** Blocks of the model that answers, the strongest first; null for a model without. */
function blocks({ mixture, variables }) {
  if (!mixture.blocks.length) return null;
  const list = [...mixture.blocks].sort((a, b) => b.bits - a.bits);
  const row = ({ members, bits: strength }) => [
    h("th", { scope: "row" }, h("bdi", { text: members.map((n) => variables[n].name).join(" × ") })),
    h("td", { class: "number", text: bits(strength) }),
  ];
  const words =
    "Each class has one table of these variables. Bits: what they tell about each other beyond the class, on average.";
  return panel("Tabulated together", note(words), plainTable("Blocks", [["Variables"], ["Bits", "number"]], list.map(row)));
}

function sureness({ draws, tables, report }) {
  if (report) return null;
  const words = tables
    ? "The model is from tables: each bar is published, implied by them, or hatched. The line on a hatched bar is what joints with these tables give."
    : draws?.length
    ? `The dark lines on the bars are 90 % credible intervals of ${plural(draws.length, "posterior draw")}: how certain the data make each answer, given the form of the model. Evidence reweights the draws; the line of a bar says what they are worth then.`
    : "This model has no posterior draws, so the bars have no intervals. Bayes fits have them: rejoint fit DATA --solver bayes.";
  return panel("How certain the answers are", note(words));
}

function made(text) {
  return text ? panel("How it was fitted", note(text)) : null;
}
