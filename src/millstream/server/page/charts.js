/**
 * Line charts over the last minutes or the last hour. A chart is drawn at its size in pixels, so
 * that its texts keep their size. The reading beside its title is the last value, or the one under
 * the pointer. It may have a second line below the first, like the median below p99.
 *
 * A few values far above the others, as of the first batches, do not set the axis: they are cut off
 * at its top, and the highest is written there.
 */

import { draw, make, say, set } from "./dom.js";

const HEIGHT = 148;
const EDGE = { top: 10, right: 10, bottom: 24, left: 52 };
const LONGEST_GAP = 10;
/** The possible spans of a chart and of its marks, in seconds. It begins short, to be full soon. */
const SPANS = [
  [60, 15],
  [120, 30],
  [300, 60],
  [900, 180],
  [3600, 600],
];
/** A value is cut off if it is more than this many times the median. */
const FAR = 4;
let charts = 0;

export class Chart {
  /**
   * `section` holds a title, a reading and the chart. `words(value)` formats a value as
   * [number, unit]; `ticks(highest)` returns the marks of the axis, as {at, text}; `labels` are the
   * names of two lines.
   */
  constructor(section, { name, words, ticks, labels = [] }) {
    Object.assign(this, { words, ticks, labels, points: [], end: 0, pointed: null, gap: LONGEST_GAP });
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
    this.median = draw("path", { class: "median" });
    this.peak = draw("text", { class: "peak", y: EDGE.top - 1 });
    this.rule = draw("line", { class: "rule", y1: EDGE.top, y2: HEIGHT - EDGE.bottom });
    this.dot = draw("circle", { class: "dot", r: 3.5 });
    this.svg.append(this.grid, this.area, this.median, this.line, this.peak, this.rule, this.dot);
    this.host.append(this.svg);
    new ResizeObserver(() => this.#draw()).observe(this.host);
    this.svg.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.svg.addEventListener("pointerleave", () => this.#point(null));
  }

  /** Shows values at times, in seconds; null where there is none. `known`: seconds with values. */
  update(times, values, known, lower = []) {
    this.end = times.at(-1) ?? 0;
    [this.seconds, this.step] = SPANS.find(([seconds]) => seconds >= known) ?? SPANS.at(-1);
    this.gap = Math.max(LONGEST_GAP, 4 * (times[1] - times[0]));
    this.points = times
      .map((time, number) => ({ time, value: values[number], lower: lower[number] ?? null }))
      .filter(({ time, value }) => value !== null && time >= this.end - this.seconds);
    this.#draw();
  }

  #draw() {
    const width = this.host.clientWidth;
    if (!width) return;
    const values = this.points.map(({ value }) => value);
    const ceiling = highest(values);
    const marks = this.ticks(ceiling);
    const top = marks.at(-1).at;
    const right = width - EDGE.right;
    const low = HEIGHT - EDGE.bottom;
    this.x = (time) => right - ((this.end - time) / this.seconds) * (right - EDGE.left);
    this.y = (value) => low - (Math.min(value, top) / top) * (low - EDGE.top);
    set(this.svg, { width, viewBox: `0 0 ${width} ${HEIGHT}` });
    this.#axes(marks, width, right, low);
    const placed = (of) =>
      this.#runs().map((run) => run.map((point) => `${this.x(point.time).toFixed(1)} ${this.y(of(point)).toFixed(1)}`));
    const runs = placed(({ value }) => value);
    const path = (run) => `M${run.join("L")}${run.length === 1 ? "h0" : ""}`;
    const below = (run) =>
      `${path(run)}V${low}H${run[0].split(" ")[0]}Z`;
    set(this.line, { d: runs.map(path).join("") || null });
    set(this.area, { d: runs.map(below).join("") || null });
    const medians = this.labels.length ? placed(({ lower, value }) => lower ?? value) : [];
    set(this.median, { d: medians.map(path).join("") || null });
    this.#sayPeak(values, top, right);
    this.#read();
    say(this.desc, this.#inWords(values));
  }

  /** Writes the highest value where it is cut off. */
  #sayPeak(values, top, right) {
    const most = Math.max(0, ...values);
    say(this.peak, most > top ? `▲ ${this.words(most).join(" ")}` : "");
    if (most <= top) return;
    const x = this.x(this.points.find(({ value }) => value === most).time);
    const late = x > right - 70;
    set(this.peak, { x: late ? x - 5 : x + 5, "text-anchor": late ? "end" : "start" });
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

  /** Returns the points in runs without a long gap. */
  #runs() {
    const runs = [];
    let last = -Infinity;
    for (const point of this.points) {
      if (point.time - last > this.gap) runs.push([]);
      runs.at(-1).push(point);
      last = point.time;
    }
    return runs;
  }

  #point(x) {
    this.pointed = x;
    this.#read();
  }

  /** Shows the reading: the value under the pointer, or the last one. */
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
    const ago = Math.round(this.end - shown.time);
    const past = ago < 120 ? `${ago} s ago` : `${Math.round(ago / 60)} min ago`;
    const when = this.pointed === null || !ago ? "" : past;
    const values = this.labels.length ? [shown.lower ?? shown.value, shown.value] : [shown.value];
    const parts = values.flatMap((value, at) => {
      const [number, unit] = this.words(value);
      const label = this.labels[at];
      return [
        ...(label ? [make("span", { class: `label ${label}` }, label)] : []),
        make("span", { class: "value" }, number),
        make("span", { class: "unit" }, unit),
      ];
    });
    return this.reading.replaceChildren(make("span", { class: "quiet" }, when), ...parts);
  }

  #inWords(values) {
    if (!values.length) return "There are no values yet.";
    const [last, least, most] = [values.at(-1), Math.min(...values), Math.max(...values)];
    const say = (value) => this.words(value).join(" ");
    return `Last ${say(last)}, lowest ${say(least)}, highest ${say(most)}.`;
  }
}

/** Returns the highest value that the axis must show; values far above most others are cut off. */
export function highest(values) {
  if (!values.length) return 0;
  const sorted = values.toSorted((one, other) => one - other);
  const limit = FAR * sorted[Math.floor((sorted.length - 1) / 2)];
  return limit > 0 ? sorted.findLast((value) => value <= limit) : sorted.at(-1);
}

/** Returns round marks from 0 to at least `highest`, about four of them. */
export function roundMarks(highest) {
  const rough = (highest || 1) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const marks = [0];
  while (marks.at(-1) < highest * 0.999 || marks.length < 2) marks.push(marks.length * step);
  return marks;
}
