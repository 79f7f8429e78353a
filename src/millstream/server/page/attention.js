/**
 * The strip on top: what needs attention, each item with a link to the panel that shows more. Also
 * the line in the footer: version, store, uptime, how far event time is behind.
 */

import { byId, make, say, set } from "./dom.js";
import { span } from "./format.js";

export class Strip {
  constructor() {
    this.strip = byId("attention");
    this.items = byId("attention-items");
    this.facts = byId("facts");
    this.shown = "";
  }

  /** Shows a status. */
  update(status) {
    const now = JSON.stringify(status.attention);
    if (now !== this.shown) {
      this.shown = now;
      this.items.replaceChildren(...status.attention.map(item));
      set(this.strip, { hidden: status.attention.length ? null : "" });
    }
    say(this.facts, facts(status).join(" · "));
  }
}

/** Marks the kind in the sentence, or puts it before a sentence that does not contain it. */
function item({ kind, level, text, panel }) {
  const label = make("span", { class: "kind" }, kind);
  const at = text.indexOf(kind);
  const words = at < 0 ? [label, ` ${text}`] : [text.slice(0, at), label, text.slice(at + kind.length)];
  return make("li", { "data-level": level }, make("a", { href: `#${panel}` }, ...words));
}

function facts({ server, horizon, clock, order }) {
  const up = span((Date.now() * 1000 - server.since) / 1e6).join(" ");
  const said = [`Millstream ${server.version}`, `store ${server.store}`, `server up ${up}`];
  if (order === "event-time" && horizon !== null && clock !== null) {
    said.push(`horizon ${span(Math.max(0, (clock - horizon) / 1e6)).join(" ")} behind the clock`);
  }
  return said;
}
