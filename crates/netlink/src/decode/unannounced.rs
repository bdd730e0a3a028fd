//! What a link's message tells that moves without an announcement, beside
//! the counters.

use table::PortData;
use table::row::counters::{BridgeTimers, PortTimers, Unannounced};
use table::row::link::bridge::BridgePort;

use super::{link_of, split};
use crate::attribute::Attributes;
use crate::kernel::ifla;
use crate::link_data;
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

/// The timers of a bridge's port, from a message of `AF_BRIDGE` as
/// [`crate::request::Dump::BridgePorts`] asks for it; `None`: it tells none. A
/// port's driver may answer beside its bridge, with flags alone
/// (`ndo_dflt_bridge_getlink`).
pub fn bridge_port_timers(payload: &[u8]) -> Result<Option<(u32, PortTimers)>, Malformed> {
    const MESSAGE: &str = "bridge's port";
    let (header, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let [_, _, _, _, i0, i1, i2, i3, ..] = *header;
    let link = link_of([i0, i1, i2, i3], MESSAGE, "ifi_index")?;
    while let Some(attribute) = attributes.step()? {
        if attribute.kind == ifla::PROTINFO {
            return Ok(port(attribute.nested())?.map(|timers| (link, timers)));
        }
    }
    Ok(None)
}

/// The settings of a bridge's port, from a message of `AF_BRIDGE`; `None`: it
/// tells none.
pub fn bridge_port(payload: &[u8]) -> Result<Option<Box<BridgePort>>, Malformed> {
    let (_, mut attributes) = split::<HEADER>(payload, "bridge's port")?;
    while let Some(attribute) = attributes.step()? {
        if attribute.kind == ifla::PROTINFO
            && let PortData::Bridge(port) = link_data::of_port("bridge", attribute.nested())?
        {
            return Ok(Some(port));
        }
    }
    Ok(None)
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
                let timers = timers(attribute.nested(), 16)?;
                found.bridge = timers.map(|[hello, tcn, topology_change, gc]| BridgeTimers {
                    hello,
                    tcn,
                    topology_change,
                    gc,
                });
            }
            ifla::INFO_SLAVE_DATA if is_port => {
                found.port = port(attribute.nested())?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// `IFLA_BRPORT_MESSAGE_AGE_TIMER` and the two behind it.
fn port(data: Attributes<'_>) -> Result<Option<PortTimers>, Malformed> {
    let timers = timers(data, 21)?;
    Ok(timers.map(|[message_age, forward_delay, hold]| PortTimers {
        message_age,
        forward_delay,
        hold,
    }))
}

/// The timers with numbers from `first` on; `None`: none is there.
fn timers<const N: usize>(
    mut data: Attributes<'_>,
    first: u16,
) -> Result<Option<[u64; N]>, Malformed> {
    let mut timers = [0; N];
    let mut is_any = false;
    while let Some(attribute) = data.step()? {
        let place = attribute.kind.checked_sub(first).map(usize::from);
        if let Some(timer) = place.and_then(|place| timers.get_mut(place)) {
            *timer = u64::from_ne_bytes(attribute.array()?);
            is_any = true;
        }
    }
    Ok(is_any.then_some(timers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attribute: its length, kind and value.
    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + value.len()).unwrap_or_default();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message_of(settings: &[u8]) -> Vec<u8> {
        let mut message = vec![7, 0, 1, 0];
        message.extend_from_slice(&9_u32.to_ne_bytes());
        message.resize(HEADER, 0);
        message.extend(attribute(ifla::PROTINFO | 0x8000, settings));
        message
    }

    #[test]
    fn a_driver_that_answers_beside_the_bridge_tells_no_timers() {
        let flags_alone = message_of(&attribute(4, &[1]));
        assert_eq!(bridge_port_timers(&flags_alone), Ok(None));
        let forward_delay = attribute(22, &853_u64.to_ne_bytes());
        let timers = PortTimers {
            forward_delay: 853,
            ..PortTimers::default()
        };
        let told = bridge_port_timers(&message_of(&forward_delay));
        assert_eq!(told, Ok(Some((9, timers))));
    }
}
