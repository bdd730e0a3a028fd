// The page: which part is shown, by the address after `#`; what keys do;
// what happens when something changes.

import * as api from "./api.js";
import { showColumns } from "./chooser.js";
import { Detail } from "./detail.js";
import { byId, el, fill, grouped, octets, plain, span } from "./dom.js";
import { drawFlaps, forgetFlaps } from "./flaps.js";
import { Grid } from "./grid.js";
import { Log } from "./log.js";
import { applyTheme, nextTheme, showHelp } from "./look.js";
import { drawNat } from "./nat.js";
import { drawOverview, drawTiles } from "./overview.js";
import { Past, STEP } from "./past.js";
import { open as openSource } from "./source.js";
import { Suggest } from "./suggest.js";
import { table, TABLES } from "./tables.js";

/** Milliseconds from a change to the list that shows it, for few rows and for many. */
const REFRESH_MILLIS = { whole: 700, paged: 2_500 };
/** Milliseconds from the last letter of a filter to its question. */
const TYPING_MILLIS = 150;

const past = new Past();
let current = { part: "overview", filter: "" };
let source = null;
/** Whose routes and next hops are shown: a feed's name, or "" for the kernel's. */
let feed = "";
let shownTable = null;
let opening = null;
let refreshTimer = 0;
let refreshedAt = 0;

// ---- what is shown -------------------------------------------------------

const grid = new Grid({
  open: (row) => showDetail(shownTable, row),
  sort: (column) => sortBy(column),
  moved: () => {
    byId("position").textContent = grid.position;
  },
});

const detail = new Detail({
  closed: () => {},
  open: (of, row) => showDetail(of, row),
});

// Changes are the kernel's.
const log = new Log((of, row) => showDetail(of, row, ""));

function showDetail(of, row, from = feed) {
  if (of.id === "links") row.rates = past.rates.get(row.ifname);
  detail.show(of, row, from);
}

/** The part and the filter that an address names: `#/routes?10.1`. */
function place() {
  // A step within the document (to its main part) is none to another.
  if (location.hash && !location.hash.startsWith("#/")) return current;
  const [part, filter] = location.hash.replace(/^#\/?/, "").split("?");
  let text = "";
  try {
    text = decodeURIComponent(filter ?? "");
  } catch {
    // Half of an escape: no filter.
  }
  return { part: part || "overview", filter: text };
}

function go(part, filter = "") {
  const hash = `#/${part}${filter ? `?${encodeURIComponent(filter)}` : ""}`;
  if (location.hash !== hash) history.pushState(null, "", hash);
  show();
}

function show() {
  current = place();
  const { part, filter } = current;
  const of = TABLES.find((one) => one.id === part);
  const name = of ? "list" : part === "changes" ? "changes" : "overview";
  for (const id of ["overview", "list", "changes"]) byId(id).hidden = id !== name;
  for (const link of byId("nav").children) {
    if (link.dataset.part === (of ? of.id : name)) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else {
      link.removeAttribute("aria-current");
    }
  }
  const title = of?.title ?? (name === "changes" ? "Changes" : "Overview");
  entitle(title);
  if (of) showList(of, filter);
  else shownTable = null;
  drawOverview(past);
  log.draw();
  drawFlaps(feed);
}

/** Whose tables they are stands in the title, for who has many of them open. */
function entitle(title) {
  document.title = [title, plain(byId("netns").value || past.status?.netns || ""), plain(past.status?.host ?? ""), "Fingerpost"].filter(Boolean).join(" · ");
}

async function showList(of, filter) {
  const isNew = of !== shownTable;
  shownTable = of;
  byId("list-title").textContent = of.title;
  drawFeeds();
  // A space behind a word is somebody who goes on.
  if (byId("filter").value.trim() !== filter) byId("filter").value = filter;
  if (isNew) detail.close();
  opening?.abort();
  opening = new AbortController();
  const { signal } = opening;
  if (isNew) {
    source = null;
    byId("position").textContent = "loading …";
    byId("hint").textContent = "";
  }
  try {
    const opened = await openSource(of, filter, feed, signal);
    if (signal.aborted) return;
    // Another filter is no other order.
    if (!isNew && source?.sortable && opened.sortable) {
      opened.order = source.order;
      opened.arrange();
    }
    source = opened;
    source.onproblem = complain;
    addRates();
    grid.show(source);
    say();
    settled();
  } catch (error) {
    if (error.name === "AbortError") return;
    // A filter that is half typed is no trouble.
    if (error.status === 400 || error.status === 404) byId("hint").textContent = error.message;
    else complain(error);
  }
}

/** Says what is asked for, and what sorts. */
function say() {
  const parts = [];
  document.querySelector(".jumps").hidden = source.length <= 200;
  if (feed && shownTable.isFed) parts.push(`Told by ${feed}, whether the kernel has it or not.`);
  if (source.filter) parts.push(`The daemon is asked for: ${source.filter}.`);
  if (source.length === 0) parts.push("No row fits.");
  if (!source.sortable) {
    parts.push(
      `${grouped(source.length)} rows stay with the daemon, in its order (by table and prefix, or by link and address); 5,000 and fewer can be sorted.`,
    );
  }
  parts.push(`A filter is what stands behind \`fingerpost ${shownTable.object} show\`, like ${shownTable.example}.`);
  byId("hint").textContent = parts.join(" ");
}

function sortBy(column) {
  const { order } = source;
  if (order.column !== column.key) source.order = { column: column.key, down: Boolean(column.number) };
  else if (order.down === Boolean(column.number)) source.order = { column: column.key, down: !order.down };
  else source.order = { column: null, down: false };
  source.arrange();
  grid.changed();
}

/** Lets somebody choose columns. Some are asked for with more parameters. */
function chooseColumns() {
  const of = shownTable;
  if (!of) return;
  const asked = () => JSON.stringify(of.parameters);
  let before = asked();
  showColumns(of, () => {
    if (of !== shownTable) return;
    if (asked() !== before) showList(of, current.filter);
    else if (source) grid.changed();
    before = asked();
  });
}

function addRates() {
  if (shownTable?.id !== "links" || !source?.sortable) return;
  source.amend((row) => {
    row.rates = past.rates.get(row.ifname);
    row.past = past.pasts.get(row.ifname);
  });
}

// ---- changes -------------------------------------------------------------

const changes = new api.Changes((kind, data) => {
  if (kind === "state") return showState(data);
  if (kind === "fell_behind") {
    log.note(kind, "changes came faster than they could be told; the tables are asked again");
    return refreshSoon();
  }
  const of = table(data.object);
  if (!of) return undefined;
  past.count(of.id);
  log.change(kind, of, data);
  if (of === shownTable) {
    grid.mark(String(of.key(data)));
    refreshSoon();
  }
  return undefined;
});

/** Asks again for what is shown: soon, and not too often. */
function refreshSoon() {
  if (refreshTimer || !source) return;
  const pause = source.sortable ? REFRESH_MILLIS.whole : REFRESH_MILLIS.paged;
  const wait = Math.max(100, refreshedAt + pause - performance.now());
  refreshTimer = setTimeout(refresh, wait);
}

async function refresh() {
  clearTimeout(refreshTimer);
  refreshTimer = 0;
  refreshedAt = performance.now();
  const of = source;
  if (!of || document.hidden) return;
  try {
    await of.refresh();
    if (source !== of) return;
    addRates();
    grid.changed();
    say();
    settled();
  } catch (error) {
    if (error.name !== "AbortError") complain(error);
  }
}

// ---- state and trouble ---------------------------------------------------

function showState({ state, problem, wait }) {
  const words = {
    live: "live",
    connecting: "connecting …",
    paused: "paused: nobody looks",
    disconnected: `disconnected: ${problem?.message ?? ""}; trying again in ${Math.round((wait ?? 0) / 1000)} s`,
  };
  const line = byId("state");
  line.dataset.state = state;
  line.textContent = state === "disconnected" ? "disconnected" : words[state];
  line.title = words[state];
  if (state === "disconnected") complain(problem, words.disconnected);
  if (state === "live") {
    settled();
    if (source) refreshSoon();
    if (!past.status) look();
  }
}

function complain(problem, text = problem.message) {
  if (problem.status === 401) askForToken();
  const line = byId("problem");
  line.hidden = false;
  line.textContent = problem.status === 401 ? "the daemon asks for a token" : text;
}

function settled() {
  if (byId("state").dataset.state === "live") byId("problem").hidden = true;
}

function askForToken() {
  const dialog = byId("token");
  if (!dialog.open) dialog.showModal();
}

byId("token-form").addEventListener("submit", () => {
  api.useToken(byId("token-text").value.trim());
  byId("token-text").value = "";
  changes.restart();
  show();
});

// The keyboard begins at the page's start again, not behind the dialog.
byId("token").addEventListener("close", () => document.querySelector(".skip").focus());

// ---- the overview --------------------------------------------------------

function drawNav() {
  const item = (part, title, rows) =>
    el("a", { href: `#/${part}`, "data-part": part }, title, el("span", { id: `rows-${part}` }, rows));
  fill(byId("nav"), item("overview", "Overview", ""), TABLES.map((of) => item(of.id, of.title, "")), item("changes", "Changes", ""));
}

byId("traffic-link").addEventListener("change", (event) => {
  past.plot(event.target.value);
  drawOverview(past);
});

/** Says that rows may be missing, wherever one looks. */
function showLacking({ mirror, feeders }) {
  const lacking = feeders.filter((feeder) => !feeder.complete).map((feeder) => `source ${feeder.name} is ${feeder.phase}`);
  if (!mirror.complete) lacking.unshift(`the daemon's tables are ${mirror.phase}`);
  const line = byId("lacking");
  line.hidden = lacking.length === 0;
  line.textContent = `Rows may be missing: ${lacking.join("; ")}.`;
}

let looking = false;
async function look() {
  if (document.hidden || looking) return;
  looking = true;
  try {
    await past.look();
  } catch (error) {
    if (error.status === 401) askForToken();
    return;
  } finally {
    looking = false;
  }
  const { status } = past;
  showLacking(status);
  byId("host").textContent = plain([status.host, status.netns].filter(Boolean).join(" · "));
  byId("host").title = byId("host").textContent;
  entitle(document.title.split(" · ")[0]);
  byId("about").textContent = `${status.version}, ${status.mirror.phase}, up ${span(status.uptime_secs)}, memory ${octets(status.resident_bytes)}, generation ${grouped(status.generation)}`;
  for (const of of TABLES) byId(`rows-${of.id}`).textContent = grouped(past.sizes.get(of.id).at(-1) ?? 0);
  drawNamespaces(status.namespaces ?? []);
  drawFeeds();
  addRates();
  drawOverview(past);
  drawNat(status);
  drawFlaps(feed);
  if (shownTable?.id === "links" && source?.sortable) grid.draw();
  if (shownTable?.isSampled || (shownTable?.isFed && hasFeedMoved())) refreshSoon();
}

function drawNamespaces(names) {
  const choice = byId("netns");
  byId("netns-label").hidden = names.length < 2;
  if (choice.options.length === names.length) return;
  fill(choice, names.map((name) => el("option", { value: name ?? "" }, plain(name ?? "own"))));
}

/** Who else than the kernel tells routes and next hops, where anybody does. */
function drawFeeds() {
  const names = (past.status?.feeders ?? []).map((one) => one.name);
  const choice = byId("source");
  byId("source-label").hidden = names.length === 0 || !shownTable?.isFed;
  if (feed && !names.includes(feed)) chooseFeed("");
  const all = ["", ...names];
  choice.value = feed;
  if (String(all) === String([...choice.options].map((one) => one.value))) return;
  fill(choice, all.map((name) => el("option", { value: name }, plain(name || "kernel"))));
  choice.value = feed;
}

let feedBefore = "";
/** Whether the chosen feed has told anything since the last look: it is no change of the kernel's, which come by themselves. */
function hasFeedMoved() {
  const now = JSON.stringify(past.status.feeders.find((one) => one.name === feed) ?? "");
  const hasMoved = now !== feedBefore;
  feedBefore = now;
  return hasMoved;
}

function chooseFeed(name) {
  feed = name;
  forgetFlaps();
  if (!shownTable?.isFed) return;
  source = null;
  showList(shownTable, current.filter);
}

byId("source").addEventListener("change", (event) => chooseFeed(event.target.value));

byId("netns").addEventListener("change", (event) => {
  api.useNetns(event.target.value);
  feed = "";
  past.forget();
  log.forget();
  forgetFlaps();
  source = null;
  shownTable = null;
  changes.restart();
  show();
  look();
});

// ---- keys, theme, help ---------------------------------------------------

function jump(text) {
  if (!source) return;
  const share = /^(\d+(?:\.\d+)?)\s*%$/.exec(text.trim());
  const row = share ? Math.round((Number(share[1]) / 100) * (source.length - 1)) : Number(text.replace(/[,\s]/g, "")) - 1;
  if (Number.isFinite(row)) grid.go(row);
}

const SHORTCUTS = {
  "/": () => (byId("list").hidden ? go("routes") : byId("filter").focus()),
  "?": showHelp,
  o: () => go("overview"),
  c: () => go("changes"),
  t: nextTheme,
  g: () => !byId("list").hidden && byId("to-row").focus(),
  m: () => !byId("list").hidden && jump("50%"),
  k: chooseColumns,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input, select, textarea")) return;
  if (event.key === "Escape" && detail.isOpen) {
    detail.close();
  } else if (event.key in SHORTCUTS) {
    SHORTCUTS[event.key]();
    event.preventDefault();
  } else if (/^[1-7]$/.test(event.key)) {
    go(TABLES[Number(event.key) - 1].id);
    byId("grid").focus();
    event.preventDefault();
  }
});

const suggest = new Suggest({
  table: () => shownTable,
  taken: () => byId("filter").dispatchEvent(new Event("input")),
});

let typing = 0;
byId("filter").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const text = byId("filter").value.trim();
    history.replaceState(null, "", `#/${shownTable.id}${text ? `?${encodeURIComponent(text)}` : ""}`);
    showList(shownTable, text);
  }, TYPING_MILLIS);
});
byId("filter").addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    byId("filter").value = "";
    byId("filter").dispatchEvent(new Event("input"));
    byId("grid").focus();
  } else if (event.key === "ArrowDown") {
    byId("grid").focus();
    event.preventDefault();
  }
});
byId("filter-form").addEventListener("submit", (event) => {
  event.preventDefault();
  byId("grid").focus();
});
byId("to-first").addEventListener("click", () => jump("1"));
byId("to-middle").addEventListener("click", () => jump("50%"));
byId("to-last").addEventListener("click", () => jump("100%"));
byId("to-row").addEventListener("keydown", (event) => {
  if (event.key === "Enter") jump(byId("to-row").value);
  if (event.key !== "Enter" && event.key !== "Escape") return;
  byId("grid").focus();
});
byId("columns-button").addEventListener("click", chooseColumns);
byId("theme").addEventListener("click", () => nextTheme());
byId("help-button").addEventListener("click", showHelp);
window.addEventListener("hashchange", show);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    look();
    refreshSoon();
  }
});

drawNav();
drawTiles();
applyTheme(() => drawOverview(past));
show();
look();
setInterval(look, STEP * 1000);
