/**
 * Creates and changes elements. Text is only ever inserted as text: a key or a value may hold any
 * characters, markup too, and none of it is parsed.
 */

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** Creates an HTML element with attributes and children; a string child becomes text. */
export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Creates an SVG element, in the same way. */
export function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** Changes attributes; those that are undefined or null are removed. */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
  return node;
}

/** Puts text into a node; a node that has this text already is not touched. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function filled(node, attributes, children) {
  set(node, attributes);
  node.append(...children);
  return node;
}
