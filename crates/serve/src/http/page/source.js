// Where a list's rows come from. Few rows are loaded whole, and sorted and
// filtered here; many stay with the daemon, in its order, and come page by
// page as somebody looks at them.

import * as api from "./api.js";
import { compare } from "./dom.js";
import { parse, shown } from "./tables.js";

/** Rows that are loaded whole; more are not sorted here. */
export const WHOLE = 5_000;
/** Rows of a page. */
const PAGE = 200;
/** Pages that are kept: the page's memory is bounded whatever the table's. */
const PAGES = 64;
/** Cursors that are kept. */
const CURSORS = 20_000;

/** The parameters of the questions that make up a table: one, or one a family. */
function questions(table, parameters) {
  const all = { ...table.parameters, ...parameters };
  return table.families ? [{ ...all, ipv4: "" }, { ...all, ipv6: "" }] : [all];
}

/** How many rows a table has with these parameters. */
export async function size(table, parameters, signal) {
  let all = 0;
  for (const question of questions(table, parameters)) {
    all += await api.count(table.path, question, { signal });
  }
  return all;
}

/** Opens what fits the table and the filter. */
export async function open(table, filter, signal) {
  const all = await size(table, {}, signal);
  if (all <= WHOLE) {
    const source = new Whole(table, {});
    await source.load(signal);
    source.filter = filter;
    return source;
  }
  const { parameters, understood } = parse(table, filter);
  const few = understood === "" ? all : await size(table, parameters, signal);
  const source = few <= WHOLE ? new Whole(table, parameters) : new Paged(table, parameters, few);
  source.understood = understood;
  source.total = all;
  await source.load(signal);
  return source;
}

/** All rows, here. */
class Whole {
  sortable = true;
  understood = "";
  total = 0;
  filter = "";
  #rows = [];
  #shown = [];

  constructor(table, parameters) {
    this.table = table;
    this.parameters = parameters;
    this.order = { column: null, down: false };
  }

  async load(signal) {
    const all = [];
    for (const question of questions(this.table, this.parameters)) {
      const { rows } = await api.rows(this.table.path, { ...question, limit: WHOLE }, { signal });
      if (this.table.families) {
        for (const row of rows) row.family = "ipv6" in question ? "IPv6" : "IPv4";
      }
      all.push(...rows);
    }
    this.#rows = all;
    this.total = Math.max(this.total, all.length);
    this.arrange();
  }

  /** Sorts and filters anew. */
  arrange() {
    const wanted = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const columns = this.table.columns;
    const fits = (row) => {
      if (this.understood || wanted.length === 0) return true;
      const text = columns.map((column) => shown(column, row)).join(" ").toLowerCase();
      return wanted.every((word) => text.includes(word));
    };
    const column = columns.find((one) => one.key === this.order.column);
    this.#shown = this.#rows.filter(fits);
    if (column) {
      const sign = this.order.down ? -1 : 1;
      this.#shown.sort((a, b) => sign * compare(column.value(a), column.value(b)));
    }
  }

  /** Adds something to each row, and sorts by it if that is wanted. */
  amend(change) {
    this.#rows.forEach(change);
    if (["rx", "tx"].includes(this.order.column)) this.arrange();
  }

  get length() {
    return this.#shown.length;
  }

  row(at) {
    return this.#shown[at];
  }

  want() {}

  refresh(signal) {
    return this.load(signal);
  }
}

/** Rows that stay with the daemon: a window into them. */
class Paged {
  sortable = false;
  understood = "";
  total = 0;
  order = { column: null, down: false };
  onload = () => {};
  onproblem = () => {};
  #pages = new Map();
  /** What was there before the last refresh: shown until the new is here. */
  #stale = new Map();
  #cursors = new Map([[0, null]]);
  #wanted = [];
  #loading = null;

  constructor(table, parameters, length) {
    this.table = table;
    this.parameters = parameters;
    this.length = length;
  }

  async load(signal) {
    await this.#page(0, signal);
  }

  row(at) {
    const page = Math.floor(at / PAGE);
    return (this.#pages.get(page) ?? this.#stale.get(page))?.[at % PAGE];
  }

  /** Says which rows are looked at now: what is missing of them comes soon. */
  want(first, last) {
    const pages = [];
    for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page += 1) {
      if (!this.#pages.has(page)) pages.push(page);
    }
    this.#wanted = pages;
    if (!this.#loading) this.#work();
  }

  async #work() {
    while (this.#wanted.length > 0) {
      const page = this.#wanted.shift();
      this.#loading = new AbortController();
      try {
        await this.#page(page, this.#loading.signal);
        this.onload();
      } catch (error) {
        if (error.name !== "AbortError") this.onproblem(error);
        this.#wanted = [];
      } finally {
        this.#loading = null;
      }
    }
  }

  /** Asks for a page: after the nearest cursor that is known, the rest passed over. */
  async #page(page, signal) {
    let known = page;
    while (!this.#cursors.has(known)) known -= 1;
    const after = this.#cursors.get(known);
    const parameters = { ...this.table.parameters, ...this.parameters, limit: PAGE };
    if (page > known) parameters.skip = (page - known) * PAGE;
    if (after) parameters.after = after;
    const { rows, next } = await api.rows(this.table.path, parameters, { signal });
    this.#stale.delete(page);
    this.#pages.delete(page);
    this.#pages.set(page, rows);
    if (next && this.#cursors.size < CURSORS) this.#cursors.set(page + 1, next);
    if (rows.length < PAGE && !next) this.#endsAt(page * PAGE + rows.length);
    if (this.#pages.size > PAGES) this.#pages.delete(this.#pages.keys().next().value);
  }

  /** The table is shorter or longer than was counted: rows came and went meanwhile. */
  #endsAt(length) {
    if (length > 0) this.length = length;
  }

  /** Counts and loads anew what is looked at. Cursors are kept: they are keys, not numbers. */
  async refresh(signal) {
    const before = this.length;
    this.length = await size(this.table, this.parameters, signal);
    this.total += this.length - before;
    this.#stale = this.#pages;
    this.#pages = new Map();
    if (this.length !== before) this.#cursors = new Map([[0, null]]);
    this.onload();
  }
}
