// Cards on their board: which are there, where they lie, and in which order the page has them.

import { h } from "./dom.js";

export const GAP = 14; // px, between cards

export function section(name, cards) {
  return h(
    "section",
    { class: "group" },
    h("h2", { text: name || "Variables", class: name ? "group-name" : "quiet" }),
    h(
      "div",
      { class: "board" },
      cards.map((card) => card.element),
    ),
  );
}

/** Take out cards that are no longer shown, add those that are new; the others are not touched. */
export function exchange(board, cards) {
  const wanted = new Set(cards.map((card) => card.element));
  const there = new Set(board.children);
  for (const element of there) if (!wanted.has(element)) element.remove();
  board.append(...[...wanted].filter((element) => !there.has(element)));
}

/** Moving an element costs the style of all that is in it, so that as many as can be stay. */
export function reorder(board, cards) {
  const place = new Map([...board.children].map((element, k) => [element, k]));
  const order = cards.map((card) => place.get(card.element));
  const stay = new Set(rising(order).map((k) => cards[k].element));
  let next = null;
  for (const { element } of [...cards].reverse()) {
    if (!stay.has(element)) board.insertBefore(element, next);
    next = element;
  }
}

/** Positions of a longest rising part of some numbers. */
function rising(numbers) {
  const ends = []; // of the best part of each length
  const before = numbers.map((number, k) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[ends[middle]] < number) low = middle + 1;
      else high = middle;
    }
    ends[low] = k;
    return low ? ends[low - 1] : -1;
  });
  const found = [];
  for (let k = ends.at(-1) ?? -1; k >= 0; k = before[k]) found.push(k);
  return found.reverse();
}

/** Cards of variables that share a block stand together, where the first of them stands: a list of each. */
export function together(cards) {
  const sets = new Map();
  for (const card of cards) sets.set(card.unit, [...(sets.get(card.unit) ?? []), card]);
  return [...sets.values()];
}

/** Places on a board: each set of cards goes to the column that is shortest so far. The order in the page
 * stays that of the cards, which is also the order of the keyboard and of screen readers. */
export function deal(board, cards, columns) {
  board.style.setProperty("--columns", columns);
  const bottoms = new Array(columns).fill(0);
  for (const set of together(cards)) {
    const column = bottoms.indexOf(Math.min(...bottoms));
    set.forEach((card, k) => {
      card.put(column, bottoms[column], [k === 0 ? "first" : "", k === set.length - 1 ? "last" : ""].join(" "));
      bottoms[column] += card.height;
    });
    bottoms[column] += GAP;
  }
  board.style.height = `${Math.max(...bottoms) - GAP}px`;
}
