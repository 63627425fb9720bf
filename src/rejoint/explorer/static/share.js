// A view to take away: as Python, as a command, as a table or a picture.

import { command } from "./code.js";
import { copyText } from "./strip.js";
import { h, setText } from "./dom.js";
import { pixels, standalone } from "./chart.js";

/** Buttons below a view. The view has any of `query()`, `command()`, `python()`, `table()`,
 * `chart()`. */
export function shareBar(app, view) {
  const copied = (text) => async (button) => {
    const done = await copyText(text());
    flash(button, done ? "Copied" : "The browser does not allow copying");
  };
  const kept = (name, type, make) => async () => save(`${fileName(app)}.${name}`, await make(), type);
  const actions = [
    view.python && ["Copy Python", copied(() => view.python())],
    (view.query || view.command) && ["Copy command", copied(() => commands(app, view))],
    view.query && ["Copy question", copied(() => [view.query()].flat().join("\n"))],
    view.table && ["CSV", kept("csv", "text/csv", () => csv(view.table()))],
    view.chart && ["SVG", kept("svg", "image/svg+xml", () => standalone(view.chart()))],
    view.chart && ["PNG", kept("png", "image/png", () => pixels(view.chart()))],
  ].filter(Boolean);
  const buttons = actions.map(([text, act]) => {
    const button = h("button", { class: "small", type: "button", text, on: { click: () => act(button) } });
    return button;
  });
  return h("div", { class: "share", role: "group", "aria-label": "Export this view" }, buttons);
}

function commands(app, view) {
  if (view.command) return view.command();
  return [view.query()]
    .flat()
    .map((query) => command(app.model, query))
    .join("\n");
}

function flash(button, text) {
  const before = button.dataset.text ?? button.textContent;
  button.dataset.text = before;
  setText(button, text);
  setTimeout(() => setText(button, before), 1500);
}

function fileName(app) {
  return app.model.title.replace(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, 60) || "model";
}

function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Rows as CSV (RFC 4180). A label that a spreadsheet would run as a formula is kept as text. */
function csv(rows) {
  const cell = (value) => {
    if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
    const text = /^[=+\-@\t\r]/.test(value) && !/^[+-]?[\d.]+$/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
