//! Interfaces in any number, each with an address.

use std::fmt::Write;
use std::net::Ipv4Addr;

use anyhow::Result;

use crate::Netns;

/// Addresses come from here, two to a pair.
const FIRST: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);

/// Makes `count` interfaces (rounded up to an even number) as veth pairs
/// `testa1` and `testb1`, `testa2`…, all up, an IPv4 address each (both
/// ends of a /31). Some 0.5 ms each.
pub fn build(netns: &Netns, count: usize) -> Result<()> {
    let mut batch = String::new();
    for (pair, low) in (1..=count.div_ceil(2)).zip((u32::from(FIRST)..).step_by(2)) {
        let [low, high] = [low, low + 1].map(Ipv4Addr::from);
        writeln!(
            batch,
            "link add testa{pair} type veth peer name testb{pair}"
        )?;
        for (end, address) in [('a', low), ('b', high)] {
            writeln!(batch, "addr add {address}/31 dev test{end}{pair}")?;
            writeln!(batch, "link set test{end}{pair} up")?;
        }
    }
    netns.ip_batch(&batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;

    #[test]
    fn the_kernel_holds_them() {
        let Some(netns) = skip::unless(Netns::new("links")) else {
            return;
        };
        build(&netns, 9).unwrap();
        let addresses = netns.ip(&["-4", "-br", "addr"]).unwrap();
        assert_eq!(addresses.matches("/31").count(), 10, "{addresses}");
    }
}
