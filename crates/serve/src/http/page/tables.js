// What each table shows. Which columns there are comes from the daemon's own
// list (`columns.js`); this file says how they look, and which a table shows
// unless somebody chose others.

import { COLUMNS } from "./columns.js";
import { grouped, plain, short } from "./dom.js";

// `width`: `ch`, or `fr` for a share of what is left. `keep`: the smaller,
// the longer it stays when there is little room.

/** A column of the list, by its name there. */
const one = (name, title, more) => ({ key: name, title, from: [name], ...more });

/** A column that the page makes of others: of the first that a row has, of all that it has (`flags`), or by `value`. */
const made = (key, title, from, more) => ({ key, title, from, ...more });

/** What a row has under a name of the list: nested names have dots, of lists each element's. */
export function at(value, path) {
  if (Array.isArray(value)) {
    const all = value.map((item) => at(item, path)).filter((item) => item !== undefined);
    return all.length > 1 ? all.flat() : all[0];
  }
  if (path.length === 0) return value;
  if (value === null || typeof value !== "object") return undefined;
  return at(value[path[0]], path.slice(1));
}

const get = (row, name) => at(row, name.split("."));
const lower = (value) => [value ?? []].flat().join(", ").toLowerCase();
const address = (row) => row.addr_info?.[0] ?? {};

function via(route) {
  if (route.nexthops) return route.nexthops.map((hop) => hop.gateway ?? hop.via?.host ?? hop.dev).join(", ");
  // On a phone it is all that is said of where a route leads.
  return route.gateway ?? route.via?.host ?? (route.dev ? `dev ${route.dev}` : "");
}

const devices = (route) => (route.nexthops ? [...new Set(route.nexthops.map((hop) => hop.dev))].join(", ") : route.dev);

/** What the command line says of a row, without what another column says already. */
const said = (before) => (row) => (row.words ?? "").replace(before, "");

/** All tables. */
export const TABLES = [
  {
    id: "links",
    object: "link",
    example: "type bridge",
    title: "Links",
    path: "/v1/links",
    asked: { details: "" },
    name: (row) => row.ifname,
    key: (row) => row.ifindex,
    usual: [
      one("ifname", "Name", { width: "minmax(9ch,1.2fr)", keep: 0, strong: true }),
      one("operstate", "State", { width: "9ch", keep: 1, state: true }),
      made("rx", "Rx bit/s", ["stats64.rx.bytes"], { value: (row) => row.rates?.rx_bits, width: "9ch", keep: 2, show: short }),
      made("tx", "Tx bit/s", ["stats64.tx.bytes"], { value: (row) => row.rates?.tx_bits, width: "9ch", keep: 3, show: short }),
      made("past", "Last minutes", ["stats64.rx.bytes", "stats64.tx.bytes"], { value: (row) => row.past?.at(-1), spark: (row) => row.past, width: "12ch", keep: 4.5 }),
      one("address", "MAC", { width: "18ch", keep: 4, mono: true }),
      one("mtu", "MTU", { width: "8ch", keep: 6, show: grouped }),
      made("kind", "Kind", ["linkinfo.info_kind", "link_type"], { width: "10ch", keep: 5 }),
      one("master", "Master", { width: "minmax(8ch,0.6fr)", keep: 7 }),
      one("ifalias", "Alias", { width: "minmax(8ch,1fr)", keep: 8 }),
      one("ifindex", "Index", { width: "7ch", keep: 9 }),
    ],
  },
  {
    id: "addresses",
    object: "addr",
    example: "to 10.0.0.0/8",
    title: "Addresses",
    path: "/v1/addresses",
    asked: {},
    name: (row) => `${address(row).local}/${address(row).prefixlen}`,
    key: (row) => `${row.ifindex} ${address(row).local}/${address(row).prefixlen}`,
    usual: [
      made("local", "Address", ["addr_info.local", "addr_info.prefixlen"], {
        value: (row) => `${address(row).local}/${address(row).prefixlen}`,
        width: "minmax(18ch,1.4fr)",
        keep: 0,
        mono: true,
        strong: true,
      }),
      one("ifname", "Link", { width: "minmax(8ch,1fr)", keep: 1 }),
      one("addr_info.scope", "Scope", { width: "8ch", keep: 2 }),
      one("addr_info.broadcast", "Broadcast", { width: "16ch", keep: 4, mono: true }),
      one("addr_info.label", "Label", { width: "minmax(8ch,0.7fr)", keep: 5 }),
      made(
        "address-flags",
        "Flags",
        [
          "addr_info.dynamic",
          "addr_info.secondary",
          "addr_info.temporary",
          "addr_info.tentative",
          "addr_info.dadfailed",
          "addr_info.deprecated",
          "addr_info.noprefixroute",
        ],
        { flags: true, width: "minmax(10ch,0.7fr)", keep: 3 },
      ),
    ],
  },
  {
    id: "neighbours",
    object: "neigh",
    example: "dev eth0 nud stale",
    title: "Neighbours",
    path: "/v1/neighbours",
    asked: { state: "all" },
    name: (row) => row.dst,
    key: (row) => `${row.dev} ${row.dst}`,
    usual: [
      one("dst", "Address", { width: "minmax(16ch,1.4fr)", keep: 0, mono: true, strong: true }),
      one("lladdr", "MAC", { width: "18ch", keep: 1, mono: true }),
      one("dev", "Link", { width: "minmax(8ch,1fr)", keep: 2 }),
      one("state", "State", { width: "minmax(11ch,0.7fr)", keep: 3, state: true }),
      made("flags", "Flags", ["router", "proxy", "managed", "extern_learn", "offload"], {
        flags: true,
        width: "minmax(8ch,0.6fr)",
        keep: 4,
      }),
    ],
  },
  {
    id: "routes",
    object: "route",
    isFed: true,
    example: "to root 10.0.0.0/8 proto bgp",
    title: "Routes",
    path: "/v1/routes",
    asked: { table: "all" },
    name: (row) => row.dst,
    key: (row) => `${row.table ?? "main"} ${row.dst} ${row.metric ?? 0} ${row.tos ?? ""}`,
    usual: [
      one("dst", "Prefix", { width: "minmax(15ch,1.4fr)", keep: 0, mono: true, strong: true }),
      made("hops", "Via", ["gateway", "via.host", "nexthops.gateway", "nexthops.via.host", "nexthops.dev"], {
        value: via,
        width: "minmax(14ch,1.2fr)",
        keep: 1,
        mono: true,
      }),
      made("dev", "Link", ["dev", "nexthops.dev"], { value: devices, width: "minmax(8ch,0.8fr)", keep: 2 }),
      one("protocol", "Protocol", { otherwise: "boot", width: "10ch", keep: 4 }),
      one("type", "Type", { otherwise: "unicast", width: "11ch", keep: 6 }),
      one("table", "Table", { otherwise: "main", width: "8ch", keep: 5 }),
      one("metric", "Metric", { width: "8ch", keep: 3, show: grouped }),
      one("nhid", "Next hop", { width: "9ch", keep: 7 }),
    ],
  },
  {
    id: "nexthops",
    object: "nexthop",
    isFed: true,
    example: "via 192.0.2.1",
    title: "Next hops",
    path: "/v1/nexthops",
    asked: { words: "" },
    name: (row) => String(row.id),
    key: (row) => row.id,
    usual: [
      one("id", "Id", { width: "9ch", keep: 0, strong: true }),
      made("words", "Next hop", [], { value: said(/^id \d+ /), width: "minmax(24ch,3fr)", keep: 1, mono: true }),
      one("dev", "Link", { width: "minmax(8ch,0.7fr)", keep: 2 }),
      one("protocol", "Protocol", { width: "10ch", keep: 3 }),
    ],
  },
  {
    id: "rules",
    object: "rule",
    example: "table main",
    title: "Rules",
    path: "/v1/rules",
    asked: { words: "" },
    // Without a family a question for rules is for those of IPv4.
    families: true,
    name: (row) => row.words ?? `${row.priority}: from ${row.src}`,
    key: (row) => JSON.stringify(row),
    usual: [
      one("priority", "Priority", { width: "9ch", keep: 0, strong: true }),
      made("words", "Rule", [], { value: said(/^\d+: /), width: "minmax(24ch,4fr)", keep: 1, mono: true }),
      made("family", "Family", [], { value: (row) => row.family, width: "8ch", keep: 2 }),
    ],
  },
  {
    id: "fdb",
    object: "fdb",
    example: "master br0 vlan 10",
    title: "Forwarding",
    path: "/v1/fdb",
    asked: {},
    name: (row) => row.mac,
    key: (row) => `${row.ifname} ${row.mac} ${row.vlan ?? ""} ${row.dst ?? ""} ${row.master ?? ""}`,
    usual: [
      one("mac", "MAC", { width: "18ch", keep: 0, mono: true, strong: true }),
      one("ifname", "Link", { width: "minmax(8ch,1fr)", keep: 1 }),
      one("master", "Bridge", { width: "minmax(8ch,0.8fr)", keep: 2 }),
      one("vlan", "VLAN", { width: "6ch", keep: 3 }),
      one("dst", "Remote", { width: "minmax(12ch,1fr)", keep: 4, mono: true }),
      one("state", "State", { width: "11ch", keep: 5 }),
      one("flags", "Flags", { width: "minmax(8ch,0.6fr)", keep: 6 }),
    ],
  },
];

/** The table of an id, or of the word that events have for it. */
export const table = (id) => TABLES.find((of) => of.id === id || of.object === id);

/** Adds to a table the columns that it does not usually show, and what is shown of all. */
function complete(of) {
  const list = new Map(COLUMNS[of.id].map((column) => [column.name, column]));
  const usual = of.usual.map((column) => usually(column, list));
  const keys = new Set(usual.map((column) => column.key));
  const others = COLUMNS[of.id].filter((column) => !keys.has(column.name)).map(other);
  of.usual = usual;
  of.all = [...usual, ...others];
  choose(of, stored(of));
}

function usually(column, list) {
  const { from } = column;
  const missing = from.filter((name) => !list.has(name));
  if (missing.length > 0) throw new Error(`the daemon has no column ${missing.join(", ")}`);
  const isOf = (holds) => from.length > 0 && from.every((name) => list.get(name).holds === holds);
  const isIn = (row) => (name) => get(row, name) !== undefined;
  const has = (row) => from.filter(isIn(row));
  const first = (row) => get(row, has(row)[0] ?? from[0]) ?? column.otherwise;
  const flags = (row) => has(row).map((name) => name.split(".").at(-1)).join(", ");
  const value = column.value ?? (column.flags ? flags : first);
  const isWords = column.state || isOf("list");
  return { number: isOf("number"), ...column, value: isWords ? (row) => lower(value(row)) : value };
}

/** A column as the list has it, under its name there. */
function other({ name, holds, sampled }) {
  const isAddress = ["address", "prefix", "link_layer"].includes(holds);
  const least = Math.max({ number: 8, flag: 6 }[holds] ?? (isAddress ? 18 : 12), name.length + 2);
  const values = {
    flag: (row) => ([undefined, false].includes(get(row, name)) ? "" : "yes"),
    list: (row) => lower(get(row, name)),
  };
  return {
    key: name,
    title: name,
    from: [name],
    sampled,
    extra: true,
    number: holds === "number",
    mono: isAddress,
    width: holds === "number" || holds === "flag" ? `${least}ch` : `minmax(${least}ch,0.7fr)`,
    // Whoever chose it wants to see it.
    keep: 0.5,
    value: values[holds] ?? ((row) => get(row, name)),
  };
}

function storage(of) {
  return `fingerpost-columns-${of.id}`;
}

function stored(of) {
  try {
    const keys = JSON.parse(localStorage.getItem(storage(of)));
    return Array.isArray(keys) ? keys : null;
  } catch {
    return null;
  }
}

/** Shows columns by their keys, the usual ones without; what is no key is passed over. */
export function choose(of, keys) {
  const chosen = of.all.filter((column) => keys?.includes(column.key));
  of.columns = chosen.length > 0 ? chosen : of.usual;
  const extra = of.columns.filter((column) => column.extra);
  of.isSampled = extra.some((column) => column.sampled);
  of.parameters = { ...of.asked, ...(extra.length > 0 && { details: "" }), ...(of.isSampled && { statistics: "" }) };
}

/** Shows columns by their keys, and keeps the choice in this browser. */
export function keep(of, keys) {
  choose(of, keys);
  if (of.columns === of.usual) localStorage.removeItem(storage(of));
  else localStorage.setItem(storage(of), JSON.stringify(of.columns.map((column) => column.key)));
}

/** The text of a cell. */
export function shown(column, row) {
  const value = column.value(row);
  if (value === undefined || value === null || value === "") return "";
  if (column.show) return plain(column.show(value));
  if (typeof value !== "object") return plain(value);
  return plain(Array.isArray(value) && value.every((item) => typeof item !== "object") ? value.join(", ") : JSON.stringify(value));
}

TABLES.forEach(complete);
