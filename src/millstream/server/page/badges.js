/**
 * Badges that say in a word or two what needs attention at a node of the graph: from a status, by
 * the node's id. The single node of a job or of feeds has the badges of its functions and sources.
 */

import { count } from "./format.js";

/** Returns a function from a node's id to its badges: {level, text}, the most serious first. */
export function badgesByNode(status) {
  const own = new Map();
  for (const source of status.sources) own.set(`s:${source.name}`, sourceBadges(source));
  for (const one of status.functions) own.set(`f:${one.name}`, functionBadges(one));
  for (const output of status.outputs) own.set(`o:${output.name}`, outputBadges(output));
  for (const action of status.actions) {
    const all = [...(own.get(`o:${action.name}`) ?? []), ...actionBadges(action)];
    own.set(`o:${action.name}`, all);
  }
  return (id) => worded(id.startsWith("p:") ? partBadges(id.slice(2), own, status) : own.get(id) ?? []);
}

const bad = (what, number = 0) => ({ level: "bad", what, number });
const warn = (what, number = 0) => ({ level: "warning", what, number });

function sourceBadges({ dead_letters: dead, lag_growth: growth, lost }) {
  const badges = [];
  if (dead) badges.push(bad("dead", dead));
  if (lost) badges.push(bad("lost", lost));
  if (growth > 0) badges.push(warn("lag grows"));
  return badges;
}

function functionBadges({ dead_letters: dead, waiting, deliveries }) {
  const badges = [];
  if (dead) badges.push(bad("dead", dead));
  if (deliveries.dropped) badges.push(warn("dropped", deliveries.dropped));
  if (deliveries.late) badges.push(warn("late", deliveries.late));
  if (waiting) badges.push({ level: "note", what: "waiting", number: waiting });
  return badges;
}

function outputBadges({ error }) {
  return error === null ? [] : [bad("failing")];
}

function actionBadges({ retrying, trouble, waiting, failed }) {
  const badges = [];
  if (trouble || retrying) badges.push(bad("failing"));
  if (failed) badges.push(bad("given up", failed));
  if (waiting) badges.push({ level: "note", what: "waiting", number: waiting });
  return badges;
}

function partBadges(name, own, { jobs }) {
  const inside = [...own].filter(([id]) => id[0] !== "o" && id.slice(2).startsWith(`${name}.`));
  const badges = inside.flatMap(([, of]) => of);
  const job = jobs[name];
  if (job?.silent.length) badges.push(bad("silent", job.silent.length));
  const dead = Object.values(job?.nodes ?? {}).reduce((total, node) => total + node.dead, 0);
  if (dead) badges.push(bad("dead", dead));
  return badges;
}

/** Writes badges as text; equal ones of several functions are added up. */
function worded(badges) {
  const sums = new Map();
  for (const { level, what, number } of badges) {
    sums.set(what, { level, number: number + (sums.get(what)?.number ?? 0) });
  }
  const rank = ["bad", "warning", "note"];
  return [...sums]
    .map(([what, { level, number }]) => ({ level, text: number ? `${count(number)} ${what}` : what }))
    .sort((one, other) => rank.indexOf(one.level) - rank.indexOf(other.level));
}
