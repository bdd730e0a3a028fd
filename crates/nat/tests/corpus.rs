//! The corpus of the NAT fuzz targets, replayed through what the targets do:
//! as it is, cut at every length, and with bytes changed.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by it, in its helpers as well"
)]

#[path = "../../../fuzz/src/nat.rs"]
mod check;

fn replay(target: &str, check: fn(&[u8])) {
    for bytes in lab::corpus::files(target, 1).unwrap() {
        check(&bytes);
        for at in 0..bytes.len() {
            check(&bytes[..at]);
            for value in [0, 0xff, bytes[at].wrapping_add(1)] {
                let mut changed = bytes.clone();
                changed[at] = value;
                check(&changed);
            }
        }
    }
}

#[test]
fn packets() {
    replay("nat_packets", check::nat_packets);
}

#[test]
fn ftp() {
    replay("nat_ftp", check::nat_ftp);
}

#[test]
fn pptp() {
    replay("nat_pptp", check::nat_pptp);
}

#[test]
fn rtsp() {
    replay("nat_rtsp", check::nat_rtsp);
}

#[test]
fn skinny() {
    replay("nat_skinny", check::nat_skinny);
}

#[test]
fn sip() {
    replay("nat_sip", check::nat_sip);
}

#[test]
fn nbt() {
    replay("nat_nbt", check::nat_nbt);
}

#[test]
fn pcp() {
    replay("nat_pcp", check::nat_pcp);
}

#[test]
fn rules() {
    replay("nat_rules", check::nat_rules);
}
