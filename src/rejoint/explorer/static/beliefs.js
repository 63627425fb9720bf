// What follows from evidence: the classes of the mixture, the bars of every variable, their bounds.

import { bounds, condition } from "./intervals.js";
import { infer, marginal } from "./inference.js";
import { prediction } from "./ensemble.js";
import { basisOf } from "./basis.js";
import { countedBars } from "./counts.js";
import { likelihoods } from "./evidence.js";

/** The answers to one set of evidence; each is computed when it is first asked for. */
export class Beliefs {
  #bars = new Map();
  #draws = null;

  constructor(model, evidence) {
    this.model = model;
    this.evidence = evidence;
    this.likelihoods = likelihoods(model, evidence);
    this.state = infer(model.mixture, this.likelihoods);
  }

  get possible() {
    return this.state.possible;
  }

  /** Count and model together, where rejoint has answered; null where the model answers alone. */
  counted(n) {
    return countedBars(this.model, n, this.likelihoods);
  }

  /** Distribution of a variable: that of count and model together, or the joint's. */
  bars(n) {
    const counted = this.counted(n);
    if (counted) return counted.value;
    if (!this.#bars.has(n)) this.#bars.set(n, marginal(this.model.mixture, this.state, n));
    return this.#bars.get(n);
  }

  /** What a classifier predicts of a target, or null. */
  prediction(n) {
    return prediction(this.model, n, this.likelihoods);
  }

  /** What the bars of a variable rest on, for a model from tables; else null. */
  basis(n) {
    return basisOf(this.model, n, this.likelihoods);
  }

  /** The draws given the evidence; none without draws, and where all of them exclude the evidence. */
  get draws() {
    this.#draws ??= this.possible ? condition(this.model, this.likelihoods) : [];
    return this.#draws;
  }

  /** {draws, effective}: how many draws there are, and what they are worth; null without any. */
  get worth() {
    if (!this.draws.length) return null;
    return {
      draws: this.draws.length,
      effective: 1 / this.draws.reduce((sum, { weight }) => sum + weight ** 2, 0),
    };
  }

  /** Bounds of a variable's distribution, or null. */
  bounds(n) {
    const counted = this.counted(n);
    if (counted) return counted.interval;
    if (!this.draws.length) return null;
    const tables = this.draws.map(({ joint, state }) => marginal(joint, state, n));
    return bounds(
      this.bars(n),
      tables,
      this.draws.map(({ weight }) => [weight]),
    );
  }
}
