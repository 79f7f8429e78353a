/**
 * The feeds of the application: how the pairs of producers and consumers are split between push and
 * pull, the costs behind that decision, and the feed of a chosen consumer.
 *
 * The consumer is kept in the address (#feed=NAME), so that a feed can be linked to.
 */

import { NoAnswer, Refused, path, read } from "./api.js";
import { byId, make, say, set } from "./dom.js";
import { Feed } from "./feed.js";
import { count, counted, span } from "./format.js";
import { costs, rough } from "./reasons.js";

const EVERY = 3000;
const SUGGESTED = 8;
const PAUSE = 200;

/** Each fact of a network: its name, and a function from the network to a number and a remark. */
const FACTS = [
  ["Producers", ({ producers }) => [count(producers), ""]],
  ["Consumers", ({ consumers }) => [count(consumers), ""]],
  ["Under way", ({ under_way: number }) => [count(number), number === 1 ? "producer" : "producers"]],
  ["Cost of a push", ({ high }) => cost(high)],
  ["Cost of a pull", ({ low }) => cost(low)],
  ["Reads p95", ({ latency }) => span(latency?.p95)],
  ["Reads p99", ({ latency }) => span(latency?.p99)],
  ["Reads", ({ reads }) => [count(reads), ""]],
];

export class Feeds {
  constructor() {
    this.section = byId("feeds");
    this.choice = byId("feeds-choice");
    this.consumer = byId("feed-consumer");
    this.coherency = byId("feed-coherency");
    this.feed = new Feed();
    this.cells = FACTS.map(([name, of]) => {
      const value = make("span", { class: "value" });
      const unit = make("span", { class: "unit" });
      byId("feeds-facts").append(make("div", {}, make("dt", {}, name), make("dd", {}, value, unit)));
      return { of, value, unit };
    });
    Object.assign(this, { names: [], parts: {}, asked: -EVERY, seen: true, typing: 0 });
    new IntersectionObserver(([{ isIntersecting }]) => {
      this.seen = isIntersecting;
    }).observe(this.section);
    this.choice.addEventListener("change", () => this.#choose());
    this.coherency.addEventListener("change", () => this.#open());
    this.consumer.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.#suggest(), PAUSE);
    });
    byId("feed-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#open();
    });
    window.addEventListener("hashchange", () => this.#fromAddress());
  }

  /** Takes the application's description; its parts say which feeds there are. */
  load({ parts = {} }) {
    const names = Object.keys(parts).filter((name) => parts[name].kind === "feeds");
    const [chosen, were] = [this.choice.value, this.names];
    Object.assign(this, { names, parts, asked: -EVERY });
    this.section.hidden = !names.length;
    this.choice.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    if (names.includes(chosen)) this.choice.value = chosen;
    byId("feeds-controls").hidden = names.length < 2;
    if (!names.length) this.feed.close();
    else if (names.join("\n") !== were.join("\n")) this.#fromAddress();
  }

  /** Takes a status; reads the network again if the last read is some seconds ago. */
  async update({ batch }) {
    if (this.seen) this.feed.update(batch);
    const soon = performance.now() - this.asked < EVERY || (!this.seen && this.asked >= 0);
    if (!this.names.length || soon) return;
    this.asked = performance.now();
    try {
      const { feeds } = await read("feeds");
      if (feeds[this.choice.value]) this.#show(this.choice.value, feeds[this.choice.value]);
    } catch (error) {
      if (error instanceof Refused) say(byId("feeds-state"), error.message);
      else if (!(error instanceof NoAnswer)) throw error;
    }
  }

  #choose() {
    this.asked = -EVERY;
    this.#open();
  }

  #show(name, network) {
    const state = [name, `${network.coherency} coherency`, `policy ${network.policy}`];
    say(byId("feeds-state"), [...state, `batch ${count(network.batch)}`].join(" · "));
    const { pairs, pushed, pulled } = network;
    byId("feeds-split").hidden = !pairs;
    say(byId("feeds-pairs"), pairs ? counted(pairs, "pair") : "Nobody follows anybody yet.");
    byId("feeds-pushed").hidden = byId("feeds-pulled").hidden = !pairs;
    if (pairs) {
      const [push, pull] = [share(pushed, pairs), share(pulled, pairs)];
      const label = `${push} of the pairs are on push, ${pull} on pull`;
      set(byId("feeds-split"), { "aria-label": label });
      byId("feeds-split").firstElementChild.style.width = `${(100 * pushed) / pairs}%`;
      say(byId("feeds-pushed").lastElementChild, `${count(pushed)} (${push})`);
      say(byId("feeds-pulled").firstElementChild, `${count(pulled)} (${pull})`);
    }
    for (const { of, value, unit } of this.cells) {
      const [number, words] = of(network);
      say(value, number);
      say(unit, words);
    }
    say(byId("feeds-rule"), rule(network));
  }

  /** Suggests consumers whose names begin with the typed text. */
  async #suggest() {
    const prefix = this.consumer.value;
    const update = `${this.choice.value}.consumers`;
    try {
      const { slates } = await read(path(["slates", update], { prefix, limit: SUGGESTED }));
      const options = slates.map(({ key }) => make("option", { value: key }));
      byId("feed-known").replaceChildren(...options);
    } catch (error) {
      if (!(error instanceof NoAnswer || error instanceof Refused)) throw error;
    }
  }

  #open() {
    const consumer = this.consumer.value;
    const address = consumer ? `#feed=${encodeURIComponent(consumer)}` : location.pathname;
    history.replaceState(null, "", address);
    const { [this.choice.value]: part } = this.parts;
    this.feed.open(this.choice.value, part, consumer, this.coherency.value);
  }

  /** Shows the feed that the address names. The hash may also be the skip link's. */
  #fromAddress() {
    if (!this.names.length) return;
    const [name, value] = location.hash.slice(1).split("=");
    if (name !== "feed" || !value) {
      this.#suggest();
      return;
    }
    try {
      this.consumer.value = decodeURIComponent(value);
    } catch {
      return; // not an address of this page
    }
    this.#open();
  }
}

/** Formats a short time as [number, unit]. */
function cost(seconds) {
  return seconds > 0 && seconds < 0.001 ? [rough(seconds * 1e6), "µs"] : span(seconds);
}

/** Formats a part as a percentage: 0 and 100 only if it is none or all. */
function share(part, whole) {
  const percentage = (100 * part) / whole;
  if (part && percentage < 0.1) return "<0.1 %";
  if (part < whole && percentage > 99.9) return ">99.9 %";
  return `${Math.round(10 * percentage) / 10} %`;
}

/** Returns the rule of the decision between push and pull, as a sentence. */
function rule({ policy, decide, ratio }) {
  if (policy !== "hybrid") return `All pairs are on ${policy}, whatever the rates.`;
  const which =
    decide === "per-consumer"
      ? "All of a feed is on push if its consumer looks often relative to how much comes into it"
      : "A pair is on push if its consumer looks often relative to how often its producer posts";
  return `${which}; ${costs(ratio)}.`;
}
