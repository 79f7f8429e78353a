/**
 * The feed of one consumer, live: a page of items, newest first, each with how and why it came.
 *
 * New items are added to the newest page. On an older page they are only counted, so that the text
 * does not move under the reader. An item keeps its node as long as it is shown, so a selection, an
 * opened text and the scroll position are kept.
 */

import { NoAnswer, Refused, follow, path, read } from "./api.js";
import { byId, say, set } from "./dom.js";
import { announce } from "./figures.js";
import { Follows } from "./follows.js";
import { count, counted, span } from "./format.js";
import { itemRow, itemsIn, keyOf } from "./items.js";

const PAGE = 20;
const MOST = 100;
const AGAIN = 2000;
const ASKED = { why: 1, unread: 1 };
/** Milliseconds between two announcements of new items to screen readers, at least. */
const QUIET = 10_000;

export class Feed {
  constructor() {
    this.list = byId("feed-items");
    this.newer = byId("feed-newer");
    this.older = byId("feed-older");
    this.fresh = byId("feed-fresh");
    this.follows = new Follows();
    this.newer.addEventListener("click", () => this.#turn(this.answer.previous, true));
    this.older.addEventListener("click", () => this.#turn(this.answer.next));
    this.fresh.addEventListener("click", () => this.#turn(null));
    this.close();
  }

  /** Shows the feed of a consumer, and follows it; shows none if the name is empty. `part` is the
   * description of these feeds. */
  open(feeds, part, consumer, coherency) {
    this.close();
    if (!consumer) return;
    Object.assign(this, { feeds, part, consumer, coherency });
    say(byId("feed-name"), consumer);
    byId("feed-raw").href = this.#path([], ASKED);
    byId("feed-head").hidden = byId("feed-pager").hidden = false;
    this.#none("reading …");
    this.follows.open((query) => path(["feeds", consumer, "follows"], { feeds, ...query }));
    this.#turn(null);
  }

  /** Stops following. */
  close() {
    clearTimeout(this.retry);
    this.reading?.abort();
    this.#unfollow();
    this.follows.close();
    Object.assign(this, { consumer: null, reading: null, answer: null, batch: null });
    Object.assign(this, { rows: new Map(), waiting: 0, told: -QUIET });
    byId("feed-head").hidden = byId("feed-pager").hidden = byId("feed-notice").hidden = true;
    this.#none("Name a consumer to see its feed, live.");
  }

  /** After a batch: pending items may be processed now, and a pair may have changed side. */
  update(batch) {
    if (!this.answer || this.reading || batch === this.batch) return;
    this.batch = batch;
    if (this.answer.items.some(({ how }) => how === "pending")) this.#turn(this.cursor);
    this.follows.update();
  }

  #path(more, query) {
    const asked = { feeds: this.feeds, ...(this.coherency && { coherency: this.coherency }), ...query };
    return path(["feeds", this.consumer, ...more], asked);
  }

  /** Shows the page at a cursor; the newest page, if it has all of the newer items. */
  async #turn(cursor, upwards = false) {
    clearTimeout(this.retry);
    this.reading?.abort();
    const mine = new AbortController();
    this.reading = mine;
    const query = { ...ASKED, limit: PAGE, ...(cursor !== null && { cursor }) };
    try {
      let answer = await read(this.#path([], query), { signal: mine.signal, parse: itemsIn });
      if (upwards && answer.items.length < PAGE) {
        cursor = null;
        const newest = this.#path([], { ...ASKED, limit: PAGE });
        answer = await read(newest, { signal: mine.signal, parse: itemsIn });
      }
      this.#show(answer, cursor);
    } catch (error) {
      if (this.reading !== mine) return; // another read has taken over
      if (error instanceof Refused) this.#refused(error.message);
      else if (error instanceof NoAnswer) this.#later(cursor, upwards);
      else throw error;
    } finally {
      if (this.reading === mine) this.reading = null;
    }
  }

  #later(cursor, upwards) {
    if (!this.answer) this.#none("The server does not answer; trying again …");
    this.retry = setTimeout(() => this.#turn(cursor, upwards), AGAIN);
  }

  #refused(sentence) {
    this.#unfollow();
    this.answer = null;
    this.#none(sentence);
    this.newer.disabled = this.older.disabled = this.fresh.hidden = true;
    say(byId("feed-about"), "");
  }

  #show(answer, cursor) {
    const [newest, turned] = [cursor === null, this.answer && cursor !== this.cursor];
    Object.assign(this, { answer, cursor });
    if (newest) {
      const top = Math.max(0, ...answer.items.map(({ ts }) => ts));
      Object.assign(this, { top, waiting: 0 });
    }
    this.#arrange(answer.items);
    if (!answer.items.length) this.#none(newest ? this.#whyEmpty() : "There are no items past this.");
    this.#allow(this.newer, !newest && answer.previous !== null);
    this.#allow(this.older, answer.next !== null);
    byId("feed-notice").hidden = answer.complete;
    say(byId("feed-notice"), answer.complete ? "" : leftOut(answer.left_out));
    this.#say();
    if (turned) {
      byId("feed-scroll").scrollTop = 0;
      announce(newest ? "The newest items" : counted(answer.items.length, "older item"));
    }
    if (newest && !this.following) this.#follow();
  }

  /** Listens for items that are newer than the newest page. */
  #follow() {
    let begun = false;
    const { previous } = this.answer;
    const from = { why: 1, ...(previous !== null && { cursor: previous }) };
    this.following = follow(
      this.#path(["live"], from),
      {
        items: (data) => this.#came(itemsIn(data)),
        gone: (data) => this.#gone(itemsIn(data)),
      },
      () => {
        // A stream that starts over, as after the tab was hidden, has missed deletions.
        if (begun) queueMicrotask(() => this.#anew());
        begun = true;
      },
    );
  }

  #unfollow() {
    this.following?.close();
    this.following = null;
  }

  #anew() {
    this.#unfollow();
    this.#turn(null);
  }

  /** Takes new items, changed ones, and old ones that were not in the feed before. */
  #came({ items }) {
    if (!this.answer) return;
    const [there, others] = [[], []];
    for (const item of items) (this.rows.has(keyOf(item)) ? there : others).push(item);
    const fresh = others.filter(({ ts }) => ts > this.top).sort(newestFirst);
    this.top = Math.max(this.top, ...fresh.map(({ ts }) => ts));
    this.#count(fresh, 1);
    const newest = this.cursor === null;
    if (!newest) this.waiting += fresh.length;
    const changed = new Map(there.map((item) => [keyOf(item), item]));
    const stay = this.answer.items.map((old) => changed.get(keyOf(old)) ?? old);
    this.answer.items = newest ? [...fresh, ...stay] : stay;
    this.#arrange(this.answer.items, new Set(items.map(keyOf)));
    this.#say();
    if (fresh.length && performance.now() - this.told > QUIET) {
      this.told = performance.now();
      announce(counted(fresh.length, "new item"));
    }
    // Read the page again if the place of old items is unknown, if there are too many items, or if
    // per-producer coherency limits the items of a producer.
    const { coherency, items: all } = this.answer;
    const unsure = fresh.length < others.length || all.length > MOST || coherency !== "global";
    if (newest && unsure) this.#turn(null);
  }

  #gone({ items }) {
    if (!this.answer) return;
    const gone = new Set(items.map(keyOf));
    const went = this.answer.items.filter((item) => gone.has(keyOf(item)));
    this.#count(went.filter(({ unread }) => unread !== false), -1);
    this.answer.items = this.answer.items.filter((item) => !gone.has(keyOf(item)));
    this.#arrange(this.answer.items);
    this.#say();
    if (went.length && (this.cursor === null || !this.answer.items.length)) this.#turn(this.cursor);
  }

  #count(items, sign) {
    const { unread } = this.answer;
    if (unread && !unread.more) unread.count += sign * items.length;
  }

  /** Puts these items on the page; those in `changed` are marked for a moment. */
  #arrange(items, changed = new Set()) {
    const { decide, policy, latency } = this.part;
    const of = { consumer: this.consumer, decide, policy, latency };
    const rows = new Map();
    for (const item of items) {
      const key = keyOf(item);
      const text = JSON.stringify(item);
      const old = this.rows.get(key);
      const same = old?.text === text;
      rows.set(key, same ? old : { text, node: itemRow(item, of, changed.has(key)) });
    }
    this.rows = rows;
    const nodes = [...rows.values()].map(({ node }) => node);
    const there = [...this.list.children];
    if (there.length !== nodes.length || there.some((node, at) => node !== nodes[at])) place(this.list, nodes);
    this.list.hidden = !items.length;
    byId("feed-none").hidden = items.length > 0;
  }

  #say() {
    const { unread, batch, age, coherency } = this.answer;
    const words = [unread && `${count(unread.count)}${unread.more ? "+" : ""} unread`, `${coherency} coherency`];
    words.push(`batch ${count(batch)}`, age > 10 && `${span(age).join(" ")} old`);
    say(byId("feed-about"), words.filter(Boolean).join(" · "));
    this.fresh.hidden = this.cursor === null;
    const many = this.waiting ? counted(this.waiting, "new item") : "Newest";
    say(this.fresh, many);
    set(this.fresh, { "aria-pressed": this.waiting ? "true" : null });
  }

  #whyEmpty() {
    return `Nothing is in the feed of ${this.consumer}: it follows nobody, or nobody it follows has posted.`;
  }

  #none(sentence) {
    this.list.replaceChildren();
    this.rows = new Map();
    this.list.hidden = true;
    byId("feed-none").hidden = false;
    say(byId("feed-none"), sentence);
  }

  /** Enables or disables a button. A disabled button would lose the focus: the list takes it. */
  #allow(button, allowed) {
    const held = button === document.activeElement && !allowed;
    button.disabled = !allowed;
    if (held) byId("feed-scroll").focus();
  }
}

/** Puts the children into this order; those that stay in place are not moved. */
function place(list, nodes) {
  const stay = new Set(nodes);
  for (const node of [...list.children]) if (!stay.has(node)) node.remove();
  nodes.forEach((node, at) => {
    if (list.children[at] !== node) list.insertBefore(node, list.children[at] ?? null);
  });
}

function newestFirst(one, other) {
  for (const field of ["ts", "producer", "id"]) {
    if (one[field] !== other[field]) return one[field] < other[field] ? 1 : -1;
  }
  return 0;
}

function leftOut(left) {
  if (!left) return "This is not all of the feed.";
  const who = left.producers ? `${counted(left.producers, "producer")} left out, ` : "";
  return `This is not all of the feed: ${who}${left.reason}.`;
}
