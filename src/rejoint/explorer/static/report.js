// The report: what the page knows about a model, one below the other, to be read and printed.

import { barChart, heatMap } from "./chart.js";
import { ClassesView } from "./classes.js";
import { FitView } from "./fit.js";
import { entropy, targetInformation } from "./information.js";
import { formatNumber, plural } from "./format.js";
import { h, note, plainTable, scroll } from "./dom.js";
import { panel } from "./target.js";

// What is drawn at the most, so that the page stays readable.
const [LEVELS, CLASSES, VARIABLES] = [12, 16, 24];

export function report(app) {
  const { lead, data, empty, groups, commands } = app.model.doc.report;
  const classes = new ClassesView(app);
  classes.update();
  return h(
    "div",
    { class: "report stack" },
    h("p", { class: "lead", text: lead }),
    panel("Data", note(data), h("div", { class: "grid" }, variables(app))),
    empty && panel("Empty cells", note(empty.text), emptyChart(empty.shares)),
    ranks(app.model.doc.report),
    new FitView(app).element,
    groups ? [classes.element, profiles(app.model)] : null,
    dependence(app),
    panel("Ask it", h("pre", { class: "scroll", text: commands })),
  );
}

/** The levels to show: the most probable, or the first where their order matters. */
function shownLevels({ kind, labels }, shares) {
  const all = [...labels.keys()];
  if (all.length > LEVELS && kind === "nominal") all.sort((a, b) => shares[b] - shares[a] || a - b);
  return all.slice(0, LEVELS);
}

function variables(app) {
  const { variables, doc } = app.model;
  return variables.map((variable, n) => {
    const bars = app.before(n);
    const counted = doc.report.counted?.[n];
    const rows = shownLevels(variable, bars).map((i) => ({
      label: variable.labels[i],
      after: bars[i],
      tick: counted?.[i],
    }));
    const left = variable.size - rows.length;
    const words = `${variable.kind}, ${plural(variable.size, "level")}${left ? `; ${left} are not shown` : ""}`;
    return h("div", {}, barChart(rows, { title: variable.name, width: 330 }), note(words));
  });
}

function emptyChart(shares) {
  const rows = shares.slice(0, VARIABLES).map(([label, after]) => ({ label, after }));
  return shares[0][1] > 0 ? barChart(rows, { title: "Share of empty cells", most: shares[0][1] }) : null;
}

/** How many classes, and the score of each number that was tried. */
function ranks({ classes, curve }) {
  if (!curve) return panel("Number of classes", note(classes));
  const marks = (rank) => (rank === curve.rank ? "chosen" : curve.tied?.includes(rank) ? "not worse than it" : "");
  const cells = (rank, k) =>
    [rank, formatNumber(curve.scores[k]), formatNumber(curve.errors[k]), marks(rank)].map((text) => h("td", { text }));
  const columns = [["Classes"], ["Score"], ["±"], ["Higher is better"]];
  return panel("Number of classes", note(classes), plainTable("Scores", columns, curve.ranks.map(cells)));
}

/** Share of each class at each level. */
function profiles({ representative, variables }) {
  const { weights, rank, factors } = representative;
  const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, CLASSES);
  const parts = variables.slice(0, VARIABLES).flatMap((variable, n) =>
    shownLevels(variable, factors[n].slice(0, variable.size)).map((i) => ({
      label: `${variable.name} = ${variable.labels[i]}`,
      values: order.map((f) => factors[n][i * rank + f]),
    })),
  );
  const [rows, values] = [parts.map(({ label }) => label), parts.map((part) => part.values)];
  const columns = order.map((f) => String(f + 1));
  const left = rank > CLASSES ? ` The ${CLASSES} largest of ${rank}.` : "";
  const words = `Percentage of each class at each level; classes by their numbers.${left}`;
  return panel("Class profiles", note(words), scroll("Class profiles", shares(rows, columns, values)));
}

/** What each two variables tell about each other, as a share of what there is to tell. */
function dependence({ model, prior }) {
  const names = model.variables.map(({ name }, n) => `${n + 1} ${name}`);
  if (names.length < 2 || names.length > VARIABLES) return null;
  const alone = names.map((_, n) => entropy(prior.bars(n)));
  const values = names.map((_, i) =>
    targetInformation(model.mixture, prior.state, i).map((x, j) => x / (Math.min(alone[i], alone[j]) || 1)),
  );
  const words = "Mutual information of each pair, in percent of the smaller of their entropies.";
  const columns = names.map((_, n) => String(n + 1));
  return panel("Dependence", note(words), scroll("Dependence of pairs", shares(names, columns, values)));
}

function shares(rows, columns, values) {
  const unit = (x) => (x >= 0.005 ? (100 * x).toFixed(0) : "");
  return heatMap({ rows, columns, values }, { most: 1, least: 32, unit });
}
