/**
 * The producers that a consumer follows, each with its side, push or pull: a page at a time.
 */

import { NoAnswer, Refused, read } from "./api.js";
import { byId, make, say } from "./dom.js";
import { count, counted } from "./format.js";
import { howLabel } from "./items.js";

const PAGE = 50;
const EVERY = 5000;

export class Follows {
  constructor() {
    this.list = byId("follows-list");
    this.more = byId("follows-more");
    this.more.addEventListener("click", () => this.#read(this.next));
    this.close();
  }

  /** Shows the producers of a consumer; `where` returns the path for a query. */
  open(where) {
    this.close();
    this.where = where;
    byId("follows").hidden = false;
    this.#read(null);
  }

  /** Reads again, now and then, if all are on one page: pairs may have changed side. */
  update() {
    if (this.single && performance.now() - this.asked > EVERY) this.#read(null);
  }

  close() {
    this.reading?.abort();
    Object.assign(this, { reading: null, next: null, single: false, asked: 0 });
    this.#clear();
    this.more.hidden = this.list.parentElement.hidden = byId("follows").hidden = true;
    say(byId("follows-count"), "");
  }

  #clear() {
    this.sides = { push: 0, pull: 0 };
    this.list.replaceChildren();
  }

  async #read(cursor) {
    const mine = new AbortController();
    Object.assign(this, { reading: mine, asked: performance.now() });
    try {
      const query = { limit: PAGE, ...(cursor !== null && { cursor }) };
      const found = await read(this.where(query), { signal: mine.signal });
      if (cursor === null) this.#clear();
      this.#show(found);
      this.single = cursor === null && found.next === null;
    } catch (error) {
      if (this.reading !== mine) return; // another read has taken over
      if (error instanceof Refused) say(byId("follows-count"), error.message);
      else if (!(error instanceof NoAnswer)) throw error;
    }
  }

  #show({ follows, count: all, next }) {
    for (const { producer, side } of follows) {
      this.sides[side] += 1;
      const name = make("bdi", { class: "key", title: producer }, producer);
      this.list.append(make("li", {}, name, howLabel(side)));
    }
    this.next = next;
    this.list.parentElement.hidden = !this.list.children.length;
    this.more.hidden = next === null;
    const { push, pull } = this.sides;
    const split = `${count(push)} push, ${count(pull)} pull`;
    say(byId("follows-count"), next !== null ? counted(all, "producer") : all ? split : "nobody");
  }
}
