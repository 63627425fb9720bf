// Pictures by hand: bars and heat maps in SVG, and any of them as a file of its own.

import { percent } from "./format.js";
import { s } from "./dom.js";

const ROW = 26;

function words(x, y, text, anchor = "end", kind = "") {
  return s("text", { x, y, "text-anchor": anchor, class: `chart-text ${kind}`, text });
}

/** Bars with the prior as a ghost; rows are {label, before, after, low, high, tick, text}. */
export function barChart(rows, { width = 640, title = "", unit = percent, most = 1 } = {}) {
  const left = Math.min(220, width * 0.34);
  const right = 78;
  const room = width - left - right;
  const top = title ? 26 : 4;
  const scale = (value) => Math.max((room * value) / (most || 1), 0);
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${top + ROW * rows.length + 4}`,
    width: "100%",
    class: "chart",
    role: "img",
    "aria-label": title || "Bars",
  });
  svg.style.maxWidth = `${width}px`; // letters as large as elsewhere on the page, not larger
  if (title) svg.append(s("text", { x: 0, y: 16, class: "chart-title", text: short(title, width / 7.5) }));
  rows.forEach((row, k) => {
    const y = top + ROW * k;
    svg.append(
      words(left - 10, y + 17, short(row.label, left / 7.5)),
      row.before === undefined
        ? ""
        : s("rect", { x: left, y: y + 3, width: scale(row.before), height: 18, class: "chart-ghost" }),
      s("rect", { x: left, y: y + 7.5, width: scale(row.after), height: 9, class: "chart-bar" }),
      row.low === undefined
        ? ""
        : s("line", {
            x1: left + scale(row.low),
            x2: left + scale(row.high),
            y1: y + 12,
            y2: y + 12,
            class: "chart-range",
          }),
      row.tick >= 0
        ? s("line", {
            x1: left + scale(row.tick),
            x2: left + scale(row.tick),
            y1: y + 5,
            y2: y + 19,
            class: "chart-tick",
          })
        : "",
      s("line", { x1: left, x2: left, y1: y + 2, y2: y + 22, class: "chart-axis" }),
      words(width - right + 70, y + 17, row.text ?? unit(row.after)),
    );
  });
  return svg;
}

/** How wide a picture can be on this screen with letters of their usual size. */
export function room(most = 640) {
  return Math.max(Math.min(most, innerWidth - 74), 260);
}

/** A table of numbers as shaded cells, each with its number: shade is never the only sign. */
export function heatMap(table, { title = "", unit = percent, most, least = 64 } = {}) {
  const { rows, columns, values, corner = "" } = table;
  const longest = Math.max(...[corner, ...rows].map((label) => Array.from(label).length));
  const left = Math.min(Math.max(24 + 7.5 * longest, 60), 170);
  const top = (title ? 24 : 0) + 26;
  const wide = Math.max(least, Math.min(110, 760 / columns.length));
  const tall = 30;
  const width = left + wide * columns.length + 8;
  const height = top + tall * rows.length + 6;
  const peak = most ?? Math.max(...values.flat(), 1e-300);
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    class: "chart heat",
    role: "img",
    "aria-label": title,
  });
  if (title) svg.append(s("text", { x: 0, y: 15, class: "chart-title", text: short(title, width / 8) }));
  if (corner) svg.append(words(left - 10, top - 8, short(corner, 20), "end", "chart-corner"));
  columns.forEach((label, j) => svg.append(words(left + wide * (j + 0.5), top - 8, short(label, wide / 8), "middle")));
  rows.forEach((label, i) => {
    const y = top + tall * i;
    svg.append(words(left - 10, y + 20, short(label, 20)));
    columns.forEach((_, j) => {
      const value = values[i][j];
      // At most 55 % of the full colour, so that the number stays legible on it.
      const shade = Number.isFinite(value) ? 0.55 * Math.min(value / peak, 1) : 0;
      svg.append(
        s("rect", {
          x: left + wide * j + 1,
          y: y + 1,
          width: wide - 2,
          height: tall - 2,
          rx: 3,
          class: "chart-cell",
          "fill-opacity": shade.toFixed(3),
        }),
        words(left + wide * (j + 0.5), y + 20, unit(value), "middle"),
      );
    });
  });
  return svg;
}

function short(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, Math.max(Math.floor(most) - 1, 1)).join("")}…`;
}

const KEPT = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "font-size",
  "font-family",
  "font-weight",
  "opacity",
];

/** The text of an SVG file: what the page's style sheet says is written into the elements. */
export function standalone(svg) {
  const holder = document.getElementById("workshop");
  const shown = svg.isConnected;
  if (!shown) holder.append(svg);
  const copy = svg.cloneNode(true);
  const here = [svg, ...svg.querySelectorAll("*")];
  const there = [copy, ...copy.querySelectorAll("*")];
  here.forEach((element, k) => {
    const style = getComputedStyle(element);
    for (const name of KEPT) there[k].setAttribute(name, style.getPropertyValue(name));
    there[k].removeAttribute("class");
    there[k].removeAttribute("style");
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = s("rect", {
    width: "100%",
    height: "100%",
    fill: getComputedStyle(document.body).getPropertyValue("--surface"),
  });
  copy.prepend(ground);
  if (!shown) svg.remove();
  return new XMLSerializer().serializeToString(copy);
}

/** The same as pixels, twice as fine as the screen's. */
export async function pixels(svg) {
  const url = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * image.naturalWidth;
    canvas.height = 2 * image.naturalHeight;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}
