//! On bytes recorded from Linux 6.18 on a little-endian machine, and on
//! what a kernel would not send.

#![cfg(target_endian = "little")]

use super::*;

/// `CTRL_CMD_NEWFAMILY` of `ethtool`, cut after its plain attributes.
const FAMILY: &str = "01020000 0c000200657468746f6f6c00 0600010015000000 \
    0800030001000000 0800040000000000 0800050000000000";
/// A veth of index 2, 10 Gb/s.
const VETH: &str = "04010000 14000180080001000200000007000200763100000500020000000000 \
    340003800800020079000000 1400040000000000000000000000000000000000 \
    1400050000000000000000000000000000000000 0800050010270000 0500060001000000 \
    05000a0000000000";
/// A bridge of index 4, without ports: no speed.
const BRIDGE: &str = "04010000 14000180080001000400000007000200623000000500020000000000 \
    340003800800020079000000 1400040000000000000000000000000000000000 \
    1400050000000000000000000000000000000000 08000500ffffffff 05000600ff000000 \
    05000a0000000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_ascii_whitespace().collect();
    let pairs = digits.as_bytes().chunks(2);
    let text = pairs.map(|pair| str::from_utf8(pair).unwrap());
    text.map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

#[test]
fn what_a_kernel_said_is_read() {
    assert_eq!(family_id(&bytes(FAMILY)), Ok(21));
    assert_eq!(link_speed(&bytes(VETH)), Ok(Some((2, 10_000))));
    assert_eq!(link_speed(&bytes(BRIDGE)), Ok(None));
    assert_eq!(link_duplex(&bytes(VETH)), Ok(Some((2, 1))));
    assert_eq!(link_duplex(&bytes(BRIDGE)), Ok(None));
}

#[test]
fn questions_are_those_that_it_answered() {
    let mut out = Vec::new();
    get_family(ETHTOOL, 1, &mut out).unwrap();
    let expected = "20000000 1000 0100 01000000 00000000 03020000 0c000200657468746f6f6c00";
    assert_eq!(out, bytes(expected));
    out.clear();
    dump_link_speeds(21, 1, &mut out);
    let expected = "20000000 1500 0103 01000000 00000000 04010000 0c000180 0800030001000000";
    assert_eq!(out, bytes(expected));
    assert!(get_family(&"x".repeat(70_000), 1, &mut out).is_err());
}

#[test]
fn what_is_cut_off_or_missing_is_refused() {
    let missing = |attribute| Malformed::Missing {
        message: "ETHTOOL_MSG_LINKMODES_GET_REPLY",
        attribute,
    };
    assert_eq!(
        link_speed(&[4, 1, 0, 0]),
        Err(missing("ETHTOOL_A_HEADER_DEV_INDEX"))
    );
    // A link without a word of its speed.
    assert_eq!(link_speed(&bytes(&VETH[..65])), Ok(None));
    assert!(matches!(
        family_id(&[1, 2, 0, 0]),
        Err(Malformed::Missing { .. })
    ));
    for short in [&[][..], &[4, 1, 0]] {
        assert!(matches!(link_speed(short), Err(Malformed::Header { .. })));
        assert!(matches!(family_id(short), Err(Malformed::Header { .. })));
    }
    // Numbers of one byte.
    let speed = "04010000 0c000180 0800010002000000 05000500 10000000";
    assert!(matches!(
        link_speed(&bytes(speed)),
        Err(Malformed::AttributeSize { kind: 5, .. })
    ));
    assert!(matches!(
        family_id(&bytes("01020000 05000100 15000000")),
        Err(Malformed::AttributeSize { kind: 1, .. })
    ));
    // A header that claims more than there is.
    assert!(matches!(
        link_speed(&bytes("04010000 0c000180 0900010002000000")),
        Err(Malformed::AttributeLength { .. })
    ));
}

#[test]
fn no_change_of_a_byte_or_a_length_does_harm() {
    for recorded in [FAMILY, VETH, BRIDGE] {
        let whole = bytes(recorded);
        for len in 0..whole.len() {
            let _ = (family_id(&whole[..len]), link_speed(&whole[..len]));
        }
        for at in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = (family_id(&changed), link_speed(&changed));
            }
        }
    }
}
