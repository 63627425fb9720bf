// Each table that the model was fitted to, as it was read, beside what the model gives.

import { countCells, levelsAt } from "./tables.js";
import { formatNumber, percent, plural } from "./format.js";
import { h, note, scroll } from "./dom.js";
import { infer, jointTable } from "./inference.js";
import { panel } from "./target.js";

/** A number of a table: a count, or a share in percent; as Python has it. */
function writeCell(number, counted) {
  return counted ? formatNumber(number) : `${formatNumber(100 * number)} %`;
}

/** A number of the model: what is left of zeros is said to be less than the least that is shown. */
function writeModel(number, counted) {
  const least = counted ? 0.01 : 1e-6;
  return number > 0 && number < least ? `<${writeCell(least, counted)}` : writeCell(number, counted);
}

/** Rows of a given table: labels of all its variables but the last, and for each level of the last what
 * is `given`, what the `model` gives, and whether the cell is `hidden`. */
export function givenRows(model, { names, cells, counted, total, not_given: hidden }) {
  const axes = names.map((name) => model.index.get(name));
  const shares = jointTable(model.mixture, infer(model.mixture, new Map()), axes);
  const { size } = model.variables[axes.at(-1)];
  const outer = axes.slice(0, -1);
  return Array.from({ length: countCells(model.variables, outer) }, (_, row) => ({
    labels: levelsAt(model.variables, outer, row).map((i, k) => model.variables[outer[k]].labels[i]),
    cells: Array.from({ length: size }, (_, column) => {
      const place = row * size + column;
      return {
        given: hidden[place] ?? writeCell(cells[place], counted),
        model: writeModel(shares[place] * total, counted),
        hidden: place in hidden,
      };
    }),
  }));
}

/** The panel with all tables; null for a model that has none. */
export function givenPanel(model) {
  const { given } = model.doc;
  if (!given) return null;
  const left = given.left
    ? `${plural(given.left, "further table")} ${given.left === 1 ? "is" : "are"} left out of this page: it shows the worst-fitting tables that there is room for.`
    : null;
  return panel(
    "Tables as given",
    note("Each table as it was read, next to the model's values without evidence."),
    given.tables.map((table) => block(model, table)),
    note(left),
  );
}

/** A table that is made when it is opened first: all of them at once would take long. */
function block(model, table) {
  const body = h("div");
  const open = () => {
    if (box.open && !body.firstChild) body.append(note(table.text), htmlTable(model, table));
  };
  const box = h(
    "details",
    { class: "given", on: { toggle: open } },
    h(
      "summary",
      {},
      h("bdi", { text: table.names.join(" × ") }),
      h("span", { class: "off", text: `off by ${percent(table.distance)}` }),
    ),
    body,
  );
  box.open = Boolean(model.doc.report);
  return box;
}

function htmlTable(model, table) {
  const rows = givenRows(model, table);
  const { names } = table;
  const title = `${names.join(" by ")}: given, and by the model`;
  return scroll(
    title,
    h(
      "table",
      { class: "given-table" },
      h("caption", { class: "quiet", text: title }),
      names.length > 1 ? crossHead(model, names) : singleHead(names[0]),
      h(
        "tbody",
        {},
        names.length > 1
          ? rows.map((row, at) => h("tr", {}, stubs(rows, at), row.cells.map(pair)))
          : rows[0].cells.map((cell, i) =>
              h("tr", {}, rowHead(model.variables[model.index.get(names[0])].labels[i]), pair(cell)),
            ),
      ),
    ),
  );
}

function singleHead(name) {
  return h(
    "thead",
    {},
    h("tr", {}, columnHead(name), columnHead("given", "number"), columnHead("model", "number")),
  );
}

/** Names of the variables of the rows; over each pair of columns the level of the last variable. */
function crossHead(model, names) {
  const last = model.variables[model.index.get(names.at(-1))];
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      h("td", { colspan: names.length - 1 }),
      h("th", { scope: "colgroup", colspan: 2 * last.size }, h("bdi", { text: last.name })),
    ),
    h(
      "tr",
      {},
      names.slice(0, -1).map((name) => h("th", { scope: "col", rowspan: 2 }, h("bdi", { text: name }))),
      last.labels.map((label) =>
        h("th", { scope: "colgroup", colspan: 2, class: "group-start" }, h("bdi", { text: label })),
      ),
    ),
    h(
      "tr",
      {},
      last.labels.map(() => [columnHead("given", "number group-start"), columnHead("model", "number")]),
    ),
  );
}

function columnHead(text, kind = null) {
  return h("th", { scope: "col", class: kind }, h("bdi", { text }));
}

function rowHead(text) {
  return h("th", { scope: "row" }, h("bdi", { text }));
}

/** Labels at the head of a row; all are there for screen readers, those of the row above are faint. */
function stubs(rows, at) {
  return rows[at].labels.map((text, k) => {
    const same = at > 0 && rows[at].labels.slice(0, k + 1).every((label, i) => label === rows[at - 1].labels[i]);
    return h("th", { scope: "row", class: same ? "again" : null }, h("bdi", { text }));
  });
}

function pair({ given, model, hidden }) {
  return [
    h("td", { class: hidden ? "number group-start hidden-cell" : "number group-start", text: given }),
    h("td", { class: "number model", text: model }),
  ];
}
