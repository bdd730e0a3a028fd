use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::Pool;

const FRAME: usize = 60;

fn frame(fill: u8) -> [u8; FRAME] {
    let mut frame = [fill; FRAME];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame
}

/// A classic file: `(seconds, fraction, fill)` for each packet.
fn classic(is_big_endian: bool, is_nanos: bool, link: u32, packets: &[(u32, u32, u8)]) -> Vec<u8> {
    let word = |value: u32| match is_big_endian {
        true => value.to_be_bytes(),
        false => value.to_le_bytes(),
    };
    let half = |value: u16| match is_big_endian {
        true => value.to_be_bytes(),
        false => value.to_le_bytes(),
    };
    let magic = if is_nanos { 0xA1B2_3C4D } else { 0xA1B2_C3D4 };
    let mut file = Vec::from(word(magic));
    file.extend([half(2), half(4)].concat());
    file.extend([word(0), word(0), word(65_535), word(link)].concat());
    for (seconds, fraction, fill) in packets {
        let len = word(FRAME as u32);
        file.extend([word(*seconds), word(*fraction), len, word(100)].concat());
        file.extend(frame(*fill));
    }
    file
}

/// A pcapng block, little-endian.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut padded = body.to_vec();
    padded.resize(body.len().next_multiple_of(4), 0);
    let len = (padded.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, &padded, &len].concat()
}

/// A pcapng file with an interface of nanoseconds and one without a word
/// on time, and a packet of each.
fn next_generation() -> Vec<u8> {
    let section = [
        &0x1A2B_3C4D_u32.to_le_bytes()[..],
        &[1, 0, 0, 0],
        &[0xFF; 8],
    ]
    .concat();
    let plain = [&[1, 0, 0, 0][..], &[0, 0, 4, 0]].concat();
    // if_tsresol (9) of one byte: 10^-9; then the end of options.
    let nanos = [&plain[..], &[9, 0, 1, 0, 9, 0, 0, 0], &[0, 0, 0, 0]].concat();
    let packet = |interface: u32, time: u64, fill: u8| {
        let len = (FRAME as u32).to_le_bytes();
        let high = ((time >> 32) as u32).to_le_bytes();
        let low = (time as u32).to_le_bytes();
        let head = [&interface.to_le_bytes()[..], &high, &low, &len, &len].concat();
        block(6, &[&head[..], &frame(fill)].concat())
    };
    [
        block(0x0A0D_0D0A, &section),
        block(1, &nanos),
        block(1, &plain),
        packet(0, 5_000_000_007, 1),
        block(5, &[0; 12]),
        packet(1, 6_000_008, 2),
    ]
    .concat()
}

struct Files {
    directory: TempDir,
}

impl Files {
    fn with(input: &[u8]) -> Self {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("in"), input).unwrap();
        Self { directory }
    }

    fn open(&self) -> Result<Capture, PortError> {
        let output = self.output();
        Capture::open(&self.directory.path().join("in"), Some(&output))
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("out")
    }
}

/// Buffers for so many packets of this length, and a batch of them.
fn room(packets: usize, packet_bytes: usize) -> (Cache, Batch) {
    let pool = Pool::new(packets, packet_bytes).unwrap();
    (pool.cache(), Batch::new(packets))
}

/// Time and first byte of the packet of everything in a capture.
fn contents(capture: &mut Capture) -> Result<Vec<(u64, u8)>, PortError> {
    let (mut cache, mut batch) = room(3, 200);
    let mut seen = Vec::new();
    while capture.receive(&mut cache, &mut batch)? == Received::Packets {
        let packets = batch.packets().iter();
        seen.extend(packets.map(|buffer| {
            (
                buffer.time_nanos(),
                buffer.packet().first().copied().unwrap_or(0),
            )
        }));
    }
    Ok(seen)
}

#[test]
fn classic_files_of_either_order_and_resolution_are_read() {
    let packets = [(5, 7, 1), (6, 8, 2), (7, 9, 3), (8, 10, 4)];
    for (is_big_endian, is_nanos) in [(false, false), (false, true), (true, false), (true, true)] {
        let files = Files::with(&classic(is_big_endian, is_nanos, 1, &packets));
        let seen = contents(&mut files.open().unwrap()).unwrap();
        let unit = if is_nanos { 1 } else { 1_000 };
        assert_eq!(seen[0], (5_000_000_000 + 7 * unit, 1));
        assert_eq!(seen[3], (8_000_000_000 + 10 * unit, 4));
        assert_eq!(seen.len(), 4);
    }
}

#[test]
fn pcapng_gives_each_interface_its_own_time() {
    let files = Files::with(&next_generation());
    let seen = contents(&mut files.open().unwrap()).unwrap();
    assert_eq!(seen, [(5_000_000_007, 1), (6_000_008_000, 2)]);
}

#[test]
fn what_is_written_is_what_was_read_less_the_discarded() {
    let input = classic(false, true, 1, &[(5, 7, 1), (6, 8, 2), (7, 9, 3)]);
    let files = Files::with(&input);
    let mut capture = files.open().unwrap();
    let (mut cache, mut batch) = room(8, 200);
    assert_eq!(
        capture.receive(&mut cache, &mut batch).unwrap(),
        Received::Packets
    );
    batch.packets_mut()[1].set_discarded(true);
    capture.send(&mut cache, &mut batch).unwrap();
    assert!(batch.is_empty());
    capture.finish().unwrap();
    let counters = capture.counters();
    assert_eq!((counters.received_packets, counters.sent_packets), (3, 2));
    assert_eq!(counters.sent_bytes, 2 * (FRAME as u64 - 14));
    let mut expected = classic(false, true, 1, &[(5, 7, 1), (7, 9, 3)]);
    expected[16..20].copy_from_slice(&262_144_u32.to_le_bytes());
    assert_eq!(fs::read(files.output()).unwrap(), expected);
}

#[test]
fn an_empty_capture_makes_an_empty_capture() {
    let files = Files::with(&classic(false, false, 101, &[]));
    let mut capture = files.open().unwrap();
    let (mut cache, mut batch) = room(8, 200);
    assert_eq!(
        capture.receive(&mut cache, &mut batch).unwrap(),
        Received::End
    );
    capture.finish().unwrap();
    let written = fs::read(files.output()).unwrap();
    assert_eq!((written.len(), written[20]), (24, 101));
}

#[test]
fn a_packet_too_long_for_a_buffer_is_counted_and_the_next_is_read() {
    let mut file = classic(false, false, 1, &[]);
    file.extend([5_u32, 7, 900, 900].map(u32::to_le_bytes).concat());
    file.extend([9; 900]);
    file.extend_from_slice(&classic(false, false, 1, &[(6, 8, 2)])[24..]);
    let files = Files::with(&file);
    let mut capture = files.open().unwrap();
    let (mut cache, mut batch) = room(8, 200);
    let received = capture.receive(&mut cache, &mut batch).unwrap();
    assert_eq!((received, batch.len()), (Received::Packets, 1));
    assert_eq!(batch.packets()[0].packet()[0], 2);
    assert_eq!(capture.counters().refused_packets, 1);
}

#[test]
fn what_is_wrong_is_said_with_the_file_s_name() {
    let complaint = |input: &[u8]| {
        let files = Files::with(input);
        let error = files.open().and_then(|mut capture| contents(&mut capture));
        error.unwrap_err().to_string()
    };
    assert!(complaint(b"").contains("neither pcap nor pcapng"));
    assert!(complaint(&[7; 500]).contains("neither pcap nor pcapng"));
    let whole = classic(false, false, 1, &[(5, 7, 1), (6, 8, 2)]);
    let cut = complaint(&whole[..whole.len() - 3]);
    assert!(cut.contains("middle of a packet") && cut.contains("behind 1 packets"));
    let unknown = complaint(&classic(false, false, 147, &[(5, 7, 1)]));
    assert!(unknown.contains("link type 147"), "{unknown}");
    // A packet of an interface that no block has described.
    let mut stray = next_generation();
    let at = stray.len() - (12 + 20 + FRAME) + 8;
    stray[at] = 9;
    assert!(complaint(&stray).contains("interface 9"));
}

#[test]
fn the_file_that_is_read_is_not_written_to() {
    let files = Files::with(&classic(false, false, 1, &[(5, 7, 1)]));
    let path = files.directory.path().join("in");
    let error = Capture::open(&path, Some(&path)).map(drop).unwrap_err();
    assert!(error.to_string().contains("name another"));
    assert!(!fs::read(&path).unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is in the file, reading ends, and without a panic.
    #[test]
    fn any_bytes_are_read_to_an_end(
        is_classic: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = match is_classic {
            true => classic(false, false, 1, &[(5, 7, 1), (6, 8, 2)]),
            false => next_generation(),
        };
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        file.truncate(cut.index(file.len()) + 1);
        let files = Files::with(&file);
        let seen = files.open().and_then(|mut capture| contents(&mut capture));
        prop_assert!(seen.map_or(0, |seen| seen.len()) <= 4);
    }
}
