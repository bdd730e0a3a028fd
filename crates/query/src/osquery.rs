//! The network tables of osquery over ours, by their names and columns, so
//! that statements which were written for it run: all but `routes`, which is
//! a table of ours and stands here as `osquery_routes`. A value that is made
//! here is cast to the type that osquery's column has, so that it compares as
//! there: the text `permanent = 0`, the number `netmask = '24'`.

/// The views, by their names.
const VIEWS: [(&str, &str); 4] = [
    (
        "osquery_routes",
        "create view osquery_routes as select
    host(prefix) as destination,
    cast(masklen(prefix) as integer) as netmask,
    coalesce(gateway, via_host, '') as gateway,
    coalesce(prefsrc, '') as source,
    0 as flags,
    coalesce(dev, '') as interface,
    cast(coalesce(metrics_mtu, 0) as integer) as mtu,
    metric,
    case type when 'local' then 'local' when 'unicast' then
        case when gateway is null and via_host is null then 'static' else 'gateway' end
        else type end as type,
    cast(coalesce(metrics_hoplimit, 0) as integer) as hopcount
from routes",
    ),
    (
        "arp_cache",
        "create view arp_cache as select
    dst as address,
    coalesce(lladdr, '00:00:00:00:00:00') collate nocase as mac,
    dev as interface,
    cast(state like '%PERMANENT%' as text) as permanent
from neighbours where family(dst) = 4 and not proxy",
    ),
    (
        "interface_addresses",
        "create view interface_addresses as select
    ifname as interface,
    local as address,
    netmask(local || '/' || prefixlen) as mask,
    coalesce(broadcast, '') as broadcast,
    coalesce(address, '') as point_to_point,
    case when dynamic then 'auto' else 'manual' end as type,
    '' as friendly_name
from addresses",
    ),
    (
        "interface_details",
        "create view interface_details as select
    l.ifname as interface,
    coalesce(l.address, '') collate nocase as mac,
    l.link_type as type,
    l.mtu,
    0 as metric,
    l.flags,
    c.rx_packets as ipackets,
    c.tx_packets as opackets,
    c.rx_bytes as ibytes,
    c.tx_bytes as obytes,
    c.rx_errors as ierrors,
    c.tx_errors as oerrors,
    c.rx_dropped as idrops,
    c.tx_dropped as odrops,
    c.tx_collisions as collisions,
    -1 as last_change,
    '' as description,
    -1 as link_speed,
    '' as pci_slot
from links l left join counters c on c.ifindex = l.ifindex",
    ),
];

/// The views that a statement may look at: making one costs more than looking
/// a route up.
pub(crate) fn views(statement: &str) -> impl Iterator<Item = &'static str> {
    let statement = statement.to_ascii_lowercase();
    // What lists tables lists all of them.
    let lists = ["pragma", "sqlite_"]
        .iter()
        .any(|word| statement.contains(word));
    let is_named = move |name: &str| lists || statement.contains(name);
    VIEWS
        .iter()
        .filter(move |(name, _)| is_named(name))
        .map(|(_, sql)| *sql)
}
