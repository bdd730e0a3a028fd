//! Which addresses and ports are the translation's, told to the program at
//! XDP: again after each reload. Called by `live`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use dataplane::xdp::{Claim, Forwarding, MAX_ALIASES};
use ipnet::Ipv4Net;
use nat::Nat;
use nat::rules::Redirect;
use packet::protocol::{TCP, UDP};

/// What the program was told.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Alias addresses, in as few prefixes as hold no others.
    aliases: BTreeSet<Ipv4Net>,
    /// Ports that rules have, whatever listens there.
    claims: BTreeMap<u16, Claim>,
}

impl Ends {
    /// Those of an engine.
    pub fn of(nat: &Nat) -> Result<Self> {
        let mut addresses = nat.config().addresses.clone();
        let mut claims = BTreeMap::new();
        let mut place = 0;
        while let Some((_, redirect, next)) = nat.rules().next_from(place) {
            place = next;
            addresses.extend(redirect.alias);
            claim(redirect, &mut claims);
        }
        let single: Vec<Ipv4Net> = addresses.into_iter().map(Ipv4Net::from).collect();
        let aliases: BTreeSet<Ipv4Net> = Ipv4Net::aggregate(&single).into_iter().collect();
        if aliases.len() > MAX_ALIASES as usize {
            let found = aliases.len();
            bail!("the alias addresses are {found} prefixes: there may be {MAX_ALIASES}");
        }
        Ok(Self { aliases, claims })
    }

    /// Tells the program these where they differ from what it was told.
    pub fn tell(&mut self, now: Self, forwarding: &Forwarding) -> Result<()> {
        for prefix in now.aliases.difference(&self.aliases) {
            forwarding.name_alias(prefix.network(), prefix.prefix_len())?;
        }
        for prefix in self.aliases.difference(&now.aliases) {
            forwarding.forget_alias(prefix.network(), prefix.prefix_len())?;
        }
        for port in self
            .claims
            .keys()
            .filter(|port| !now.claims.contains_key(port))
        {
            forwarding.claim(*port, Claim::default())?;
        }
        for (port, claim) in &now.claims {
            if self.claims.get(port) != Some(claim) {
                forwarding.claim(*port, *claim)?;
            }
        }
        *self = now;
        Ok(())
    }
}

/// Notes the ports that a redirect has.
fn claim(redirect: &Redirect, claims: &mut BTreeMap<u16, Claim>) {
    let Redirect {
        protocol,
        alias_port: first,
        ports,
        ..
    } = *redirect;
    let last = first.saturating_add(ports.saturating_sub(1));
    let (ports, is_tcp, is_udp) = match protocol {
        // A whole address: its ports of all protocols.
        None => (0..=u16::MAX, true, true),
        Some(TCP) => (first..=last, true, false),
        Some(UDP) => (first..=last, false, true),
        Some(_) => return,
    };
    for port in ports {
        let claim = claims.entry(port).or_default();
        claim.tcp |= is_tcp;
        claim.udp |= is_udp;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use nat::Config;

    use super::*;

    #[test]
    fn aliases_and_ports_of_rules_are_named() {
        let aliases: Vec<Ipv4Addr> = (4..8).map(|last| [192, 0, 2, last].into()).collect();
        let mut nat = Nat::new(Config::new(&aliases)).unwrap();
        let inside = Ipv4Addr::new(10, 0, 0, 1);
        let web = Redirect::port(TCP, inside, 80, 8_080).ports(2);
        nat.rules_mut().insert(web).unwrap();
        let dns = Redirect::port(UDP, inside, 53, 8_081);
        nat.rules_mut().insert(dns).unwrap();
        nat.rules_mut()
            .insert(Redirect::protocol(47, inside))
            .unwrap();
        let ends = Ends::of(&nat).unwrap();
        let prefix: Ipv4Net = "192.0.2.4/30".parse().unwrap();
        assert_eq!(ends.aliases, BTreeSet::from([prefix]));
        let claim = |tcp, udp| Claim { tcp, udp };
        let wanted = [(8_080, claim(true, false)), (8_081, claim(true, true))];
        assert_eq!(ends.claims, BTreeMap::from(wanted));
        // A whole address has all its ports.
        let whole = Redirect::address(inside, [198, 51, 100, 1].into());
        nat.rules_mut().insert(whole).unwrap();
        let ends = Ends::of(&nat).unwrap();
        assert_eq!((ends.aliases.len(), ends.claims.len()), (2, 1 << 16));
    }
}
