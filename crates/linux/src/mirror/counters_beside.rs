//! Counters of links from `/proc/net/dev`, read beside the mirror's thread
//! while that is kept from reading them.
//!
//! Whoever asks netlink for a link's counters waits for the kernel's lock of
//! links (RTNL), which is one for all namespaces: deleting a namespace with
//! thousands of links holds it for seconds. This file is read without it.
//! It has names for indexes, sums of some errors, and costs some 2 µs for
//! each of all links: so it comes second. Started by the mirror's worker.
//!
//! A link whose counters nobody has read yet is told from the file alone. Its
//! index is asked for then (`SIOCGIFINDEX`, without the lock as well): the
//! name may be another link's by now.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use table::{Counted, CountedBeside, LinkCounters, Reader, Sample, Samples, Tables};
use tracing::{debug, warn};

use crate::error::Error;
use crate::namespace::Namespace;

/// As it is inside the namespace of who opens it.
const FILE: &str = "/proc/thread-self/net/dev";
/// The kernel gives a page at a time.
const BUFFER_BYTES: usize = 16 * 1024;
/// Numbers of a line: eight of what came in, eight of what went out.
const NUMBERS: usize = 16;

/// Starts the thread; it ends with the samples.
pub(super) fn start(
    namespace: &Namespace,
    reader: Reader,
    samples: Samples,
) -> Result<JoinHandle<()>, Error> {
    let opened = namespace.run(|| File::open(FILE))?;
    let mut file = opened.map_err(Error::system("open /proc/net/dev"))?;
    let asked = namespace.run(asked)?;
    let asked = asked.map_err(Error::system("make a socket to ask for indexes"))?;
    let index_of = move |name: &str| name_to_index(&asked, name).ok();
    let follow = move || {
        while samples.wait_late() {
            let before = samples.beside();
            let tables = reader.snapshot();
            match read(&mut file, &index_of, &tables, before.as_deref()) {
                Ok(counted) => {
                    debug!("counters of links were read beside the mirror, which is kept waiting");
                    samples.took_beside(counted);
                }
                Err(error) => warn!("could not read the counters of links: {error}"),
            }
        }
    };
    let thread = std::thread::Builder::new().name("counters".into());
    thread
        .spawn(follow)
        .map_err(Error::system("start the thread for counters"))
}

/// A socket by which the namespace's links are asked for.
fn asked() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None);
    Ok(socket?)
}

/// What the file says, on from what is known of a link. `index_of` tells
/// which link has a name now.
fn read(
    file: &mut (impl Read + Seek),
    index_of: &impl Fn(&str) -> Option<u32>,
    tables: &Tables,
    before: Option<&CountedBeside>,
) -> io::Result<CountedBeside> {
    let begun = Instant::now();
    let mut links = Vec::with_capacity(tables.links.len());
    let mut sums_alone = BTreeSet::new();
    let mut text = Vec::new();
    let mut buffer = [0; BUFFER_BYTES];
    file.rewind()?;
    loop {
        let len = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        // What a call gives was read in it.
        let at = Instant::now();
        text.extend_from_slice(&buffer[..len]);
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let lines = String::from_utf8_lossy(&text[..whole]);
        for (name, line) in lines.lines().filter_map(understand) {
            let Some((index, counters, of_sums)) = told(name, &line, index_of, tables, before)
            else {
                continue;
            };
            if of_sums {
                sums_alone.insert(index);
            }
            let at = Some(at);
            links.push((index, Counted { counters, at }));
        }
        text.drain(..whole);
    }
    Ok(CountedBeside {
        begun,
        links: Sample::new(super::now_millis(), links),
        sums_alone,
    })
}

/// Which link a line is of, what it has counted, and whether its single errors
/// are not known.
fn told(
    name: &str,
    line: &Line,
    index_of: &impl Fn(&str) -> Option<u32>,
    tables: &Tables,
    before: Option<&CountedBeside>,
) -> Option<(u32, LinkCounters, bool)> {
    let index = tables.links.by_name(name)?.index;
    let by_netlink = tables.counted_of(index);
    let were_sums = before.is_some_and(|before| before.sums_alone.contains(&index));
    let beside = before.and_then(|before| before.links.get(&index));
    let beside = beside.filter(|beside| match by_netlink {
        Some(told) => beside.at > told.at && !were_sums,
        None => true,
    });
    match beside.or(by_netlink) {
        Some(known) => {
            let counters = merged(&known.counters, line)?;
            Some((index, counters, were_sums && by_netlink.is_none()))
        }
        None if index_of(name) == Some(index) => Some((index, line.counters, line.has_errors)),
        None => None,
    }
}

/// What a line of the file says.
struct Line {
    /// All but what the file has only as a sum.
    counters: LinkCounters,
    /// Those sums are not all 0.
    has_errors: bool,
}

/// A link's name and its numbers; nothing of the lines of headings.
fn understand(line: &str) -> Option<(&str, Line)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_ascii_whitespace();
    let mut numbers = [0; NUMBERS];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    let [
        rx_bytes,
        rx_packets,
        rx_errors,
        dropped_or_missed,
        rx_fifo_errors,
        framing,
        rx_compressed,
        multicast,
        tx_bytes,
        tx_packets,
        tx_errors,
        tx_dropped,
        tx_fifo_errors,
        collisions,
        carrier,
        tx_compressed,
    ] = numbers;
    let line = Line {
        counters: LinkCounters {
            rx_bytes,
            rx_packets,
            rx_errors,
            rx_fifo_errors,
            rx_compressed,
            multicast,
            tx_bytes,
            tx_packets,
            tx_errors,
            tx_dropped,
            tx_fifo_errors,
            collisions,
            tx_compressed,
            ..LinkCounters::default()
        },
        has_errors: (dropped_or_missed, framing, carrier) != (0, 0, 0),
    };
    Some((name.trim_start(), line))
}

/// What was known, and on from there. What the file has only as a sum stays
/// as it was. Nothing where less was sent or received than before: the name
/// is another link's by now.
fn merged(known: &LinkCounters, line: &Line) -> Option<LinkCounters> {
    let now = line.counters;
    let is_same = now.rx_bytes >= known.rx_bytes
        && now.rx_packets >= known.rx_packets
        && now.tx_bytes >= known.tx_bytes
        && now.tx_packets >= known.tx_packets;
    is_same.then_some(LinkCounters {
        rx_dropped: known.rx_dropped,
        rx_length_errors: known.rx_length_errors,
        rx_over_errors: known.rx_over_errors,
        rx_crc_errors: known.rx_crc_errors,
        rx_frame_errors: known.rx_frame_errors,
        rx_missed_errors: known.rx_missed_errors,
        tx_aborted_errors: known.tx_aborted_errors,
        tx_carrier_errors: known.tx_carrier_errors,
        tx_heartbeat_errors: known.tx_heartbeat_errors,
        tx_window_errors: known.tx_window_errors,
        rx_nohandler: known.rx_nohandler,
        rx_otherhost_dropped: known.rx_otherhost_dropped,
        ..now
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use table::{Change, Link, Writer};

    use super::*;

    const TEXT: &str = "Inter-|   Receive                            |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100      10    1    9    2    9     3        4     200      20    5    6    7     8       9          11
 gone0:       1       1    0    0    0    0          0         0        1       1    0    0    0     0       0          0
   new:       1       1    0    5    0    0          0         0        1       1    0    0    0     0       0          0
 clean:       2       1    0    0    0    0          0         0        1       1    0    0    0     0       0          0
 stray:       3       1    0    0    0    0          0         0        1       1    0    0    0     0       0          0
 other:      99      10    0    0    0    0          0         0      200      20    0    0    0     0       0          0
";

    fn link(index: u32, name: &str) -> Change {
        Change::PutLink(Link {
            index,
            name: name.into(),
            ..Link::default()
        })
    }

    /// Links; `lo` and `other` have counted 100 and 200 octets, the others
    /// nobody has asked yet.
    fn tables() -> Tables {
        let mut writer = Writer::default();
        let names = ["lo", "new", "other", "clean", "stray"];
        let links = (1..).zip(names).map(|(index, name)| link(index, name));
        writer.commit(links).unwrap();
        let counters = LinkCounters {
            rx_bytes: 100,
            tx_bytes: 200,
            rx_dropped: 77,
            rx_crc_errors: 78,
            ..LinkCounters::default()
        };
        let counted = [1, 3].map(|link| (link, Counted::from(counters)));
        writer.publish_link_counters(Sample::new(1, counted.to_vec()));
        writer.tables().clone()
    }

    /// The kernel's indexes: of all but one those that we know.
    fn index_of(name: &str) -> Option<u32> {
        let known = tables().links.by_name(name).map(|link| link.index);
        known.filter(|_| name != "stray")
    }

    #[test]
    fn what_the_file_tells_goes_on_from_what_was_known() {
        let before = Instant::now();
        let counted = read(&mut Cursor::new(TEXT), &index_of, &tables(), None).unwrap();
        let of: Vec<_> = counted.links.from(&0).collect();
        // Not of one that is not known, whose name is another link's, or that
        // has counted less: another link of that name.
        let [(1, lo), (2, new), (4, clean)] = of[..] else {
            panic!("{of:?}");
        };
        assert!(counted.begun >= before && lo.at >= Some(counted.begun));
        let expected = LinkCounters {
            rx_bytes: 100,
            rx_packets: 10,
            rx_errors: 1,
            rx_fifo_errors: 2,
            rx_compressed: 3,
            multicast: 4,
            tx_bytes: 200,
            tx_packets: 20,
            tx_errors: 5,
            tx_dropped: 6,
            tx_fifo_errors: 7,
            collisions: 8,
            tx_compressed: 11,
            // Sums in the file.
            rx_dropped: 77,
            rx_crc_errors: 78,
            ..LinkCounters::default()
        };
        assert_eq!(lo.counters, expected);
        // Those that nobody had asked are told from the file alone; what a sum
        // is made of is not known where there is one.
        assert_eq!((new.counters.rx_bytes, clean.counters.rx_bytes), (1, 2));
        assert_eq!(Vec::from_iter(&counted.sums_alone), [&2]);
        // The next one goes on from this one, not from the tables.
        let less = TEXT.replace("    lo:     100      10", "    lo:     100       9");
        let less = less.replace("   new:       1", "   new:       0");
        let more = less.replace(" clean:       2", " clean:       4");
        let again = again(&more, &counted);
        let of: Vec<u32> = again.links.from(&0).map(|(link, _)| *link).collect();
        assert_eq!((of, again.sums_alone.is_empty()), (vec![4], true));
    }

    /// Read once more, while no index is told.
    fn again(text: &str, before: &CountedBeside) -> CountedBeside {
        read(&mut Cursor::new(text), &|_| None, &tables(), Some(before)).unwrap()
    }

    #[test]
    fn a_sum_stays_one_until_the_kernel_has_told_more() {
        let counted = read(&mut Cursor::new(TEXT), &index_of, &tables(), None).unwrap();
        let counted = again(TEXT, &counted);
        assert_eq!(Vec::from_iter(&counted.sums_alone), [&2]);
        let mut writer = Writer::default();
        writer.commit([link(2, "new")]).unwrap();
        // Of an unknown time, as a link tells that has just come.
        let told = LinkCounters {
            rx_dropped: 5,
            ..LinkCounters::default()
        };
        writer.count_alone([(2, told.into())]);
        let tables = writer.tables().clone();
        let told = read(&mut Cursor::new(TEXT), &|_| None, &tables, Some(&counted));
        let told = told.unwrap();
        assert!(told.sums_alone.is_empty());
        assert_eq!(told.links.get(&2).unwrap().counters.rx_dropped, 5);
    }

    #[test]
    fn it_goes_on_from_what_was_told_last() {
        let mut writer = Writer::default();
        writer.commit([link(1, "lo")]).unwrap();
        let mut told = |rx_dropped, at| {
            let counters = LinkCounters {
                rx_dropped,
                ..LinkCounters::default()
            };
            let at = Some(at);
            writer.publish_link_counters(Sample::new(1, vec![(1, Counted { counters, at })]));
            writer.tables().clone()
        };
        let dropped = |counted: &CountedBeside| counted.links.get(&1).unwrap().counters.rx_dropped;
        let earlier = told(1, Instant::now());
        let counted = read(&mut Cursor::new(TEXT), &|_| None, &earlier, None).unwrap();
        let later = told(2, Instant::now());
        for (tables, expected) in [(earlier, 1), (later, 2)] {
            let again = read(&mut Cursor::new(TEXT), &|_| None, &tables, Some(&counted));
            assert_eq!(dropped(&again.unwrap()), expected);
        }
    }

    #[test]
    fn a_line_that_comes_in_two_parts_is_one() {
        struct Parts<'a>(&'a [u8], usize);
        impl Read for Parts<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let len = 7.min(self.0.len() - self.1);
                buffer[..len].copy_from_slice(&self.0[self.1..][..len]);
                self.1 += len;
                Ok(len)
            }
        }
        impl Seek for Parts<'_> {
            fn seek(&mut self, _: io::SeekFrom) -> io::Result<u64> {
                self.1 = 0;
                Ok(0)
            }
        }
        let mut parts = Parts(TEXT.as_bytes(), 3);
        let counted = read(&mut parts, &index_of, &tables(), None).unwrap();
        assert_eq!(counted.links.get(&1).unwrap().counters.multicast, 4);
    }
}
