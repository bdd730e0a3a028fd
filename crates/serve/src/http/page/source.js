// Where a list's rows come from. Few rows are loaded whole, and sorted here; many stay with the daemon, in its order, and come page by
// page as somebody looks at them.

import * as api from "./api.js";
import { compare } from "./dom.js";

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
  // A filter says its own states, or families.
  if (/(^|\s)-*(nud|state)\b/.test(parameters.filter)) delete all.state;
  const isOfOne = /(^|\s)-(-ipv)?[46](\s|$)/.test(parameters.filter);
  return table.families && !isOfOne ? [{ ...all, ipv4: "" }, { ...all, ipv6: "" }] : [all];
}

/** Asks each question. A filter with an address makes sense for its family only. */
async function each(table, parameters, ask) {
  const all = await Promise.allSettled(questions(table, parameters).map(ask));
  const good = all.filter((one) => one.status === "fulfilled");
  const bad = all.filter((one) => one.status === "rejected").map((one) => one.reason);
  const wrong = bad.find((reason) => reason.status !== 400) ?? (good.length === 0 ? bad[0] : null);
  if (wrong) throw wrong;
  return good.map((one) => one.value);
}

/** What asks for the rows of a feed, of a table that feeds have. */
export const fed = (table, feed) => (feed && table.isFed ? { source: feed } : {});

/** How many rows a table has with these parameters. */
export async function size(table, parameters, signal) {
  const all = await each(table, parameters, (question) => api.count(table.path, question, { signal }));
  return all.reduce((sum, one) => sum + one, 0);
}

/** Opens what fits the table and the filter, which the daemon reads as the command line does; of a feed's rows where `feed` names one. */
export async function open(table, filter, feed, signal) {
  const parameters = { ...(filter && { filter }), ...fed(table, feed) };
  const length = await size(table, parameters, signal);
  const source = length <= WHOLE ? new Whole(table, parameters) : new Paged(table, parameters, length);
  source.filter = filter;
  await source.load(signal);
  return source;
}

/** All rows, here. */
class Whole {
  sortable = true;
  filter = "";
  #rows = [];
  #shown = [];

  constructor(table, parameters) {
    this.table = table;
    this.parameters = parameters;
    this.order = { column: null, down: false };
  }

  async load(signal) {
    const all = await each(this.table, this.parameters, async (question) => {
      const { rows } = await api.rows(this.table.path, { ...question, limit: WHOLE }, { signal });
      if (this.table.families) {
        const isV6 = "ipv6" in question || /(^|\s)-(-ipv)?6(\s|$)/.test(question.filter);
        for (const row of rows) row.family = isV6 ? "IPv6" : "IPv4";
      }
      return rows;
    });
    this.#rows = all.flat();
    this.arrange();
  }

  /** Sorts anew. */
  arrange() {
    const column = this.table.all.find((one) => one.key === this.order.column);
    this.#shown = [...this.#rows];
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
  filter = "";
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
    const [question] = questions(this.table, this.parameters);
    const parameters = { ...question, limit: PAGE };
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
    this.#stale = this.#pages;
    this.#pages = new Map();
    if (this.length !== before) this.#cursors = new Map([[0, null]]);
    this.onload();
  }
}
