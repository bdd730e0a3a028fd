//! Files of BGP tables and messages.

use fingerpost_bgp::Rib;
use fingerpost_bgp::mrt::{Header, Reader};
use table::{Limits, Source};

/// Records that a target takes in at most.
const RECORDS: usize = 256;

/// A file, whatever is in it. Its tables are walked in the end: each path
/// with all that is said of it.
pub fn mrt(bytes: &[u8]) {
    let _ = Header::of_first(bytes);
    let mut rib = Rib::new(limits());
    let mut reader = Reader::new(bytes);
    for _ in 0..RECORDS {
        let Ok(Some((header, body))) = reader.next_record() else {
            break;
        };
        // What cannot be read is said so.
        let _ = rib.take(&header, body);
    }
    rib.publish();
    let of_peers = rib.peers().map(|peer| peer.tables().routes.len());
    let best = rib.source().reader().snapshot();
    assert!(best.routes.len() <= of_peers.sum());
    for peer in rib.peers() {
        for route in peer.tables().routes.iter() {
            let path = &route.body.path;
            let said = path.iter().map(|(_, value)| value.len());
            let numbers = path.as_path().into_iter().flat_map(|path| path.segments());
            let numbers = numbers.map(|segment| segment.numbers().count());
            assert!(said.sum::<usize>() >= numbers.sum::<usize>());
        }
    }
}

/// Small tables, so that their limits are met as well.
fn limits() -> Limits {
    Limits {
        routes: 64,
        ..Limits::default()
    }
}
