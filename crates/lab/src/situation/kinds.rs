//! Links of ten kinds in any number: loopback, bridge, port of a bridge,
//! veth, macvlan, macvtap, VXLAN, ifb, TUN and TAP.

use std::fmt::Write;

use anyhow::Result;

use crate::Netns;

/// Links of a set: one of each kind but the loopback.
pub const OF_A_SET: usize = 9;

/// Makes so many sets of links, with addresses on two of each. Some 15 ms a
/// set.
pub fn build(netns: &Netns, sets: usize) -> Result<()> {
    let mut batch = "link set lo up\n".to_owned();
    for set in 1..=sets {
        let (high, low) = (set >> 8, set & 255);
        writeln!(batch, "link add br{set} type bridge")?;
        writeln!(batch, "link add a{set} type veth peer name b{set}")?;
        writeln!(batch, "link set a{set} master br{set}")?;
        writeln!(
            batch,
            "link add m{set} link b{set} type macvlan mode bridge"
        )?;
        writeln!(batch, "link add t{set} link b{set} type macvtap mode vepa")?;
        writeln!(batch, "link add x{set} type vxlan id {set} dstport 4789")?;
        writeln!(batch, "link add f{set} type ifb")?;
        writeln!(batch, "tuntap add dev u{set} mode tun")?;
        writeln!(batch, "tuntap add dev p{set} mode tap multi_queue")?;
        writeln!(batch, "link set b{set} up alias \"uplink {set}\" group 7")?;
        writeln!(batch, "link set br{set} up")?;
        writeln!(batch, "addr add 10.{high}.{low}.1/24 brd + dev br{set}")?;
        writeln!(
            batch,
            "addr add 172.16.{high}.{low}/32 dev b{set} label b{set}:x"
        )?;
    }
    netns.ip_batch(&batch)
}

/// What `ip -j -d` tells, without the timers of bridges, which run between
/// two questions.
pub fn steady(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find("_timer\":") {
        let (before, after) = rest.split_at(at + "_timer\":".len());
        out.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;

    #[test]
    fn the_kernel_holds_them() {
        let Some(netns) = skip::unless(Netns::new("kinds")) else {
            return;
        };
        build(&netns, 2).unwrap();
        let links = netns.ip(&["-br", "link"]).unwrap();
        assert_eq!(links.lines().count(), 1 + 2 * OF_A_SET, "{links}");
        let json = netns.ip(&["-j", "-d", "link"]).unwrap();
        let steady = steady(&json);
        assert!(steady.contains("\"gc_timer\":,") && steady.len() < json.len());
    }
}
