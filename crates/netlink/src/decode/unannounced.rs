//! What a link's message tells that moves without an announcement, beside
//! the counters: for who lists links himself.

use table::row::counters::{BridgeTimers, PortTimers, Unannounced};

use super::split;
use crate::attribute::Attributes;
use crate::kernel::ifla;
use crate::malformed::Malformed;

const HEADER: usize = 16;

/// What of a link's message is no part of its row. What cannot be read is
/// left out. O(attributes), no allocation.
pub fn unannounced(payload: &[u8]) -> Unannounced {
    let mut found = Unannounced::default();
    // What was read before an attribute that is malformed is true.
    let _ = read(payload, &mut found);
    found
}

fn read(payload: &[u8], found: &mut Unannounced) -> Result<(), Malformed> {
    let (_, mut attributes) = split::<HEADER>(payload, "link")?;
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            ifla::CARRIER_CHANGES => found.carrier_changes = Some(attribute.u32()?),
            ifla::LINKINFO => info(attribute.nested(), found)?,
            _ => {}
        }
    }
    Ok(())
}

/// The kinds come before their data, as the kernel writes them.
fn info(mut info: Attributes<'_>, found: &mut Unannounced) -> Result<(), Malformed> {
    const BRIDGE: &[u8] = b"bridge\0";
    let (mut is_bridge, mut is_port) = (false, false);
    while let Some(attribute) = info.step()? {
        match attribute.kind {
            ifla::INFO_KIND => is_bridge = attribute.value == BRIDGE,
            ifla::INFO_SLAVE_KIND => is_port = attribute.value == BRIDGE,
            ifla::INFO_DATA if is_bridge => {
                // `IFLA_BR_HELLO_TIMER` and the three behind it.
                let [hello, tcn, topology_change, gc] = timers(attribute.nested(), 16)?;
                found.bridge = Some(BridgeTimers {
                    hello,
                    tcn,
                    topology_change,
                    gc,
                });
            }
            ifla::INFO_SLAVE_DATA if is_port => {
                // `IFLA_BRPORT_MESSAGE_AGE_TIMER` and the two behind it.
                let [message_age, forward_delay, hold] = timers(attribute.nested(), 21)?;
                found.port = Some(PortTimers {
                    message_age,
                    forward_delay,
                    hold,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The timers with numbers from `first` on.
fn timers<const N: usize>(mut data: Attributes<'_>, first: u16) -> Result<[u64; N], Malformed> {
    let mut timers = [0; N];
    while let Some(attribute) = data.step()? {
        let place = attribute.kind.checked_sub(first).map(usize::from);
        if let Some(timer) = place.and_then(|place| timers.get_mut(place)) {
            *timer = u64::from_ne_bytes(attribute.array()?);
        }
    }
    Ok(timers)
}
