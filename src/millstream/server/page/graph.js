/**
 * The workflow as a drawing. The server computes the layout; here it is drawn once. A status
 * changes only texts, the bars that show how busy a function is, and the badges that mark what
 * needs attention at a node.
 *
 * A job or feeds is one node until it is opened, by the button above the drawing or a click. To a
 * screen reader the drawing is one image; everything in it is in the tables below it as well.
 */

import { badgesByNode } from "./badges.js";
import { byId, draw, make, say, set } from "./dom.js";
import { count, counted, rate } from "./format.js";

const LINE = 16;
const ROUND = { map: 8, update: 3, part: 10 };
const SMALLEST = 0.86;
const LARGEST = 1.35;
const BROAD = 1300;
const BAR = { inset: 8, height: 2.5 };
const BADGE = { height: 16, character: 6.2, pad: 6, gap: 4 };

export class Graph {
  /** Draws into `host`, which scrolls sideways if it is too narrow. */
  constructor(host) {
    this.host = host;
    this.rates = new Map();
    this.edges = new Map();
    this.nodes = new Map();
    this.badges = new Map();
    this.open = "";
  }

  /** Draws the graph of a description. */
  show(description) {
    this.description = description;
    const parts = Object.keys(description.folded ?? {}).filter(Boolean);
    if (!parts.includes(this.open)) this.open = "";
    this.#offer(parts);
    const { width, height, nodes, edges, labels } = description.folded?.[this.open] ?? description.graph;
    const svg = draw("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-labelledby": "graph-title",
      "aria-describedby": "graph-words",
    });
    svg.style.minWidth = `${width * SMALLEST}px`;
    svg.style.maxWidth = `${width * LARGEST}px`;
    svg.append(
      draw("title", { id: "graph-title" }, `Workflow of ${description.app}`),
      draw("desc", { id: "graph-words" }, inWords(description)),
    );
    // On a wide screen the charts are beside the drawing, unless it needs the width.
    this.host.closest("main").classList.toggle("broad", width > BROAD);
    this.#forget();
    for (const edge of edges) svg.append(this.#edge(edge));
    for (const node of nodes) svg.append(this.#node(node));
    for (const label of labels) svg.append(this.#label(label));
    this.host.replaceChildren(svg);
  }

  /** Shows a button for each part that can be opened. */
  #offer(parts) {
    const buttons = parts.map((name) => {
      const opened = name === this.open;
      const button = make("button", { type: "button", "aria-pressed": opened }, opened ? `Close ${name}` : `Open ${name}`);
      button.addEventListener("click", () => this.#turn(name));
      return button;
    });
    byId("graph-parts").replaceChildren(...buttons);
    byId("graph-parts").hidden = !parts.length;
  }

  /** Opens a part, or closes it if it is open; at most one part is open. */
  #turn(name) {
    this.open = this.open === name ? "" : name;
    this.show(this.description);
    this.update(this.status);
    [...byId("graph-parts").children].find((button) => button.textContent.endsWith(` ${name}`))?.focus();
  }

  /** Shows a sentence that says why there is nothing to draw. */
  none(sentence) {
    this.#forget();
    this.host.replaceChildren(make("p", { class: "empty" }, sentence));
  }

  #forget() {
    for (const map of [this.rates, this.edges, this.nodes, this.badges]) map.clear();
  }

  /** Updates rates, slates, busy bars and badges. */
  update(status) {
    this.status = status;
    const known = badgesByNode(status);
    for (const [id, place] of this.badges) this.#badge(place, known(id));
    for (const stream of status.streams) {
      for (const text of this.rates.get(stream.name) ?? []) say(text, `${rate(stream.rate)}/s`);
      for (const line of this.edges.get(stream.name) ?? []) {
        line.classList.toggle("still", !stream.rate);
      }
    }
    for (const one of status.functions) {
      const node = this.nodes.get(one.name);
      if (!node) continue;
      if (one.slates !== null) say(node.caption, counted(one.slates, "slate"));
      const wide = Math.round(Math.min(1, one.busy) * node.room);
      set(node.bar, { width: wide < 2 ? 0 : wide });
      node.bar.classList.toggle("high", one.busy > 0.8);
      const busy = `${(one.busy * 100).toFixed(0)} % busy`;
      say(node.title, `${node.words}\n${count(one.processed)} events, ${busy}`);
    }
  }

  /** Puts the badges of a node on its upper edge, the most serious first. */
  #badge(place, badges) {
    const now = JSON.stringify(badges);
    if (now === place.shown) return;
    place.shown = now;
    const widthOf = ({ text }) => text.length * BADGE.character + 2 * BADGE.pad;
    const whole = badges.reduce((sum, badge) => sum + widthOf(badge) + BADGE.gap, -BADGE.gap);
    // Badges too wide for the node extend to the left: on its right are the names of its streams.
    let left = Math.max(2, Math.min(place.x, place.right - whole));
    const drawn = badges.map((badge) => {
      const { level, text } = badge;
      const width = widthOf(badge);
      const box = { x: left, y: place.y - 11, width, height: BADGE.height, rx: BADGE.height / 2 };
      const words = { x: left + width / 2, y: place.y + 0.8 };
      left += width + BADGE.gap;
      return draw("g", { class: "pill", "data-level": level }, draw("rect", box), draw("text", words, text));
    });
    place.group.replaceChildren(...drawn);
    place.node.classList.toggle("failing", badges.some(({ level }) => level === "bad"));
  }

  #edge({ stream, feedback, path, tip }) {
    const line = draw("g", { class: feedback ? "edge back" : "edge" });
    line.append(draw("path", { class: "line", d: path }), draw("path", { class: "tip", d: tip }));
    remember(this.edges, stream, line);
    return line;
  }

  #node({ id, kind, role, name, lines, title, x, y, width, height }) {
    const words = draw("title", {}, title);
    const group = draw("g", { class: `node ${kind}` }, words);
    const box = { x, y, width, height, rx: ROUND[kind] ?? height / 2 };
    const middle = x + width / 2;
    const top = y + height / 2 - (LINE * lines.length) / 2 + 12;
    group.append(draw("rect", { class: "box", ...box }));
    lines.forEach((text, number) => {
      const place = { class: number ? "note" : "name", x: middle, y: top + LINE * number };
      group.append(draw("text", place, text));
    });
    const caption = draw("text", { class: "caption", x: middle, y: y + height + 13 });
    group.append(caption);
    const pills = draw("g", {});
    group.append(pills);
    this.badges.set(id, { group: pills, node: group, x: x + 4, right: x + width - 4, y, shown: "[]" });
    if (role === "part") group.addEventListener("click", () => this.#turn(name));
    if (role === "source") remember(this.rates, name, caption);
    if (role === "function") {
      const [left, low] = [x + BAR.inset, y + height - BAR.height - 2.5];
      const bar = draw("rect", { class: "bar", x: left, y: low, rx: 1.2, width: 0, height: BAR.height });
      group.append(bar);
      const room = width - 2 * BAR.inset;
      this.nodes.set(name, { caption, bar, room, title: words, words: title });
    }
    return group;
  }

  #label({ stream, x, y }) {
    const number = draw("text", { class: "rate", x, y: y + 16 });
    remember(this.rates, stream, number);
    return draw("g", { class: "stream" }, draw("text", { class: "label", x, y: y - 1 }, stream), number);
  }
}

function remember(map, name, node) {
  if (!map.has(name)) map.set(name, []);
  map.get(name).push(node);
}

function inWords({ sources, functions, outputs }) {
  const list = (names) => names.join(", ") || "nothing";
  return [
    `Sources: ${list(sources.map((source) => source.name))}.`,
    ...functions.map(
      ({ kind, name, subscribes, publishes }) =>
        `The ${kind} ${name} reads ${list(subscribes)} and publishes ${list(publishes)}.`,
    ),
    `Outputs: ${list(outputs)}. The tables under "All numbers" have the rates.`,
  ].join(" ");
}
