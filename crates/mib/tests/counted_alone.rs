//! Counters of a link that was counted alone, later than all others: every
//! table that shows them shows those, and notes that they were read.

#[cfg(test)]
mod support;

use std::time::Instant;

use support::{Rest, get};
use table::row::link::bridge::BridgePort;
use table::row::link::hardware;
use table::{
    Change, Counted, CountedBeside, KindData, Link, LinkCounters, PortData, Sample, Tables, Writer,
};

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
fn of_a_link_that_was_read_beside_alone_no_part_of_a_sum_is_told() {
    let mut writer = Writer::default();
    writer
        .commit([BRIDGE, PORT].map(|index| Change::PutLink(link(index))))
        .unwrap();
    let at = Some(Instant::now());
    let links = [BRIDGE, PORT].map(|link| {
        let counters = counted(5);
        (link, Counted { counters, at })
    });
    let mut rest = Rest {
        beside: Some(CountedBeside {
            begun: Instant::now(),
            links: Sample::new(1, links.to_vec()),
            sums_alone: [PORT].into(),
        }),
        ..Rest::default()
    };
    // ifInErrors, ifInDiscards, dot3StatsFCSErrors.
    let errors: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 14];
    let discards: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 13];
    let framing: &[u32] = &[1, 3, 6, 1, 2, 1, 10, 7, 2, 1, 3];
    let tables = writer.reader().snapshot();
    let told = |rest: &Rest, tables: &Tables, column: &[u32], link: u32| {
        get(&rest.objects(tables), &[column, &[link]].concat())
    };
    for link in [BRIDGE, PORT] {
        assert_eq!(told(&rest, &tables, errors, link), "Counter32(5)");
    }
    assert_eq!(told(&rest, &tables, discards, BRIDGE), "Counter32(0)");
    assert_eq!(told(&rest, &tables, framing, BRIDGE), "Counter32(5)");
    for column in [discards, framing] {
        assert_eq!(told(&rest, &tables, column, PORT), "NoSuchInstance");
    }
    // They are once netlink has told them, though the file was read since.
    writer.count_alone([(PORT, counted(4).into())]);
    writer.publish_counted();
    let tables = writer.reader().snapshot();
    assert_eq!(told(&rest, &tables, framing, PORT), "Counter32(4)");
    assert_eq!(told(&rest, &tables, errors, PORT), "Counter32(5)");
    rest.beside = None;
    assert_eq!(told(&rest, &tables, errors, PORT), "Counter32(4)");
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
