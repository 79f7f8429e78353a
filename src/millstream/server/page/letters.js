/**
 * Dead letters: the events that a function failed on, by function and error, the newest first, and
 * those that an action gave up. Read when their number changes. A group can be opened to see its
 * letters, and retried: a dry run first counts how many letters that would be.
 */

import { named, onLink } from "./address.js";
import { NoAnswer, Refused, path, read } from "./api.js";
import { byId, say } from "./dom.js";
import { announce } from "./figures.js";
import { count, counted, exactJson } from "./format.js";
import { LetterGroup, groupKey } from "./letter_group.js";

const MOST = 500;
const TRIES = 5;
/** The path of a page of dead letters; each action has its own log. */
const log = (action, query) => path(["streams", action ? `${action}.failed` : "deadletters", "records"], query);

export class Letters {
  constructor() {
    this.list = byId("letters-groups");
    this.filter = byId("letters-filter");
    this.filter.addEventListener("input", () => this.#show());
    byId("letters-form").addEventListener("submit", (event) => event.preventDefault());
    onLink("letter", (...parts) => this.#goTo(parts));
    this.reset();
  }

  /** Forgets everything: another server may have another store. */
  reset() {
    Object.assign(this, { known: null, left: null, tries: 0, letters: [], linked: null, groups: new Map(), givenUp: [] });
    this.list.replaceChildren();
    this.wanted = named("letter");
  }

  /** Takes a status; reads the newest letters if their number has changed. */
  async update({ dead_letters: own, letters_left: { dead_letters: left }, jobs, actions }) {
    const atAgents = deadAtAgents(jobs);
    const givenUp = actions.filter(({ failed }) => failed).map(({ name, failed }) => [name, failed]);
    const total = givenUp.reduce((sum, [, failed]) => sum + failed, own);
    const actionsChanged = JSON.stringify(givenUp) !== JSON.stringify(this.givenUp);
    if (total !== this.known || left !== this.left || actionsChanged || atAgents !== this.atAgents) {
      Object.assign(this, { atAgents, givenUp, left });
      if (total > (this.known ?? total)) announce(counted(total - this.known, "new dead letter"));
      this.known = total;
      this.tries = TRIES;
    }
    if (!this.tries || this.reading) return;
    this.reading = true;
    try {
      const pages = [["", own], ...givenUp].map(([action, number]) => newest(action, number));
      const found = await Promise.all(pages);
      // A log may be a moment behind its count: it is read a few times until it has all letters.
      this.tries = found.every(({ whole }) => whole) ? 0 : this.tries - 1;
      this.letters = found.flatMap(({ letters }) => letters).sort((one, other) => one.value.ts - other.value.ts);
      this.#show();
      if (this.wanted !== null) await this.#goTo(this.wanted);
    } catch (error) {
      if (error instanceof Refused) this.#none(error.message);
      else if (!(error instanceof NoAnswer)) throw error;
    } finally {
      this.reading = false;
    }
  }

  /** Shows the letter of a link, which may be older than those that were read. */
  async #goTo(parts) {
    this.wanted = null;
    this.filter.value = "";
    const id = parts.join("/");
    const [action, record] = parts.length > 1 ? parts : ["", parts[0]];
    if (!this.letters.some((letter) => letter.id === id)) {
      const page = await read(log(action, { from: record, limit: 1 }), { parse: exactJson });
      this.linked = lettersOf(action, page).find((letter) => letter.id === id) ?? null;
    }
    this.#show();
    const found = [...this.groups.values()].filter((group) => group.goTo(id));
    if (!found.length) announce(`There is no letter ${id}.`);
  }

  /** Arranges the letters that match the filter into groups. */
  #show() {
    const all = this.linked ? [this.linked, ...this.letters] : this.letters;
    const asked = this.filter.value.trim().toLowerCase();
    const kept = asked ? all.filter(({ value }) => JSON.stringify(value).toLowerCase().includes(asked)) : all;
    const found = new Map();
    for (const letter of kept.toReversed()) {
      const key = groupKey(letter.value);
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(letter);
    }
    for (const [key, group] of this.groups) {
      if (found.has(key)) continue;
      group.node.remove();
      this.groups.delete(key);
    }
    [...found].forEach(([key, letters], at) => {
      if (!this.groups.has(key)) this.groups.set(key, new LetterGroup(letters[0].value));
      const group = this.groups.get(key);
      group.update(letters);
      // Groups that stay in place are not moved, so that a focused one keeps the focus.
      if (this.list.children[at] !== group.node) this.list.insertBefore(group.node, this.list.children[at] ?? null);
    });
    this.#say(all, kept, found.size);
  }

  #say(all, kept, groups) {
    const total = this.known;
    const last = total > all.length ? ` of the last ${count(all.length)} of ${count(total)}` : "";
    say(byId("letters-state"), groups ? `${counted(kept.length, "letter")} in ${counted(groups, "group")}${last}` : "");
    byId("letters-form").hidden = !all.length;
    byId("letters-scroll").hidden = !kept.length;
    byId("letters-none").hidden = kept.length > 0;
    if (kept.length) return;
    if (all.length) this.#none(`No letter has “${this.filter.value}” in it.`);
    else if (total) this.#none(`${count(total)}, but none in the store's own log.`);
    else this.#none(this.atAgents ? `None here. ${this.atAgents}` : "None: every event so far was handled.");
  }

  #none(sentence) {
    byId("letters-none").hidden = false;
    say(byId("letters-none"), sentence);
  }
}

/** Reads the newest of a log's `number` letters; `whole` is true if the log had all of them. */
async function newest(action, number) {
  const asked = Math.min(number, MOST);
  if (action && !asked) return { letters: [], whole: true };
  // The earlier letters of an action were put back.
  const page = await read(log(action, { from: -(action ? asked : MOST), limit: MOST }), { parse: exactJson });
  return { letters: lettersOf(action, page), whole: page.end >= number };
}

/** Returns the letters of a page of records; those that were retried are marked. */
function lettersOf(action, { records, retried = [] }) {
  const again = new Set(retried.map(String));
  return records.map(({ record, value }) => {
    return { id: action ? `${action}/${record}` : String(record), record, value, again: again.has(String(record)) };
  });
}

/** Counts the records that agents could not read: they stay there, and are not in this store. */
function deadAtAgents(jobs) {
  const accounts = Object.values(jobs).flatMap(({ nodes }) => Object.values(nodes));
  const dead = accounts.reduce((total, account) => total + account.dead, 0);
  return dead ? `Agents have set ${counted(dead, "record")} aside: see the section Windows.` : "";
}
