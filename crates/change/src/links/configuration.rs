//! Settings of links under `/proc/sys/net/ipv4/conf` and `ipv6/conf`: read
//! from the listing of links, which has them all as numbers, and written to
//! their files where a link that was made again has another. Called by
//! `beside`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result};
use linux::{Namespace, dump};
use netlink::decode;
use netlink::request::Dump;
use serde::{Deserialize, Serialize};

/// `IPV4_DEVCONF_…` of `linux/ip.h`, in their order.
const V4: &[&str] = &[
    "forwarding",
    "",
    "proxy_arp",
    "accept_redirects",
    "secure_redirects",
    "send_redirects",
    "shared_media",
    "rp_filter",
    "accept_source_route",
    "bootp_relay",
    "log_martians",
    "tag",
    "arp_filter",
    "medium_id",
    "disable_xfrm",
    "disable_policy",
    "force_igmp_version",
    "arp_announce",
    "arp_ignore",
    "promote_secondaries",
    "arp_accept",
    "arp_notify",
    "accept_local",
    "src_valid_mark",
    "proxy_arp_pvlan",
    "route_localnet",
    "",
    "",
    "ignore_routes_with_linkdown",
    "drop_unicast_in_l2_multicast",
    "drop_gratuitous_arp",
    "bc_forwarding",
    "arp_evict_nocarrier",
];

/// `DEVCONF_…` of `linux/ipv6.h`, in their order; those that a file has in
/// another unit, that follow from others or that the row of a link has
/// (MTU, how addresses are made) have no name here.
const V6: &[&str] = &[
    "forwarding",
    "hop_limit",
    "",
    "accept_ra",
    "accept_redirects",
    "autoconf",
    "dad_transmits",
    "router_solicitations",
    "",
    "",
    "use_tempaddr",
    "temp_valid_lft",
    "temp_prefered_lft",
    "regen_max_retry",
    "max_desync_factor",
    "max_addresses",
    "force_mld_version",
    "accept_ra_defrtr",
    "accept_ra_pinfo",
    "accept_ra_rtr_pref",
    "",
    "accept_ra_rt_info_max_plen",
    "proxy_ndp",
    "optimistic_dad",
    "accept_source_route",
    "",
    "disable_ipv6",
    "accept_dad",
    "force_tllao",
    "ndisc_notify",
    "",
    "",
    "suppress_frag_ndisc",
    "accept_ra_from_local",
    "use_optimistic",
    "accept_ra_mtu",
    "",
    "use_oif_addrs_only",
    "accept_ra_min_hop_limit",
    "ignore_routes_with_linkdown",
    "drop_unicast_in_l2_multicast",
    "drop_unsolicited_na",
    "keep_addr_on_down",
    "",
    "seg6_enabled",
    "seg6_require_hmac",
    "enhanced_dad",
    "",
    "disable_policy",
    "accept_ra_rt_info_min_plen",
    "ndisc_tclass",
];

const FAMILIES: [(&str, &[&str]); 2] = [("ipv4", V4), ("ipv6", V6)];

/// Those of a link, by family.
type Values = [Vec<u32>; 2];

/// Settings of links: most links have those of another.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Configuration {
    each: Vec<Values>,
    /// Index of the link, its name, and which of them it has.
    links: Vec<(u32, Box<str>, usize)>,
}

impl Configuration {
    /// That of some links.
    pub fn read(namespace: &Namespace, links: &HashSet<u32>) -> Result<Self> {
        let mut all = Self::default();
        let mut known: HashMap<Values, usize> = HashMap::new();
        let mut malformed = None;
        let request = Dump::Links { counters: false };
        dump(namespace, &request, &mut |message| {
            let index = decode::link_index(message.payload);
            let Some(index) = index.filter(|index| links.contains(index)) else {
                return ControlFlow::Continue(());
            };
            match decode::link(message.payload) {
                Ok(link) => {
                    let found = decode::link_configuration(message.payload);
                    let which = *known.entry(found.clone()).or_insert_with(|| {
                        all.each.push(found);
                        all.each.len() - 1
                    });
                    all.links.push((index, link.name, which));
                }
                Err(error) => malformed = Some(error),
            }
            ControlFlow::Continue(())
        })
        .context("listing settings of links")?;
        malformed.map_or(Ok(all), |error| Err(error.into()))
    }

    /// Sets again what differs; `now`: indexes that links have now, by those
    /// they had. Gives how many were set, and which could not be.
    pub fn put_back(
        &self,
        namespace: &Namespace,
        now: &HashMap<u32, u32>,
    ) -> Result<(usize, NotSet)> {
        let indexes: HashSet<u32> = now.values().copied().collect();
        let after = Self::read(namespace, &indexes)?;
        let links = after.links.iter();
        let found: HashMap<u32, usize> = links.map(|(index, _, which)| (*index, *which)).collect();
        let mut wanted = Vec::new();
        for (index, name, which) in &self.links {
            let Some(current) = now.get(index).and_then(|index| found.get(index)) else {
                continue;
            };
            let (Some(before), Some(after)) = (self.each.get(*which), after.each.get(*current))
            else {
                continue;
            };
            let pairs = before.iter().zip(after);
            for ((family, names), (before, after)) in FAMILIES.iter().zip(pairs) {
                for (setting, (before, after)) in names.iter().zip(before.iter().zip(after)) {
                    if before != after && !setting.is_empty() {
                        let path = format!("/proc/sys/net/{family}/conf/{name}/{setting}");
                        wanted.push((name.clone(), path, before.cast_signed()));
                    }
                }
            }
        }
        if wanted.is_empty() {
            return Ok((0, Vec::new()));
        }
        Ok(namespace.run(|| written(wanted))?)
    }
}

/// Links with a setting that could not be set, and why.
type NotSet = Vec<(Box<str>, String)>;

/// Writes values to files of the namespace that the thread is in.
fn written(wanted: Vec<(Box<str>, String, i32)>) -> (usize, NotSet) {
    let mut failed = Vec::new();
    let many = wanted.len();
    for (name, path, value) in wanted {
        if let Err(error) = fs::write(Path::new(&path), value.to_string()) {
            failed.push((name, format!("{path}: {error}")));
        }
    }
    (many - failed.len(), failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of `linux/ip.h` (from 1) and `linux/ipv6.h` (from 0).
    #[test]
    fn names_stand_where_the_kernel_has_them() {
        let at = |names: &[&str], name: &str| names.iter().position(|one| *one == name);
        for (name, number) in [
            ("forwarding", 1),
            ("rp_filter", 8),
            ("arp_announce", 18),
            ("route_localnet", 26),
            ("ignore_routes_with_linkdown", 29),
            ("arp_evict_nocarrier", 33),
        ] {
            assert_eq!(at(V4, name).map(|at| at + 1), Some(number), "{name}");
        }
        for (name, number) in [
            ("forwarding", 0),
            ("accept_ra", 3),
            ("proxy_ndp", 22),
            ("disable_ipv6", 26),
            ("keep_addr_on_down", 42),
            ("ndisc_tclass", 50),
        ] {
            assert_eq!(at(V6, name), Some(number), "{name}");
        }
    }
}
