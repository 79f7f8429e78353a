/**
 * Texts about feeds: how often something happens, why a pair is on push or on pull, what a post
 * says. Nothing here touches the page.
 */

import { count, counted, line } from "./format.js";

const UNITS = [
  [1, "a second"],
  [60, "a minute"],
  [3600, "an hour"],
  [86400, "a day"],
];
/** Two rates are given in one unit if neither is more than this in it. */
const MOST_TIMES = 2000;
const LONGEST_TEXT = 600;
const LONGEST_NAME = 40;

/** Formats a number with two significant digits below 10: 0.04, 1.3, 12, 1,204. */
export function rough(number) {
  return number >= 10 ? count(number) : String(Number(number.toPrecision(2)));
}

/** Formats rates, all in one unit if that suits: 12 times an hour. */
export function often(...perSecond) {
  const some = perSecond.filter((rate) => rate > 0);
  const [least, most] = [Math.min(...some), Math.max(...some)];
  const one = unitOf(least);
  return perSecond.map((rate) => words(rate, most * one[0] < MOST_TIMES ? one : unitOf(rate)));
}

/** Returns the shortest unit in which something happens once or more. */
function unitOf(rate) {
  return UNITS.find(([seconds]) => rate * seconds >= 0.995) ?? UNITS.at(-1);
}

function words(rate, [seconds, unit]) {
  if (rate * seconds < 0.5) return `once in ${counted(Math.round(1 / (rate * 86400)), "day")}`;
  const times = rough(rate * seconds);
  return `${{ 1: "once", 2: "twice" }[times] ?? `${times} times`} ${unit}`;
}

/** Returns the cost of a push relative to a pull, or to a look, which pulls from all. */
export function costs(ratio, beside = "pull") {
  return `a push counts as ${rough(ratio)} ${beside}${rough(ratio) === "1" ? "" : "s"}`;
}

/**
 * Explains why an item was pushed or pulled: the decision on its pair, and the rates behind it.
 * Returns parts of a sentence: text, and names as `{ name }`, which may be in any script.
 *
 * `of` has the consumer, the producer, how the item was read, the policy, and if pairs are decided
 * one by one.
 */
export function why(reason, of) {
  return [...wayHere(reason, of), ...decision(reason, of)];
}

function wayHere({ side }, { how }) {
  if (how === side) return [];
  if (how === "pending") return [`Acknowledged, and not taken in yet; the pair is on ${side}: `];
  if (how === "pull") return ["Older than what was pushed, or still being pushed; the pair is on push: "];
  return ["Pushed before; the pair is on pull by now: "];
}

function decision({ side, query_rate: looks, event_rate: rate, ratio }, of) {
  if (of.policy !== "hybrid") return [`all pairs are on ${of.policy} here.`];
  const [consumer, producer] = [{ name: short(of.consumer) }, { name: short(of.producer) }];
  // Per consumer, the decision is for the whole feed, by all that comes into it (Lemma 2).
  const together = of.decide === "per-consumer";
  const [looking, writing] = often(looks, rate);
  return [
    consumer,
    looks > 0 ? ` looks ${looking}, ` : " is not known to look, ",
    ...(together ? ["all whom it follows post "] : [producer, " posts "]),
    rate > 0 ? `${writing}, ` : "nothing lately, ",
    `${costs(ratio, together ? "look" : "pull")}${verdict(side, looks, rate * ratio, of)}.`,
  ];
}

/** Returns what the other side would cost; `pulling` and `pushing` are costs, in pulls a second. */
function verdict(side, pulling, pushing, { latency, decide }) {
  if (!(pushing > 0 && pulling > 0)) return "";
  const [other, times] = side === "push" ? ["pulling", pulling / pushing] : ["pushing", pushing / pulling];
  if (times >= 1.05) return `: ${other} would cost ${rough(times)} times as much`;
  if (times > 0.95) return `: ${other} would cost the same`;
  if (latency && side === "push") return ": pulling would be cheaper, but reads must be fast";
  const when = decide === "per-consumer" ? "a feed changes side only when it is looked at, and" : "a pair changes side only";
  return `: ${other} would be cheaper now, but ${when} past a margin`;
}

/** Shortens a name to fit into a sentence. */
function short(name) {
  const signs = [...name];
  return signs.length <= LONGEST_NAME ? name : `${signs.slice(0, LONGEST_NAME - 1).join("")}…`;
}

/** Returns the text of a post, and the rest of it as JSON; each may be empty. */
export function content(value) {
  if (typeof value === "string") return { text: value, rest: "" };
  if (typeof value?.text !== "string") return { text: "", rest: line(value, 1000) };
  const { text, ...others } = value;
  return { text, rest: Object.keys(others).length ? line(others, 1000) : "" };
}

/** Returns the beginning of a long text, cut at a space if one is near; null if it is not long. */
export function beginning(text) {
  if (text.length <= LONGEST_TEXT * 1.2) return null;
  const cut = text.lastIndexOf(" ", LONGEST_TEXT);
  // Do not cut inside a surrogate pair.
  const end = cut > LONGEST_TEXT / 2 ? cut : LONGEST_TEXT - /[\uD800-\uDBFF]/.test(text[LONGEST_TEXT - 1]);
  return `${text.slice(0, end)} …`;
}
