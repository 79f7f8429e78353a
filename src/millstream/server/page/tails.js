/**
 * The tail of a stream: its records as they come, newest first.
 *
 * Records may come by the thousand: they are put on the page a few times a second, and the page
 * never holds more than a bounded number. Paused, it goes on listening and says how many are new.
 */

import { follow, path, read } from "./api.js";
import { byId, make, say, set } from "./dom.js";
import { count, exactJson, exactTime, line, time } from "./format.js";

const MOST = 200;
const BEFORE = 20;
const EVERY = 250;
const KINDS = { output: "output", source: "source", late: "late" };

export class Tails {
  constructor() {
    this.chooser = byId("tails-stream");
    this.pause = byId("tails-pause");
    this.rows = byId("tails-rows");
    Object.assign(this, { arrived: [], missed: 0, paused: false, kinds: new Map(), stream: null });
    this.chooser.addEventListener("change", () => this.#follow());
    this.pause.addEventListener("click", () => this.#hold(!this.paused));
    setInterval(() => this.#flush(), EVERY);
  }

  /** Learn which streams can be followed: outputs first. */
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
    if (this.kinds.has(this.stream)) this.chooser.value = this.stream;
    if (!tails.length) this.#none("No stream of this application is kept in a log.");
    else if (this.stream !== this.chooser.value) this.#follow();
  }

  #follow() {
    this.following?.close();
    this.stream = this.chooser.value;
    this.#hold(false);
    byId("tails-table").classList.toggle("plain", this.kinds.get(this.stream) === "source");
    this.following = follow(
      path(["streams", this.stream, "tail"], { from: -BEFORE }),
      {
        record: (data, id) => this.#take({ id, data }),
        gap: (data) => this.#take({ gap: JSON.parse(data) }),
      },
      () => this.#clear(),
    );
  }

  /** The stream begins anew; what a pause holds stays. */
  #clear() {
    Object.assign(this, { arrived: [], missed: 0 });
    if (this.paused) return;
    this.rows.replaceChildren();
    this.#none(`Nothing on ${this.stream} yet.`);
    this.#say();
  }

  #take(record) {
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
    const state = this.paused ? `paused, ${count(this.missed)} new` : "live";
    say(byId("tails-state"), this.stream ? state : "");
  }

  #none(sentence) {
    say(byId("tails-none"), sentence);
    byId("tails-none").hidden = false;
  }

  #row({ id, data, gap }) {
    if (gap) {
      const words = `records ${count(gap.from)} to ${count(gap.to - 1)} are no longer kept`;
      return make("tr", { role: "row" }, make("td", { role: "cell", colspan: 4, class: "quiet" }, words));
    }
    const record = exactJson(data);
    const plain = this.kinds.get(this.stream) === "source" || typeof record?.ts !== "number";
    const cells = plain ? ["", "", line(record, 2000)] : parts(record);
    const classes = ["when", "key", "value"];
    return make(
      "tr",
      { role: "row" },
      make("td", { role: "cell", class: "id number" }, count(Number(id))),
      ...cells.map((cell, at) => make("td", { role: "cell", class: classes[at] }, cell)),
    );
  }
}

/** The time, the key and the value of a record that has them. */
function parts({ ts, key, value, bytes, stream }) {
  const text = bytes === undefined ? line(value ?? null, 2000) : `${bytes} (base64)`;
  const when = make("time", { title: exactTime(ts) }, time(ts));
  return [when, make("bdi", {}, key), stream ? `${stream}: ${text}` : text];
}
