// What each table shows: its path, its columns, what a row is called, and
// how the text of a filter becomes parameters of a question.

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
    title: "Next hops",
    path: "/v1/nexthops",
    parameters: {},
    name: (row) => String(row.id),
    key: (row) => row.id,
    columns: [
      number("id", "Id", (row) => row.id, { width: "9ch", keep: 0, strong: true, show: String }),
      text("gateway", "Gateway", (row) => row.gateway ?? "", { width: "minmax(16ch,1fr)", keep: 1, mono: true }),
      text("dev", "Link", (row) => row.dev ?? "", { width: "minmax(8ch,0.7fr)", keep: 2 }),
      text("group", "Group", group, { width: "minmax(12ch,1.4fr)", keep: 3 }),
      text("protocol", "Protocol", (row) => row.protocol ?? "", { width: "10ch", keep: 5 }),
      text("scope", "Scope", (row) => row.scope ?? "", { width: "8ch", keep: 4 }),
    ],
  },
  {
    id: "rules",
    object: "rule",
    title: "Rules",
    path: "/v1/rules",
    parameters: {},
    // Without a family a question for rules is for those of IPv4.
    families: true,
    name: (row) => `${row.priority}: from ${row.src}`,
    key: (row) => JSON.stringify(row),
    columns: [
      number("priority", "Priority", (row) => row.priority, { width: "9ch", keep: 0, show: String, strong: true }),
      text("family", "Family", (row) => row.family ?? "", { width: "8ch", keep: 5 }),
      text("src", "From", (row) => prefix(row.src, row.srclen), { width: "minmax(10ch,1fr)", keep: 1, mono: true }),
      text("dst", "To", (row) => prefix(row.dst, row.dstlen), { width: "minmax(10ch,1fr)", keep: 3, mono: true }),
      text("match", "Also", match, { width: "minmax(10ch,1fr)", keep: 4 }),
      text("table", "Action", (row) => row.action ?? (row.table ? `table ${row.table}` : ""), {
        width: "minmax(10ch,0.7fr)",
        keep: 2,
      }),
    ],
  },
  {
    id: "fdb",
    object: "fdb",
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

function group(row) {
  return (row.group ?? []).map((one) => (one.weight > 1 ? `${one.id}×${one.weight}` : one.id)).join(", ");
}

const prefix = (of, length) => (length === undefined ? (of ?? "all") : `${of}/${length}`);

function match(row) {
  const also = ["iif", "oif", "fwmark", "tos", "ipproto", "sport", "dport", "uid_start"];
  return also.filter((key) => key in row).map((key) => `${key} ${row[key]}`).join(", ");
}

/** The text of a cell. */
export function shown(column, row) {
  const value = column.value(row);
  if (value === undefined || value === null || value === "") return "";
  if (column.show) return plain(column.show(value));
  return plain(column.number ? grouped(value) : value);
}

/** Words of a filter that take a value, and the parameter each stands for. */
const WORDS = {
  links: ["name", "kind", "master", "group", "state", "dev"],
  addresses: ["dev", "to", "scope", "master"],
  neighbours: ["dev", "to", "mac", "state", "proto"],
  routes: ["dev", "via", "to", "exact", "covering", "proto", "table", "metric", "type", "scope", "src", "nhid"],
  nexthops: ["dev", "id", "via", "proto"],
  rules: ["table", "priority"],
  fdb: ["dev", "mac", "master", "vlan"],
};

/** The words that a filter of a table may use, for people. */
export const filterWords = (of) => WORDS[of.id];

/**
 * What a filter asks of the daemon: parameters, and in words how it was
 * understood. For tables too large to look through here.
 */
export function parse(of, filter) {
  const parameters = {};
  const understood = [];
  const parts = filter.trim().split(/[\s=]+/).filter(Boolean);
  while (parts.length > 0) {
    const part = parts.shift();
    const [name, value] = meaning(of, part, parts);
    if (value === undefined) continue;
    parameters[name] = value;
    understood.push(`${name} ${value}`);
  }
  return { parameters, understood: understood.join(", ") };
}

function meaning(of, part, parts) {
  if (WORDS[of.id].includes(part)) return [part, parts.shift()];
  if (/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(part)) return ["mac", part];
  const net = network(part);
  if (net) return [net.isHost && of.id === "routes" ? "covering" : "to", net.text];
  return [of.id === "links" ? "name" : "dev", of.id === "links" ? `*${part}*` : part];
}

/** A prefix out of what was typed of it: `10.1` is 10.1.0.0/16. */
export function network(part) {
  const [base, length] = part.split("/");
  if (/^\d{1,3}(\.\d{0,3}){0,3}$/.test(base)) {
    const octets = base.split(".").filter((octet) => octet !== "");
    if (octets.some((octet) => Number(octet) > 255)) return null;
    const bits = length ? Number(length) : octets.length * 8;
    const whole = [...octets, "0", "0", "0"].slice(0, 4).join(".");
    return { text: `${whole}/${Math.min(bits, 32)}`, isHost: !length && octets.length === 4 };
  }
  if (!/^[0-9a-f:]*:[0-9a-f:.]*$/i.test(base)) return null;
  if (base.includes("::") && !(base.endsWith("::") && !length)) {
    return { text: length ? `${base}/${length}` : `${base}/128`, isHost: !length };
  }
  const groups = base.split(":").filter((group) => group !== "");
  if (groups.length === 8) return { text: `${base}/${length || 128}`, isHost: !length };
  return { text: `${groups.join(":")}::/${length || groups.length * 16}`, isHost: false };
}
