// Which routes changed how often: of the source that is chosen, prefix by
// prefix, over the last hour or as far back as the daemon keeps changes, with
// a line of time for each.

import * as api from "./api.js";
import { byId, el, fill, grouped, plain, span } from "./dom.js";
import { bars } from "./plot.js";

/** Prefixes that are listed. */
const LISTED = 20;
/** Parts of the hour that are drawn: minutes. */
const PARTS = 60;
/** Milliseconds between two questions: each is a pass over all that is kept. */
const AGAIN_MILLIS = 10_000;

let asked = 0;

/** Draws them if they can be seen, and it is time to. */
export async function drawFlaps(feed, now = Date.now()) {
  if (byId("changes").hidden || now - asked < AGAIN_MILLIS) return;
  asked = now;
  // Of what was chosen before, nothing is drawn any more.
  const isLatest = () => asked === now;
  try {
    const told = await api.json("/v1/routes/flaps", { source: feed || "kernel", limit: LISTED, parts: PARTS });
    if (isLatest()) draw(told);
  } catch (error) {
    if (isLatest()) byId("flaps-note").textContent = error.message;
  }
}

/** Another source, or another namespace: they are asked for at once. */
export function forgetFlaps() {
  asked = 0;
  fill(byId("flaps"));
  byId("flaps-note").textContent = "";
}

function draw({ source, secs, count, complete, known_since_millis: since, prefixes }) {
  const known = complete ? "" : `; changes before ${new Date(since).toLocaleTimeString()} may be forgotten`;
  byId("flaps-note").textContent = `${source}, over ${span(secs)}: ${grouped(count)} prefixes changed${known}`;
  const head = ["Prefix", "Table", "Changes", "Added", "Changed", "Deleted", "Last", "Now", "Over time"];
  const number = (value) => el("td", { class: "number" }, grouped(value));
  const row = (of) =>
    el(
      "tr",
      {},
      el("td", {}, el("bdi", {}, plain(of.dst))),
      el("td", {}, plain(of.table)),
      ...[of.changes, of.added, of.changed, of.deleted].map(number),
      el("td", {}, of.last_millis ? new Date(of.last_millis).toLocaleTimeString() : ""),
      el("td", {}, of.there ? "there" : "gone"),
      el("td", { class: "time" }, el("canvas", { role: "img", "aria-label": inWords(of.parts, secs) })),
    );
  fill(
    byId("flaps"),
    el("thead", {}, el("tr", {}, ...head.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, ...prefixes.map(row)),
  );
  // One scale for all: what is high in one line is high in the others.
  const most = Math.max(1, ...prefixes.flatMap((of) => of.parts));
  byId("flaps").querySelectorAll("canvas").forEach((canvas, at) => bars(canvas, prefixes[at].parts, most, left(since, secs)));
}

/** The share of the time, from its beginning, of which all may not be known. */
function left(since, secs) {
  return Math.min(1, Math.max(0, 1 - (Date.now() - since) / (secs * 1000)));
}

/** A line of time for who does not see it: how often in each quarter. */
function inWords(parts, secs) {
  const quarter = Math.ceil(parts.length / 4);
  const sums = [0, 1, 2, 3].map((at) => parts.slice(at * quarter, (at + 1) * quarter).reduce((sum, one) => sum + one, 0));
  return `changes in each quarter of the last ${span(secs)}: ${sums.join(", ")}`;
}
