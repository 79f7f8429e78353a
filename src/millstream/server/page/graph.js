/**
 * The workflow as a drawing: the server says where everything goes, here it is drawn once, and each
 * status only changes texts and the little bars that show how busy a function is.
 *
 * To a screen reader the drawing is one image; all it shows is in the tables below it as well.
 */

import { draw, make, say, set } from "./dom.js";
import { count, counted, rate } from "./format.js";

const LINE = 16;
const ROUND = { map: 8, update: 3 };
const SMALLEST = 0.86;
const LARGEST = 1.35;
const BROAD = 1300;
const BAR = { inset: 8, height: 2.5 };

export class Graph {
  /** Draws into `host`, which scrolls sideways when there is no room. */
  constructor(host) {
    this.host = host;
    this.rates = new Map();
    this.edges = new Map();
    this.nodes = new Map();
  }

  /** Draw the application's geometry anew. */
  show(description) {
    const { width, height, nodes, edges, labels } = description.graph;
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
    // On a wide screen the charts stand beside a drawing, unless it needs the width.
    this.host.closest("main").classList.toggle("broad", width > BROAD);
    this.#forget();
    for (const edge of edges) svg.append(this.#edge(edge));
    for (const node of nodes) svg.append(this.#node(node));
    for (const label of labels) svg.append(this.#label(label));
    this.host.replaceChildren(svg);
  }

  /** There is nothing to draw, and why. */
  none(sentence) {
    this.#forget();
    this.host.replaceChildren(make("p", { class: "empty" }, sentence));
  }

  #forget() {
    for (const map of [this.rates, this.edges, this.nodes]) map.clear();
  }

  /** Bring rates, slates and busy bars up to date. */
  update(status) {
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

  #edge({ stream, feedback, path, tip }) {
    const line = draw("g", { class: feedback ? "edge back" : "edge" });
    line.append(draw("path", { class: "line", d: path }), draw("path", { class: "tip", d: tip }));
    remember(this.edges, stream, line);
    return line;
  }

  #node({ kind, role, name, lines, title, x, y, width, height }) {
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
