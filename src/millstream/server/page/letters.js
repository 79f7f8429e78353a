/**
 * Dead letters: the events that a function failed on, newest first, each with its error. Read when
 * their number changes.
 */

import { NoAnswer, Refused, path, read } from "./api.js";
import { byId, make, say } from "./dom.js";
import { announce } from "./figures.js";
import { NOTHING, count, counted, exactJson, exactTime, time } from "./format.js";

const MOST = 50;
const TRIES = 5;

export class Letters {
  constructor() {
    this.rows = byId("letters-rows");
    this.reset();
  }

  /** Know nothing: another server may have another store. */
  reset() {
    Object.assign(this, { known: null, tries: 0, shown: new Map() });
    this.rows.replaceChildren();
  }

  /** A status came: read the newest if there are more than before. */
  async update({ dead_letters: total }) {
    if (total !== this.known) {
      if (total > (this.known ?? total)) announce(counted(total - this.known, "new dead letter"));
      this.known = total;
      this.tries = TRIES;
    }
    if (!this.tries || this.reading) return;
    this.reading = true;
    try {
      const where = path(["streams", "deadletters", "records"], { from: -MOST });
      const { records, end } = await read(where, { parse: exactJson });
      // The log may trail the count by a moment: it is read a few times until it has all.
      this.tries = end >= total ? 0 : this.tries - 1;
      this.#show(records, total);
      const last = `the last ${count(records.length)} of ${count(total)}`;
      say(byId("letters-state"), total > records.length && records.length ? last : "");
    } catch (error) {
      if (error instanceof Refused) this.#none(error.message);
      else if (!(error instanceof NoAnswer)) throw error;
    } finally {
      this.reading = false;
    }
  }

  #show(records, total) {
    const before = this.shown;
    this.shown = new Map(
      records.map(({ record, value }) => [record, before.get(record) ?? row(value)]),
    );
    const rows = [...this.shown.values()].reverse();
    // Rows that stay are not moved, so that one that is open or focused stays as it is.
    for (const [record, node] of before) if (!this.shown.has(record)) node.remove();
    rows.forEach((node, at) => {
      if (this.rows.children[at] !== node) this.rows.insertBefore(node, this.rows.children[at] ?? null);
    });
    byId("letters-table").hidden = !rows.length;
    if (rows.length) byId("letters-none").hidden = true;
    else if (total) this.#none(`${count(total)}, but none in the store's own log.`);
    else this.#none("None: every event so far was handled.");
  }

  #none(sentence) {
    byId("letters-none").hidden = false;
    say(byId("letters-none"), sentence);
  }
}

/** A row: a letter without a function is a record that never became an event, so it has no key. */
function row(letter) {
  const { function: name, stream, key, ts, error, value, bytes } = letter;
  const text = bytes === undefined ? JSON.stringify(value, null, 2) : `${bytes} (base64)`;
  const noKey = name ? "the empty key" : NOTHING;
  return make(
    "tr",
    { role: "row" },
    cell("function", name ?? `source ${stream}`),
    cell("key", make("bdi", { class: key ? "" : "quiet" }, key || noKey)),
    cell("when", make("time", { title: exactTime(ts) }, time(ts))),
    cell(
      "error",
      make("p", { class: "message" }, error),
      make("p", { class: "quiet" }, whereabouts(letter)),
      make("details", {}, make("summary", {}, "Value"), make("pre", { class: "json" }, text ?? "")),
    ),
  );
}

function whereabouts({ stream, timer, batch, file, line }) {
  const words = [
    file ? [file, line].filter((part) => part !== null).join(":") : "",
    timer === null || timer === undefined ? "" : `timer ${timer}`,
    stream ? `stream ${stream}` : "",
    batch === null ? "" : `batch ${count(batch)}`,
  ];
  return words.filter(Boolean).join(" · ");
}

function cell(kind, ...children) {
  return make("td", { role: "cell", class: kind }, ...children);
}
