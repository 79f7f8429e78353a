/**
 * The scoreboard of a job as a heat map: one row per node, one column per pane. Below are the
 * windows that the panes make up, each as long as its panes and filled as far as it is complete.
 *
 * The grid works with the keyboard: the arrows go from cell to cell. The text of a cell is read
 * out, shown as its tooltip, and passed to `reading`. The windows below are in a table as well.
 */

import { make, say, set } from "./dom.js";
import { bytes, count, counted, time } from "./format.js";

const LEVELS = 5;
const LANES = 8;
/** Pixels: widths of a cell, of the names and of a letter, and between two labels of the axis. */
const NARROWEST = 13;
const WIDEST = 46;
const NAMES = 190;
const LETTER = 7.8;
const APART = 62;
const GAP = 2;
const MINUTE = 60_000_000;

export const WHY = {
  shed: "there was no time for it",
  drawn: "it was not drawn for the sample",
  cancelled: "its windows were closed before it was made",
  memory: "it did not fit into memory",
  unreadable: "none of its records could be read",
  absent: "the node began after it",
  over: "the log has ended",
};

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** Texts for the reasons why a window was closed. */
export const REASONS = {
  complete: "complete",
  late: "all panes came, records late",
  fidelity: "fidelity met",
  latency: "latency over",
  failure: "cannot get better",
  time: "time has passed it",
};

export class HeatMap {
  /** Draws into `host`, which scrolls if it is too narrow; `reading(words)` gets a cell's text. */
  constructor(host, reading) {
    Object.assign(this, { host, reading, shape: "", cells: [], at: [0, 0] });
    this.grid = make("div", { class: "heat", role: "grid", "aria-label": "Panes by node" });
    host.replaceChildren(this.grid);
    this.grid.addEventListener("pointerover", ({ target }) => this.#read(target));
    this.grid.addEventListener("pointerleave", () => this.#read(document.activeElement));
    this.grid.addEventListener("focusin", ({ target }) => this.#focused(target));
    this.grid.addEventListener("focusout", () => reading(""));
    this.grid.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.label?.()).observe(host);
  }

  /** Shows a job, as GET /jobs/NAME returns it. */
  update(job) {
    const panes = job.panes.map(({ pane }) => pane);
    const shape = JSON.stringify([job.name, job.nodes, panes]);
    if (shape !== this.shape) this.#build(job, panes);
    this.shape = shape;
    const most = usual(job.panes.flatMap(({ nodes }) => Object.values(nodes)));
    job.nodes.forEach((node, row) => {
      job.panes.forEach((pane, column) => this.#show(this.cells[row][column], job, node, pane, most));
    });
    this.#windows(job);
    this.#read(this.grid.querySelector(".cell:hover") ?? document.activeElement);
  }

  #build({ axis, pane: size, slide, nodes, panes, name }, numbers) {
    const focused = this.grid.contains(document.activeElement);
    const { scrollLeft, clientWidth, scrollWidth } = this.host;
    const newest = scrollLeft + clientWidth >= scrollWidth - NARROWEST;
    this.chosen = { node: this.nodes?.[this.at[0]], pane: this.numbers?.[this.at[1]] };
    const columns = `repeat(${panes.length}, minmax(${NARROWEST}px, 1fr))`;
    const longest = 12 + LETTER * Math.max(...nodes.map((node) => node.length));
    const names = Math.min(NAMES, longest, 0.3 * clientWidth);
    this.grid.style.gridTemplateColumns = `${names}px ${columns}`;
    this.grid.style.maxWidth = `${names + WIDEST * panes.length}px`;
    this.numbers = numbers;
    this.nodes = nodes;
    const starts = panes.map(({ from }) => from % slide === 0);
    const heads = panes.map(({ from, to }, column) => {
      const label = make("span", { class: "tick", "aria-hidden": "true" });
      const words = make("span", { class: "unseen" }, extent(axis, from, to));
      const kind = starts[column] ? "column start" : "column";
      const head = make("div", { role: "columnheader", class: kind }, label, words);
      // A label extends over the columns after its own.
      head.style.zIndex = panes.length - column;
      return head;
    });
    this.ticks = heads.map((head) => head.firstChild);
    const corner = make("div", { role: "columnheader", class: "corner" });
    corner.append(make("span", { class: "unseen" }, `Node of ${name}`));
    const rows = [make("div", { role: "row" }, corner, ...heads)];
    this.cells = nodes.map((node) => {
      const cells = panes.map((_, column) => {
        const kind = starts[column] ? "cell start" : "cell";
        return make("div", { role: "gridcell", tabindex: -1, class: kind });
      });
      const head = make("div", { role: "rowheader", class: "node", title: node }, make("bdi", {}, node));
      rows.push(make("div", { role: "row" }, head, ...cells));
      return cells;
    });
    this.lanes = make("div", { role: "presentation", class: "lanes", "aria-hidden": "true" });
    this.grid.replaceChildren(...rows, this.lanes);
    this.label = () => this.#label(axis, size, panes, starts);
    this.label();
    if (newest) this.host.scrollLeft = this.host.scrollWidth;
    this.#restore(focused);
  }

  /** Labels the beginnings of windows with their times, as many as fit. */
  #label(axis, size, panes, starts) {
    const wide = this.cells[0][0].getBoundingClientRect().width + GAP;
    // As wide as its content, so that the sticky names stay at the side over all of it.
    this.grid.style.minWidth = "";
    this.grid.style.minWidth = `${this.grid.scrollWidth}px`;
    let last = -Infinity;
    panes.forEach(({ from }, column) => {
      const room = (column - last) * wide >= APART && (panes.length - column) * wide >= APART / 2;
      const labelled = starts[column] && room;
      if (labelled) last = column;
      say(this.ticks[column], labelled ? tick(axis, from, size) : "");
    });
  }

  #show(cell, { axis }, node, pane, most) {
    const one = pane.nodes[node];
    const level = one.mark === "data" ? Math.ceil(LEVELS * Math.sqrt(Math.min(1, one.records / most))) : null;
    const words = `${node}, ${extent(axis, pane.from, pane.to)}: ${inWords(one)}`;
    set(cell, { "data-mark": one.mark, "data-why": one.why, "data-level": level, "data-gap": one.gap ? "" : null, title: words, "aria-label": words });
  }

  /** Shows the open and the last closed windows with panes here, in lanes without overlap. */
  #windows({ axis, pane: size, windows }) {
    const [first, last] = [this.numbers[0], this.numbers.at(-1)];
    const ends = [];
    const bars = [];
    for (const one of [...windows].sort((a, b) => a.from - b.from)) {
      const [begin, end] = [one.from / size, one.to / size - 1];
      if (end < first || begin > last) continue;
      let lane = ends.findIndex((used) => used < begin);
      if (lane < 0) lane = ends.push(0) - 1;
      ends[lane] = end;
      if (lane < LANES) bars.push(this.#bar(one, axis, begin, end, lane));
    }
    this.lanes.replaceChildren(...bars);
  }

  #bar(one, axis, begin, end, lane) {
    const [first, last] = [this.numbers[0], this.numbers.at(-1)];
    const part = percent(one.coverage.area);
    const said = one.state === "open" ? "open" : `closed: ${REASONS[one.why] ?? one.why}`;
    const fill = make("span", { class: "fill" });
    fill.style.width = `${100 * one.coverage.area}%`;
    const title = `Window ${extent(axis, one.from, one.to)}: ${said}, ${part} of its panes`;
    const kinds = ["window", begin < first ? "cut-left" : "", end > last ? "cut-right" : ""];
    const bar = make("div", { class: kinds.join(" ").trim(), "data-state": one.state, title }, fill);
    const words = make("span", { class: "words" }, make("span", {}, part));
    if (one.state !== "open") words.append(make("span", {}, `, ${REASONS[one.why] ?? one.why}`));
    bar.append(words);
    const column = (pane) => Math.min(Math.max(pane, first), last) - first;
    bar.style.gridColumn = `${column(begin) + 2} / ${column(end) + 3}`;
    bar.style.gridRow = String(this.nodes.length + 2 + lane);
    return bar;
  }

  #read(target) {
    const cell = this.grid.contains(target) ? target.closest(".cell") : null;
    this.reading(cell ? cell.getAttribute("aria-label") : "");
  }

  #focused(target) {
    const row = this.cells.findIndex((cells) => cells.includes(target));
    if (row < 0) return;
    this.#choose(row, this.cells[row].indexOf(target));
    this.#read(target);
  }

  /** Sets the one cell that Tab leads to. */
  #choose(row, column) {
    this.cells[this.at[0]]?.[this.at[1]]?.setAttribute("tabindex", -1);
    this.at = [row, column];
    this.cells[row]?.[column]?.setAttribute("tabindex", 0);
  }

  #key(event) {
    const [row, column] = this.at;
    const columns = this.numbers.length;
    const ends = { Home: [row, 0], End: [row, columns - 1] };
    const [down, right] = MOVES[event.key] ?? [];
    const [to, across] = ends[event.key] ?? [row + down, column + right];
    const cell = this.cells[to]?.[across];
    if (!cell) return;
    event.preventDefault();
    cell.focus();
  }

  /** After the columns have moved: chooses the cell of the same pane again, if it is there. */
  #restore(chosen) {
    const { node, pane } = this.chosen ?? {};
    const [row, column] = [this.nodes.indexOf(node), this.numbers.indexOf(pane)];
    const there = row >= 0 && column >= 0;
    this.#choose(there ? row : 0, there ? column : Math.max(0, this.numbers.length - 1));
    if (chosen) this.cells[this.at[0]]?.[this.at[1]]?.focus({ preventScroll: true });
  }
}

/** Returns the 95th percentile of the panes' records, so that one very full pane hides none. */
function usual(cells) {
  const filled = cells.map(({ records }) => records).filter(Boolean).sort((a, b) => a - b);
  return filled[Math.floor(filled.length * 0.95)] ?? 1;
}

function inWords({ mark, why, records, bytes: size, shed, gap, late = 0 }) {
  if (late) return `${inWords({ mark, why, records, bytes: size, shed, gap })}, and ${counted(late, "record")} too late`;
  const gone = gap > 0 ? `${bytes(gap)} of its log are gone` : "some of its log is gone";
  if (gap) return `${inWords({ mark, why, records, bytes: size, shed })}, but ${gone}`;
  if (mark === "data") return `${counted(records, "record")}, ${bytes(size)}`;
  if (mark === "empty") return why === "over" ? `nothing, ${WHY.over}` : "nothing to read";
  const given = shed ? ` (${counted(shed, "record")})` : "";
  if (mark === "lost") return `lost, ${WHY[why] ?? why}${given}`;
  return mark === "missing" ? "missing, its windows were closed without it" : "awaited";
}

/** Formats a part as a percentage, rounded down, so that 100 % is all of it. Null: not known. */
export const percent = (part) => part === null ? "—" : `${Math.floor(1000 * part + 1e-6) / 10} %`;

/** Formats a range on the axis of a job; of times, the day once and no more digits than needed. */
export function extent(axis, from, to) {
  if (axis !== "time") {
    return `${{ records: "record", bytes: "byte" }[axis] ?? "number"} ${count(from)} to ${count(to)}`;
  }
  const rest = (from % MINUTE) + (to % MINUTE) ? /\.000$/ : /:00(\.000)?$/;
  const [begin, end] = [from, to].map((at) => time(at).replace(rest, ""));
  const day = begin.includes(" ") ? begin.slice(0, 11) : "";
  return `${begin} to ${end.startsWith(day) ? end.slice(day.length) : end}`;
}

/** Formats a short label; of a time only the clock, with seconds if panes are that short. */
function tick(axis, at, size) {
  if (axis !== "time") return axis === "bytes" ? bytes(at) : count(at);
  const clock = new Date(at / 1000).toTimeString();
  return clock.slice(0, size % MINUTE ? 8 : 5);
}
