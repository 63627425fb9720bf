// The state of the page and who is told when it changes. Views read from here and draw.

import { askRanges } from "./basis.js";
import { askCounts } from "./counts.js";
import { Beliefs } from "./beliefs.js";
import { fromParams, History, toParams } from "./evidence.js";
import { supportOf } from "./support.js";

export class App {
  constructor(model) {
    this.model = model;
    this.prior = new Beliefs(model, new Map());
    this.history = new History(new Map());
    this.options = new URLSearchParams();
    this.listeners = new Set();
    this.#compute();
  }

  get evidence() {
    return this.history.now;
  }

  /** What follows from the evidence; where that is impossible, what was before. */
  get beliefs() {
    return this.now.possible ? this.now : this.prior;
  }

  /** Distribution of a variable without any evidence. */
  before(n) {
    return this.prior.bars(n);
  }

  /** Distribution given the evidence. */
  after(n) {
    return this.beliefs.bars(n);
  }

  /** How many records show the evidence, counted when first asked. */
  get support() {
    this.supported ??= supportOf(this.model, this.evidence, this.now.state);
    return this.supported;
  }

  give(evidence, { amend = false } = {}) {
    if (amend) this.history.amend(evidence);
    else this.history.push(evidence);
    this.#changed("evidence");
  }

  step(by) {
    this.history.move(by);
    this.#changed("evidence");
  }

  /** A choice of a view (which target, which sort); part of the link, not of undo. */
  set(name, value) {
    if (value === null || value === "") this.options.delete(name);
    else if (Array.isArray(value)) {
      this.options.delete(name);
      for (const one of value) this.options.append(name, one);
    } else this.options.set(name, value);
    this.#changed("options");
  }

  get(name, otherwise = null) {
    return this.options.get(name) ?? otherwise;
  }

  onChange(listener) {
    this.listeners.add(listener);
  }

  /** Take the state from a link; returns the names that the model does not have. */
  readLink(hash) {
    const params = new URLSearchParams(hash.replace(/^#/, ""));
    const { evidence, unknown } = fromParams(this.model, params);
    this.options = new URLSearchParams([...params].filter(([key]) => !/^(is|not|soft)\./.test(key)));
    if (this.link !== hash) this.history.push(evidence);
    this.#changed("link"); // evidence and choices
    return unknown;
  }

  get link() {
    const text = new URLSearchParams([...toParams(this.model, this.evidence), ...this.options]).toString();
    return text ? `#${text}` : "";
  }

  #compute() {
    this.now = new Beliefs(this.model, this.evidence);
    this.supported = null;
  }

  #changed(what) {
    if (what !== "options") {
      this.#compute();
      if (this.now.possible) {
        askRanges(this.model, this.now.likelihoods, () => this.#tell("ranges"));
        askCounts(this.model, this.now.likelihoods, () => this.#tell("ranges"));
      }
    }
    this.#tell(what);
  }

  #tell(what) {
    for (const listener of this.listeners) listener(what);
  }
}
