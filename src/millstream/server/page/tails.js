/**
 * The tail of a stream: its records as they come, newest first.
 *
 * Records may come by the thousand: they are put on the page a few times a second, and the page
 * holds a limited number. While paused, it keeps listening and says how many are new. Opening a row
 * pauses it, so that the row stays in place. A filter keeps the records that contain a text, among
 * the last thousand and the new ones.
 *
 * The table is one stop of the Tab key: arrows go through the rows, Enter opens one.
 */

import { named, note, onLink } from "./address.js";
import { follow, path, read } from "./api.js";
import { byId, make, say, set } from "./dom.js";
import { count, exactJson, exactTime, line, time } from "./format.js";

const MOST = 200;
const BEFORE = 20;
const SEARCHED = 1000;
const PAUSE = 250;
const EVERY = 250;
const KINDS = { output: "output", source: "source", late: "late" };

export class Tails {
  constructor() {
    this.chooser = byId("tails-stream");
    this.pause = byId("tails-pause");
    this.rows = byId("tails-rows");
    this.filter = byId("tails-filter");
    Object.assign(this, { arrived: [], missed: 0, paused: false, kinds: new Map(), stream: null, asked: "" });
    this.chooser.addEventListener("change", () => this.#choose());
    let typing = 0;
    this.filter.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.#choose(), PAUSE);
    });
    this.rows.addEventListener("toggle", (event) => this.#opened(event.target), { capture: true });
    byId("tails-scroll").addEventListener("keydown", (event) => this.#key(event));
    onLink("tail", (...parts) => this.#goTo(parts));
    this.pause.addEventListener("click", () => this.#hold(!this.paused));
    setInterval(() => this.#flush(), EVERY);
  }

  /** Loads the list of streams that can be followed, outputs first. */
  async load() {
    const { streams } = await read("streams");
    const rank = Object.keys(KINDS);
    const tails = streams
      .filter(({ tails, kind }) => tails && kind in KINDS)
      .sort((one, other) => rank.indexOf(one.kind) - rank.indexOf(other.kind));
    this.kinds = new Map(tails.map(({ name, kind }) => [name, kind]));
    const words = ({ name, kind }) => (name === kind ? name : `${name} (${KINDS[kind]})`);
    const options = tails.map((tail) => make("option", { value: tail.name }, words(tail)));
    this.chooser.replaceChildren(...options);
    byId("tails-controls").hidden = !tails.length;
    const linked = this.stream === null ? named("tail") : null;
    if (this.kinds.has(this.stream)) this.chooser.value = this.stream;
    if (linked) return this.#goTo(linked);
    if (!tails.length) this.#none("No stream of this application is kept in a log.");
    else if (this.stream !== this.chooser.value) this.#follow();
    return undefined;
  }

  /** The user chose a stream or a filter: follows it, and puts it into the address. */
  #choose() {
    this.#follow();
    note("tail", this.stream, ...(this.asked ? [this.asked] : []));
  }

  /** Shows the stream of a link, which may have a filter. */
  #goTo([stream, filter = ""]) {
    if (!this.kinds.has(stream)) return this.#none(`There is no stream ${stream} that can be followed.`);
    this.chooser.value = stream;
    this.filter.value = filter;
    this.#follow();
    return byId("tails").scrollIntoView();
  }

  #follow() {
    this.following?.close();
    this.stream = this.chooser.value;
    this.asked = this.filter.value.trim();
    this.#hold(false);
    byId("tails-table").classList.toggle("plain", this.kinds.get(this.stream) === "source");
    this.following = follow(
      path(["streams", this.stream, "tail"], { from: this.asked ? -SEARCHED : -BEFORE }),
      {
        record: (data, id) => this.#take({ id, data }),
        gap: (data) => this.#take({ gap: JSON.parse(data) }),
      },
      () => this.#clear(),
    );
  }

  /** The stream starts over; while paused, the rows stay. */
  #clear() {
    Object.assign(this, { arrived: [], missed: 0 });
    if (this.paused) return;
    this.rows.replaceChildren();
    const none = `Nothing on ${this.stream} yet.`;
    this.#none(this.asked ? `No record of ${this.stream} has “${this.asked}” in it, of the last ${count(SEARCHED)}.` : none);
    this.#say();
  }

  #take(record) {
    if (this.asked && !record.data?.toLowerCase().includes(this.asked.toLowerCase())) return;
    this.arrived.push(record);
    if (this.arrived.length > 2 * MOST) this.arrived.splice(0, this.arrived.length - MOST);
    if (this.paused) this.missed += 1;
  }

  #hold(paused) {
    Object.assign(this, { paused, missed: 0 });
    set(this.pause, { "aria-pressed": paused });
    this.#flush();
  }

  #flush() {
    this.#say();
    if (this.paused || !this.arrived.length) return;
    byId("tails-none").hidden = true;
    const fresh = this.arrived.slice(-MOST).reverse().map((record) => this.#row(record));
    this.arrived = [];
    this.rows.prepend(...fresh);
    while (this.rows.children.length > MOST) this.rows.lastElementChild.remove();
  }

  #say() {
    const live = this.asked ? "live, filtered" : "live";
    const state = this.paused ? `paused, ${count(this.missed)} new` : live;
    say(byId("tails-state"), this.stream ? state : "");
  }

  #none(sentence) {
    say(byId("tails-none"), sentence);
    byId("tails-none").hidden = false;
  }

  /** Shows the whole record of an opened row, and pauses. */
  #opened(details) {
    if (!details.open) return;
    if (!this.paused) this.#hold(true);
    const whole = details.querySelector("pre");
    if (!whole.textContent) whole.textContent = details.whole();
  }

  #key(event) {
    const lines = [...this.rows.querySelectorAll("summary")];
    const at = lines.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (to === undefined || !lines[to]) return;
    lines[to].focus();
    event.preventDefault();
  }

  #row({ id, data, gap }) {
    if (gap) {
      const words = `records ${count(gap.from)} to ${count(gap.to - 1)} are no longer kept`;
      return make("tr", { role: "row" }, make("td", { role: "cell", colspan: 4, class: "quiet" }, words));
    }
    const record = exactJson(data);
    const plain = this.kinds.get(this.stream) === "source" || typeof record?.ts !== "number";
    const cells = plain ? ["", "", opening(line(record, 2000), record)] : parts(record);
    const classes = ["when", "key", "value"];
    return make(
      "tr",
      { role: "row" },
      make("td", { role: "cell", class: "id number" }, count(Number(id))),
      ...cells.map((cell, at) => make("td", { role: "cell", class: classes[at] }, cell)),
    );
  }
}

/** Returns the time, the key and the value of a record that has them. */
function parts({ ts, key, value, bytes, stream }) {
  const text = bytes === undefined ? line(value ?? null, 2000) : `${bytes} (base64)`;
  const when = make("time", { title: exactTime(ts) }, time(ts));
  const shown = opening(stream ? `${stream}: ${text}` : text, bytes === undefined ? value : bytes);
  return [when, make("bdi", {}, key), shown];
}

/** Returns a line that opens to show the whole value, which is formatted only then. */
function opening(text, value) {
  const details = make("details", {}, make("summary", { tabindex: -1 }, text), make("pre", { class: "json" }));
  details.whole = () => JSON.stringify(value ?? null, null, 2);
  return details;
}
