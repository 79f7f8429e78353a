/**
 * One slate, live: the server sends it after each committed batch that has changed it.
 */

import { follow, path } from "./api.js";
import { make, say } from "./dom.js";
import { count, exactJson, exactTime, time } from "./format.js";
import { ValueView } from "./values.js";

export class Slate {
  constructor(host) {
    this.host = host;
    this.key = null;
    this.update = null;
    this.name = make("bdi", { class: "key" });
    this.about = make("p", { class: "quiet about" });
    this.raw = make("a", {}, "open as JSON");
    this.view = new ValueView();
    this.close();
  }

  /** Shows the slate of a key, and follows it. */
  open(update, key) {
    if (this.following && update === this.update && key === this.key) return;
    this.following?.close();
    Object.assign(this, { update, key });
    this.view.reset();
    say(this.name, key || "the empty key");
    this.name.classList.toggle("quiet", !key);
    say(this.about, "reading …");
    this.raw.href = path(["slates", update], { key });
    const head = make("div", { class: "head" }, make("h3", {}, this.name), this.raw);
    this.host.replaceChildren(head, this.about, this.view.node);
    this.following = follow(path(["slates", update, "watch"], { key }), {
      slate: (data) => this.#show(exactJson(data)),
      gone: (data) => this.#gone(JSON.parse(data)),
    });
    if (this.host.getBoundingClientRect().top > window.innerHeight * 0.8) {
      this.host.scrollIntoView({ block: "nearest" });
    }
  }

  /** Stops following. */
  close() {
    this.following?.close();
    Object.assign(this, { following: null, update: null, key: null });
    this.host.replaceChildren(make("p", { class: "empty" }, "Choose a slate to see all of it, live."));
  }

  #show({ slate, ts, batch }) {
    this.view.show(slate);
    const when = make("time", { title: exactTime(ts) }, time(ts));
    this.about.replaceChildren("last event ", when, ` · read at batch ${count(batch)}`);
  }

  #gone({ batch }) {
    this.view.reset();
    say(this.about, `There is no slate for this key as of batch ${count(batch)}.`);
  }
}
