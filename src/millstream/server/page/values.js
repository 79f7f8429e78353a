/**
 * A value as indented JSON, one element per line, so that changed lines can be marked.
 */

import { make } from "./dom.js";
import { counted } from "./format.js";

const MOST = 1000;

/** Returns the lines of a value, each with its path in the value, its text, and perhaps a comma. */
export function linesOf(value) {
  const lines = [];
  walk(value, "", "", "", lines);
  return lines;
}

function walk(value, path, indent, before, lines) {
  const open = Array.isArray(value) ? "[" : "{";
  const inner = isNode(value) ? Object.entries(value) : [];
  if (!inner.length) {
    lines.push({ path, text: `${indent}${before}${JSON.stringify(value)}`, comma: "" });
    return;
  }
  lines.push({ path: `${path}<`, text: `${indent}${before}${open}`, comma: "" });
  inner.forEach(([name, one], number) => {
    const label = open === "{" ? `${JSON.stringify(name)}: ` : "";
    walk(one, `${path}/${name}`, `${indent}  `, label, lines);
    if (number < inner.length - 1) lines.at(-1).comma = ",";
  });
  lines.push({ path: `${path}>`, text: `${indent}${open === "[" ? "]" : "}"}`, comma: "" });
}

function isNode(value) {
  return typeof value === "object" && value !== null && !JSON.isRawJSON?.(value);
}

/** A `pre` that shows one value after another, and marks the lines that differ. */
export class ValueView {
  constructor() {
    this.node = make("pre", { class: "json" });
    this.lines = null;
  }

  /** Starts with another value: nothing is marked. */
  reset() {
    this.lines = null;
    this.node.replaceChildren();
  }

  show(value) {
    const all = linesOf(value);
    const lines = all.slice(0, MOST);
    const before = new Map(this.lines?.map(({ path, text }) => [path, text]));
    const fresh = ({ path, text, comma }) => {
      const changed = this.lines && before.get(path) !== text;
      return make("span", { class: changed ? "line changed" : "line" }, `${text}${comma}\n`);
    };
    if (this.lines?.length === lines.length && this.total === all.length) {
      // Unchanged lines are not touched: a mark continues to fade, a selection is kept.
      lines.forEach((line, number) => {
        const old = this.lines[number];
        const same = old.path === line.path && old.text === line.text && old.comma === line.comma;
        if (!same) this.node.children[number].replaceWith(fresh(line));
      });
    } else {
      this.node.replaceChildren(...lines.map(fresh), ...rest(all.length - lines.length));
    }
    this.lines = lines;
    this.total = all.length;
  }
}

function rest(more) {
  if (!more) return [];
  return [make("span", { class: "line quiet" }, `… ${counted(more, "line")} more; open it as JSON\n`)];
}
