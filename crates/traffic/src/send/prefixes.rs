//! The headers of a plan's flows. For the ways that build frames or packets
//! here.

use std::net::IpAddr;

use anyhow::Result;

use super::flows::{Flows, Vary};
use super::frame::{Link, Prefix};
use super::plan::Plan;

/// The first of the ports that nobody registers.
const FIRST_DYNAMIC_PORT: u16 = 49_152;

/// The headers of a core's flows.
pub fn prefixes(
    plan: &Plan,
    flows: &[u32],
    link: Option<Link>,
    from: IpAddr,
) -> Result<Vec<Prefix>> {
    let all = sources(plan, from)?;
    Ok(flows
        .iter()
        .map(|flow| {
            let (source, to) = all.get(*flow);
            Prefix::new(link, source, to, plan.payload_bytes)
        })
        .collect())
}

/// The plan's flows from an address, with a port where none was said: one
/// that a socket would be given, from the dynamic ports (RFC 6335 §6).
pub fn sources(plan: &Plan, from: IpAddr) -> Result<Flows> {
    let mut source = plan.flows.source();
    source.set_ip(from);
    if source.port() == 0 {
        let room = u32::from(u16::MAX - FIRST_DYNAMIC_PORT);
        let flows = match plan.flows.vary() {
            Vary::SourcePort => plan.flows.count(),
            _ => 1,
        };
        source.set_port(match room.checked_sub(flows) {
            Some(room) => FIRST_DYNAMIC_PORT + (u32::from(plan.run) % (room + 1)) as u16,
            None => 1,
        });
    }
    plan.flows.with_source(source)
}
