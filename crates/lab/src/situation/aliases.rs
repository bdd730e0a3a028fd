//! Report 1: an access router that gives each customer a /30 of its own,
//! 4,096 alias addresses on one interface.

use std::fmt::Write;
use std::net::Ipv4Addr;

use anyhow::Result;

use super::neighbours;
use crate::Netns;

/// The interface's name in the report.
pub const LINK: &str = "em1";
/// Alias addresses: 10.0.0.0/18 in pieces of four.
pub const ADDRESSES: u32 = 4_096;
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

/// Puts 10.0.0.0/18 on `em1`, split into /30s: the first address of each,
/// with the last as broadcast. Then `neighbours` permanent neighbours: the
/// customers, second address of each /30, and further ones from
/// 10.64.0.1 on. Some 1.5 s, most of it the kernel's, which walks all
/// addresses for each it adds.
pub fn build(netns: &Netns, neighbours: usize) -> Result<()> {
    super::wire(netns, LINK)?;
    let mut batch = String::new();
    for customer in 0..ADDRESSES {
        let [_, own, _, broadcast] = subnet(customer);
        writeln!(batch, "addr add {own}/30 broadcast {broadcast} dev {LINK}")?;
    }
    netns.ip_batch(&batch)?;
    let addresses = (0..ADDRESSES).map(customer).chain(neighbours::addresses());
    neighbours::load(netns, LINK, addresses.take(neighbours))
}

/// The four addresses of a customer's /30.
fn subnet(customer: u32) -> [Ipv4Addr; 4] {
    let base = u32::from(FIRST) + customer * 4;
    [base, base + 1, base + 2, base + 3].map(Ipv4Addr::from)
}

/// The customer's own address.
fn customer(number: u32) -> Ipv4Addr {
    let [_, _, customer, _] = subnet(number);
    customer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;

    #[test]
    fn the_reporters_numbers() {
        let text = subnet(4_095).map(|address| address.to_string());
        assert_eq!(
            text,
            ["10.0.63.252", "10.0.63.253", "10.0.63.254", "10.0.63.255"]
        );
    }

    #[test]
    fn the_kernel_holds_them() {
        let Some(netns) = skip::unless(Netns::new("aliases")) else {
            return;
        };
        build(&netns, 5_000).unwrap();
        let addresses = netns
            .ip(&["-4", "-o", "addr", "show", "dev", LINK])
            .unwrap();
        assert_eq!(addresses.lines().count(), ADDRESSES as usize);
        assert!(addresses.contains("10.0.5.81/30 brd 10.0.5.83"));
        let neighbours = netns.ip(&["-4", "neigh", "show", "dev", LINK]).unwrap();
        assert_eq!(neighbours.lines().count(), 5_000);
        assert!(neighbours.contains("10.0.5.82 lladdr"));
    }
}
