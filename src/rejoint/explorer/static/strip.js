// The evidence strip: what is given, how probable that is, how many records show it.

import { describe, withPiece } from "./evidence.js";
import { announce, h, replace, setText } from "./dom.js";
import { contradiction } from "./inference.js";
import { count, probability } from "./format.js";
import { describeWorth, isReduced } from "./intervals.js";
import { FEW } from "./support.js";

export class Strip {
  constructor(app) {
    this.app = app;
    this.chips = h("ul", { class: "chips", "aria-label": "Evidence; press a piece to remove it" });
    this.facts = h("p", { class: "facts" });
    this.warning = h("p", { class: "warning", hidden: true });
    const button = (text, title, action) =>
      h("button", { class: "small", type: "button", text, title, on: { click: action } });
    this.undo = button("Undo", "Undo (Ctrl+Z)", () => app.step(-1));
    this.redo = button("Redo", "Redo (Ctrl+Shift+Z)", () => app.step(1));
    this.clear = button("Clear", "Remove all evidence", () => app.give(new Map()));
    this.link = button("Copy link", "A link that reproduces this state", () => this.copyLink());
    this.element = h(
      "section",
      { class: "strip", "aria-label": "Evidence" },
      h(
        "div",
        { class: "strip-line" },
        this.chips,
        h("div", { class: "buttons" }, this.undo, this.redo, this.clear, this.link),
      ),
      h("div", { class: "strip-line" }, this.facts, this.warning),
    );
    this.update();
  }

  update() {
    const { app } = this;
    const { model, evidence } = app;
    replace(
      this.chips,
      evidence.size
        ? [...evidence].map(([n, piece]) => this.chip(n, piece))
        : h("li", { class: "none", text: "No evidence: click a level to set it" }),
    );
    this.undo.disabled = !app.history.canUndo;
    this.redo.disabled = !app.history.canRedo;
    this.clear.disabled = evidence.size === 0;
    const words = evidence.size ? facts(app) : size(model);
    const warning = evidence.size ? warn(app) : "";
    setText(this.facts, words);
    setText(this.warning, warning);
    this.warning.hidden = !warning;
    announce(
      [[...evidence].map(([n, piece]) => describe(model.variables[n], piece)).join(", "), words, warning]
        .filter(Boolean)
        .join(". "),
    );
  }

  chip(n, piece) {
    const { app } = this;
    const text = describe(app.model.variables[n], piece);
    const take = () => app.give(withPiece(app.evidence, n, null, 0));
    return h(
      "li",
      {},
      h(
        "button",
        {
          class: "chip",
          type: "button",
          title: "Take back",
          "aria-label": `Remove ${text}`,
          on: { click: take },
        },
        h("bdi", { text }),
        h("span", { class: "cross", "aria-hidden": "true", text: "×" }),
      ),
    );
  }

  async copyLink() {
    const done = await copyText(location.href.replace(/#.*/s, "") + this.app.link);
    setText(this.link, done ? "Copied" : "Link is in the address bar");
    setTimeout(() => setText(this.link, "Copy link"), 1500);
  }
}

/** To the clipboard; false where the browser does not allow it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function size(model) {
  const { rank } = model.representative;
  const total = model.doc.records?.total ?? model.doc.record_count;
  const records = total ? `, from ${count(total)} records` : "";
  return `${count(model.variables.length)} variables, ${count(rank)} ${rank === 1 ? "class" : "classes"}${records}`;
}

function facts(app) {
  if (!app.now.possible) return "";
  const soft = [...app.evidence.values()].some((piece) => piece.kind === "soft");
  // A soft piece is a likelihood up to a factor: its probability has no scale of its own.
  const words = [
    soft
      ? "Weighed evidence: only ratios matter"
      : `Probability of this ${probability(app.now.state.logProb)}`,
  ];
  const { support } = app;
  if (support) words.push(recordsInWords(support));
  if (app.now.worth && isReduced(app.now.worth)) words.push(`intervals ${describeWorth(app.now.worth)}`);
  return words.join(" · ");
}

function recordsInWords({ number, total, expected, sampled, soft }) {
  const about = sampled ? "about " : "";
  if (expected) return `about ${count(number)} of ${count(total)} records expected`;
  return `${about}${count(number)} of ${count(total)} records show ${soft ? "what is certain of it" : "it"}`;
}

function warn(app) {
  if (!app.now.possible) {
    const culprits = contradiction(app.model.mixture, app.now.likelihoods);
    const named = culprits.map((n) => describe(app.model.variables[n], app.evidence.get(n))).join(" and ");
    return `${named}: probability zero under this model${culprits.length > 1 ? " together" : ""}, so nothing follows. Remove one.`;
  }
  const { support } = app;
  if (!support || support.number >= FEW) return "";
  if (support.number < 0.5) return "No record shows this: answers depend on the model alone.";
  return `Few records (${count(support.number)}): answers depend mostly on the model.`;
}
