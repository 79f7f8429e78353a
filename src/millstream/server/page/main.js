/**
 * The live page: requests the status once a second and passes it to the parts of the page.
 *
 * A part that has nothing new leaves the page as it is. While the tab is hidden, nothing is
 * requested. When the server does not answer, a banner says so; the page continues when it is back.
 */

import { NoAnswer, Refused, path, read } from "./api.js";
import { Strip } from "./attention.js";
import { Chart, roundMarks } from "./charts.js";
import { byId, make, say, set } from "./dom.js";
import { Feeds } from "./feeds.js";
import { Figures, announce } from "./figures.js";
import { count, rate, span } from "./format.js";
import { Graph } from "./graph.js";
import { Jobs } from "./jobs.js";
import { Letters } from "./letters.js";
import { Slates } from "./slates.js";
import { Tables } from "./tables.js";
import { Tails } from "./tails.js";

const EVERY = 1000;
/** The ranges of the charts: seconds in all, seconds per step, ticks between two requests. */
const RANGES = {
  "5 min": { seconds: 300, step: 1, every: 2 },
  "1 h": { seconds: 3600, step: 15, every: 10 },
};

const figures = new Figures();
const strip = new Strip();
const graph = new Graph(byId("graph"));
const tables = new Tables(byId("numbers"));
const jobs = new Jobs();
const feeds = new Feeds();
const slates = new Slates();
const tails = new Tails();
const letters = new Letters();

const throughput = new Chart(byId("throughput"), {
  name: "Events a second",
  words: (value) => [rate(value), "events/s"],
  ticks: (highest) => roundMarks(Math.max(highest, 1)).map((at) => ({ at, text: axisCount(at) })),
});
const latency = new Chart(byId("latency"), {
  name: "Latency, p50 and p99",
  words: span,
  labels: ["p50", "p99"],
  ticks: (highest) => {
    const [scale, unit] = highest < 1 ? [1000, "ms"] : [1, "s"];
    const marks = roundMarks(Math.max(highest, 0.001) * scale);
    return marks.map((mark) => ({ at: mark / scale, text: `${axisCount(mark)} ${unit}` }));
  },
});

let timer = 0;
let asking = false;
let answers = true;
let drawn = "";
let ticks = 0;
let range = RANGES["5 min"];

async function tick() {
  clearTimeout(timer);
  if (document.hidden || asking) return;
  asking = true;
  try {
    await show(await read("status"));
    found();
  } catch (error) {
    lost(error);
  } finally {
    asking = false;
    timer = setTimeout(tick, EVERY);
  }
}

async function show(status) {
  // Another application, a changed one or another server: redraw what is otherwise drawn once.
  const names = (all) => all.map(({ name }) => name);
  const now = JSON.stringify([
    status.app,
    names(status.streams),
    names(status.functions),
    status.server.since,
  ]);
  if (now !== drawn) {
    await load();
    drawn = now;
  }
  figures.update(status);
  strip.update(status);
  graph.update(status);
  tables.update(status);
  jobs.update(status);
  feeds.update(status);
  slates.update(status);
  letters.update(status);
  if (ticks % range.every === 0) await showHistory();
  ticks += 1;
}

async function showHistory() {
  const { seconds, step } = range;
  const { times, events, p50, p99 } = await read(path(["history"], { seconds, step }));
  if (seconds !== range.seconds) return; // another range was chosen meanwhile
  const first = events.findIndex((one) => one !== null);
  const known = first < 0 ? 0 : times.at(-1) - times[first];
  throughput.update(times, events, known);
  latency.update(times, p99, known, p50);
}

function offerRanges() {
  const buttons = Object.entries(RANGES).map(([name, of]) => {
    const button = make("button", { type: "button", "aria-pressed": of === range }, name);
    button.addEventListener("click", () => {
      range = of;
      ticks = 0;
      for (const one of buttons) set(one, { "aria-pressed": one === button });
      tick();
    });
    return button;
  });
  byId("ranges").append(...buttons);
}

async function load() {
  jobs.reset();
  letters.reset();
  await Promise.all([loadGraph(), slates.load(), tails.load()]);
}

async function loadGraph() {
  try {
    const description = await read("graph");
    graph.show(description);
    tables.show(description);
    feeds.load(description);
  } catch (error) {
    // A store whose application has left no description: the rest of the page works.
    if (!(error instanceof Refused)) throw error;
    graph.none(error.message);
    tables.show({ sources: [], functions: [], outputs: [] });
    feeds.load({});
  }
}

function found() {
  if (answers) return;
  answers = true;
  byId("banner").hidden = true;
  say(byId("banner"), "");
  announce("The server answers again.");
}

function lost(error) {
  if (!(error instanceof NoAnswer || error instanceof Refused)) {
    console.error(error);
    return;
  }
  figures.lost();
  answers = false;
  const said = error instanceof Refused ? `The server says: ${error.message}` : "";
  say(byId("banner"), said || "The server does not answer; trying again");
  byId("banner").hidden = false;
}

function axisCount(number) {
  return number < 10 ? String(Number(number.toPrecision(2))) : count(number);
}

offerRanges();
document.addEventListener("visibilitychange", tick);
tick();
