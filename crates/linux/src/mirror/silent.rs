//! What the kernel does without saying so. Pure.
//!
//! Each function names what it follows in the kernel; each has a test
//! against `ip` in `tests/silent`. All are idempotent: where the kernel
//! does announce a part of it, the announcement then changes nothing.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use table::row::address;
use table::row::link::{V6_MIN_MTU, flag as link_flag};
use table::row::neighbour::state;
use table::row::route::{hop_flag, kind, scope, table_id};

use table::row::rule::{action, flag as rule_flag};
use table::{
    AF_INET, AF_INET6, Address, Change, FdbEntry, KindData, Link, LinkLayerAddress, Links, Metric,
    NextHop, NextHops, Nexthop, Placement, Route, RouteBody, Rule, SharedRoute, TableFull, Tables,
    Writer,
};

use super::siblings::{Siblings, hops_left};

/// `MACVLAN_MODE_PASSTHRU` of `linux/if_link.h`.
const MACVLAN_MODE_PASSTHRU: u32 = 8;

/// Whether the kernel counts a link as running: the opposite is what makes
/// it drop next-hop objects (`nh_netdev_event`).
pub(crate) fn is_running(link: &Link) -> bool {
    link.flags & (link_flag::RUNNING | link_flag::LOWER_UP) != 0
}

/// A link went down: its IPv4 routes go (`fib_sync_down_dev`), but for
/// those of host scope; of several next hops the others stay. Its next-hop
/// objects go (`nexthop_flush_dev`). So do its IPv6 routes, which are
/// announced unless `net.ipv6.route.skip_notify_on_dev_down` is set.
pub(crate) fn link_down(writer: &mut Writer, link: u32) -> Result<(), TableFull> {
    drop_nexthops_of(writer, link)?;
    v6_down(writer, link)?;
    drop_routes(writer, link, |tables, route| {
        is_v4(route)
            && route.body.scope != scope::HOST
            && all_hops(route.body, |hop| {
                hop.flags & hop_flag::DEAD != 0 || hop_is_dead(&tables.links, hop)
            })
    })
}

/// The IPv6 routes of a link that is down go (`fib6_ifdown`), local ones
/// too; those with other living next hops stay.
fn v6_down(writer: &mut Writer, link: u32) -> Result<(), TableFull> {
    drop_routes(writer, link, |tables, route| {
        let is_lost = |hop: &NextHop| hop.link == link || hop.flags & hop_flag::DEAD != 0;
        !is_v4(route)
            && all_hops(route.body, |hop| {
                is_lost(hop) || hop_is_dead(&tables.links, hop)
            })
    })
}

/// The kernel takes IPv6 out of use on a link, or into use again: it says so
/// by the link's route to all multicast addresses, which goes or comes
/// (`addrconf_add_mroute`). The routes that go are announced; that hops die
/// in routes that have others (`fib6_ifdown`) is not.
///
/// It goes as well with a link that is down, or has too small an MTU, which
/// the link tells; and it comes with an address on a link without a carrier
/// (`addrconf_add_dev`), where IPv6 is not ready before the link tells so.
pub(crate) fn v6_switched(writer: &mut Writer, link: u32, is_on: bool) -> Result<(), TableFull> {
    let Some(row) = writer.tables().links.get(link) else {
        return Ok(());
    };
    if !is_on && (!row.is_up() || row.mtu < V6_MIN_MTU) {
        return Ok(());
    }
    let after = Link {
        v6_disabled: !is_on,
        ..(**row).clone()
    };
    let is_ready = after.is_ready_for_v6();
    if row.v6_disabled == is_on {
        writer.apply(Change::PutLink(after))?;
    }
    match is_on && !is_ready {
        true => Ok(()),
        false => mark(writer, link, AF_INET6, !is_on),
    }
}

/// IPv6 was switched off on a link, and nothing said so
/// (`net.ipv6.route.skip_notify_on_dev_down`): its routes go too.
pub(crate) fn v6_disabled(writer: &mut Writer, link: u32) -> Result<(), TableFull> {
    mark(writer, link, AF_INET6, true)?;
    v6_down(writer, link)
}

/// Whether a link has IPv6 routes of a single path that may have been one of
/// several: those by a gateway (`rt6_qualify_for_ecmp`). One that died among
/// siblings outlives them. O(bodies over the link).
pub(crate) fn has_lone_paths(tables: &Tables, link: u32) -> bool {
    let is_lone = |body: &RouteBody| {
        let NextHops::One(hop) = &body.next_hops else {
            return false;
        };
        body.nexthop_id.is_none() && hop.gateway.is_some_and(|gateway| gateway.is_ipv6())
    };
    let mut bodies = tables.routes.bodies_over_link(link);
    bodies.any(|(_, body)| is_lone(body))
}

/// A link is up: its IPv6 hops are alive once IPv6 is ready on it
/// (`rt6_sync_up`), and dead until then, without a carrier or where IPv6 is
/// switched off.
pub(crate) fn v6_up(writer: &mut Writer, link: u32, is_ready: bool) -> Result<(), TableFull> {
    mark(writer, link, AF_INET6, !is_ready)
}

/// A link has no IPv6 any more: its IPv6 next hops go one by one, and with
/// the last of them the route (`fib6_ifdown` of `NETDEV_UNREGISTER`).
pub(crate) fn v6_gone(
    writer: &mut Writer,
    siblings: &mut Siblings,
    link: u32,
) -> Result<(), TableFull> {
    let over = writer.tables().routes.over_link(link);
    let routes: Vec<SharedRoute> = over
        .filter(|route| !is_v4(route) && route.body.nexthop_id.is_none())
        .map(|route| route.to_shared())
        .collect();
    for route in routes {
        let left = hops_left(&route.body, |hop| hop.link != link);
        let body = siblings.leave(&route, left);
        match body.next_hops == NextHops::None {
            true => writer.apply(Change::DeleteRoute(route))?,
            false => rewrite(writer, route, body)?,
        }
    }
    Ok(())
}

/// A link is up but lost its carrier: its next-hop objects go.
pub(crate) fn carrier_lost(writer: &mut Writer, link: u32) -> Result<(), TableFull> {
    drop_nexthops_of(writer, link)
}

/// A link is gone, and all that was on it.
pub(crate) fn link_gone(
    writer: &mut Writer,
    siblings: &mut Siblings,
    link: u32,
) -> Result<(), TableFull> {
    drop_nexthops_of(writer, link)?;
    v6_gone(writer, siblings, link)?;
    drop_routes(writer, link, |_, _| true)?;
    let tables = writer.tables();
    let addresses = tables
        .addresses
        .of_link(link)
        .map(|row| Change::DeleteAddress(row.key()));
    let neighbours = tables
        .neighbours
        .of_link(link)
        .map(|row| Change::DeleteNeighbour(row.key()));
    let fdb = tables
        .fdb
        .of_link(link)
        .map(|row| Change::DeleteFdb(row.key()));
    let on_it: Vec<Change> = addresses.chain(neighbours).chain(fdb).collect();
    apply_all(writer, on_it)?;
    writer.apply(Change::DeleteLink(link))?;
    rules_follow_names(writer)
}

/// A port of a bridge has another address: the entry of the old one is
/// another port's that has the same, or the bridge's, else it goes
/// (`fdb_delete_local`).
pub(crate) fn own_address_left(
    writer: &mut Writer,
    link: u32,
    own: LinkLayerAddress,
) -> Result<(), TableFull> {
    let of_port = writer.tables().fdb.of_link(link);
    let entries: Vec<Arc<FdbEntry>> = of_port
        .filter(|row| row.lladdr == own && row.state == state::PERMANENT)
        .cloned()
        .collect();
    for entry in entries {
        if let Some(master) = entry.master {
            inherited(writer, &entry, master)?;
        }
    }
    Ok(())
}

/// Gives a port's own entry to whoever has the same address, or drops it.
fn inherited(writer: &mut Writer, entry: &FdbEntry, master: u32) -> Result<(), TableFull> {
    let change = match heir(&writer.tables().links, entry, master) {
        Some(link) => Change::PutFdb(FdbEntry {
            link,
            ..entry.clone()
        }),
        None => Change::DeleteFdb(entry.key()),
    };
    writer.apply(change)
}

fn heir(links: &Links, entry: &FdbEntry, master: u32) -> Option<u32> {
    let ports = links.of_master(master).chain(links.get(master));
    let mut ports = ports.filter(|port| port.index != entry.link);
    let heir = ports.find(|port| port.address == entry.lladdr)?;
    Some(heir.index)
}

/// A link has another address: a macvlan on top of it in mode `passthru`
/// has it too (`macvlan_sync_address`).
pub(crate) fn address_passed_through(
    writer: &mut Writer,
    link: u32,
    address: LinkLayerAddress,
) -> Result<(), TableFull> {
    let follows = |upper: &&Arc<Link>| match &upper.kind_data {
        KindData::Macvlan(settings) => settings.mode == Some(MACVLAN_MODE_PASSTHRU),
        _ => false,
    };
    let above = writer.tables().links.on_top_of(link).filter(follows);
    let after: Vec<Change> = above
        .filter(|upper| upper.address != address)
        .map(|upper| {
            Change::PutLink(Link {
                address,
                ..(**upper).clone()
            })
        })
        .collect();
    apply_all(writer, after)
}

/// A link has another MTU: an ipvlan on top of it has it too
/// (`ipvlan_adjust_mtu`).
pub(crate) fn mtu_passed_through(
    writer: &mut Writer,
    link: u32,
    mtu: u32,
) -> Result<(), TableFull> {
    let follows = |upper: &&Arc<Link>| matches!(&upper.kind_data, KindData::Ipvlan(_));
    let above = writer.tables().links.on_top_of(link).filter(follows);
    let after: Vec<Change> = above
        .filter(|upper| upper.mtu != mtu)
        .map(|upper| {
            Change::PutLink(Link {
                mtu,
                ..(**upper).clone()
            })
        })
        .collect();
    apply_all(writer, after)
}

/// A port left its bridge: the bridge's entries for it go
/// (`br_fdb_delete_by_port`), its own address with them, unless another
/// port has the same.
pub(crate) fn port_left(writer: &mut Writer, link: u32, master: u32) -> Result<(), TableFull> {
    let entries: Vec<Arc<FdbEntry>> = writer
        .tables()
        .fdb
        .of_link(link)
        .filter(|row| row.master == Some(master))
        .cloned()
        .collect();
    for entry in entries {
        match entry.state {
            state::PERMANENT => inherited(writer, &entry, master)?,
            _ => writer.apply(Change::DeleteFdb(entry.key()))?,
        }
    }
    Ok(())
}

/// An IPv4 address is gone. With the last of its link, all IPv4 routes
/// over the link go (`fib_disable_ip`); routes that prefer it as their
/// source go from the main table (`fib_sync_down_addr`).
pub(crate) fn v4_address_gone(writer: &mut Writer, gone: &Address) -> Result<(), TableFull> {
    let (link, address) = (gone.link, gone.local);
    gateway_was_own(writer, address)?;
    let tables = writer.tables();
    let is_last = !tables
        .addresses
        .of_link(link)
        .any(|row| row.local.is_ipv4());
    if !outlives_primary(tables, gone) && !is_local(tables, link, address) {
        let of_vrf = table_of(&tables.links, link);
        let preferring: Vec<Change> = tables
            .routes
            .preferring(address)
            .filter(|route| route.table == of_vrf)
            .map(|route| Change::DeleteRoute(route.to_shared()))
            .collect();
        apply_all(writer, preferring)?;
    }
    if is_last {
        v4_flushed(writer, link)?;
    }
    Ok(())
}

/// Whether a secondary address has gone after the primary one of its subnet:
/// with its link (`inetdev_destroy`), for else it goes first. The kernel finds
/// nothing to do for it then, so routes that prefer it stay
/// (`fib_del_ifaddr`). O(primary addresses of the link), which come first.
fn outlives_primary(tables: &Tables, gone: &Address) -> bool {
    let is_secondary = |row: &Address| row.flags & address::flag::SECONDARY != 0;
    let subnet = |row: &Address| {
        let far = row.peer.unwrap_or(row.local);
        IpNet::new(far, row.prefix_len).map(|net| net.trunc()).ok()
    };
    let of_link = tables.addresses.of_link(gone.link);
    let mut primary = of_link.take_while(|row| row.local.is_ipv4() && !is_secondary(row));
    is_secondary(gone) && !primary.any(|row| subnet(row) == subnet(gone))
}

/// A link joined a VRF or left one: all its IPv4 routes go, those of host scope
/// too, which outlive that it is down (`fib_netdev_event`,
/// `NETDEV_CHANGEUPPER`).
pub(crate) fn vrf_changed(writer: &mut Writer, link: u32) -> Result<(), TableFull> {
    v4_flushed(writer, link)
}

/// All IPv4 routes over a link go; of several next hops the others stay
/// (`fib_sync_down_dev`, forced).
fn v4_flushed(writer: &mut Writer, link: u32) -> Result<(), TableFull> {
    mark(writer, link, AF_INET, true)?;
    drop_routes(writer, link, |tables, route| {
        is_v4(route)
            && all_hops(route.body, |hop| {
                let lost = hop.link == link || hop.flags & hop_flag::DEAD != 0;
                lost || hop_is_dead(&tables.links, hop)
            })
    })
}

/// Marks the IPv4 routes by a gateway that is an address of the host's own
/// no more: what the kernel makes of it was decided when each was made
/// (`fib_check_nh_v4_gw`).
fn gateway_was_own(writer: &mut Writer, gateway: IpAddr) -> Result<(), TableFull> {
    let routes = writer.tables().routes.via(gateway);
    let routes: Vec<SharedRoute> = routes
        .filter(|route| is_v4(route) && route.body.nexthop_id.is_none())
        .map(|route| route.to_shared())
        .collect();
    for route in routes {
        let mut body = (*route.body).clone();
        let hops = body.next_hops.as_mut_slice().iter_mut();
        for hop in hops.filter(|hop| hop.gateway == Some(gateway)) {
            hop.flags |= hop_flag::OWN_ONCE;
        }
        rewrite(writer, route, body)?;
    }
    Ok(())
}

/// An IPv6 address is gone: routes that preferred it as their source lose
/// the preference and stay (`rt6_remove_prefsrc`).
pub(crate) fn v6_address_gone(
    writer: &mut Writer,
    siblings: &mut Siblings,
    link: u32,
    address: IpAddr,
) -> Result<(), TableFull> {
    let over = |hop: &NextHop| hop.link == link;
    let preferring = writer.tables().routes.preferring(address);
    let preferring: Vec<SharedRoute> = preferring
        .filter(|route| route.body.next_hops.as_slice().iter().any(over))
        .map(|route| route.to_shared())
        .collect();
    for route in preferring {
        let body = siblings.change(&route, |hop, body| {
            if hop.link == link {
                body.preferred_source.take_if(|it| *it == address);
            }
        });
        rewrite(writer, route, body)?;
    }
    siblings.forget_source(link, address);
    Ok(())
}

/// Whether the kernel looks at the carrier of a link that became what is told
/// (`fib_netdev_event`, `NETDEV_CHANGE`): it goes up or down, its carrier
/// comes or goes, which it shows at once and looks at later (`linkwatch`),
/// another flag is set (`__dev_notify_flags`), or something is that makes no
/// event of its own (`netdev_state_change` of `do_setlink`).
pub(crate) fn is_noticed(before: &Link, now: &Link) -> bool {
    let state = |link: &Link| {
        let flags = link.flags & !(link_flag::PROMISC | link_flag::ALLMULTI);
        (flags, link.oper_state)
    };
    let of_state = Link {
        alias: now.alias.clone(),
        group: now.group,
        link_mode: now.link_mode,
        addr_gen_mode: now.addr_gen_mode,
        proto_down: now.proto_down,
        ..before.clone()
    };
    state(before) != state(now) || (!now.has_carrier() && of_state == *now)
}

/// The kernel looked at the carrier of a link: IPv4 hops over it are marked as
/// it is (`fib_sync_down_dev`, `fib_sync_up`). Those that are dead are not
/// marked when it goes, and lose their mark when it comes. O(bodies over the
/// link).
pub(crate) fn carrier_noticed(writer: &mut Writer, link: u32) -> Result<(), TableFull> {
    let row = writer.tables().links.get(link);
    let has_carrier = row.is_some_and(|row| row.has_carrier());
    let flags = |hop: &NextHop| match hop.flags & hop_flag::DEAD != 0 {
        _ if hop.link != link => hop.flags,
        true if has_carrier => hop.flags | hop_flag::UNMARKED,
        true => hop.flags,
        false => hop.flags & !hop_flag::UNMARKED,
    };
    let changes = |hop: &NextHop| flags(hop) != hop.flags;
    let routes = &writer.tables().routes;
    let changed: Vec<SharedRoute> = routes
        .bodies_over_link(link)
        .filter(|(_, body)| body.nexthop_id.is_none())
        .filter(|(_, body)| body.next_hops.as_slice().iter().any(changes))
        .flat_map(|(id, _)| routes.of_body(id))
        .filter(is_v4)
        .map(|route| route.to_shared())
        .collect();
    for route in changed {
        let mut body = (*route.body).clone();
        for hop in body.next_hops.as_mut_slice() {
            hop.flags = flags(hop);
        }
        rewrite(writer, route, body)?;
    }
    Ok(())
}

/// A link has another MTU: IPv6 routes over it that set one no smaller, or
/// the one that the link had, follow it unless theirs is locked
/// (`rt6_mtu_change_route`, `fib6_nh_mtu_change`). O(bodies over the link).
pub(crate) fn mtu_changed(
    writer: &mut Writer,
    siblings: &mut Siblings,
    link: u32,
    before: u32,
    now: u32,
) -> Result<(), TableFull> {
    let is_bound = |body: &RouteBody| {
        let is_several = body.next_hops.as_slice().len() > 1;
        mtu_of(body).is_some() || (is_several && !siblings.is_empty())
    };
    let routes = &writer.tables().routes;
    let bound: Vec<SharedRoute> = routes
        .bodies_over_link(link)
        .filter(|(_, body)| is_bound(body))
        .flat_map(|(id, _)| routes.of_body(id))
        .filter(|route| !is_v4(route))
        .map(|route| route.to_shared())
        .collect();
    for route in bound {
        let is_of_object = route.body.nexthop_id.is_some();
        let body = siblings.change(&route, |hop, body| {
            if is_of_object || hop.link == link {
                follow_mtu(body, before, now);
            }
        });
        rewrite(writer, route, body)?;
    }
    Ok(())
}

fn mtu_of(body: &RouteBody) -> Option<u32> {
    let metrics = body.metrics.as_ref()?;
    let is_locked = metrics.is_locked(Metric::Mtu.number());
    metrics.get(Metric::Mtu).filter(|_| !is_locked)
}

fn follow_mtu(body: &mut RouteBody, before: u32, now: u32) {
    let follows = mtu_of(body).is_some_and(|mtu| mtu >= now || mtu == before);
    if let Some(metrics) = body.metrics.as_mut().filter(|_| follows) {
        metrics.set(Metric::Mtu, now);
    }
}

/// A link is up again, or has an address again: its hops are alive
/// (`fib_sync_up`).
pub(crate) fn hops_revived(writer: &mut Writer, link: u32) -> Result<(), TableFull> {
    mark(writer, link, AF_INET, false)
}

/// A next-hop object is gone: the routes that use it go
/// (`__remove_nexthop_fib`), groups lose it (`remove_nexthop_from_groups`),
/// and groups that it was the last of go too.
pub(crate) fn nexthop_gone(writer: &mut Writer, id: u32) -> Result<(), TableFull> {
    let groups: Vec<Arc<Nexthop>> = writer.tables().nexthops.groups_with(id).cloned().collect();
    let routes = writer.tables().routes.of_nexthop(id);
    let routes: Vec<Change> = routes
        .map(|route| Change::DeleteRoute(route.to_shared()))
        .collect();
    apply_all(writer, routes)?;
    writer.apply(Change::DeleteNexthop(id))?;
    for group in groups {
        let mut left = (*group).clone();
        left.group.retain(|member| member.id != id);
        if left.group.is_empty() {
            nexthop_gone(writer, left.id)?;
        } else {
            let group_id = left.id;
            writer.apply(Change::PutNexthop(left))?;
            nexthop_changed(writer, group_id, false)?;
        }
    }
    Ok(())
}

/// A next-hop object changed: the routes that use it show its new
/// contents, and so do those that use its groups. Whether it was a blackhole
/// before: a route by one is shown as one (`fib_dump_info`,
/// `rt6_fill_node`).
pub(crate) fn nexthop_changed(
    writer: &mut Writer,
    id: u32,
    was_blackhole: bool,
) -> Result<(), TableFull> {
    let groups = writer
        .tables()
        .nexthops
        .groups_with(id)
        .map(|group| group.id);
    let ids: Vec<u32> = std::iter::once(id).chain(groups).collect();
    let object = writer.tables().nexthops.get(id);
    let is_blackhole = object.is_some_and(|object| object.blackhole);
    for id in ids {
        let tables = writer.tables();
        let hops = [true, false].map(|is_v4| contents(tables, id, is_v4));
        let users = tables.routes.of_nexthop(id);
        let users: Vec<SharedRoute> = users.map(|route| route.to_shared()).collect();
        for route in users {
            let mut body = (*route.body).clone();
            if body.next_hops != NextHops::None {
                let [v4, v6] = &hops;
                body.next_hops = if is_v4(&route) { v4 } else { v6 }.clone();
            }
            body.kind = match body.kind {
                kind::UNICAST if is_blackhole => kind::BLACKHOLE,
                kind::BLACKHOLE if was_blackhole && !is_blackhole => kind::UNICAST,
                same => same,
            };
            rewrite(writer, route, body)?;
        }
    }
    Ok(())
}

/// Rules that name a link say whether it is there (`fib_rules_event`), and
/// those that jump whether their target is.
pub(crate) fn rules_follow_names(writer: &mut Writer) -> Result<(), TableFull> {
    let tables = writer.tables();
    let changed: Vec<(Rule, Rule)> = tables
        .rules
        .iter()
        .filter(|rule| rule.iif.is_some() || rule.oif.is_some() || rule.goto.is_some())
        .filter_map(|rule| {
            let flags = rule_flags(tables, rule);
            (flags != rule.flags).then(|| {
                let after = Rule {
                    flags,
                    ..(**rule).clone()
                };
                ((**rule).clone(), after)
            })
        })
        .collect();
    for (before, after) in changed {
        writer.apply(Change::ReplaceRule(before, after))?;
    }
    Ok(())
}

/// The rule that an event means: equal but for what follows from names.
pub(crate) fn same_rule(tables: &Tables, rule: &Rule) -> Option<Rule> {
    tables
        .rules
        .of_family(rule.family)
        .find(|row| {
            let same_flags = Rule {
                flags: rule.flags,
                ..(***row).clone()
            };
            row.priority == rule.priority && same_flags == *rule
        })
        .map(|row| (**row).clone())
}

fn rule_flags(tables: &Tables, rule: &Rule) -> u32 {
    let detached = |name: &Option<Box<str>>| {
        name.as_ref().is_some_and(|name| {
            let bearer = tables.links.by_name(name);
            bearer.is_none_or(|link| link.name != *name)
        })
    };
    let lost = rule.action == action::GOTO
        && !tables
            .rules
            .of_family(rule.family)
            .any(|row| Some(row.priority) == rule.goto);
    let mut flags =
        rule.flags & !(rule_flag::IIF_DETACHED | rule_flag::OIF_DETACHED | rule_flag::UNRESOLVED);
    for (condition, bit) in [
        (detached(&rule.iif), rule_flag::IIF_DETACHED),
        (detached(&rule.oif), rule_flag::OIF_DETACHED),
        (lost, rule_flag::UNRESOLVED),
    ] {
        if condition {
            flags |= bit;
        }
    }
    flags
}

/// Whether an address that a link has lost is the host's still, by another
/// link or by a prefix that is local as a whole
/// (`inet_addr_type_dev_table`). Its own route may not have gone yet.
fn is_local(tables: &Tables, link: u32, address: IpAddr) -> bool {
    let table = match table_of(&tables.links, link) {
        table_id::MAIN => table_id::LOCAL,
        of_vrf => of_vrf,
    };
    let is_its_own = |route: &table::RouteRef<'_>| {
        let len = route.prefix.prefix_len();
        let over = route.body.next_hops.as_slice();
        len == 32 && over.iter().all(|hop| hop.link == link)
    };
    let mut routes = tables.routes.matching(table, address);
    routes
        .find(|route| !is_its_own(route))
        .is_some_and(|route| route.body.kind == kind::LOCAL)
}

fn drop_nexthops_of(writer: &mut Writer, link: u32) -> Result<(), TableFull> {
    let ids: Vec<u32> = writer
        .tables()
        .nexthops
        .of_link(link)
        .map(|row| row.id)
        .collect();
    ids.into_iter().try_for_each(|id| nexthop_gone(writer, id))
}

/// Drops the routes over a link for which `gone` holds. Routes that use
/// next-hop objects go with those.
fn drop_routes(
    writer: &mut Writer,
    link: u32,
    gone: impl Fn(&Tables, &table::RouteRef<'_>) -> bool,
) -> Result<(), TableFull> {
    let tables = writer.tables();
    let routes: Vec<Change> = tables
        .routes
        .over_link(link)
        .filter(|route| route.body.nexthop_id.is_none() && gone(tables, route))
        .map(|route| Change::DeleteRoute(route.to_shared()))
        .collect();
    apply_all(writer, routes)
}

/// Marks the hops over a link dead, or alive, in the routes of a family that
/// have several. A path of an IPv6 route that died and has outlived its
/// siblings is marked alive too.
fn mark(writer: &mut Writer, link: u32, family: u8, is_dead: bool) -> Result<(), TableFull> {
    let routes = &writer.tables().routes;
    let changes = |hop: &NextHop| hop.link == link && (hop.flags & hop_flag::DEAD != 0) != is_dead;
    let alone = (family == AF_INET6 && !is_dead).then(|| routes.bodies_over_link(link));
    let alone = alone.into_iter().flatten();
    let alone = alone.filter(|(_, body)| matches!(body.next_hops, NextHops::One(_)));
    let changed: Vec<SharedRoute> = routes
        .bodies_of_several_over_link(link)
        .chain(alone)
        .filter(|(_, body)| body.nexthop_id.is_none())
        .filter(|(_, body)| body.next_hops.as_slice().iter().any(changes))
        .flat_map(|(id, _)| routes.of_body(id))
        .filter(|route| is_v4(route) == (family == AF_INET))
        .map(|route| route.to_shared())
        .collect();
    for route in changed {
        let mut body = (*route.body).clone();
        let hops = body.next_hops.as_mut_slice().iter_mut();
        for hop in hops.filter(|hop| hop.link == link) {
            hop.flags &= !hop_flag::DEAD;
            if is_dead {
                // It dies with both marks (`fib_sync_down_dev`).
                hop.flags &= !hop_flag::UNMARKED;
                hop.flags |= hop_flag::DEAD;
            }
        }
        rewrite(writer, route, body)?;
    }
    Ok(())
}

/// Gives a route another body, in its own place.
pub(crate) fn rewrite(
    writer: &mut Writer,
    route: SharedRoute,
    body: RouteBody,
) -> Result<(), TableFull> {
    if *route.body == body {
        return Ok(());
    }
    let place = writer.ordinal_of(&route);
    let after = route.with_body(body);
    writer.apply(Change::DeleteRoute(route))?;
    let place = place.map_or(Placement::Last, Placement::At);
    writer.apply(Change::PutRoute(after, place))
}

/// The next hops that a route of a family shows for an object: of a group of
/// one IPv6 has a list, IPv4 has none (`rt6_fill_node`, `fib_dump_info`).
fn contents(tables: &Tables, id: u32, is_v4: bool) -> NextHops {
    let Some(object) = tables.nexthops.get(id) else {
        return NextHops::None;
    };
    if object.group.is_empty() {
        return NextHops::One(plain_hop(tables, object));
    }
    if let [only] = &*object.group {
        let Some(nexthop) = tables.nexthops.get(only.id) else {
            return NextHops::None;
        };
        if is_v4 {
            return NextHops::One(plain_hop(tables, nexthop));
        }
    }
    let members = object.group.iter().filter_map(|member| {
        let nexthop = tables.nexthops.get(member.id)?;
        Some(hop_of(nexthop, member.weight as u16))
    });
    NextHops::Many(members.collect())
}

/// The next hop of an object that is no group; a blackhole is over the
/// loopback (`nexthop_create`).
fn plain_hop(tables: &Tables, object: &Nexthop) -> NextHop {
    let mut hop = hop_of(object, 1);
    if object.blackhole {
        let mut links = tables.links.iter();
        let loopback = links.find(|link| link.flags & link_flag::LOOPBACK != 0);
        hop.link = loopback.map_or(0, |loopback| loopback.index);
    }
    hop
}

fn hop_of(object: &Nexthop, weight: u16) -> NextHop {
    NextHop {
        link: object.link.unwrap_or(0),
        gateway: object.gateway,
        flags: object.flags,
        weight,
        realms: 0,
        encap: object.encap.clone(),
    }
}

fn is_v4<B>(route: &Route<B>) -> bool {
    matches!(route.prefix, IpNet::V4(_))
}

fn all_hops(body: &RouteBody, dead: impl Fn(&NextHop) -> bool) -> bool {
    body.next_hops.as_slice().iter().all(dead)
}

fn hop_is_dead(links: &Links, hop: &NextHop) -> bool {
    !links.get(hop.link).is_some_and(|link| link.is_up())
}

/// The table that a link's routes live in: the main one, or its VRF's.
pub(crate) fn table_of(links: &Links, link: u32) -> u32 {
    let master = links.get(link).and_then(|link| links.get(link.master?));
    master
        .and_then(|master| master.vrf_table)
        .unwrap_or(table_id::MAIN)
}

fn apply_all(writer: &mut Writer, changes: Vec<Change>) -> Result<(), TableFull> {
    changes
        .into_iter()
        .try_for_each(|change| writer.apply(change))
}
