/**
 * Lines over the last minutes. A chart is drawn in the pixels that it has, so that its texts keep
 * their size; the reading beside its title is the last value, or the one under the pointer.
 */

import { draw, make, say, set } from "./dom.js";

const HEIGHT = 148;
const EDGE = { top: 10, right: 10, bottom: 24, left: 52 };
const LONGEST_GAP = 10;
/** How many seconds a chart may span, and its marks: it begins short, so that it is soon full. */
const SPANS = [
  [60, 15],
  [120, 30],
  [300, 60],
];
let charts = 0;

export class Chart {
  /**
   * `section` holds a title, a reading and the chart. `words(value)` is a value as [number, unit];
   * `ticks(highest)` the marks of the axis, as {at, text}.
   */
  constructor(section, { name, words, ticks }) {
    Object.assign(this, { words, ticks, points: [], end: 0, pointed: null });
    [this.seconds, this.step] = SPANS[0];
    this.reading = section.querySelector(".reading");
    this.host = section.querySelector(".chart");
    charts += 1;
    this.title = draw("title", { id: `chart-${charts}-title` }, `${name} over the last minutes`);
    this.desc = draw("desc", { id: `chart-${charts}-words` });
    const named = { "aria-labelledby": this.title.id, "aria-describedby": this.desc.id };
    this.svg = draw("svg", { role: "img", height: HEIGHT, ...named }, this.title, this.desc);
    this.grid = draw("g", { class: "grid" });
    this.area = draw("path", { class: "area" });
    this.line = draw("path", { class: "series" });
    this.rule = draw("line", { class: "rule", y1: EDGE.top, y2: HEIGHT - EDGE.bottom });
    this.dot = draw("circle", { class: "dot", r: 3.5 });
    this.svg.append(this.grid, this.area, this.line, this.rule, this.dot);
    this.host.append(this.svg);
    new ResizeObserver(() => this.#draw()).observe(this.host);
    this.svg.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.svg.addEventListener("pointerleave", () => this.#point(null));
  }

  /** Show values at times, in seconds; null where there is none. Something was `known` so long. */
  update(times, values, known) {
    this.end = times.at(-1) ?? 0;
    [this.seconds, this.step] = SPANS.find(([seconds]) => seconds >= known) ?? SPANS.at(-1);
    this.points = times
      .map((time, number) => ({ time, value: values[number] }))
      .filter(({ time, value }) => value !== null && time >= this.end - this.seconds);
    this.#draw();
  }

  #draw() {
    const width = this.host.clientWidth;
    if (!width) return;
    const values = this.points.map(({ value }) => value);
    const marks = this.ticks(Math.max(0, ...values));
    const top = marks.at(-1).at;
    const right = width - EDGE.right;
    const low = HEIGHT - EDGE.bottom;
    this.x = (time) => right - ((this.end - time) / this.seconds) * (right - EDGE.left);
    this.y = (value) => low - (value / top) * (low - EDGE.top);
    set(this.svg, { width, viewBox: `0 0 ${width} ${HEIGHT}` });
    this.#axes(marks, width, right, low);
    const runs = this.#runs().map((run) =>
      run.map(({ time, value }) => `${this.x(time).toFixed(1)} ${this.y(value).toFixed(1)}`),
    );
    const path = (run) => `M${run.join("L")}${run.length === 1 ? "h0" : ""}`;
    const below = (run) =>
      `${path(run)}V${low}H${run[0].split(" ")[0]}Z`;
    set(this.line, { d: runs.map(path).join("") || null });
    set(this.area, { d: runs.map(below).join("") || null });
    this.#read();
    say(this.desc, this.#inWords(values));
  }

  #axes(marks, width, right, low) {
    const parts = [];
    for (const { at, text } of marks) {
      const y = this.y(at);
      parts.push(draw("line", { x1: EDGE.left, x2: right, y1: y, y2: y }));
      parts.push(draw("text", { x: EDGE.left - 8, y: y + 4, "text-anchor": "end" }, text));
    }
    const step = width < 440 ? 2 * this.step : this.step;
    for (let ago = 0; ago <= this.seconds; ago += step) {
      const words = ago % 60 ? `−${ago} s` : `−${ago / 60} min`;
      const text = ago ? words : "now";
      const anchor = ago ? "middle" : "end";
      parts.push(draw("text", { x: this.x(this.end - ago), y: low + 17, "text-anchor": anchor }, text));
    }
    this.grid.replaceChildren(...parts);
  }

  /** The points in runs without a long gap. */
  #runs() {
    const runs = [];
    let last = -Infinity;
    for (const point of this.points) {
      if (point.time - last > LONGEST_GAP) runs.push([]);
      runs.at(-1).push(point);
      last = point.time;
    }
    return runs;
  }

  #point(x) {
    this.pointed = x;
    this.#read();
  }

  /** The value to read: under the pointer, or the last one. */
  #read() {
    const last = this.points.at(-1);
    let shown = last;
    if (this.pointed !== null && last) {
      const away = ({ time }) => Math.abs(this.x(time) - this.pointed);
      shown = this.points.reduce((best, one) => (away(one) < away(best) ? one : best));
    }
    for (const mark of [this.dot, this.rule]) mark.toggleAttribute("hidden", !shown);
    this.rule.toggleAttribute("hidden", this.pointed === null || !shown);
    if (!shown) return this.reading.replaceChildren(make("span", { class: "quiet" }, "nothing yet"));
    const x = this.x(shown.time);
    set(this.rule, { x1: x, x2: x });
    set(this.dot, { cx: x, cy: this.y(shown.value) });
    const [number, unit] = this.words(shown.value);
    const ago = Math.round(this.end - shown.time);
    const when = this.pointed === null || !ago ? "" : `${ago} s ago`;
    return this.reading.replaceChildren(
      make("span", { class: "quiet" }, when),
      make("span", { class: "value" }, number),
      make("span", { class: "unit" }, unit),
    );
  }

  #inWords(values) {
    if (!values.length) return "There are no values yet.";
    const [last, least, most] = [values.at(-1), Math.min(...values), Math.max(...values)];
    const say = (value) => this.words(value).join(" ");
    return `Last ${say(last)}, lowest ${say(least)}, highest ${say(most)}.`;
  }
}

/** Round marks from 0 to at least `highest`, about four of them. */
export function roundMarks(highest) {
  const rough = (highest || 1) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const marks = [0];
  while (marks.at(-1) < highest * 0.999 || marks.length < 2) marks.push(marks.length * step);
  return marks;
}
