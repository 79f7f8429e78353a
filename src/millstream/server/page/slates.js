/**
 * The slate browser: an update, the keys with a prefix, a page at a time. The shown page is read
 * again after each committed batch; the chosen slate is followed separately.
 *
 * The list is one stop of the Tab key: arrows, Home and End go through it, Enter opens a slate.
 */

import { named, note, onLink } from "./address.js";
import { NoAnswer, Refused, path, read } from "./api.js";
import { byId, make, say, set } from "./dom.js";
import { announce } from "./figures.js";
import { count, counted, exactJson, line } from "./format.js";
import { Slate } from "./slate.js";

const PAGE = 50;
const PAUSE = 150;
const START = { after: null, first: 1 };
/** The pause before the next read, as a multiple of the last read: huge slates are read seldom. */
const PACE = 10;

export class Slates {
  constructor() {
    this.chooser = byId("slates-update");
    this.search = byId("slates-prefix");
    this.list = byId("slates-list");
    this.back = byId("slates-back");
    this.next = byId("slates-next");
    this.slate = new Slate(byId("slate"));
    Object.assign(this, { rows: new Map(), keys: [], pages: [START], following: null, batch: null });
    Object.assign(this, { seen: true, notBefore: 0 });
    // Keep the list up to date up to a screen away, so that it is current when scrolled to.
    const near = { rootMargin: "100% 0px" };
    new IntersectionObserver(([{ isIntersecting }]) => {
      this.seen = isIntersecting;
    }, near).observe(byId("slates"));
    let typing = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.#search(), PAUSE);
    });
    this.chooser.addEventListener("change", () => {
      this.slate.close();
      this.#search();
    });
    byId("slates-form").addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(typing);
      this.#search();
    });
    this.next.addEventListener("click", () => this.#turn([...this.pages, this.following]));
    this.back.addEventListener("click", () => this.#turn(this.pages.slice(0, -1)));
    this.list.addEventListener("click", (event) => this.#open(event.target.closest("li")));
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.linked = named("slate");
    onLink("slate", (update, key) => this.#goTo(update, key));
  }

  /** Loads the list of updates, and begins with the first. */
  async load() {
    const { updates } = await read("slates");
    const chosen = this.chooser.value;
    const names = updates.map(({ name }) => name);
    this.chooser.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    if (names.includes(chosen)) this.chooser.value = chosen;
    byId("slates-form").hidden = !names.length;
    this.pages = [START];
    const linked = this.linked;
    this.linked = null;
    if (linked) this.#goTo(...linked);
    if (names.length) await this.#read();
    else this.#none("This application has no update, so it keeps no slates.");
  }

  /** Shows the slate of a link, whatever the list shows. */
  #goTo(update, key = "") {
    const known = [...this.chooser.options].some(({ value }) => value === update);
    if (!known) return announce(`There is no update ${update}.`);
    if (this.chooser.value !== update) {
      this.chooser.value = update;
      this.#search();
    }
    this.slate.open(update, key);
    return byId("slates").scrollIntoView();
  }

  /** Takes a status; reads the page again if a batch was committed since. */
  update({ batch, functions }) {
    const one = functions.find(({ name }) => name === this.chooser.value);
    const total = one && one.slates !== null ? `${counted(one.slates, "slate")} of ${one.name}` : "";
    say(byId("slates-total"), total);
    if (this.batch === batch || this.reading || !this.seen) return;
    if (performance.now() >= this.notBefore) this.#read();
  }

  #search() {
    this.#turn([START]);
  }

  /** Shows another page on the user's request, and announces its content. */
  async #turn(pages) {
    this.pages = pages;
    await this.#read();
    if (this.reading) return; // another search has taken over
    this.list.scrollTop = 0;
    announce(byId(this.keys.length ? "slates-found" : "slates-none").textContent);
  }

  async #read() {
    this.reading?.abort();
    if (!this.chooser.value) return;
    const mine = new AbortController();
    this.reading = mine;
    const [update, prefix, { after }] = [this.chooser.value, this.search.value, this.pages.at(-1)];
    const query = { prefix, limit: PAGE, ...(after === null ? {} : { after }) };
    const began = performance.now();
    try {
      const where = path(["slates", update], query);
      const found = await read(where, { signal: mine.signal, parse: exactJson });
      this.#show(found, prefix);
      this.notBefore = began + PACE * (performance.now() - began);
    } catch (error) {
      if (error instanceof Refused) this.#none(error.message);
      else if (!(error instanceof NoAnswer)) throw error;
      // Otherwise a later search has taken over, or the server is gone, which the banner says.
    } finally {
      if (this.reading === mine) this.reading = null;
    }
  }

  #show({ update, batch, slates, next }, prefix) {
    const keys = slates.map(({ key }) => key);
    const { first } = this.pages.at(-1);
    this.batch = batch;
    this.following = { after: next, first: first + keys.length };
    if (update !== this.shownUpdate) this.#arrange([]);
    this.shownUpdate = update;
    if (keys.length !== this.keys.length || keys.some((key, at) => key !== this.keys[at])) {
      this.#arrange(keys);
    }
    for (const { key, slate } of slates) say(this.rows.get(key).value, line(slate));
    this.#mark();
    this.#allow(this.back, this.pages.length > 1);
    this.#allow(this.next, next !== null);
    this.list.hidden = !keys.length;
    byId("slates-none").hidden = keys.length > 0;
    if (keys.length) {
      const part = `${count(first)} to ${count(first + keys.length - 1)}`;
      const whole = this.pages.length === 1 && next === null;
      say(byId("slates-found"), whole ? counted(keys.length, "slate") : part);
    } else if (first > 1) this.#none("There are no keys past this.");
    else if (prefix) this.#none(`No key of ${update} begins with “${prefix}”.`);
    else this.#none(`${update} has no slates yet.`);
  }

  /** Enables or disables a button. A disabled button would lose the focus: the list takes it. */
  #allow(button, allowed) {
    const held = button === document.activeElement && !allowed;
    button.disabled = !allowed;
    if (held) this.list.querySelector("[tabindex='0']")?.focus();
  }

  /** Shows these keys; keeps the rows of keys that stay, and the focus. */
  #arrange(keys) {
    const held = this.list.contains(document.activeElement) ? document.activeElement : null;
    const rows = new Map(keys.map((key) => [key, this.rows.get(key) ?? freshRow(key)]));
    this.rows = rows;
    this.keys = keys;
    this.list.replaceChildren(...[...rows.values()].map(({ node }) => node));
    if (held) (this.list.contains(held) ? held : this.list.firstElementChild)?.focus();
  }

  /** Marks the chosen slate. Tab leads to one row: the focused, the chosen or the first. */
  #mark() {
    const chosen = this.slate.update === this.shownUpdate ? this.slate.key : null;
    for (const [key, { node }] of this.rows) set(node, { "aria-selected": key === chosen, tabindex: -1 });
    const held = this.list.contains(document.activeElement) ? document.activeElement : null;
    const stop = held ?? this.rows.get(chosen)?.node ?? this.list.firstElementChild;
    if (stop) set(stop, { tabindex: 0 });
  }

  #open(row) {
    const key = this.#keyOf(row);
    if (key === undefined) return;
    this.slate.open(this.shownUpdate, key);
    note("slate", this.shownUpdate, key);
    announce(`Showing the slate of ${key || "the empty key"}`);
    this.#mark();
  }

  #key(event) {
    const rows = [...this.list.children];
    const at = rows.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to !== undefined && rows[to]) {
      rows[to].focus();
      this.#mark();
    } else if (event.key === "Enter" || event.key === " ") {
      this.#open(event.target);
    } else if (to === undefined) return;
    event.preventDefault();
  }

  #keyOf(row) {
    return row ? this.keys[[...this.list.children].indexOf(row)] : undefined;
  }

  #none(sentence) {
    this.#arrange([]);
    this.list.hidden = true;
    byId("slates-none").hidden = false;
    say(byId("slates-none"), sentence);
    say(byId("slates-found"), "");
  }
}

function freshRow(key) {
  const value = make("span", { class: "value" });
  const name = make("bdi", { class: key ? "key" : "key quiet" }, key || "the empty key");
  return { node: make("li", { role: "option" }, name, value), value };
}
