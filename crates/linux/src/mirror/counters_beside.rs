//! Counters of links from `/proc/net/dev`, read beside the mirror's thread
//! while that is kept from reading them.
//!
//! Whoever asks netlink for a link's counters waits for the kernel's lock of
//! links (RTNL), which is one for all namespaces: deleting a namespace with
//! thousands of links holds it for seconds. This file is read without it.
//! It has names for indexes, sums of some errors, and costs some 2 µs for
//! each of all links: so it comes second. Started by the mirror's worker.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::thread::JoinHandle;
use std::time::Instant;

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
    let follow = move || {
        while samples.wait_late() {
            let before = samples.beside();
            match read(&mut file, &reader.snapshot(), before.as_deref()) {
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

/// What the file says of links whose counters are known already: it does not
/// tell all of them.
fn read(
    file: &mut (impl Read + Seek),
    tables: &Tables,
    before: Option<&CountedBeside>,
) -> io::Result<CountedBeside> {
    let begun = Instant::now();
    let mut links = Vec::with_capacity(tables.links.len());
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
        links.extend(lines.lines().filter_map(|line| {
            let (name, numbers) = understand(line)?;
            let index = tables.links.by_name(name)?.index;
            let told = tables.counted_of(index);
            let known = before.and_then(|before| before.links.get(&index));
            let known = known.filter(|known| told.is_some_and(|told| known.at > told.at));
            let counters = merged(&known.or(told)?.counters, &numbers)?;
            Some((
                index,
                Counted {
                    counters,
                    at: Some(at),
                },
            ))
        }));
        text.drain(..whole);
    }
    Ok(CountedBeside {
        begun,
        links: Sample::new(super::now_millis(), links),
    })
}

/// A link's name and its numbers; nothing of the lines of headings.
fn understand(line: &str) -> Option<(&str, [u64; NUMBERS])> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_ascii_whitespace();
    let mut numbers = [0; NUMBERS];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    Some((name.trim_start(), numbers))
}

/// What was known, and on from there. What the file has only as a sum stays
/// as it was. Nothing where less was sent or received than before: the name
/// is another link's by now.
fn merged(known: &LinkCounters, numbers: &[u64; NUMBERS]) -> Option<LinkCounters> {
    let [
        rx_bytes,
        rx_packets,
        rx_errors,
        _,
        rx_fifo_errors,
        _,
        rx_compressed,
        multicast,
        tx_bytes,
        tx_packets,
        tx_errors,
        tx_dropped,
        tx_fifo_errors,
        collisions,
        _,
        tx_compressed,
    ] = *numbers;
    let is_same = rx_bytes >= known.rx_bytes
        && rx_packets >= known.rx_packets
        && tx_bytes >= known.tx_bytes
        && tx_packets >= known.tx_packets;
    is_same.then_some(LinkCounters {
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
        ..*known
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
   new:       1       1    0    0    0    0          0         0        1       1    0    0    0     0       0          0
 other:      99      10    0    0    0    0          0         0      200      20    0    0    0     0       0          0
";

    fn link(index: u32, name: &str) -> Change {
        Change::PutLink(Link {
            index,
            name: name.into(),
            ..Link::default()
        })
    }

    /// Links of which all but `new` have counted 100 and 200 octets.
    fn tables() -> Tables {
        let mut writer = Writer::default();
        let links = [link(1, "lo"), link(2, "new"), link(3, "other")];
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

    #[test]
    fn what_the_file_tells_goes_on_from_what_was_known() {
        let before = Instant::now();
        let counted = read(&mut Cursor::new(TEXT), &tables(), None).unwrap();
        let of: Vec<_> = counted.links.from(&0).collect();
        // Not of one that is not known, that was never read, or that has
        // counted less: another link of that name.
        let [(1, lo)] = of[..] else {
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
        // The next one goes on from this one, not from the tables.
        let less = TEXT.replace("    lo:     100      10", "    lo:     100       9");
        let again = read(&mut Cursor::new(less), &tables(), Some(&counted)).unwrap();
        assert!(again.links.get(&1).is_none());
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
        let counted = read(&mut parts, &tables(), None).unwrap();
        assert_eq!(counted.links.get(&1).unwrap().counters.multicast, 4);
    }
}
