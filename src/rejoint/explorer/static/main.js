// From the model to the page: read it, make the views, keep link and page in step.

import { App } from "./app.js";
import { CardsView } from "./cards.js";
import { ClassesView, recallNames } from "./classes.js";
import { CrosstabView } from "./crosstab.js";
import { FitView } from "./fit.js";
import { PageError, readModel } from "./model.js";
import { QueryView } from "./query.js";
import { RatingsView } from "./ratings.js";
import { RecordView } from "./record.js";
import { Strip } from "./strip.js";
import { TargetView } from "./target.js";
import { h, replace } from "./dom.js";
import { report } from "./report.js";
import { switchTheme } from "./themes.js";

const VIEWS = [CardsView, TargetView, CrosstabView, RecordView, ClassesView, FitView, QueryView, RatingsView];

async function load() {
  const inline = document.getElementById("model");
  if (inline) return JSON.parse(inline.textContent);
  const answer = await fetch("model.json");
  if (!answer.ok)
    throw new PageError(`The model could not be read from rejoint (${answer.status}). Is it still running?`);
  return answer.json();
}

function start(doc) {
  const model = readModel(doc);
  recallNames(model);
  const app = new App(model);
  app.readLink(location.hash);
  document.title = `${model.title} · rejoint`;
  document.getElementById("title").textContent = model.title;
  globalThis.rejoint = { app }; // for the console, and for measuring
  if (doc.report) return document.getElementById("main").replaceChildren(report(app));
  const strip = new Strip(app);
  document.getElementById("strip").replaceChildren(strip.element);
  const tabs = new Tabs(
    app,
    VIEWS.filter((View) => View.fits?.(model) ?? true),
  );
  app.onChange((what) => {
    if (what !== "options") strip.update();
    tabs.update(what);
    keepLink(app);
  });
  addEventListener(
    "hashchange",
    () => location.hash !== app.link && warnUnknown(app.readLink(location.hash)),
  );
  addEventListener("keydown", (event) => shortcut(event, app));
  warnUnknown(app.readLink(location.hash));
}

let linkTimer = 0;

/**
 * The address follows the state, a moment later: a slider that moves must not flood the browser.
 * An address typed in that moment is the newer wish: the event that tells of it is on its way.
 */
function keepLink(app) {
  clearTimeout(linkTimer);
  const before = location.hash;
  linkTimer = setTimeout(() => {
    if (location.hash === before && before !== app.link)
      history.replaceState(null, "", app.link || location.pathname + location.search);
  }, 120);
}

/** The views; one is made when it is first shown, and only the one shown is updated. */
class Tabs {
  constructor(app, views) {
    this.app = app;
    this.kinds = views;
    this.views = new Map();
    this.links = views.map((View) =>
      h("button", {
        class: "tab",
        type: "button",
        text: View.title,
        on: { click: () => app.set("view", View.id === views[0].id ? null : View.id) },
      }),
    );
    const nav = document.getElementById("tabs");
    replace(nav, this.links);
    nav.hidden = views.length < 2;
  }

  update(what) {
    const wanted = this.app.get("view", this.kinds[0].id);
    const at = Math.max(
      this.kinds.findIndex((View) => View.id === wanted),
      0,
    );
    const View = this.kinds[at];
    if (!this.views.has(View)) this.views.set(View, new View(this.app));
    const view = this.views.get(View);
    if (this.shown !== view) {
      this.shown = view;
      this.links.forEach((link, k) =>
        k === at ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current"),
      );
      this.reveal(this.links[at]);
      document.getElementById("main").replaceChildren(view.element);
    }
    view.update(what);
  }

  /** On a narrow screen the tabs scroll sideways: the one that is shown comes into sight. */
  reveal(link) {
    const nav = link.parentElement;
    if (nav.scrollWidth <= nav.clientWidth) return;
    nav.scrollLeft = link.offsetLeft - nav.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
  }
}

function warnUnknown(names) {
  if (!names.length) return;
  const text = `The link refers to parts that this model does not have: ${names.join(", ")}. The rest is used.`;
  document.getElementById("main").prepend(h("p", { class: "message", role: "alert", text }));
}

function shortcut(event, app) {
  const typing = event.target.matches?.("input:not([type=range]), select, textarea");
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
    event.preventDefault();
    app.step(event.shiftKey ? 1 : -1);
  } else if (event.key === "/" && !typing) {
    const search = document.getElementById("search");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  }
}

function fail(error) {
  const expected = error instanceof PageError;
  const text = expected ? error.message : `The model could not be shown: ${error.message}`;
  document.getElementById("main").replaceChildren(h("p", { class: "message", role: "alert", text }));
  if (!expected) console.error(error);
}

switchTheme(document.getElementById("theme"));
load().then(start).catch(fail);
