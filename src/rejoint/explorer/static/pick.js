// A variable picked by name: a plain choice for a few, typing with suggestions for many.

import { h, select } from "./dom.js";

const FEW = 60;

/** Field for a variable; `onPick` gets its position, or null. */
export function pick(app, label, value, onPick, { empty = "None" } = {}) {
  const { variables, index } = app.model;
  if (variables.length <= FEW) {
    const options = [
      ...(empty ? [["", empty]] : []),
      ...variables.map((variable, n) => [String(n), variable.name]),
    ];
    return select(label, options, value === null ? "" : String(value), (key) =>
      onPick(key === "" ? null : Number(key)),
    );
  }
  const list = h(
    "datalist",
    { id: `names-${label.replace(/\W/g, "")}` },
    variables.map(({ name }) => h("option", { value: name })),
  );
  const box = h("input", {
    type: "text",
    list: list.id,
    value: value === null ? "" : variables[value].name,
    placeholder: "Type a name",
    autocomplete: "off",
    on: {
      change: () => (box.value === "" ? onPick(null) : index.has(box.value) && onPick(index.get(box.value))),
    },
  });
  return h("label", { class: "field" }, h("span", { class: "field-name", text: label }), box, list);
}

/** Position of the variable that an option of the link names; null where there is none. */
export function picked(app, option) {
  return app.model.index.get(app.get(option)) ?? null;
}
