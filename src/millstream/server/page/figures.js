/**
 * The top of the page: the application's name, its state, and the most important figures. Also the
 * one place that announces to screen readers, and only what changes rarely.
 */

import { byId, make, say, set } from "./dom.js";
import { count, counted, rate, span } from "./format.js";

/** Each figure: its name, and a function from a status to its number, its unit and a remark. */
const FIGURES = [
  ["Batch", ({ batch, batch_seconds: took }) =>
    batch < 0 ? ["–", "", "none yet"] : [count(batch), "", took ? `took ${span(took).join(" ")}` : ""]],
  ["Events", (status) => [rate(status.rate), "/s", `${count(status.events)} in all`]],
  ["Latency p99", ({ latency }) => [...span(latency.p99), median(latency)]],
  ["Lag", lag],
  ["Slates", ({ functions }) => {
    const kept = functions.filter((one) => one.slates !== null);
    return [count(sum(kept, "slates")), "", `in ${counted(kept.length, "update")}`];
  }],
  ["Dead letters", (status) => [count(status.dead_letters), "", `${count(status.late)} late`]],
];

const STATES = {
  running: "running",
  starting: "starting",
  stopped: "stopped",
  lost: "no answer",
};

export class Figures {
  constructor() {
    this.badge = byId("badge");
    this.state = "";
    this.cells = FIGURES.map(([name, of]) => {
      const number = make("span", { class: "value" }, "–");
      const unit = make("span", { class: "unit" });
      const remark = make("span", { class: "remark" }, "\u00a0");
      const cell = make("dd", {}, number, unit, remark);
      const figure = make("div", { class: "figure" }, make("dt", {}, name), cell);
      byId("figures").append(figure);
      return { of, number, unit, remark, figure };
    });
    this.letters = this.cells.at(-1).figure;
  }

  /** Shows a status. */
  update(status) {
    document.title = `${status.app} · Millstream`;
    say(byId("app"), status.app);
    say(byId("order"), status.order ? `${status.order} order` : "");
    for (const { of, number, unit, remark } of this.cells) {
      const [text, unitText, words] = of(status);
      say(number, text);
      say(unit, unitText);
      say(remark, words || "\u00a0");
    }
    set(this.letters, { "data-bad": status.letters_left.dead_letters > 0 ? "" : null });
    this.#enter(status.running ? (status.batch < 0 ? "starting" : "running") : "stopped");
  }

  /** The server does not answer: the figures stay as they were. */
  lost() {
    this.#enter("lost");
  }

  #enter(state) {
    if (this.state === state) return;
    if (this.state && state !== "lost") announce(`The application is ${STATES[state]}.`);
    this.state = state;
    set(this.badge, { "data-state": state });
    say(this.badge, STATES[state]);
  }
}

/** Announces a sentence to screen readers, politely (aria-live). */
export function announce(sentence) {
  say(byId("announcer"), sentence);
}

function lag({ sources, waiting }) {
  const known = sources.filter((source) => source.lag_events !== null);
  if (!known.length) return ["–", "", waiting ? `${count(waiting)} waiting` : "no log to read"];
  const seconds = known.map((source) => source.lag_seconds).filter((one) => one !== null);
  const behind = counted(sum(known, "lag_events"), "event");
  return seconds.length ? [...span(Math.max(...seconds)), behind] : [behind.split(" ")[0], "", "events"];
}

/** Formats the median, and the part of it that events waited for the horizon. */
function median({ p50, waited }) {
  if (p50 === null) return "";
  const part = waited.p50 ? `, ${span(waited.p50).join(" ")} of it waiting` : "";
  return `p50 ${span(p50).join(" ")}${part}`;
}

const sum = (all, field) => all.reduce((total, one) => total + (one[field] ?? 0), 0);
