// What each table shows: its path, its columns, what a row is called.

import { grouped, plain, short } from "./dom.js";

const text = (key, title, value, more = {}) => ({ key, title, value, ...more });
const number = (key, title, value, more = {}) => text(key, title, value, { number: true, ...more });

const words = (list) => (list ?? []).join(", ").toLowerCase();
const address = (row) => row.addr_info?.[0] ?? {};

function via(route) {
  if (route.nexthops) return route.nexthops.map((hop) => hop.gateway ?? hop.via?.host ?? hop.dev).join(", ");
  return route.gateway ?? route.via?.host ?? "";
}

const devices = (route) => (route.nexthops ? [...new Set(route.nexthops.map((hop) => hop.dev))].join(", ") : route.dev);

// `width`: `ch`, or `fr` for a share of what is left. `keep`: the smaller,
// the longer it stays when there is little room.
export const TABLES = [
  {
    id: "links",
    object: "link",
    example: "type bridge",
    title: "Links",
    path: "/v1/links",
    parameters: { details: "" },
    name: (row) => row.ifname,
    key: (row) => row.ifindex,
    columns: [
      text("ifname", "Name", (row) => row.ifname, { width: "minmax(9ch,1.2fr)", keep: 0, strong: true }),
      text("operstate", "State", (row) => (row.operstate ?? "").toLowerCase(), { width: "9ch", keep: 1, state: true }),
      number("rx", "Rx bit/s", (row) => row.rates?.rx_bits, { width: "9ch", keep: 2, show: rate }),
      number("tx", "Tx bit/s", (row) => row.rates?.tx_bits, { width: "9ch", keep: 3, show: rate }),
      text("address", "MAC", (row) => row.address ?? "", { width: "18ch", keep: 4, mono: true }),
      number("mtu", "MTU", (row) => row.mtu, { width: "7ch", keep: 6 }),
      text("kind", "Kind", (row) => row.linkinfo?.info_kind ?? row.link_type ?? "", { width: "10ch", keep: 5 }),
      text("master", "Master", (row) => row.master ?? "", { width: "minmax(8ch,0.6fr)", keep: 7 }),
      text("ifalias", "Alias", (row) => row.ifalias ?? "", { width: "minmax(8ch,1fr)", keep: 8 }),
      number("ifindex", "Index", (row) => row.ifindex, { width: "7ch", keep: 9, show: String }),
    ],
  },
  {
    id: "addresses",
    object: "addr",
    example: "to 10.0.0.0/8",
    title: "Addresses",
    path: "/v1/addresses",
    parameters: {},
    name: (row) => `${address(row).local}/${address(row).prefixlen}`,
    key: (row) => `${row.ifindex} ${address(row).local}/${address(row).prefixlen}`,
    columns: [
      text("local", "Address", (row) => `${address(row).local}/${address(row).prefixlen}`, {
        width: "minmax(18ch,1.4fr)",
        keep: 0,
        mono: true,
        strong: true,
      }),
      text("ifname", "Link", (row) => row.ifname, { width: "minmax(8ch,1fr)", keep: 1 }),
      text("scope", "Scope", (row) => address(row).scope ?? "", { width: "8ch", keep: 2 }),
      text("broadcast", "Broadcast", (row) => address(row).broadcast ?? "", { width: "16ch", keep: 4, mono: true }),
      text("label", "Label", (row) => address(row).label ?? "", { width: "minmax(8ch,0.7fr)", keep: 5 }),
      text("flags", "Flags", flags, { width: "minmax(10ch,0.7fr)", keep: 3 }),
    ],
  },
  {
    id: "neighbours",
    object: "neigh",
    example: "dev eth0 nud stale",
    title: "Neighbours",
    path: "/v1/neighbours",
    parameters: { state: "all" },
    name: (row) => row.dst,
    key: (row) => `${row.dev} ${row.dst}`,
    columns: [
      text("dst", "Address", (row) => row.dst, { width: "minmax(16ch,1.4fr)", keep: 0, mono: true, strong: true }),
      text("lladdr", "MAC", (row) => row.lladdr ?? "", { width: "18ch", keep: 1, mono: true }),
      text("dev", "Link", (row) => row.dev ?? "", { width: "minmax(8ch,1fr)", keep: 2 }),
      text("state", "State", (row) => words(row.state), { width: "minmax(11ch,0.7fr)", keep: 3, state: true }),
      text("flags", "Flags", neighbourFlags, { width: "minmax(8ch,0.6fr)", keep: 4 }),
    ],
  },
  {
    id: "routes",
    object: "route",
    example: "to root 10.0.0.0/8 proto bgp",
    title: "Routes",
    path: "/v1/routes",
    parameters: { table: "all" },
    name: (row) => row.dst,
    key: (row) => `${row.table ?? "main"} ${row.dst} ${row.metric ?? 0} ${row.tos ?? ""}`,
    columns: [
      text("dst", "Prefix", (row) => row.dst, { width: "minmax(15ch,1.4fr)", keep: 0, mono: true, strong: true }),
      text("via", "Via", via, { width: "minmax(14ch,1.2fr)", keep: 1, mono: true }),
      text("dev", "Link", (row) => devices(row) ?? "", { width: "minmax(8ch,0.8fr)", keep: 2 }),
      text("protocol", "Protocol", (row) => row.protocol ?? "boot", { width: "10ch", keep: 4 }),
      text("type", "Type", (row) => row.type ?? "unicast", { width: "11ch", keep: 6 }),
      text("table", "Table", (row) => row.table ?? "main", { width: "8ch", keep: 5 }),
      number("metric", "Metric", (row) => row.metric, { width: "8ch", keep: 3 }),
      number("nhid", "Next hop", (row) => row.nhid, { width: "9ch", keep: 7, show: String }),
    ],
  },
  {
    id: "nexthops",
    object: "nexthop",
    example: "via 192.0.2.1",
    title: "Next hops",
    path: "/v1/nexthops",
    parameters: { words: "" },
    name: (row) => String(row.id),
    key: (row) => row.id,
    columns: [
      number("id", "Id", (row) => row.id, { width: "9ch", keep: 0, strong: true, show: String }),
      text("words", "Next hop", (row) => said(row, /^id \d+ /), { width: "minmax(24ch,3fr)", keep: 1, mono: true }),
      text("dev", "Link", (row) => row.dev ?? "", { width: "minmax(8ch,0.7fr)", keep: 2 }),
      text("protocol", "Protocol", (row) => row.protocol ?? "", { width: "10ch", keep: 3 }),
    ],
  },
  {
    id: "rules",
    object: "rule",
    example: "table main",
    title: "Rules",
    path: "/v1/rules",
    parameters: { words: "" },
    // Without a family a question for rules is for those of IPv4.
    families: true,
    name: (row) => row.words ?? `${row.priority}: from ${row.src}`,
    key: (row) => JSON.stringify(row),
    columns: [
      number("priority", "Priority", (row) => row.priority, { width: "9ch", keep: 0, show: String, strong: true }),
      text("words", "Rule", (row) => said(row, /^\d+: /), { width: "minmax(24ch,4fr)", keep: 1, mono: true }),
      text("family", "Family", (row) => row.family ?? "", { width: "8ch", keep: 2 }),
    ],
  },
  {
    id: "fdb",
    object: "fdb",
    example: "master br0 vlan 10",
    title: "Forwarding",
    path: "/v1/fdb",
    parameters: {},
    name: (row) => row.mac,
    key: (row) => `${row.ifname} ${row.mac} ${row.vlan ?? ""} ${row.dst ?? ""} ${row.master ?? ""}`,
    columns: [
      text("mac", "MAC", (row) => row.mac ?? "", { width: "18ch", keep: 0, mono: true, strong: true }),
      text("ifname", "Link", (row) => row.ifname ?? "", { width: "minmax(8ch,1fr)", keep: 1 }),
      text("master", "Bridge", (row) => row.master ?? "", { width: "minmax(8ch,0.8fr)", keep: 2 }),
      number("vlan", "VLAN", (row) => row.vlan, { width: "6ch", keep: 3, show: String }),
      text("dst", "Remote", (row) => row.dst ?? "", { width: "minmax(12ch,1fr)", keep: 4, mono: true }),
      text("state", "State", (row) => row.state ?? "", { width: "11ch", keep: 5 }),
      text("flags", "Flags", (row) => words(row.flags), { width: "minmax(8ch,0.6fr)", keep: 6 }),
    ],
  },
];

/** The table of an id, or of the word that events have for it. */
export const table = (id) => TABLES.find((one) => one.id === id || one.object === id);

function rate(bits) {
  return bits === undefined ? "" : short(bits);
}

function flags(row) {
  const known = ["dynamic", "secondary", "temporary", "tentative", "dadfailed", "deprecated", "noprefixroute"];
  return known.filter((flag) => flag in address(row)).join(", ");
}

function neighbourFlags(row) {
  return ["router", "proxy", "managed", "extern_learn", "offload"].filter((flag) => flag in row).join(", ");
}

/** What the command line says of a row, without what another column says already. */
const said = (row, before) => (row.words ?? "").replace(before, "");

/** The text of a cell. */
export function shown(column, row) {
  const value = column.value(row);
  if (value === undefined || value === null || value === "") return "";
  if (column.show) return plain(column.show(value));
  return plain(column.number ? grouped(value) : value);
}
