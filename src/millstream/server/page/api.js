/**
 * Requests to the server: one JSON answer, or a stream of events that is kept open.
 *
 * Paths are relative, so the page also works behind a proxy that adds a prefix. A stream is closed
 * while the tab is hidden: a browser has few connections to one server, and other tabs need them.
 */

const PATIENCE = 5000;
const AGAIN = 2000;

/** The server answered with a refusal. */
export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

/** The server did not answer. */
export class NoAnswer extends Error {}

/** Joins segments and a query into a path, each part escaped. */
export function path(segments, query = {}) {
  const asked = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  const way = segments.map(encodeURIComponent).join("/");
  return asked.length ? `${way}?${asked.join("&")}` : way;
}

/** Reads the JSON at a path; throws NoAnswer or Refused. `signal` aborts the request. */
export async function read(where, { signal, parse = JSON.parse } = {}) {
  return answered(await ask(where, signal), parse);
}

/** Sends JSON to a path; returns the JSON of the answer. */
export async function send(where, body) {
  const headers = { "Content-Type": "application/json" };
  const request = { method: "POST", headers, body: JSON.stringify(body) };
  return answered(await ask(where, undefined, request), JSON.parse);
}

function answered([answer, text], parse) {
  if (answer.ok) return parse(text);
  let sentence = `${answer.status} ${answer.statusText}`;
  try {
    sentence = JSON.parse(text).error ?? sentence;
  } catch {
    // Not an answer of the server: a proxy's error page, perhaps.
  }
  throw new Refused(answer.status, sentence);
}

async function ask(where, given, request = {}) {
  const limit = AbortSignal.timeout(PATIENCE);
  const signal = given ? AbortSignal.any([given, limit]) : limit;
  try {
    const headers = { Accept: "application/json", ...request.headers };
    const answer = await fetch(where, { ...request, signal, headers });
    return [answer, await answer.text()];
  } catch (error) {
    throw new NoAnswer(error.message);
  }
}

/**
 * Follows server-sent events until `close()` is called. `events` maps a name to a function of the
 * data and the id. `begun` is called whenever the stream starts over instead of continuing.
 */
export function follow(where, events, begun = () => {}) {
  let source = null;
  let timer = 0;

  function open() {
    clearTimeout(timer);
    if (document.hidden || source) return;
    begun();
    source = new EventSource(where);
    for (const [name, act] of Object.entries(events)) {
      source.addEventListener(name, (event) => act(event.data, event.lastEventId));
    }
    // The browser itself retries after a lost connection, but not after a refusal.
    source.addEventListener("error", () => {
      if (source?.readyState === EventSource.CLOSED) {
        drop();
        timer = setTimeout(open, AGAIN);
      }
    });
  }

  function drop() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  const turn = () => (document.hidden ? drop() : open());
  document.addEventListener("visibilitychange", turn);
  open();
  return {
    close() {
      document.removeEventListener("visibilitychange", turn);
      drop();
    },
  };
}
