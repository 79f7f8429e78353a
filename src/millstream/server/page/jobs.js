/**
 * Jobs over windows: the scoreboard as a heat map, the open windows, the closed ones with the
 * reason, and the accounts of each node's records. Read again after each committed batch.
 */

import { NoAnswer, Refused, path, read } from "./api.js";
import { byId, make, say, set } from "./dom.js";
import { count, counted, exactTime } from "./format.js";
import { HeatMap, REASONS, extent, percent } from "./heatmap.js";

const MOST_CLOSED = 12;

export class Jobs {
  constructor() {
    this.section = byId("jobs");
    this.choice = byId("jobs-choice");
    this.reset();
    this.map = new HeatMap(byId("jobs-map"), (words) => this.#read(words));
    this.choice.addEventListener("change", () => this.#ask(this.batch));
    this.windows = {
      open: new Rows(byId("jobs-open"), "No window is open.", OPEN),
      closed: new Rows(byId("jobs-closed"), "None was closed yet.", CLOSED),
    };
    this.accounts = new Rows(byId("jobs-accounts"), "Nothing was read yet.", ACCOUNTS);
  }

  /** Forgets everything: another server may have another store. */
  reset() {
    Object.assign(this, { batch: null, job: null, shown: "" });
  }

  /** Takes a status; shows the section if there is a job, and reads the job again after a batch. */
  async update({ jobs, batch }) {
    const names = Object.keys(jobs);
    this.section.hidden = !names.length;
    if (!names.length) return;
    if (names.join("\n") !== this.shown) {
      this.shown = names.join("\n");
      this.choice.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
      byId("jobs-controls").hidden = names.length < 2;
    }
    if (batch !== this.batch) await this.#ask(batch);
  }

  async #ask(batch) {
    if (this.asking) return;
    this.asking = true;
    try {
      const job = await read(path(["jobs", this.choice.value]));
      this.batch = batch;
      this.#show(job);
    } catch (error) {
      if (error instanceof Refused) say(byId("jobs-state"), error.message);
      else if (!(error instanceof NoAnswer)) throw error;
    } finally {
      this.asking = false;
    }
    // Another job was chosen meanwhile.
    if (this.job && this.job.name !== this.choice.value) await this.#ask(batch);
  }

  #show(job) {
    this.job = job;
    const asked = [job.fidelity, job.latency && `latency ${job.latency}`].filter(Boolean).join(", ");
    const from = job.agents ? "panes from agents" : "panes made on Spark";
    const state = [job.name, counted(job.nodes.length, "node"), from, asked || "waits for all panes"];
    const ended = Object.keys(job.ended).length;
    if (ended) state.push(ended === job.nodes.length ? "all logs have ended" : `${counted(ended, "log")} ended`);
    if (job.change) state.push(`${counted(job.change.reducers, "reducer")} from the next windows on`);
    say(byId("jobs-state"), state.join(" · "));
    byId("jobs-map").hidden = byId("jobs-legend").hidden = !job.panes.length;
    byId("jobs-none").hidden = job.panes.length > 0;
    if (job.panes.length) this.map.update(job);
    const open = job.windows.filter(({ state }) => state === "open");
    const closed = job.windows.filter(({ state }) => state === "closed");
    const newest = (windows) => [...windows].sort((a, b) => b.from - a.from);
    this.windows.open.update(open.map((one) => ({ ...one, axis: job.axis })));
    this.windows.closed.update(newest(closed).slice(0, MOST_CLOSED).map((one) => ({ ...one, axis: job.axis })));
    say(byId("jobs-open-count"), counted(job.open, "window"));
    say(byId("jobs-closed-count"), `${count(job.closed)} so far`);
    const nodes = job.nodes.map((node) => ({ node, ...job.accounts[node] }));
    this.accounts.update(nodes.length > 1 ? [...nodes, { node: "all", ...job.totals }] : nodes);
    this.#balance(job.totals);
    byId("jobs-warnings").hidden = !job.warnings.length;
    say(byId("jobs-warnings"), job.warnings.join(" "));
  }

  /** Says in a sentence if all records are accounted for. */
  #balance({ residual }) {
    const right = residual === 0;
    const words = right ? "every record is accounted for" : `${counted(residual, "record")} not accounted for`;
    say(byId("jobs-residual"), words);
    set(byId("jobs-residual"), { "data-bad": right ? null : "" });
  }

  #read(words) {
    say(byId("jobs-reading"), words || "\u00a0");
  }
}

const WINDOW = ["Window", (one) => when(one), "text"];
const COVERAGE = [
  ["Area", ({ coverage }) => meter(coverage), "meter"],
  ["Time", ({ coverage }) => percent(coverage.time), "number"],
  ["Space", ({ coverage }) => percent(coverage.space), "number"],
];
const COMPLETE = [
  ["Records", ({ account }) => count(account.on_time), "number"],
  ["Records %", ({ completeness }) => known(completeness), "number"],
  ["Bytes %", ({ completeness }) => known(completeness, "bytes"), "number"],
];
const OPEN = [WINDOW, ...COVERAGE, ...COMPLETE];
const CLOSED = [WINDOW, ["Closed", (one) => reason(one), "text"], ...COVERAGE, ...COMPLETE];
const ACCOUNTS = [
  ["Node", ({ node }) => node, "text"],
  ["Read", ({ read: all }) => count(all), "number"],
  ["On time", ({ on_time: taken }) => count(taken), "number"],
  ["Late", ({ late }) => count(late), "number"],
  ["Shed", ({ shed }) => count(shed), "number"],
  ["Dead letters", ({ dead }) => count(dead), "number"],
  ["Residual", ({ residual }) => count(residual), "number"],
  ["Gaps", ({ gaps }) => count(gaps), "number"],
  ["Set aside", ({ misdated }) => count(misdated), "number"],
];

/** Returns why a window was closed, and what it is missing. */
function reason({ why, corrections, coverage }) {
  const words = [REASONS[why] ?? why];
  if (corrections) words.push(`corrected ${count(corrections)}×`);
  const missing = missed(coverage);
  return words.join(", ") + (missing && `; missing ${missing}`);
}

/** Lists the numbers of panes of nodes that are not in a window, by cause. */
function missed({ missing }) {
  return Object.entries(missing).map(([cause, panes]) => `${count(panes)} ${cause}`).join(", ");
}

function when({ axis, from, to }) {
  const title = axis === "time" ? `${exactTime(from)} to ${exactTime(to)}` : null;
  // A line break may only come after the day.
  return make("span", { title }, extent(axis, from, to).replace(" to ", "\u00a0to\u00a0"));
}

/** Formats the known part of the records, or bytes; an upper bound if some panes are unknown. */
function known(completeness, of = "records") {
  const { [of]: part, unknown_panes: unknown } = completeness;
  const late = part === null && completeness.late ? "not known: records come late" : null;
  const title = unknown ? `not known what ${counted(unknown, "pane")} of nodes held` : late;
  return make("span", { title }, part !== null && unknown ? `≤ ${percent(part)}` : percent(part));
}

/** Shows the area as a bar and as a number; its tooltip says what is missing. */
function meter({ area, ...coverage }) {
  const bar = make("span", { class: "share", "aria-hidden": "true" }, make("span", { class: "fill" }));
  bar.firstChild.style.width = `${100 * area}%`;
  const missing = missed(coverage);
  return make("span", { class: "metered", title: missing ? `missing ${missing}` : null }, bar, percent(area));
}

/** A table whose rows are objects; the content of a cell is text or an element. */
class Rows {
  constructor(table, none, columns) {
    Object.assign(this, { columns, none });
    this.body = make("tbody");
    const heads = columns.map(([name, , kind]) => make("th", { scope: "col", class: kind }, name));
    table.append(make("thead", {}, make("tr", {}, ...heads)), this.body);
  }

  update(rows) {
    if (!rows.length) {
      const cell = make("td", { class: "quiet", colspan: this.columns.length }, this.none);
      this.body.replaceChildren(make("tr", {}, cell));
      return;
    }
    if (this.body.querySelector("[colspan]")) this.body.replaceChildren();
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    rows.forEach((row, number) => {
      const line = this.body.rows[number] ?? this.#fresh();
      this.columns.forEach(([, of], at) => fill(line.cells[at], of(row)));
    });
  }

  #fresh() {
    const line = this.body.insertRow();
    this.columns.forEach(([, , kind], at) => {
      line.append(make(at ? "td" : "th", at ? { class: kind } : { scope: "row" }));
    });
    return line;
  }
}

function fill(cell, content) {
  if (typeof content === "string") say(cell, content);
  else if (!cell.firstChild?.isEqualNode(content)) cell.replaceChildren(content);
}
