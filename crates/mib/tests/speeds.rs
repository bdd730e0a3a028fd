//! ifSpeed and ifHighSpeed of links slow, fast, and of no known speed.

#[cfg(test)]
mod support;

use support::{Rest, get};
use table::{Change, Link, Sample, Writer};

#[test]
fn a_speed_beyond_32_bits_is_told_by_if_high_speed() {
    let mut writer = Writer::default();
    let links = (1..=5).map(|index| {
        Change::PutLink(Link {
            index,
            name: format!("l{index}").into(),
            ..Link::default()
        })
    });
    writer.commit(links).unwrap();
    let speeds = vec![(2, 10), (3, 4_294), (4, 4_295), (5, 400_000)];
    writer.publish_link_speeds(Sample::new(1, speeds));
    let rest = Rest::default();
    let objects = rest.objects(writer.tables());
    let told = (1..=5).map(|link| {
        let speed = get(&objects, &[1, 3, 6, 1, 2, 1, 2, 2, 1, 5, link]);
        let high = get(&objects, &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 15, link]);
        (speed, high)
    });
    let gauges =
        |(speed, high): (u32, u32)| (format!("Gauge32({speed})"), format!("Gauge32({high})"));
    let expected = [
        (0, 0),
        (10_000_000, 10),
        (4_294_000_000, 4_294),
        (u32::MAX, 4_295),
        (u32::MAX, 400_000),
    ];
    assert!(told.eq(expected.map(gauges)));
}
