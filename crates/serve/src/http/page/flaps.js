// Which routes changed how often: of the source that is chosen, prefix by
// prefix, over the last hour or as far back as the daemon keeps changes.

import * as api from "./api.js";
import { byId, el, fill, grouped, plain, span } from "./dom.js";

/** Prefixes that are listed. */
const LISTED = 20;
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
    const told = await api.json("/v1/routes/flaps", { source: feed || "kernel", limit: LISTED });
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
  const head = ["Prefix", "Table", "Changes", "Added", "Changed", "Deleted", "Last", "Now"];
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
    );
  fill(
    byId("flaps"),
    el("thead", {}, el("tr", {}, ...head.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, ...prefixes.map(row)),
  );
}
