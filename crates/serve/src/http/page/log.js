// The latest changes, kept and listed.

import { byId, el, fill, plain } from "./dom.js";
import { shown } from "./tables.js";

/** Changes that are kept. */
const KEPT = 500;
/** Of them in the list, and in the overview. */
const LISTED = 200;
const RECENT = 8;
/** Milliseconds from a change to the lists. */
const DRAW_MILLIS = 250;

export class Log {
  #events = [];
  #held = false;
  #timer = 0;

  /** `open(table, row)` shows a row. */
  constructor(open) {
    this.open = open;
    byId("hold").addEventListener("click", () => this.#hold());
  }

  /** Keeps a change of a table's row. */
  change(event, of, row) {
    if (!this.#held) this.#keep({ at: new Date(row.time_millis), event, of, row });
  }

  /** Keeps a note. */
  note(event, text) {
    this.#keep({ event, text });
  }

  forget() {
    this.#events.length = 0;
    this.draw();
  }

  #keep(event) {
    this.#events.unshift({ at: new Date(), ...event });
    if (this.#events.length > KEPT) this.#events.pop();
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.draw();
    }, DRAW_MILLIS);
  }

  #hold() {
    this.#held = !this.#held;
    byId("hold").setAttribute("aria-pressed", String(this.#held));
    byId("hold").textContent = this.#held ? "Go on" : "Hold still";
    this.draw();
  }

  /** Draws the lists that can be seen. */
  draw() {
    if (!byId("changes").hidden) {
      this.#fill(byId("events"), LISTED);
      byId("changes-note").textContent = this.#held ? "held still" : "as they happen, the latest first";
    }
    if (!byId("overview").hidden) this.#fill(byId("recent"), RECENT);
  }

  #fill(list, many) {
    const lines = this.#events.slice(0, many).map((event) => this.#line(event));
    fill(list, lines.length > 0 ? lines : el("li", { class: "nothing" }, "nothing has changed since this page was opened"));
  }

  #line({ at, event, of, row, text }) {
    const differences = row?.before ? differing(row.before, row) : [];
    const open = () => this.open(of, row);
    const what = of
      ? el("button", { type: "button", class: "to mono", onclick: open }, el("bdi", {}, described(of, row)))
      : el("span", {}, plain(text));
    return el(
      "li",
      {},
      el("time", {}, at.toLocaleTimeString("en-GB")),
      el("span", { class: event }, event.replace("_", " ")),
      el("span", { class: "object" }, of?.title ?? ""),
      what,
      differences.length > 0 ? el("div", { class: "former" }, differences.flatMap(told)) : null,
    );
  }
}

/** What only an event has, and no row. */
const OF_EVENTS = ["event", "object", "time_millis", "before"];
/** Differences that are named; the row itself shows all. */
const NAMED = 4;

/** Fields in which two rows differ, nested ones by their whole name. */
export function differing(before, after, path = "") {
  const keys = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const all = [...keys].filter((key) => path || !OF_EVENTS.includes(key)).flatMap((key) => {
    const [was, is] = [before?.[key], after?.[key]];
    const name = path ? `${path}.${key}` : key;
    const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
    if (isObject(was) && isObject(is)) return differing(was, is, name);
    return JSON.stringify(was) === JSON.stringify(is) ? [] : [{ name, was, is }];
  });
  return all.slice(0, NAMED);
}

function told({ name, was, is }, at) {
  const value = (one) => plain(one === undefined ? "none" : typeof one === "object" ? JSON.stringify(one) : one);
  return [at > 0 ? "; " : "", `${name} `, el("bdi", {}, value(was)), " → ", el("b", {}, el("bdi", {}, value(is)))];
}

/** A row in one line: its most important columns. */
function described(of, row) {
  const columns = of.usual.filter((column) => column.keep < 4 && !["rx", "tx", "past"].includes(column.key));
  return columns.map((column) => shown(column, row)).filter(Boolean).join("  ");
}
