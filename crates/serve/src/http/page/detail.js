// One row with all that is known of it, and what points to it.

import * as api from "./api.js";
import { byId, el, fill, grouped, plain, short } from "./dom.js";
import { fed } from "./source.js";
import { shown, table } from "./tables.js";

/** Rows of each list; more are a step away in the tables. */
const ROWS = 25;

/** The row itself is among those asked for, and is left out of the list. */
const ITSELF = true;

/** What may point to a row, by table: title, table, parameters, whether the row is among them. */
const POINTING = {
  links: (row) => [
    ["Addresses", "addresses", { dev: row.ifname }],
    ["Neighbours", "neighbours", { dev: row.ifname, state: "all" }],
    ["Routes over it", "routes", { dev: row.ifname, table: "all" }],
    ["Next hops over it", "nexthops", { dev: row.ifname }],
    ["Links in it", "links", { master: row.ifname }],
    ["Forwarding entries", "fdb", { dev: row.ifname }],
  ],
  addresses: (row) => [
    ["Link", "links", { dev: row.ifname }],
    ["Routes from it", "routes", { src: row.addr_info[0].local, table: "all" }],
    ["Neighbours in its prefix", "neighbours", { to: net(row.addr_info[0]), dev: row.ifname, state: "all" }],
  ],
  neighbours: (row) => [
    ["Routes via it", "routes", { via: row.dst, table: "all" }],
    ["Next hops via it", "nexthops", { via: row.dst }],
    ["Others with its MAC", "neighbours", row.lladdr ? { mac: row.lladdr, state: "all" } : null, ITSELF],
    ["Where its MAC is", "fdb", row.lladdr ? { mac: row.lladdr } : null],
    ["Link", "links", row.dev ? { dev: row.dev } : null],
  ],
  routes: (row) => [
    ["Same prefix", "routes", prefixed("exact", row), ITSELF],
    ["Covered by", "routes", isDefault(row) ? null : prefixed("covering", row), ITSELF],
    ["More precise", "routes", isDefault(row) ? null : prefixed("to", row), ITSELF],
    ...gateways(row).map((gateway) => [`Neighbour ${gateway}`, "neighbours", { to: gateway, state: "all" }]),
    ...devices(row).map((dev) => [`Link ${dev}`, "links", { dev }]),
    ["Next hop", "nexthops", row.nhid ? { id: row.nhid } : null],
  ],
  nexthops: (row) => [
    ["Routes that use it", "routes", { nhid: row.id, table: "all" }],
    ["Neighbour", "neighbours", row.gateway ? { to: row.gateway, state: "all" } : null],
    ["Link", "links", row.dev ? { dev: row.dev } : null],
  ],
  rules: (row) => [["Routes of its table", "routes", row.table ? { table: row.table } : null]],
  fdb: (row) => [
    ["Neighbours with this MAC", "neighbours", { mac: row.mac, state: "all" }],
    ["Link", "links", { dev: row.ifname }],
  ],
};

/** Whether two rows of a table are one: by key, and routes by where they lead. */
function isSame(of, one, other) {
  const identity = (row) => JSON.stringify([of.key(row), row.gateway, row.via, row.dev, row.nexthops, row.nhid]);
  return identity(one) === identity(other);
}

/** What became of a route, as `route why` says it. */
const VERDICTS = {
  taken: "taken",
  refuses: "taken, and refuses",
  other_table: "another table decides before",
  longer_prefix: "a longer prefix decides",
  unusable: "no next hop can be used",
  not_best: "another comes first",
  agrees: "goes where the kernel goes",
  differs: "goes elsewhere than the kernel",
};

const isDefault = (row) => row.dst === "default";
const gateways = (row) => [row, ...(row.nexthops ?? [])].map((hop) => hop.gateway ?? hop.via?.host).filter(Boolean).slice(0, 8);
const devices = (row) => [...new Set([row, ...(row.nexthops ?? [])].map((hop) => hop.dev).filter(Boolean))].slice(0, 8);

function prefixed(word, row) {
  const of = { table: row.table ?? "main" };
  if (!isDefault(row)) return { ...of, [word]: row.dst };
  const isV6 = gateways(row).some((gateway) => gateway.includes(":"));
  return { ...of, [word]: isV6 ? "::/0" : "0.0.0.0/0" };
}

const net = (address) => `${address.local}/${address.prefixlen}`;

/** The panel. */
export class Detail {
  #panel = byId("detail");
  #abort = null;
  #back = null;

  /** `on.closed()`; `on.open(table, row)`. */
  constructor(on) {
    this.on = on;
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  get isOpen() {
    return !this.#panel.hidden;
  }

  /** Shows a row of a table; of a feed, where `feed` names one. */
  show(of, row, feed = "") {
    if (!this.isOpen) this.#back = document.activeElement;
    this.#abort?.abort();
    this.#abort = new AbortController();
    this.#panel.hidden = false;
    const close = el("button", { type: "button", "aria-label": "Close", title: "Close (Esc)", onclick: () => this.close() }, "✕");
    const title = el("h2", { id: "detail-title" }, el("bdi", {}, plain(of.name(row))));
    const lists = el("div");
    const all = el("details", {}, el("summary", {}, "All fields"), facts(row));
    fill(this.#panel, el("header", {}, title, close), summary(of, row), lists, all);
    for (const [name, id, parameters, itself] of POINTING[of.id](row)) {
      if (!parameters) continue;
      const asked = { ...parameters, ...fed(table(id), feed) };
      this.#pointing(lists, name, table(id), asked, itself ? row : null, this.#abort.signal);
    }
    if (of.id === "routes") this.#why(lists, row, this.#abort.signal);
    this.#panel.focus();
  }

  close() {
    if (!this.isOpen) return;
    this.#abort?.abort();
    this.#panel.hidden = true;
    this.#back?.focus?.();
    this.on.closed();
  }

  async #pointing(lists, name, of, parameters, itself, signal) {
    const count = el("span", {}, "…");
    const list = el("div");
    lists.append(el("h3", {}, name, count), list);
    try {
      const families = of.families ? [{ ipv4: "" }, { ipv6: "" }] : [{}];
      let all = 0;
      const rows = [];
      for (const family of families) {
        const asked = { ...of.parameters, ...parameters, ...family };
        all += await api.count(of.path, asked, { signal });
        if (rows.length < ROWS) rows.push(...(await api.rows(of.path, { ...asked, limit: ROWS }, { signal })).rows);
      }
      const at = itself ? rows.findIndex((row) => isSame(of, row, itself)) : -1;
      if (at >= 0) {
        rows.splice(at, 1);
        all -= 1;
      }
      // What the kernel does not announce may have come between the two.
      all = Math.max(all, rows.length);
      count.textContent = grouped(all);
      fill(list, rows.length > 0 ? this.#list(of, rows) : el("p", { class: "nothing" }, "none"));
      if (all > rows.length) list.append(el("p", { class: "nothing" }, `and ${grouped(all - rows.length)} more`));
    } catch (error) {
      if (error.name === "AbortError") return;
      count.textContent = "";
      fill(list, el("p", { class: "problem" }, error.message));
    }
  }

  /** What each source knows of a route's prefix, and what becomes of its routes. */
  async #why(lists, row, signal) {
    const list = el("div");
    lists.append(el("h3", {}, "By source"), list);
    try {
      const { table: _, ...net } = prefixed("prefix", row);
      const why = await api.json("/v1/routes/why", { ...net, table: row.table ?? "main" }, { signal });
      const line = (name, text, verdict) => el("tr", {}, el("td", {}, plain(name)), el("td", { class: "mono" }, el("bdi", {}, plain(text))), el("td", {}, verdict));
      const lines = why.sources.flatMap(({ source, routes }) =>
        routes.length === 0
          ? [line(source, "", "no route")]
          : routes.map((one) => line(source, [one.dst, ...gateways(one), ...devices(one)].join(" "), VERDICTS[one.verdict] ?? one.verdict)),
      );
      fill(list, el("table", { id: "why" }, el("tbody", {}, lines)));
    } catch (error) {
      if (error.name !== "AbortError") fill(list, el("p", { class: "problem" }, error.message));
    }
  }

  #list(of, rows) {
    const columns = of.usual.filter((column) => column.keep < 3 && !["rx", "tx"].includes(column.key)).slice(0, 3);
    const body = rows.map((row) =>
      el(
        "tr",
        {},
        columns.map((column, at) => {
          const text = el("bdi", {}, shown(column, row));
          const cell = at === 0 ? el("button", { type: "button", class: "to", onclick: () => this.on.open(of, row) }, text) : text;
          return el("td", { class: [column.mono && "mono", column.number && "number"].filter(Boolean).join(" ") }, cell);
        }),
      ),
    );
    return el("table", {}, el("tbody", {}, body));
  }
}

/** What the table shows of a row, and its rates. */
function summary(of, row) {
  const list = el("dl");
  for (const column of of.usual) {
    const text = shown(column, row);
    if (text === "" || ["rx", "tx", "past"].includes(column.key)) continue;
    const state = column.state ? text.split(",")[0] : null;
    list.append(el("dt", {}, column.title), el("dd", { class: column.mono ? "mono" : null, "data-state": state }, el("bdi", {}, text)));
  }
  if (row.rates) {
    const { rx_bits, rx_packets, tx_bits, tx_packets, wrong } = row.rates;
    list.append(el("dt", {}, "Receives"), el("dd", {}, `${short(rx_bits)} bit/s, ${short(rx_packets)} packets/s`));
    list.append(el("dt", {}, "Sends"), el("dd", {}, `${short(tx_bits)} bit/s, ${short(tx_packets)} packets/s`));
    list.append(el("dt", {}, "Errors, drops"), el("dd", {}, `${short(wrong)}/s`));
  }
  return list;
}

/** All that a row says, name by name. */
function facts(row) {
  const list = el("dl");
  const say = (name, value) => {
    if (value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)) return;
    list.append(el("dt", {}, plain(name)), el("dd", {}, el("bdi", {}, plain(value))));
  };
  const walk = (name, value) => {
    // What this page has added, and what is of a change.
    if (["rates", "past", "before", "event", "object", "time_millis"].includes(name)) return;
    if (Array.isArray(value) && value.every((one) => typeof one !== "object")) say(name, value.join(", "));
    else if (value && typeof value === "object") {
      for (const [key, inner] of Object.entries(value)) walk(Array.isArray(value) && value.length === 1 ? name : `${name} ${key}`, inner);
    } else say(name, value === null ? "yes" : value);
  };
  for (const [key, value] of Object.entries(row)) walk(key, value);
  return list;
}
