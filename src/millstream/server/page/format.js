/**
 * Formats numbers, durations, times and values as short text. Nothing here touches the page.
 */

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
export const NOTHING = "–";

/** Formats a count: 1,204; from a hundred million on: 123.4M. */
export function count(number) {
  if (number === null || number === undefined) return NOTHING;
  return Math.abs(number) < 1e8 ? WHOLE.format(number) : COMPACT.format(number);
}

/** Formats a count and its noun: 1 slate, 1,204 slates. */
export function counted(number, noun, nouns = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : nouns}`;
}

/** Formats events per second: one decimal below 10. */
export function rate(number) {
  if (number === null || number === undefined) return NOTHING;
  if (number === 0 || number >= 10) return count(number);
  return number < 0.05 ? "<0.1" : number.toFixed(1);
}

/** Formats a duration as [number, unit], so that the unit can be shown smaller. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return [NOTHING, ""];
  if (seconds < 0.9995) return [(seconds * 1000).toFixed(seconds && seconds < 0.01 ? 1 : 0), "ms"];
  if (seconds < 99.95) return [seconds.toFixed(seconds < 9.995 ? 2 : 1), "s"];
  if (seconds < 5400) return [count(seconds / 60), "min"];
  return seconds < 172800 ? [count(seconds / 3600), "h"] : [count(seconds / 86400), "d"];
}

/** Formats bytes: 12.4 kB. */
export function bytes(number) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; number >= 1000 && unit < units.length - 1; unit += 1) number /= 1000;
  return `${unit && number < 100 ? number.toFixed(1) : WHOLE.format(number)} ${units[unit]}`;
}

/** Formats a time in microseconds in the local time zone; with its day unless that is today. */
export function time(microseconds, now = new Date()) {
  const at = new Date(Math.floor(microseconds / 1000));
  if (Number.isNaN(at.getTime())) return String(microseconds);
  const two = (number) => String(number).padStart(2, "0");
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  const exact = `${clock}.${String(at.getMilliseconds()).padStart(3, "0")}`;
  if (at.toDateString() === now.toDateString()) return exact;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}

/** Formats a time in full, in UTC, to the microsecond. */
export function exactTime(microseconds) {
  const at = new Date(Math.floor(microseconds / 1000));
  if (Number.isNaN(at.getTime())) return `${microseconds} µs`;
  const rest = ((microseconds % 1000) + 1000) % 1000;
  return at.toISOString().replace("Z", `${String(rest).padStart(3, "0")}Z`);
}

/** Formats a value on one line, shortened if it is long. */
export function line(value, most = 300) {
  const text = JSON.stringify(value) ?? "";
  return text.length <= most ? text : `${text.slice(0, most)}… (${counted(text.length, "character")})`;
}

/** Parses JSON so that numbers keep their digits: 64-bit integers do not fit JavaScript's own. */
export function exactJson(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (key, value, context) => {
    const lossy = typeof value === "number" && context && String(value) !== context.source;
    return lossy ? JSON.rawJSON(context.source) : value;
  });
}
