/**
 * All numbers as tables: sources, streams and functions. They are the text alternative of the
 * graph, with more detail. Cells are changed in place, so a selection or a screen reader is not
 * lost.
 */

import { make, say } from "./dom.js";
import { NOTHING, bytes, count, counted, exactTime, rate, span } from "./format.js";

export class Tables {
  constructor(host) {
    this.host = host;
    this.tables = [];
  }

  /** Builds the tables of an application; its description says what each stream connects. */
  show({ sources, functions, outputs }) {
    const publishers = (stream) => [
      ...sources.filter(({ name }) => name === stream).map(() => "source"),
      ...functions.filter(({ publishes }) => publishes.includes(stream)).map(({ name }) => name),
    ];
    const readers = (stream) => [
      ...functions.filter(({ subscribes }) => subscribes.includes(stream)).map(({ name }) => name),
      ...outputs.filter((name) => name === stream).map(() => "output"),
    ];
    this.tables = [
      new Table("Streams", ["Stream", "From", "To", "Events", "Events/s"], 3, ({ streams }) =>
        streams.map((stream) => [
          stream.name,
          publishers(stream.name).join(", ") || NOTHING,
          readers(stream.name).join(", ") || NOTHING,
          count(stream.events),
          rate(stream.rate),
        ]),
      ),
      new Table("Functions", FUNCTION_COLUMNS, 2, (status) => status.functions.map(functionRow)),
      new Table("Sources", SOURCE_COLUMNS, 2, (status) => status.sources.map(sourceRow)),
      new Table("Outputs", ["Output", "Goes to", "State"], 3, outputRows),
    ];
    this.host.replaceChildren(...this.tables.map((table) => table.node));
  }

  update(status) {
    for (const table of this.tables) table.update(status);
  }
}

const FUNCTION_COLUMNS = [
  ...["Function", "Kind", "Events", "Events/s", "µs/event", "Busy", "Waiting", "Slates"],
  "Dead letters",
];

function functionRow(one) {
  return [
    one.name,
    one.kind,
    count(one.processed),
    rate(one.rate),
    one.microseconds === null ? NOTHING : rate(one.microseconds),
    `${(one.busy * 100).toFixed(0)} %`,
    count(one.waiting),
    count(one.slates),
    count(one.dead_letters),
  ];
}

const SOURCE_COLUMNS = ["Source", "Reads", "Events", "Events/s", "Lag", "Behind", "Highest time"];

function sourceRow(one) {
  const behind = one.lag_events === null ? "" : `${count(one.lag_events)} events`;
  const size = one.lag_bytes ? `, ${bytes(one.lag_bytes)}` : "";
  return [
    one.name,
    one.address || NOTHING,
    count(one.events),
    rate(one.rate),
    span(one.lag_seconds).join(" ").trim(),
    behind + size + (one.lost ? `; ${count(one.lost)} lost` : "") || NOTHING,
    one.highest === null ? NOTHING : exactTime(one.highest),
  ];
}

/** Returns the rows of outputs and actions: name, address, state. */
function outputRows({ outputs, actions }) {
  return outputs.map(({ name, address, error }) => {
    const action = actions.find((one) => one.name === name);
    const state = action ? actionState(action) : error ?? "working";
    return [name, address || action?.address || "its log", error ?? state];
  });
}

function actionState({ done, waiting, failed, retrying, trouble }) {
  if (trouble) return trouble;
  const tried = retrying ? `failing after ${counted(retrying.tries, "try", "tries")}: ${retrying.error}` : "";
  const counts = `${count(done)} done, ${count(waiting)} waiting, ${count(failed)} given up`;
  return tried ? `${tried}; ${counts}` : counts;
}

/** A table whose rows come from a status; the columns from `numeric` on are numbers. */
class Table {
  constructor(caption, columns, numeric, rows) {
    this.rows = rows;
    this.numeric = numeric;
    this.body = make("tbody");
    const head = columns.map((name, at) => make("th", { scope: "col", class: this.#kind(at) }, name));
    const table = make("table", {}, make("caption", {}, caption));
    table.append(make("thead", {}, make("tr", {}, ...head)), this.body);
    const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": caption };
    this.node = make("div", region, table);
  }

  update(status) {
    const rows = this.rows(status);
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    rows.forEach((cells, number) => {
      const row = this.body.rows[number] ?? this.#fresh(cells.length);
      cells.forEach((text, at) => say(row.cells[at], text));
    });
  }

  #fresh(cells) {
    const row = this.body.insertRow();
    row.append(make("th", { scope: "row" }));
    for (let at = 1; at < cells; at += 1) row.append(make("td", { class: this.#kind(at) }));
    return row;
  }

  #kind(at) {
    return at >= this.numeric ? "number" : "text";
  }
}
