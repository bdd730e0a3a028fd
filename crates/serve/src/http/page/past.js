// What the last minutes were like: sizes of tables, traffic of links,
// changes. Asked for once a step while somebody looks.

import * as api from "./api.js";
import { TABLES } from "./tables.js";

/** Seconds between two looks. */
export const STEP = 2;
/** Looks that are kept: ten minutes. */
const MOST = 300;
/** Links whose traffic is looked at, at most. */
const MOST_LINKS = 10_000;
/** Links whose last minutes are kept: more would be known of their last look only. */
const MOST_PASTS = 2_000;
/** Looks of them that are kept: three minutes. */
export const LOOKS = 90;

function push(values, value) {
  values.push(value);
  if (values.length > MOST) values.shift();
}

export class Past {
  status = null;
  /** By table: rows over time. */
  sizes = new Map(TABLES.map((table) => [table.id, []]));
  /** By table: changes a second over time. */
  activity = new Map(TABLES.map((table) => [table.id, []]));
  /** By link's name: the last rates. */
  rates = new Map();
  /** By link's name: bits a second, both ways together, over the last minutes. */
  pasts = new Map();
  #counts = new Map();
  #traffic = new Map();
  #counters = new Map();
  #countersAt = 0;
  #lookedAt = 0;
  #plotted = "";

  /** Counts a change of a table. */
  count(id) {
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
  }

  /** Forgets everything: of another namespace. */
  forget() {
    for (const values of [...this.sizes.values(), ...this.activity.values()]) values.length = 0;
    for (const kept of [this.rates, this.pasts, this.#counts, this.#traffic, this.#counters]) kept.clear();
    this.#countersAt = 0;
  }

  /** The link whose traffic is plotted; empty: all. */
  plot(name) {
    this.#plotted = name;
  }

  get traffic() {
    return this.#traffic.get(this.#plotted) ?? { rx: [], tx: [] };
  }

  /** Points that a plot spans: a minute at first, all that is kept later. */
  get span() {
    return Math.max(60 / STEP, this.sizes.get("links").length);
  }

  /** Looks once. */
  async look() {
    this.status = await api.json("/v1/status");
    const now = performance.now();
    const secs = this.#lookedAt ? (now - this.#lookedAt) / 1000 : STEP;
    this.#lookedAt = now;
    for (const table of TABLES) {
      const rows = this.status.tables.find((one) => one.table === table.id)?.rows ?? null;
      push(this.sizes.get(table.id), rows);
      push(this.activity.get(table.id), (this.#counts.get(table.id) ?? 0) / secs);
    }
    this.#counts.clear();
    await this.#lookAtLinks();
  }

  async #lookAtLinks() {
    const parameters = { statistics: "", fields: "ifindex,ifname,operstate,stats64", limit: MOST_LINKS };
    const { rows, countersAt } = await api.rows("/v1/links", parameters);
    // The counters' own time is what makes a rate of them.
    if (countersAt > 0 && countersAt !== this.#countersAt) this.#reckon(rows, countersAt);
    this.#keep();
  }

  #reckon(rows, at) {
    const secs = (at - this.#countersAt) / 1000;
    const known = this.#countersAt > 0 && secs > 0;
    const counters = new Map();
    this.rates.clear();
    for (const row of rows) {
      const { rx, tx } = row.stats64 ?? {};
      if (!rx || !tx) continue;
      counters.set(row.ifindex, { rx, tx });
      const old = this.#counters.get(row.ifindex);
      if (!known || !old) continue;
      const rate = (now, then) => Math.max(0, now - then) / secs;
      this.rates.set(row.ifname, {
        rx_bits: rate(rx.bytes, old.rx.bytes) * 8,
        tx_bits: rate(tx.bytes, old.tx.bytes) * 8,
        rx_packets: rate(rx.packets, old.rx.packets),
        tx_packets: rate(tx.packets, old.tx.packets),
        wrong: rate(rx.errors + tx.errors + rx.dropped + tx.dropped, old.rx.errors + old.tx.errors + old.rx.dropped + old.tx.dropped),
      });
    }
    this.#counters = counters;
    this.#countersAt = at;
    this.#keepPasts();
  }

  /** A link that is gone is forgotten. */
  #keepPasts() {
    for (const name of this.pasts.keys()) if (!this.rates.has(name)) this.pasts.delete(name);
    for (const [name, rates] of this.rates) {
      if (!this.pasts.has(name)) {
        if (this.pasts.size >= MOST_PASTS) continue;
        this.pasts.set(name, []);
      }
      const values = this.pasts.get(name);
      values.push(rates.rx_bits + rates.tx_bits);
      if (values.length > LOOKS) values.shift();
    }
  }

  /** Keeps what may be plotted: the sum, and the links that were chosen. */
  #keep() {
    const sum = { rx_bits: 0, tx_bits: 0 };
    for (const rates of this.rates.values()) {
      sum.rx_bits += rates.rx_bits;
      sum.tx_bits += rates.tx_bits;
    }
    for (const name of new Set(["", this.#plotted, ...this.#traffic.keys()])) {
      if (!this.#traffic.has(name)) {
        if (this.#traffic.size > 16) continue;
        this.#traffic.set(name, { rx: [], tx: [] });
      }
      const { rx, tx } = this.#traffic.get(name);
      const now = name === "" ? sum : this.rates.get(name);
      push(rx, this.rates.size > 0 ? (now?.rx_bits ?? null) : null);
      push(tx, this.rates.size > 0 ? (now?.tx_bits ?? null) : null);
    }
  }

  /** Links with their rates, the busiest first. */
  busiest(many) {
    const all = [...this.rates].map(([name, rates]) => ({ name, ...rates }));
    return all.sort((a, b) => b.rx_bits + b.tx_bits - a.rx_bits - a.tx_bits).slice(0, many);
  }
}
