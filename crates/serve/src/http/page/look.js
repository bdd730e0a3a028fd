// How the page looks: its theme, and the list of its keys.

import { byId, el, fill } from "./dom.js";

const KEYS = [
  ["/", "filter"],
  ["o", "overview"],
  ["1 … 7", "links, addresses, neighbours, routes, next hops, rules, forwarding"],
  ["c", "changes"],
  ["↑ ↓ PgUp PgDn", "in a table: rows and pages"],
  ["Home End m", "in a table: the first, the last, the middle row"],
  ["g", "go to a row by its number, or to a share such as 25%"],
  ["k", "in a table: which columns are shown"],
  ["Enter", "in a table: what is known of a row, and what points to it"],
  ["Esc", "close, or drop the filter"],
  ["t", "theme: as the system, light, dark"],
  ["?", "this list"],
];

const THEMES = ["system", "light", "dark"];
let drawn = () => {};
const isDark = matchMedia("(prefers-color-scheme: dark)");
isDark.addEventListener("change", () => applyTheme());

/** Applies the theme; `then` draws what does not follow by itself. */
export function applyTheme(then = drawn) {
  drawn = then;
  const wanted = localStorage.getItem("fingerpost-theme") ?? "system";
  const dark = wanted === "dark" || (wanted === "system" && isDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = { system: "Auto", light: "Light", dark: "Dark" }[wanted];
  byId("theme").setAttribute("aria-label", `Theme: ${wanted}`);
  drawn();
}

/** The next theme of the three. */
export function nextTheme() {
  const now = THEMES.indexOf(localStorage.getItem("fingerpost-theme") ?? "system");
  localStorage.setItem("fingerpost-theme", THEMES[(now + 1) % THEMES.length]);
  applyTheme();
}

/** Lists the keys. */
export function showHelp() {
  const list = el("dl", {}, KEYS.flatMap(([keys, what]) => [el("dt", {}, keys.split(" ").flatMap((key) => [el("kbd", {}, key), " "])), el("dd", {}, what)]));
  const close = el("form", { method: "dialog" }, el("p", {}, el("button", {}, "Close")));
  fill(byId("help"), el("h2", { id: "help-title" }, "Keys"), list, close);
  byId("help").showModal();
}
