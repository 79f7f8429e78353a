/**
 * The dead letters of one function and one error, or of one action and one error: their number and
 * times, the letters themselves when the group is opened, and a button to retry all of them.
 */

import { linkTo } from "./address.js";
import { NoAnswer, Refused, path, send } from "./api.js";
import { make, say, set } from "./dom.js";
import { announce } from "./figures.js";
import { NOTHING, count, counted, exactTime, line, time } from "./format.js";

const SHOWN = 50;
/** The most characters of a value on the line that opens it. */
const LINE = 160;
const RETRY = "deadletters/retry";

/** Returns the key of a letter's group: what its letters have in common. */
export function groupKey({ action, function: name, stream, error }) {
  return JSON.stringify([action ?? null, name ?? null, name ? null : stream, error]);
}

export class LetterGroup {
  constructor({ action, function: name, stream, error }) {
    // A letter without a function is a record that never became an event of its stream. The letters
    // of an action are put back all together, whatever their error.
    this.where = action ? path(["actions", action, "retry"]) : RETRY;
    this.meant = action ? {} : { ...(name ? { function: name } : { stream }), error };
    this.who = action ? `action ${action}` : (name ?? stream);
    this.rows = new Map();
    this.number = make("span", { class: "number" });
    this.when = make("span", { class: "quiet when" });
    const title = make("span", { class: "function" }, action || name ? (name ?? this.who) : `source ${stream}`);
    const message = make("span", { class: "message" }, error);
    this.body = make("tbody", { role: "rowgroup" });
    this.rest = make("p", { class: "quiet" });
    const heads = ["Letter", "Key", "Time", "Value"].map((text) => make("th", { role: "columnheader" }, text));
    const table = make("table", { class: "letters", role: "table", "aria-label": `Letters of ${this.who}: ${error}` });
    table.append(make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...heads)), this.body);
    this.details = make("details", {}, make("summary", {}, this.number, title, message, this.when));
    this.details.append(this.#retrying(), table, this.rest);
    this.details.addEventListener("toggle", () => this.#fill());
    this.node = make("li", {}, this.details);
  }

  /** Shows these letters, the newest first. */
  update(letters) {
    this.letters = letters;
    const [newest, oldest] = [letters[0].value.ts, letters.at(-1).value.ts];
    say(this.number, count(letters.length));
    set(this.number, { title: counted(letters.length, "letter") });
    const since = letters.length > 1 && oldest !== newest ? `${time(oldest)} to ` : "";
    const again = letters.filter((letter) => letter.again).length;
    const given = again ? `${again === letters.length ? "" : `${count(again)} `}retried · ` : "";
    say(this.when, `${given}${since}${time(newest)}`);
    this.#fill();
  }

  /** Opens the group at a letter; returns false if the letter is in another group. */
  goTo(id) {
    const here = this.letters.some((letter) => letter.id === id);
    this.linked = here ? id : null;
    if (here) this.details.open = true;
    this.#fill();
    if (!here) return false;
    const row = this.rows.get(id);
    row.querySelector("details").open = true;
    row.scrollIntoView({ block: "center" });
    announce(`Showing letter ${id}`);
    return true;
  }

  /** Creates the rows once the group is open; rows that stay are not moved. */
  #fill() {
    if (!this.details.open) return;
    const shown = this.letters.filter(({ id }, at) => at < SHOWN || id === this.linked);
    const rows = new Map(shown.map((letter) => [letter.id, this.rows.get(letter.id) ?? row(letter)]));
    for (const [id, node] of this.rows) if (!rows.has(id)) node.remove();
    [...rows.values()].forEach((node, at) => {
      if (this.body.children[at] !== node) this.body.insertBefore(node, this.body.children[at] ?? null);
    });
    this.rows = rows;
    for (const [id, node] of rows) node.classList.toggle("linked", id === this.linked);
    for (const { id, again } of shown) rows.get(id).querySelector(".again").hidden = !again;
    const more = this.letters.length - shown.length;
    say(this.rest, more ? `and ${counted(more, "older one")}` : "");
    this.rest.hidden = !more;
  }

  #retrying() {
    this.ask = make("button", { type: "button" }, "Retry …");
    this.sure = make("button", { type: "button", class: "sure", hidden: "" }, "Retry");
    this.not = make("button", { type: "button", hidden: "" }, "Cancel");
    this.outcome = make("p", { class: "quiet", role: "status" });
    this.ask.addEventListener("click", () => this.#count());
    this.sure.addEventListener("click", () => this.#retry());
    this.not.addEventListener("click", () => this.#offer(false, ""));
    return make("div", { class: "retry" }, this.ask, this.sure, this.not, this.outcome);
  }

  /** Counts how many letters a retry would take, before any is retried. */
  async #count() {
    const { given, ...rest } = (await this.#post({ dry_run: true })) ?? {};
    if (given === undefined) return;
    const others = remarks(rest);
    if (!given) return this.#offer(false, ["There is nothing to retry.", ...others].join(" "));
    const what = `Retry ${counted(given, "letter")} of ${this.who}?`;
    return this.#offer(true, [what, ...others].join(" "));
  }

  async #retry() {
    const { given, ...rest } = (await this.#post({})) ?? {};
    if (given === undefined) return;
    this.#offer(false, [`${counted(given, "letter")} retried.`, ...remarks(rest)].join(" "));
  }

  async #post(options) {
    try {
      return await send(this.where, { ...this.meant, ...options });
    } catch (error) {
      if (!(error instanceof Refused || error instanceof NoAnswer)) throw error;
      const sentence = error instanceof Refused ? error.message : "The server does not answer.";
      this.#offer(false, sentence);
      return null;
    }
  }

  #offer(asking, sentence) {
    const held = this.node.contains(document.activeElement);
    this.ask.hidden = asking;
    this.sure.hidden = this.not.hidden = !asking;
    if (held) (asking ? this.sure : this.ask).focus();
    say(this.outcome, sentence);
  }
}

/** Returns remarks on letters that were retried before, and on those that cannot be. */
function remarks({ before = 0, impossible = {} }) {
  const words = before ? [`${counted(before, "letter was", "letters were")} retried before.`] : [];
  for (const [why, number] of Object.entries(impossible)) words.push(`${count(number)} cannot be retried: ${why}.`);
  return words;
}

function row({ id, record, value: letter }) {
  const { function: name, action, key, ts, value, bytes } = letter;
  const text = bytes === undefined ? JSON.stringify(value, null, 2) : `${bytes} (base64)`;
  const short = bytes === undefined ? line(value ?? null, LINE) : `${bytes.slice(0, LINE)} (base64)`;
  const noKey = name || action ? "the empty key" : NOTHING;
  return make(
    "tr",
    { role: "row" },
    cell("id", make("a", { href: linkTo("letter", ...id.split("/")), title: "a link to this letter" }, count(record))),
    cell("key", make("bdi", { class: key ? "" : "quiet" }, key || noKey)),
    cell("when", make("time", { title: exactTime(ts) }, time(ts))),
    cell(
      "value",
      make("details", {}, make("summary", {}, short), make("pre", { class: "json" }, text ?? "")),
      make("p", { class: "quiet again", hidden: "" }, "retried"),
      make("p", { class: "quiet" }, whereabouts(letter)),
    ),
  );
}

function whereabouts({ stream, timer, batch, file, line: number, tries, last }) {
  const words = [
    tries ? `given up after ${counted(tries, "try", "tries")}, at ${exactTime(last)}` : "",
    file ? [file, number].filter((part) => part !== null).join(":") : "",
    timer === null || timer === undefined ? "" : `timer ${timer}`,
    stream ? `stream ${stream}` : "",
    batch === null || batch === undefined ? "" : `batch ${count(batch)}`,
  ];
  return words.filter(Boolean).join(" · ");
}

function cell(kind, ...children) {
  return make("td", { role: "cell", class: kind }, ...children);
}
