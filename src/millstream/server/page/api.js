/**
 * Asking the server: one JSON answer, or a stream of events that is kept open.
 *
 * Paths are relative, so the page also works behind a proxy that gives it a prefix. A stream is
 * closed while the tab is hidden: a browser has few connections to one server, and other tabs need
 * them too.
 */

const PATIENCE = 5000;
const AGAIN = 2000;

/** The server answered, and said no. */
export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

/** The server did not answer. */
export class NoAnswer extends Error {}

/** A path of segments and a query, each part escaped. */
export function path(segments, query = {}) {
  const asked = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  const way = segments.map(encodeURIComponent).join("/");
  return asked.length ? `${way}?${asked.join("&")}` : way;
}

/** The JSON at a path; NoAnswer or Refused if there is none. `signal` gives up early. */
export async function read(where, { signal, parse = JSON.parse } = {}) {
  const [answer, text] = await ask(where, signal);
  if (answer.ok) return parse(text);
  let sentence = `${answer.status} ${answer.statusText}`;
  try {
    sentence = JSON.parse(text).error ?? sentence;
  } catch {
    // Not ours: a proxy's page, perhaps.
  }
  throw new Refused(answer.status, sentence);
}

async function ask(where, given) {
  const limit = AbortSignal.timeout(PATIENCE);
  const signal = given ? AbortSignal.any([given, limit]) : limit;
  try {
    const answer = await fetch(where, { signal, headers: { Accept: "application/json" } });
    return [answer, await answer.text()];
  } catch (error) {
    throw new NoAnswer(error.message);
  }
}

/**
 * Follow server-sent events until `close()` is called. `events` maps a name to what is done with
 * the data and the id; `begun` is called whenever the stream starts anew rather than goes on.
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
    // The browser tries again by itself after a lost connection, but not after a refusal.
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
