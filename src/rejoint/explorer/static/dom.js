// The one way to make elements: text is always text, never markup, so that labels from data
// cannot become part of the page.

const SVG = "http://www.w3.org/2000/svg";

/** Element with attributes, listeners (`on`) and children (nodes, text, nested lists, null). */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same in SVG. */
export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (name === "text") {
      element.textContent = value;
    } else if (name === "value") {
      element.value = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null));
}

/** Text of a cell only where it changed: writing the same text would still dirty the layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setFlag(element, name, on) {
  if (element.hasAttribute(name) !== on) element.toggleAttribute(name, on);
}

/** Labelled choice; options are [value, text] pairs. */
export function select(label, options, value, onChange, props = {}) {
  const box = h(
    "select",
    { on: { change: () => onChange(box.value) }, ...props },
    options.map(([key, text]) => h("option", { value: key, text, selected: key === value })),
  );
  return h("label", { class: "field" }, h("span", { class: "field-name", text: label }), box);
}

/** A remark in small letters; null without text. */
export function note(text) {
  return text ? h("p", { class: "note", text }) : null;
}

/** What is wider than its place, and so scrolls sideways. */
export function scroll(label, ...children) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, children);
}

/** A table that scrolls sideways: columns are [title, class or null], rows lists of cells or rows. */
export function plainTable(label, columns, rows) {
  const head = columns.map(([text, kind]) => h("th", { scope: "col", class: kind }, h("bdi", { text })));
  const lines = rows.map((row) => (Array.isArray(row) ? h("tr", {}, row) : row));
  return scroll(label, h("table", { class: "plain-table" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, lines)));
}

/** Screen readers only. */
export function quiet(text) {
  return h("span", { class: "quiet", text });
}

let announced = 0;

/** Say something to screen readers, politely and once. */
export function announce(text) {
  const region = document.getElementById("announcer");
  const mine = ++announced;
  // A pause lets a run of quick changes be told as one.
  setTimeout(() => {
    if (region && mine === announced) setText(region, text);
  }, 250);
}
