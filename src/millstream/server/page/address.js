/**
 * The page's address says what it shows, so that links to it can be sent: #slate=UPDATE/KEY,
 * #tail=STREAM, #letter=NUMBER, #feed=CONSUMER. Each part is escaped.
 */

/** Returns the hash that leads to something. */
export function linkTo(kind, ...parts) {
  return `#${kind}=${parts.map(encodeURIComponent).join("/")}`;
}

/** Puts what is shown into the address, without a step in the browser's history. */
export function note(kind, ...parts) {
  history.replaceState(null, "", linkTo(kind, ...parts));
}

/** Returns the parts of the address if it leads to something of this kind; null if not. */
export function named(kind) {
  const [name, value] = splitOnce(location.hash.slice(1), "=");
  if (name !== kind || value === undefined) return null;
  try {
    return value.split("/").map(decodeURIComponent);
  } catch {
    return null; // not an address of this page
  }
}

/** Calls `act` whenever a link leads to something of this kind. */
export function onLink(kind, act) {
  window.addEventListener("hashchange", () => {
    const parts = named(kind);
    if (parts) act(...parts);
  });
}

function splitOnce(text, sign) {
  const at = text.indexOf(sign);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
