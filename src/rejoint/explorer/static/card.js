// One variable: a row for each level with the probability as a bar, the prior as a ghost behind
// it, the change in points. Rows are toggle buttons; arrow keys move between them.

import { clicked, withPiece } from "./evidence.js";
import { count, percent, points } from "./format.js";
import { h, quiet, setFlag, setText } from "./dom.js";
import { describeBounds } from "./intervals.js";

const MANY = 12; // levels that a card shows without being asked
const MORE = 100;
const ROW = matchMedia("(max-width: 640px)").matches ? 39 : 29; // px; a card takes its room before it is built
const HEAD = 60;
const FRAME = 24; // padding and border, as in the style sheet
const MORE_BUTTON = 36;
const TOGETHER = "These variables depend on each other beyond the classes: each class has one table of them.";
const SCALES = [0.1, 0.25, 0.5];

export class Card {
  constructor(app, n) {
    this.app = app;
    this.n = n;
    this.variable = app.model.variables[n];
    this.unit = app.model.mixture.unitOf[n];
    this.limit = MANY;
    this.query = "";
    this.weighing = false;
    this.rows = [];
    this.title = h("h3", {
      id: `variable-${n}`,
      text: this.variable.name,
      title: this.variable.name,
      dir: "auto",
    });
    this.element = h("div", {
      class: "card",
      role: "group",
      "aria-labelledby": `variable-${n}`,
      "data-n": n,
    });
    if (app.model.mixture.blocks[this.unit])
      this.element.append(h("p", { class: "joint", text: "Tabulated together", title: TOGETHER }));
    this.element.style.minHeight = `${this.height}px`;
    const longest = this.variable.labels
      .slice(0, 200)
      .reduce((most, label) => Math.max(most, label.length), 0);
    this.element.style.setProperty("--name", `${(1 + 0.58 * Math.min(longest, 14)).toFixed(1)}em`);
  }

  /** How tall the card is, in px; about so until it is built and measured. */
  get height() {
    const { size } = this.variable;
    return this.measured ?? HEAD + ROW * Math.min(size, MANY) + (size > MANY ? MORE_BUTTON : 0);
  }

  /** Lay it at a place of the board: "first", "last", both or neither of its block. A property of its own would be inherited, and so cost the style
   * of all that is inside; what has not changed is not written. */
  put(column, top, among) {
    if (this.among !== among) this.element.dataset.among = this.among = among;
    const { style } = this.element;
    if (this.column !== column)
      style.left = `calc(${(this.column = column)} * (100% + 14px) / var(--columns))`;
    if (this.top !== top) style.top = `${(this.top = top)}px`;
    // What is off the screen takes as much room as it will: that of its inside is told here.
    const inside = Math.max(this.height - FRAME, 0);
    if (this.reserved !== inside) style.containIntrinsicHeight = `${(this.reserved = inside)}px`;
  }

  /** Make the inside; done when the card first comes near the screen. */
  build() {
    if (this.list) return;
    this.note = h("span", { class: "card-note" });
    this.scale = h("span", { class: "card-scale" });
    this.weigh = h("button", {
      class: "small",
      type: "button",
      "aria-pressed": "false",
      text: "Weigh",
      title: "Uncertain evidence: how well each level agrees with what is known",
      on: { click: () => this.toggleSliders() },
    });
    this.weigh.append(quiet(` levels of ${this.variable.name}`));
    this.list = h("div", {
      class: "levels",
      on: { keydown: (event) => this.key(event), click: (event) => this.click(event) },
    });
    this.more = h("button", { class: "small more", type: "button", on: { click: () => this.showMore() } });
    this.element.append(
      h("header", { class: "card-head" }, this.title, this.note, this.scale, this.weigh),
      this.list,
      this.more,
    );
    this.element.style.minHeight = "";
    this.fill();
  }

  /** Levels to show: all of few; of many those given, those searched for, then the commonest. */
  shown() {
    const { size, labels, kind, valued } = this.variable;
    if (size <= MANY) return [...labels.keys()];
    const prior = this.app.before(this.n);
    const given = new Set(this.app.evidence.get(this.n)?.levels ?? []);
    const rank = (i) =>
      given.has(i) ? 2 : this.query && labels[i].toLowerCase().includes(this.query) ? 1 : 0;
    const order = [...labels.keys()].sort((a, b) => rank(b) - rank(a) || prior[b] - prior[a] || a - b);
    const chosen = order.slice(0, Math.max(this.limit, given.size));
    const isLast = (i) => Number(i >= valued); // the level of empty cells
    return chosen.sort((a, b) => (kind === "nominal" ? isLast(a) - isLast(b) : a - b));
  }

  fill() {
    const levels = this.shown();
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.level : null;
    this.rows = levels.map((level) => this.row(level));
    this.list.replaceChildren(...this.rows.map((row) => row.holder));
    const hidden = this.variable.size - levels.length;
    this.more.hidden = hidden <= 0;
    setText(this.more, hidden > 0 ? `Show more of ${hidden.toLocaleString("en-US")} other levels` : "");
    if (this.rows.length)
      this.rove(this.rows.find((row) => row.button.dataset.level === focused) ?? this.rows[0]);
    if (focused !== null) this.list.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
    this.update();
  }

  row(level) {
    const label = this.variable.labels[level];
    const row = {
      level,
      ghost: h("span", { class: "ghost" }),
      bar: h("span", { class: "bar" }),
      range: h("span", { class: "range" }),
      tick: h("span", { class: "tick", hidden: true }),
      rests: h("span", { class: "quiet" }),
      value: h("span", { class: "value" }),
      move: h("span", { class: "move" }),
      state: h("span", { class: "quiet" }),
    };
    row.track = h("span", { class: "track", "aria-hidden": "true" }, row.ghost, row.bar, row.range, row.tick);
    row.button = h(
      "button",
      { class: "level", type: "button", "data-level": level, "aria-pressed": "false", tabindex: -1 },
      h("span", { class: "mark", "aria-hidden": "true" }),
      h("bdi", { class: "name", text: label, title: label }),
      row.state,
      row.track,
      row.value,
      row.move,
      row.rests,
    );
    row.holder = row.button;
    if (this.weighing) this.addSlider(row, label);
    return row;
  }

  addSlider(row, label) {
    const piece = this.app.evidence.get(this.n);
    const start = piece?.kind === "soft" ? piece.weights[row.level] : 1;
    row.slider = h("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 0.01,
      value: start,
      "aria-label": `How well ${this.variable.name} = ${label} agrees with what is known`,
      on: {
        input: () => this.weighed(true),
        change: () => this.weighed(true),
        pointerdown: () => (this.dragging = false),
      },
    });
    row.holder = h("div", { class: "weighed" }, row.button, row.slider);
  }

  toggleSliders() {
    this.weighing = !this.weighing;
    this.limit = this.weighing ? this.variable.size : MANY; // every level needs its weight
    this.weigh.setAttribute("aria-pressed", String(this.weighing));
    this.fill();
  }

  /** One drag, or one run of keys on the same card, is one step to undo. */
  weighed() {
    const weights = this.rows.map((row) => Number(row.slider.value));
    const ordered = Array.from({ length: this.variable.size }, () => 1);
    this.rows.forEach((row, k) => (ordered[row.level] = weights[k]));
    if (!ordered.some((w) => w > 0)) return; // nothing would agree: keep what was
    const amend = this.dragging && this.app.evidence.get(this.n)?.kind === "soft";
    this.dragging = true;
    const next = withPiece(this.app.evidence, this.n, { kind: "soft", weights: ordered }, this.variable.size);
    this.app.give(next, { amend });
  }

  click(event) {
    const button = event.target.closest(".level");
    if (!button) return;
    const usual = this.app.get("click", "set");
    const how = event.shiftKey ? "not" : event.ctrlKey || event.metaKey ? "add" : usual;
    this.rove(this.rows.find((row) => row.button === button));
    this.app.give(clicked(this.app.evidence, this.n, Number(button.dataset.level), how, this.variable.size));
  }

  key(event) {
    const here = this.rows.findIndex((row) => row.button === event.target);
    if (here < 0) return;
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: this.rows.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const row = this.rows[Math.min(Math.max(to, 0), this.rows.length - 1)];
    this.rove(row);
    row.button.focus();
  }

  rove(to) {
    for (const row of this.rows) row.button.tabIndex = row === to ? 0 : -1;
  }

  showMore() {
    this.limit += MORE;
    this.fill();
    this.list.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  search(query) {
    if (query === this.query) return;
    this.query = query;
    if (this.list && this.variable.size > MANY) this.fill();
  }

  /** New numbers into the rows that are there. */
  update() {
    const piece = this.app.evidence.get(this.n);
    if (this.variable.size > MANY && piece?.levels?.some((i) => !this.rows.some((row) => row.level === i))) {
      return this.fill();
    }
    const before = this.app.before(this.n);
    const after = this.app.after(this.n);
    const basis = this.app.beliefs.basis(this.n);
    const range = this.app.beliefs.bounds(this.n) ?? basis?.range;
    const top = scaleOf(before, after, basis?.range?.high);
    const counted = this.app.beliefs.counted(this.n);
    for (const row of this.rows) {
      updateBasis(row, basis);
      updateRow(row, before[row.level], after[row.level], piece, range, top);
      updateTick(row, counted, top);
    }
    setFlag(this.element, "data-given", piece !== undefined);
    const kind = { in: "given", out: "partly excluded", soft: "weighed" }[piece?.kind] ?? "";
    const mark = basis ? describeMark(basis) : "";
    setText(this.note, [kind, mark].filter(Boolean).join(", "));
    this.note.title = basis?.text ?? "";
    setText(this.scale, top < 1 ? `bars to ${100 * top} %` : "");
  }
}

/** What the full length of a bar stands for: all, or less where no level comes near it. */
function scaleOf(before, after, high = []) {
  let most = 0;
  for (let i = 0; i < before.length; i++) most = Math.max(most, before[i], after[i], high[i] ?? 0);
  return SCALES.find((top) => most <= top) ?? 1;
}

function updateRow(row, before, after, piece, range, top) {
  const { level } = row;
  // A ten-thousandth of the track is less than a pixel: what did not move is not touched.
  const [bar, ghost] = [(after / top).toFixed(4), (before / top).toFixed(4)];
  if (row.length !== bar) {
    row.bar.style.transform = `scaleX(${(row.length = bar)})`;
    if (row.mark) row.track.style.setProperty("--length", bar);
  }
  if (row.shade !== ghost) row.ghost.style.transform = `scaleX(${(row.shade = ghost)})`;
  setText(row.value, percent(after));
  setText(row.move, points(after - before));
  const listed = piece?.levels?.includes(level) ?? false;
  const state = !listed ? "" : piece.kind === "in" ? "given" : "excluded";
  if ((row.button.dataset.state ?? "") !== state) {
    row.button.dataset.state = state;
    row.button.setAttribute("aria-pressed", String(state === "given"));
    setText(row.state, state);
  }
  if (row.slider && piece?.kind !== "soft" && row.slider !== document.activeElement) row.slider.value = 1;
  if (row.slider && piece?.kind === "soft") row.slider.value = piece.weights[level];
  updateRange(row, range, top);
}

/** What is neither published nor implied is hatched; screen readers are told. */
function updateBasis(row, basis) {
  const mark = basis?.levels[row.level] ?? "";
  if (row.mark === mark) return;
  row.mark = mark;
  row.track.dataset.basis = mark;
  if (row.length) row.track.style.setProperty("--length", row.length);
  setText(row.rests, mark === "identified" || mark === "open" ? mark : "");
}

function updateRange(row, range, top) {
  const [low, high] = range ? [range.low[row.level], range.high[row.level]] : [0, 0];
  const hidden = high - low < 1e-6;
  if (row.range.hidden !== hidden) row.range.hidden = hidden;
  const wide = Math.max((high - low) / top, 0.002);
  const span = hidden ? "" : `translateX(${((100 * low) / top).toFixed(2)}%) scaleX(${wide.toFixed(4)})`;
  if (row.span !== span) row.range.style.transform = row.span = span;
  row.button.title = hidden ? "" : `${percent(low)} to ${percent(high)}: ${describeRange(range)}`;
}

/** The counted share, where there is one. */
function updateTick(row, counted, top) {
  const share = counted ? counted.counted[row.level] : NaN;
  row.tick.hidden = !(share <= top);
  if (row.tick.hidden) return;
  row.tick.style.transform = `translateX(${((100 * share) / top).toFixed(2)}%) scaleX(0.012)`;
  row.button.title += `; counted ${percent(share)} of ${count(counted.records[0])}`;
}

/** The mark of a card in a word or a few. */
function describeMark({ name, range }) {
  if (name === "given") return "";
  return range || name === "published" || name === "implied" ? name : `${name}, no range`;
}

/** What a line on a bar is: a credible interval, or what joints with the given tables allow. */
function describeRange(range) {
  if (range.draws !== undefined) return describeBounds(range);
  return range.sharp ? "what any joint with these tables gives" : "no joint with these tables is outside";
}
