// The cards of all variables: searched, sorted, grouped. Cards are put into the page as it is
// scrolled, built when they come near the screen, and updated only while they are near it.

import { Card } from "./card.js";
import { GAP, deal, exchange, reorder, section, together } from "./board.js";
import { classInformation, distance } from "./information.js";
import { h, replace, select, setText } from "./dom.js";
import { allPython, question } from "./code.js";
import { MARKS } from "./basis.js";
import { barChart } from "./chart.js";
import { plural } from "./format.js";
import { shareBar } from "./share.js";

const SORTS = [
  ["", "Order of the file"],
  ["change", "Change, largest first"],
  ["information", "Information, most first"],
  ["name", "Name"],
];
const GROUPS = [
  ["", "None"],
  ["prefix", "Start of the name"],
  ["kind", "Kind"],
  ["given", "Given or not"],
];
const CLICKS = [
  ["set", "gives this level"],
  ["add", "adds this level"],
  ["not", "excludes this level"],
];

const CHUNK = 48; // cards put into the page at a time
const LIVELY = 90;
const QUIET = 400; // ms after which the order in the page follows that on the screen
const WIDE = 330; // px, of a card at least
const DRAWN = 120; // bars of a picture
const ASKED = 20; // questions for the clipboard

export class CardsView {
  static id = "variables";
  static title = "Variables";

  constructor(app) {
    this.app = app;
    this.cards = app.model.variables.map((_, n) => new Card(app, n));
    this.near = new Set();
    this.stale = new Set();
    this.sought = "";
    this.byElement = new Map(this.cards.map((card) => [card.element, card]));
    this.observer = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: "500px 0px" });
    // Bars glide where they are few; starting hundreds of transitions would take longer than a frame.
    const levels = app.model.variables.reduce((sum, variable) => sum + variable.size, 0);
    this.list = h("div", { class: levels <= LIVELY ? "groups lively" : "groups" });
    this.limit = CHUNK;
    this.end = h("div", { class: "end" });
    this.found = h("p", { class: "found", role: "status" });
    this.bar = this.toolbar();
    this.element = h(
      "div",
      {},
      this.bar,
      this.found,
      legend(app.model),
      this.list,
      this.end,
      shareBar(app, this),
    );
    for (const card of this.cards) this.observer.observe(card.element);
    this.observer.observe(this.end);
    this.width = document.documentElement.clientWidth - 48;
    new ResizeObserver(([{ contentRect }]) => this.resized(contentRect.width)).observe(this.element);
    this.ruler = new ResizeObserver((entries) => this.measured(entries));
    this.arrange();
  }

  toolbar() {
    const { app } = this;
    this.search = h("input", {
      type: "search",
      id: "search",
      placeholder: "Name or level",
      autocomplete: "off",
      spellcheck: "false",
      on: { input: () => this.find(this.search.value) },
    });
    return h(
      "div",
      { class: "toolbar" },
      h("label", { class: "field grow" }, h("span", { class: "field-name", text: "Search" }), this.search),
      select("Sort", SORTS, app.get("sort", ""), (value) => app.set("sort", value), { id: "sort" }),
      select("Group", GROUPS, app.get("group", ""), (value) => app.set("group", value), { id: "group" }),
      select(
        "A click",
        CLICKS,
        app.get("click", "set"),
        (value) => app.set("click", value === "set" ? null : value),
        {
          id: "click-means",
          title: "Shift-click always excludes, Ctrl-click always adds",
        },
      ),
    );
  }

  /** A link that was opened in this page may have changed what is chosen. */
  showChoices() {
    for (const [id, option, usual] of [
      ["sort", "sort", ""],
      ["group", "group", ""],
      ["click-means", "click", "set"],
    ]) {
      const box = this.bar.querySelector(`#${id}`);
      const value = this.app.get(option, usual);
      if (box.value !== value) box.value = value;
    }
  }

  find(text) {
    this.sought = text.trim().toLowerCase();
    this.hurried = false;
    this.arrange();
  }

  matches(card) {
    if (!this.sought) return true;
    if (card.variable.name.toLowerCase().includes(this.sought)) return true;
    return card.variable.labels.some((label) => label.toLowerCase().includes(this.sought));
  }

  /** Put the cards that match in order and in their groups; nothing moves if nothing changed. */
  arrange() {
    const shown = this.sorted(this.cards.filter((card) => this.matches(card)));
    for (const card of shown) card.search(this.sought);
    setText(
      this.found,
      shown.length === this.cards.length ? "" : `${plural(shown.length, "variable")} found`,
    );
    this.place(this.grouped(shown).map(([name, cards]) => [name, together(cards).flat()]));
    this.more = shown.length > this.limit;
  }

  place(groups) {
    let room = this.limit;
    const cut = groups.map(([name, cards]) => {
      const part = cards.slice(0, Math.max(room, 0));
      room -= cards.length;
      return [name, part];
    });
    const filled = cut.filter(([, cards]) => cards.length);
    const plan = filled.map(([name, cards]) => `${name}:${cards.map((card) => card.n)}`).join("|");
    if (plan === this.plan) return;
    this.plan = plan;
    this.groups = filled;
    const focused = document.activeElement;
    this.fillBoards(filled);
    this.deal();
    if (this.list.contains(focused)) focused.focus({ preventScroll: true });
  }

  /** The same groups keep their boards, and a board its cards: what need not move is not touched. */
  fillBoards(groups) {
    const boards = [...this.list.querySelectorAll(".board")];
    const names = groups.map(([name]) => name).join("\n");
    if (names !== this.names || boards.length !== groups.length) {
      this.names = names;
      replace(
        this.list,
        groups.map(([name, cards]) => section(name, cards)),
      );
    } else {
      groups.forEach(([, cards], k) => exchange(boards[k], cards));
      clearTimeout(this.tidying);
      if (this.hurried) this.tidying = setTimeout(() => this.tidy(), QUIET);
      else this.tidy();
    }
  }

  /** Cards lie where they belong at once; their order in the page, which is that of the keyboard and
   * of screen readers, follows a moment after a click: moving elements would delay the new bars. */
  tidy() {
    const focused = document.activeElement;
    this.list.querySelectorAll(".board").forEach((board, k) => reorder(board, this.groups[k][1]));
    if (this.list.contains(focused) && document.activeElement !== focused)
      focused.focus({ preventScroll: true });
  }

  deal() {
    const { columns } = this;
    this.dealt = columns;
    this.list.querySelectorAll(".board").forEach((board, k) => deal(board, this.groups[k][1], columns));
  }

  resized(width) {
    this.width = width || this.width;
    if (this.columns !== this.dealt) this.deal();
  }

  /** A card that has grown or shrunk moves those below it. */
  measured(entries) {
    let changed = false;
    for (const { target, borderBoxSize } of entries) {
      const card = this.byElement.get(target);
      const height = Math.round(borderBoxSize[0].blockSize);
      if (!card.list || !target.isConnected || height === 0) continue;
      changed ||= card.height !== height;
      card.measured = height;
    }
    if (changed) this.deal();
  }

  /** How many columns there is room for. The width is told by the observer, never asked for:
   * asking would make the browser lay out the page twice. */
  get columns() {
    return Math.max(1, Math.floor((this.width + GAP) / (WIDE + GAP)));
  }

  /** Whether new evidence can move a card. */
  get moves() {
    return ["change", "information"].includes(this.app.get("sort")) || this.app.get("group") === "given";
  }

  sorted(cards) {
    const { app } = this;
    const sort = app.get("sort", "");
    if (sort === "name") return [...cards].sort((a, b) => a.variable.name.localeCompare(b.variable.name));
    if (sort !== "change" && sort !== "information") return cards;
    const score = new Map(cards.map((card) => [card, this.score(sort, card.n)]));
    const given = (card) => Number(app.evidence.has(card.n));
    return [...cards].sort((a, b) => given(b) - given(a) || score.get(b) - score.get(a) || a.n - b.n);
  }

  score(sort, n) {
    const { app } = this;
    if (sort === "change") return distance(app.before(n), app.after(n));
    return classInformation(app.model.mixture, app.beliefs.state, n);
  }

  grouped(cards) {
    const by = this.app.get("group", "");
    if (!by) return [["", cards]];
    const name = {
      kind: (card) => `${card.variable.kind[0].toUpperCase()}${card.variable.kind.slice(1)}`,
      prefix: (card) => card.variable.name.split(/[\s._:/-]/)[0],
      given: (card) => (this.app.evidence.has(card.n) ? "Given" : "Not given"),
    }[by];
    if (!name) return [["", cards]];
    const groups = new Map();
    for (const card of cards) {
      const key = name(card);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(card);
    }
    return [...groups];
  }

  /** Every level of every variable: before, now. */
  *levels() {
    const { app } = this;
    for (const [n, variable] of app.model.variables.entries()) {
      const [before, after] = [app.before(n), app.after(n)];
      for (const [i, label] of variable.labels.entries())
        yield { variable, label, before: before[i], after: after[i] };
    }
  }

  table() {
    return [
      ["variable", "level", "before", "now"],
      ...Array.from(this.levels(), (row) => [row.variable.name, row.label, row.before, row.after]),
    ];
  }

  chart() {
    const rows = Array.from(this.levels(), (row) => ({
      ...row,
      label: `${row.variable.name} = ${row.label}`,
    }));
    return barChart(rows.slice(0, DRAWN), { title: this.app.model.title });
  }

  /** One question for each variable that is not given. */
  query() {
    const { model, evidence } = this.app;
    const open = model.variables.filter((_, n) => !evidence.has(n)).slice(0, ASKED);
    return open.map(({ name }) => question(model, "P", [name], evidence));
  }

  python() {
    const { model, evidence } = this.app;
    return allPython(model, evidence);
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      if (target === this.end) {
        if (isIntersecting && this.more) this.grow();
        continue;
      }
      const card = this.byElement.get(target);
      if (!isIntersecting) {
        this.near.delete(card);
        continue;
      }
      this.near.add(card);
      if (!card.list) {
        card.build();
        this.ruler.observe(card.element);
      }
      if (this.stale.has(card)) card.update();
      this.stale.delete(card);
    }
  }

  grow() {
    this.limit += CHUNK;
    this.hurried = false;
    this.arrange();
    // Asked again: a page that is still too short would otherwise not be looked at once more.
    this.observer.unobserve(this.end);
    this.observer.observe(this.end);
  }

  update(what) {
    this.showChoices();
    this.hurried = what === "evidence";
    if (!this.hurried || this.moves) this.arrange();
    for (const card of this.cards) {
      if (!card.list) continue;
      if (this.near.has(card)) card.update();
      else this.stale.add(card);
    }
  }
}

/** What the marks of a model from tables mean; null for other models. */
function legend({ doc }) {
  if (!doc.tables) return null;
  const entries = MARKS.map(([mark, title, text]) =>
    h(
      "li",
      {},
      h("span", { class: "track", "data-basis": mark, "aria-hidden": "true" }, h("span", { class: "bar" })),
      h("span", {}, h("strong", { text: title }), `: ${text}`),
    ),
  );
  return h("ul", { class: "legend", "aria-label": "What the bars are based on" }, entries);
}
