//! The network tables of osquery over ours, by their names and columns, so
//! that statements which were written for it run: all but `routes`, which is
//! a table of ours and stands here as `osquery_routes`.

/// The views.
pub(crate) const VIEWS: &str = "
create view osquery_routes as select
    host(prefix) as destination,
    masklen(prefix) as netmask,
    coalesce(gateway, via_host, '') as gateway,
    coalesce(prefsrc, '') as source,
    0 as flags,
    coalesce(dev, '') as interface,
    coalesce(metrics_mtu, 0) as mtu,
    metric,
    case type when 'local' then 'local' when 'unicast' then
        case when gateway is null and via_host is null then 'static' else 'gateway' end
        else type end as type,
    coalesce(metrics_hoplimit, 0) as hopcount
from routes;
create view arp_cache as select
    dst as address,
    coalesce(lladdr, '00:00:00:00:00:00') as mac,
    dev as interface,
    case when state like '%PERMANENT%' then '1' else '0' end as permanent
from neighbours where family(dst) = 4 and not proxy;
create view interface_addresses as select
    ifname as interface,
    local as address,
    netmask(local || '/' || prefixlen) as mask,
    coalesce(broadcast, '') as broadcast,
    coalesce(address, '') as point_to_point,
    case when dynamic then 'auto' else 'manual' end as type,
    '' as friendly_name
from addresses;
create view interface_details as select
    l.ifname as interface,
    coalesce(l.address, '') as mac,
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
    '' as description
from links l left join counters c on c.ifindex = l.ifindex;
";
