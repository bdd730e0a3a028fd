//! Counters of a link that was counted alone, later than all others: every
//! table that shows them shows those, and notes that they were read.

#[cfg(test)]
mod support;

use std::time::Instant;

use support::{Rest, get};
use table::row::link::bridge::BridgePort;
use table::row::link::hardware;
use table::{Change, Counted, KindData, Link, LinkCounters, PortData, Sample, Writer};

const BRIDGE: u32 = 1;
const PORT: u32 = 7;
/// Links as devices are numbered behind it (HOST-RESOURCES-MIB).
const NETWORK_DEVICES: u32 = 4 << 16;

fn link(index: u32) -> Link {
    Link {
        index,
        name: format!("l{index}").into(),
        hardware: hardware::ETHER,
        ..Link::default()
    }
}

fn counted(number: u64) -> LinkCounters {
    LinkCounters {
        rx_packets: number,
        rx_errors: number,
        rx_crc_errors: number,
        ..LinkCounters::default()
    }
}

#[test]
fn what_was_counted_last_is_shown_by_every_table_of_counters() {
    let mut writer = Writer::default();
    let bridge = Link {
        kind_data: KindData::Bridge(Box::default()),
        ..link(BRIDGE)
    };
    let settings = BridgePort {
        no: Some(3),
        ..BridgePort::default()
    };
    let port = Link {
        master: Some(BRIDGE),
        slave_data: PortData::Bridge(Box::new(settings)),
        ..link(PORT)
    };
    writer.commit([bridge, port].map(Change::PutLink)).unwrap();
    let all = [BRIDGE, PORT].map(|link| (link, counted(1_000).into()));
    writer.publish_link_counters(Sample::new(1, all.to_vec()));
    let alone = Counted {
        counters: counted(1_001),
        at: Some(Instant::now()),
    };
    writer.count_alone([(PORT, alone)]);
    writer.publish_counted();
    let rest = Rest::default();
    let tables = writer.reader().snapshot();
    let objects = rest.objects(&tables).of_bridge(Some(BRIDGE));
    let names: [&[u32]; 4] = [
        // ifInErrors, dot3StatsFCSErrors, hrDeviceErrors, dot1dTpPortInFrames.
        &[1, 3, 6, 1, 2, 1, 2, 2, 1, 14, PORT],
        &[1, 3, 6, 1, 2, 1, 10, 7, 2, 1, 3, PORT],
        &[1, 3, 6, 1, 2, 1, 25, 3, 2, 1, 6, NETWORK_DEVICES + PORT],
        &[1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 3, 3],
    ];
    for name in names {
        assert_eq!(get(&objects, name), "Counter32(1001)", "{name:?}");
        let read: Vec<_> = rest.reads.take().iter().cloned().collect();
        assert_eq!(read, [PORT..=PORT], "{name:?}");
    }
}
