// Questions to the daemon that serves this page. Only GET, only to where
// the page came from.

const KEY = "fingerpost-token";
/** Octets of an event at most; a longer one ends the stream. */
const MAX_EVENT = 1 << 20;
/** The daemon says something every 15 s; after this it is gone. */
const SILENCE_MILLIS = 40_000;
const RETRY_MILLIS = [1_000, 2_000, 5_000, 10_000];

/** An answer that is none. */
export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const settings = { netns: "", token: sessionStorage.getItem(KEY) ?? "" };

/** Asks about another namespace from now on. */
export function useNetns(name) {
  settings.netns = name;
}

/** Shows this token from now on; it is forgotten with the tab. */
export function useToken(token) {
  settings.token = token;
  sessionStorage.setItem(KEY, token);
}

/** The path and query of a question. Parameters that are lists are said several times. */
export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) query.append(key, one);
  }
  if (settings.netns) query.append("netns", settings.netns);
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

async function get(path, parameters, { signal, headers = {}, accept = "application/json" } = {}) {
  const all = { Accept: accept, ...headers };
  if (settings.token) all.Authorization = `Bearer ${settings.token}`;
  let response;
  try {
    response = await fetch(address(path, parameters), { headers: all, signal, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "the daemon does not answer");
  }
  if (!response.ok) throw new Problem(response.status, await complaint(response));
  return response;
}

async function complaint(response) {
  try {
    const said = await response.json();
    const words = said.error?.message ?? said.error ?? said.detail ?? said.message;
    if (typeof words === "string") return words;
  } catch {
    // No JSON: the status says what there is to say.
  }
  return `the daemon answered ${response.status}`;
}

/** The rows of a page: themselves, the cursor of the next page, when counters were read. */
export async function rows(path, parameters, options) {
  const response = await get(path, parameters, options);
  const link = response.headers.get("Link") ?? "";
  const next = /<([^>]*)>;\s*rel="next"/.exec(link);
  return {
    rows: await response.json(),
    next: next ? new URL(next[1], location.href).searchParams.get("after") : null,
    countersAt: Number(response.headers.get("Fingerpost-Counters-At")),
  };
}

/** The number of rows. */
export async function count(path, parameters, options) {
  const response = await get(path, { ...parameters, count: "" }, options);
  return Number.parseInt(await response.text(), 10) || 0;
}

/** Any JSON. */
export async function json(path, parameters, options) {
  return (await get(path, parameters, options)).json();
}

/**
 * Changes as they happen. Read by hand, not with EventSource, which cannot
 * show a token. Paused while nobody looks; goes on where it stopped.
 */
export class Changes {
  #last = null;
  #abort = null;
  #tries = 0;
  #timer = 0;
  #listener;

  /** `listener(kind, data)`: `added`, `changed`, `deleted`, `fell_behind`, and `state`. */
  constructor(listener) {
    this.#listener = listener;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#stop("paused");
      else this.#start();
    });
    if (!document.hidden) this.#start();
  }

  /** Begins anew: of another namespace, with another token. */
  restart() {
    this.#last = null;
    this.#stop("connecting");
    if (!document.hidden) this.#start();
  }

  /** Tries again at once. */
  retry() {
    if (!this.#abort && !document.hidden) this.#start();
  }

  #stop(state) {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
    this.#listener("state", { state });
  }

  async #start() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    try {
      await this.#read(abort);
      throw new Problem(0, "the daemon ended the stream of changes");
    } catch (error) {
      if (this.#abort !== abort) return;
      abort.abort();
      this.#abort = null;
      const wait = RETRY_MILLIS[Math.min(this.#tries, RETRY_MILLIS.length - 1)];
      this.#tries += 1;
      this.#listener("state", { state: "disconnected", problem: error, wait });
      this.#timer = setTimeout(() => this.#start(), wait);
    }
  }

  async #read(abort) {
    const headers = this.#last ? { "Last-Event-ID": this.#last } : {};
    const options = { signal: abort.signal, headers, accept: "text/event-stream" };
    const response = await get("/v1/changes", {}, options);
    this.#tries = 0;
    this.#listener("state", { state: "live" });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const silence = setTimeout(() => abort.abort(), SILENCE_MILLIS);
      const { value, done } = await reader.read().finally(() => clearTimeout(silence));
      if (done || this.#abort !== abort) return;
      text += value;
      const blocks = text.split("\n\n");
      text = blocks.pop();
      if (text.length > MAX_EVENT) throw new Problem(0, "an event without end");
      for (const block of blocks) this.#event(block);
    }
  }

  #event(block) {
    let kind = "";
    let data = "";
    for (const line of block.split("\n")) {
      const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (field === "id") this.#last = value;
      if (field === "event") kind = value;
      if (field === "data") data += value;
    }
    if (!kind || kind === "start") return;
    try {
      this.#listener(kind, JSON.parse(data));
    } catch (error) {
      console.error("a change cannot be read", error);
    }
  }
}
