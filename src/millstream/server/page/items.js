/**
 * An item of a feed as an element: its producer and time, how it came here, its content, and why.
 */

import { make, set } from "./dom.js";
import { count, exactJson, exactTime, time } from "./format.js";
import { beginning, content, why } from "./reasons.js";

const HOWS = {
  push: "from the feed that is kept for this consumer",
  pull: "read from the producer",
  pending: "acknowledged, and not taken in by the application yet",
};

/** Returns the key that identifies an item. */
export const keyOf = ({ ts, producer, id }) => JSON.stringify([ts, producer, id]);

/** Parses an answer with items; numbers in their values keep all digits. */
export function itemsIn(text) {
  const [plain, exact] = [JSON.parse(text), exactJson(text)];
  plain.items.forEach((item, at) => {
    item.value = exact.items[at].value;
  });
  return plain;
}

/** Returns a small label that says how an item came into the feed, or how a pair is read. */
export function howLabel(how) {
  return make("span", { class: "how", "data-how": how, title: HOWS[how] }, how);
}

/** Returns the element of an item; `changed` marks it for a moment. `of`: see `why` (reasons.js). */
export function itemRow(item, of, changed) {
  const node = make("li", { class: changed ? "item changed" : "item" }, head(item), ...said(item.value));
  set(node, { "data-unread": item.unread ? "" : null });
  if (item.why) {
    const parts = why(item.why, { ...of, producer: item.via ?? item.producer, how: item.how });
    const words = parts.map((part) => (part.name ? make("bdi", {}, part.name) : part));
    node.append(make("p", { class: "why" }, ...words));
  }
  return node;
}

function head({ producer, via, ts, edited, how, unread }) {
  // Milliseconds are in the title.
  const when = make("time", { class: "when", title: exactTime(ts) }, time(ts).replace(/\.\d+$/, ""));
  const name = make("span", { class: "by" }, make("bdi", { class: "key" }, producer));
  if (via) name.append(" via ", make("bdi", {}, via));
  const about = make("span", { class: "about" }, when);
  if (edited) about.append(make("span", { class: "quiet", title: exactTime(edited) }, "edited"));
  if (unread) about.append(make("span", { class: "new" }, "new"));
  return make("div", { class: "head" }, make("div", { class: "who" }, name, about), howLabel(how));
}

/** Returns the text, shortened with a button if it is long, and the other fields of the post. */
function said(value) {
  const { text, rest } = content(value);
  const parts = [];
  if (text) parts.push(...paragraph(text));
  if (rest) parts.push(make("p", { class: "rest" }, rest));
  return parts;
}

function paragraph(text) {
  const short = beginning(text);
  const words = make("p", { class: "text" }, short ?? text);
  if (short === null) return [words];
  const button = make("button", { type: "button", class: "more", "aria-expanded": "false" });
  const label = (open) => (open ? "Show less" : `Show all ${count(text.length)} characters`);
  button.textContent = label(false);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "false";
    words.textContent = open ? text : short;
    button.textContent = label(open);
    set(button, { "aria-expanded": open });
  });
  return [words, button];
}
