//! Nanoseconds for the checksum of a packet from scratch, beside the loop
//! over 16-bit words that RFC 1071 §4.1 gives.
//!
//! `cargo bench -p fingerpost-packet`

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use fingerpost_packet::checksum::Sum;

/// From a header to a jumbo frame.
const LENGTHS: [usize; 5] = [20, 64, 576, 1_500, 9_000];
const ROUNDS: usize = 9;
/// Bytes summed in a round.
const BYTES: usize = 64 << 20;

/// RFC 1071 §4.1, word by word.
fn by_words(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<2>();
    let last = tail.first().map_or(0, |byte| u64::from(*byte));
    let words = words
        .iter()
        .map(|word| u64::from(u16::from_ne_bytes(*word)));
    words.sum::<u64>() + last
}

/// The median of some rounds, in nanoseconds a call.
fn measure<T>(bytes: &[u8], sum: impl Fn(&[u8]) -> T) -> f64 {
    let calls = BYTES / bytes.len();
    let mut rounds = [0.0; ROUNDS];
    for round in &mut rounds {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(sum(black_box(bytes)));
        }
        *round = start.elapsed().as_secs_f64() * 1e9 / calls as f64;
    }
    rounds.sort_by(f64::total_cmp);
    rounds.get(ROUNDS / 2).copied().unwrap_or_default()
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{:>8} {:>10} {:>10}", "bytes", "of ns", "words ns")?;
    for length in LENGTHS {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
        let own = measure(&bytes, Sum::of);
        let words = measure(&bytes, by_words);
        writeln!(out, "{length:>8} {own:>10.1} {words:>10.1}")?;
    }
    Ok(())
}
