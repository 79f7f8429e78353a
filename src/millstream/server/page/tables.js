/**
 * All numbers as tables: sources, streams and functions. The text alternative of the graph, and the
 * place to look closer. Cells are changed in place, so a selection or a screen reader is not lost.
 */

import { make, say } from "./dom.js";
import { NOTHING, bytes, count, exactTime, rate, span } from "./format.js";

export class Tables {
  constructor(host) {
    this.host = host;
    this.tables = [];
  }

  /** Begin anew for an application; what a stream connects is known from its description. */
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
    behind + size || NOTHING,
    one.highest === null ? NOTHING : exactTime(one.highest),
  ];
}

/** A table whose rows come from a status; its columns from `numeric` on are numbers. */
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
