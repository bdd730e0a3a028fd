//! One file read twice: by us, and by `bgpkit-parser`.

pub mod drawn;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bgpkit_parser::BgpkitParser;
use bgpkit_parser::models::{AsPathSegment, BgpElem, Community, ElemType, MetaCommunity, Origin};
use fingerpost_bgp::mrt::Reader;
use fingerpost_bgp::{Bad, Rib};
use flate2::read::MultiGzDecoder;
use ipnet::IpNet;
use table::Limits;

/// A path, as both readers can tell it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub peer: (IpAddr, u32),
    pub prefix: IpNet,
    pub path_id: Option<u32>,
    pub next_hop: Option<IpAddr>,
    pub as_path: Vec<(u8, Vec<u32>)>,
    pub origin: Option<u8>,
    /// 0 where it is not said: the other reader tells it so.
    pub local_pref: u32,
    /// The same.
    pub med: u32,
    pub communities: Vec<(u32, u16)>,
    pub large: Vec<[u32; 3]>,
    pub extended: usize,
}

/// The files that are kept.
pub fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let files = fs::read_dir(directory)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|of| of == "gz"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

pub fn unpacked(path: &Path) -> Vec<u8> {
    let packed = fs::read(path).unwrap();
    let mut bytes = Vec::new();
    MultiGzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// What came of reading files with our own reader.
pub struct Ours(pub Rib);

/// Reads files one behind the other; what could not be read first.
pub fn ours(files: &[&[u8]]) -> (Ours, Option<Bad>) {
    let mut rib = Rib::new(Limits::default());
    let mut bad = None;
    for file in files {
        let mut reader = Reader::new(*file);
        while let Some((header, body)) = reader.next_record().unwrap() {
            bad = bad.or(rib.take(&header, body).err());
        }
    }
    rib.publish();
    (Ours(rib), bad)
}

impl Ours {
    /// All paths of all peers, in order.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for peer in self.0.peers() {
            let named = peer.named();
            rows.extend(peer.tables().routes.iter().map(|route| {
                let path = &route.body.path;
                let segments = path.as_path().into_iter().flat_map(|path| path.segments());
                Row {
                    peer: (named.address, named.asn),
                    prefix: route.prefix,
                    path_id: path.path_id(),
                    next_hop: route.body.next_hops.as_slice()[0].gateway,
                    as_path: joined(segments.map(|of| (of.kind, of.numbers().collect()))),
                    origin: path.origin(),
                    local_pref: path.local_pref().unwrap_or(0),
                    med: path.med().unwrap_or(0),
                    communities: path.communities().map(|(a, b)| (u32::from(a), b)).collect(),
                    large: path.large_communities().collect(),
                    extended: path.extended_communities().count(),
                }
            }));
        }
        rows.sort();
        rows
    }
}

/// The rows that the other reader's elements leave.
pub fn theirs(files: &[&[u8]]) -> Vec<Row> {
    let mut rows = BTreeMap::new();
    for file in files {
        let parser = BgpkitParser::from_reader(*file);
        for elem in parser.into_elem_iter() {
            let peer = (elem.peer_ip, elem.peer_asn.to_u32());
            let key = (peer, elem.prefix.prefix.trunc(), elem.prefix.path_id);
            match elem.elem_type {
                ElemType::ANNOUNCE => rows.insert(key, row(&elem)),
                ElemType::WITHDRAW => rows.remove(&key),
            };
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort();
    rows
}

fn row(elem: &BgpElem) -> Row {
    let path = elem.as_path.iter().flat_map(|path| path.iter_segments());
    let mut row = Row {
        peer: (elem.peer_ip, elem.peer_asn.to_u32()),
        prefix: elem.prefix.prefix.trunc(),
        path_id: elem.prefix.path_id,
        next_hop: elem.next_hop,
        as_path: joined(path.map(|segment| {
            let (kind, numbers) = match segment {
                AsPathSegment::AsSet(numbers) => (1, numbers),
                AsPathSegment::AsSequence(numbers) => (2, numbers),
                AsPathSegment::ConfedSequence(numbers) => (3, numbers),
                AsPathSegment::ConfedSet(numbers) => (4, numbers),
            };
            (kind, numbers.iter().map(|number| number.to_u32()).collect())
        })),
        origin: elem.origin.map(|origin| match origin {
            Origin::IGP => 0,
            Origin::EGP => 1,
            Origin::INCOMPLETE => 2,
        }),
        local_pref: elem.local_pref.unwrap_or(0),
        med: elem.med.unwrap_or(0),
        communities: Vec::new(),
        large: Vec::new(),
        extended: 0,
    };
    for community in elem.communities.iter().flatten() {
        match community {
            MetaCommunity::Plain(Community::NoExport) => row.communities.push((65_535, 65_281)),
            MetaCommunity::Plain(Community::NoAdvertise) => row.communities.push((65_535, 65_282)),
            MetaCommunity::Plain(Community::NoExportSubConfed) => {
                row.communities.push((65_535, 65_283));
            }
            MetaCommunity::Plain(Community::Custom(asn, value)) => {
                row.communities.push((asn.to_u32(), *value));
            }
            MetaCommunity::Large(large) => {
                let [b, c] = large.local_data;
                row.large.push([large.global_admin, b, c]);
            }
            MetaCommunity::Extended(_) => row.extended += 1,
            MetaCommunity::Ipv6Extended(_) => {}
        }
    }
    row
}

/// Segments without empty ones; sequences that meet are one: whether they
/// were written as one or two says nothing.
fn joined(segments: impl Iterator<Item = (u8, Vec<u32>)>) -> Vec<(u8, Vec<u32>)> {
    let mut all: Vec<(u8, Vec<u32>)> = Vec::new();
    for (kind, numbers) in segments.filter(|(_, numbers)| !numbers.is_empty()) {
        match all.last_mut() {
            Some((2, before)) if kind == 2 => before.extend(numbers),
            _ => all.push((kind, numbers)),
        }
    }
    all
}

/// The same of a dump with path identifiers, which the other reader's
/// elements do not tell: ours are all there, and no two of a path alike.
pub fn assert_same_without_ids(ours: &Ours, file: &[u8], of: &str) {
    let mut all = ours.rows();
    let ids = all.iter().map(|row| (row.peer, row.prefix, row.path_id));
    let distinct: BTreeSet<_> = ids.collect();
    assert_eq!(distinct.len(), all.len(), "{of}");
    assert!(all.iter().all(|row| row.path_id.is_some()), "{of}");
    all.iter_mut().for_each(|row| row.path_id = None);
    all.sort();
    let parser = BgpkitParser::from_reader(file);
    let mut theirs: Vec<Row> = parser.into_elem_iter().map(|elem| row(&elem)).collect();
    theirs.sort();
    assert_eq!(all, theirs, "{of}");
}

/// Both readers have the same rows; else the first that differs is told.
pub fn assert_same(ours: &Ours, theirs: &[Row], of: &str) {
    let ours = ours.rows();
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours, theirs, "{of}");
    }
    assert_eq!(ours.len(), theirs.len(), "{of}");
}
