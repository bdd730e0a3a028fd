use packet::tcp::{ACK, FIN, RST, SYN};

use super::*;
use crate::flow::Ends;

const OUT: bool = true;
const IN: bool = false;

fn flow() -> Flow {
    Flow::new(&Ends::default(), State::TcpOpening, 0, 0)
}

fn seen(flags: u8, sequence: u32, acknowledgement: u32, len: u32) -> Seen {
    Seen {
        flags,
        sequence,
        acknowledgement,
        window: 1_000,
        len,
        scale: 0,
    }
}

fn handshake() -> Flow {
    let mut flow = flow();
    track::<OUT>(&mut flow, &seen(SYN, 100, 0, 0));
    assert_eq!(flow.state(), State::TcpOpening);
    track::<IN>(&mut flow, &seen(SYN | ACK, 500, 101, 0));
    assert_eq!(flow.state(), State::TcpOpening);
    track::<OUT>(&mut flow, &seen(ACK, 101, 501, 0));
    assert_eq!(flow.state(), State::TcpEstablished);
    flow
}

#[test]
fn a_connection_opens_and_closes() {
    let mut flow = handshake();
    track::<OUT>(&mut flow, &seen(ACK, 101, 501, 50));
    track::<OUT>(&mut flow, &seen(FIN | ACK, 151, 501, 0));
    assert_eq!(flow.state(), State::TcpHalfClosed);
    track::<IN>(&mut flow, &seen(ACK, 501, 152, 300));
    assert_eq!(flow.state(), State::TcpHalfClosed);
    track::<IN>(&mut flow, &seen(FIN | ACK, 801, 152, 0));
    assert_eq!(flow.state(), State::TcpClosed);
    track::<OUT>(&mut flow, &seen(ACK, 152, 802, 0));
    assert_eq!(flow.state(), State::TcpClosed);
    // The same endpoints again.
    track::<OUT>(&mut flow, &seen(SYN, 9_000, 0, 0));
    assert_eq!(flow.state(), State::TcpOpening);
}

#[test]
fn a_flood_of_one_side_establishes_nothing() {
    let mut flow = flow();
    for at in 0..100 {
        track::<OUT>(&mut flow, &seen(ACK, at * 10, at, 10));
    }
    assert_eq!(flow.state(), State::TcpOpening);
    // An answer to what was never sent does not either.
    track::<IN>(&mut flow, &seen(ACK, 7, 1_000_000, 0));
    assert_eq!(flow.state(), State::TcpOpening);
    track::<IN>(&mut flow, &seen(ACK, 7, 990, 0));
    assert_eq!(flow.state(), State::TcpEstablished);
}

#[test]
fn resets_count_in_the_window_only() {
    let mut flow = handshake();
    // RFC 5961: a blind reset.
    track::<IN>(&mut flow, &seen(RST, 400_000, 0, 0));
    assert_eq!(flow.state(), State::TcpEstablished);
    track::<IN>(&mut flow, &seen(RST, 200, 0, 0));
    assert_eq!(flow.state(), State::TcpEstablished);
    track::<IN>(&mut flow, &seen(RST, 501, 0, 0));
    assert_eq!(flow.state(), State::TcpReset);
    // RFC 7857 §2.2: it goes on all the same, so it was none.
    track::<OUT>(&mut flow, &seen(ACK, 101, 501, 10));
    assert_eq!(flow.state(), State::TcpEstablished);
}

#[test]
fn a_refused_connection_is_reset() {
    let mut flow = flow();
    track::<OUT>(&mut flow, &seen(SYN, 100, 0, 0));
    track::<IN>(&mut flow, &seen(RST | ACK, 0, 99, 0));
    assert_eq!(flow.state(), State::TcpOpening);
    track::<IN>(&mut flow, &seen(RST | ACK, 0, 101, 0));
    assert_eq!(flow.state(), State::TcpReset);
}

#[test]
fn a_forged_fin_or_syn_changes_nothing() {
    let mut flow = handshake();
    track::<IN>(&mut flow, &seen(FIN | ACK, 400_000, 101, 0));
    assert_eq!(flow.state(), State::TcpEstablished);
    track::<IN>(&mut flow, &seen(SYN, 501, 0, 0));
    assert_eq!(flow.state(), State::TcpEstablished);
}

#[test]
fn numbers_begin_anew_with_what_ends_a_connection() {
    let far = 3 << 30;
    let fin = seen(FIN | ACK, 101 + far, 501 + far, 10);
    let mut flow = handshake();
    track::<OUT>(&mut flow, &fin);
    assert_eq!(flow.state(), State::TcpEstablished);
    let scales = flow.scales();
    begin_anew::<OUT>(&mut flow, &fin);
    assert_eq!(
        (flow.state(), flow.scales()),
        (State::TcpEstablished, scales)
    );
    track::<OUT>(&mut flow, &fin);
    assert_eq!(flow.state(), State::TcpHalfClosed);
    // The other side's are measured from what this one acknowledged.
    track::<IN>(&mut flow, &seen(FIN | ACK, 700, 112 + far, 0));
    assert_eq!(flow.state(), State::TcpHalfClosed);
    track::<IN>(&mut flow, &seen(FIN | ACK, 501 + far, 112 + far, 0));
    assert_eq!(flow.state(), State::TcpClosed);
}

#[test]
fn a_syn_leaves_the_numbers_open() {
    let mut flow = handshake();
    let syn = seen(SYN, 9_000, 0, 0);
    begin_anew::<OUT>(&mut flow, &syn);
    track::<OUT>(&mut flow, &syn);
    assert_eq!(flow.state(), State::TcpEstablished);
    assert!(!flow.has(flag::END_OUT) && !flow.has(flag::END_IN));
    track::<IN>(&mut flow, &seen(ACK, 80_000, 70_000, 0));
    track::<OUT>(&mut flow, &seen(RST, 69_000, 0, 0));
    assert_eq!(flow.state(), State::TcpEstablished);
    track::<OUT>(&mut flow, &seen(RST, 70_000, 0, 0));
    assert_eq!(flow.state(), State::TcpReset);
}

#[test]
fn sequence_numbers_go_round() {
    let mut flow = flow();
    let start = u32::MAX - 5;
    track::<OUT>(&mut flow, &seen(SYN, start, 0, 0));
    track::<IN>(&mut flow, &seen(SYN | ACK, start, start.wrapping_add(1), 0));
    let next = start.wrapping_add(1);
    track::<OUT>(&mut flow, &seen(ACK, next, next, 100));
    let end = next.wrapping_add(100);
    track::<IN>(&mut flow, &seen(ACK, next, end, 0));
    assert_eq!(flow.sides[0].end, end);
    assert_eq!(flow.sides[0].acked, end);
    track::<IN>(&mut flow, &seen(RST, next, 0, 0));
    assert_eq!(flow.state(), State::TcpReset);
}

#[test]
fn a_window_scale_is_read_from_the_syn() {
    let mut header = [0; 24];
    header[12] = 6 << 4;
    header[13] = SYN;
    header[20..24].copy_from_slice(&[1, 3, 3, 7]);
    let seen = Seen::read(&header, 24).unwrap();
    assert_eq!((seen.scale, seen.len), (7, 0));
    assert!(Seen::read(&header[..19], 24).is_none());
    // More than RFC 7323 allows counts as the most.
    header[23] = 200;
    assert_eq!(Seen::read(&header, 24).unwrap().scale, MOST_SCALE);
}
