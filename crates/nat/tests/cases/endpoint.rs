//! UDP with endpoint-independent mapping and filtering.

use fingerpost_nat::{Behaviour, Dependence};

use crate::trial::{CARRIER, EXT, MASQ, PRIVATES, PUBLIC, Trial};

const PORT: u16 = 0x1234;

fn cone() -> Trial {
    let mut trial = Trial::new();
    trial.nat.set_udp(Behaviour::FULL_CONE);
    trial
}

#[test]
fn one_alias_port_towards_all_remotes() {
    let mut trial = cone();
    let port = trial.out(PRIVATES[0], (EXT, 0x5678), MASQ);
    for remote in [(EXT, 0x6789), (PUBLIC, 0x5678)] {
        assert_eq!(trial.out(PRIVATES[0], remote, MASQ), port);
        trial.udp_in(remote, (MASQ, port), (PRIVATES[0], PORT));
    }
    assert_ne!(trial.out(PRIVATES[1], (EXT, 0x5678), MASQ), port);
}

#[test]
fn other_remotes_get_in() {
    let mut trial = cone();
    let port = trial.out(PRIVATES[0], (EXT, 0x5678), MASQ);
    trial.udp_in((PUBLIC, 0x5678), (MASQ, port), (PRIVATES[0], PORT));
    trial.udp_in((EXT, 0x6789), (MASQ, port), (PRIVATES[0], PORT));
}

#[test]
fn denied_unless_it_was_sent_to() {
    let mut trial = cone();
    trial.nat.set_udp(Behaviour {
        filtering: Dependence::AddressAndPort,
        ..Behaviour::FULL_CONE
    });
    trial.mode(|mode| mode.deny_incoming = true);
    let port = trial.out(PRIVATES[0], (EXT, 0x5678), MASQ);
    trial.udp_in_fails((PUBLIC, 0x5678), (MASQ, port));
    trial.udp_in_fails((EXT, 0x6789), (MASQ, port));
    trial.udp_in((EXT, 0x5678), (MASQ, port), (PRIVATES[0], PORT));
    assert_eq!(trial.out(PRIVATES[0], (EXT, 0x6789), MASQ), port);
    trial.udp_in((EXT, 0x6789), (MASQ, port), (PRIVATES[0], PORT));
}

#[test]
fn hairpin_by_handing_the_packet_to_in() {
    let mut trial = cone();
    let first = trial.out(PRIVATES[0], (EXT, 0x5678), MASQ);
    let second = trial.out(PRIVATES[1], (EXT, 0x5678), MASQ);
    let turned = trial.udp_out((PRIVATES[0], PORT), (MASQ, second), MASQ);
    assert_eq!(turned, first);
    trial.udp_in((MASQ, turned), (MASQ, second), (PRIVATES[1], PORT));
    let turned = trial.udp_out((PRIVATES[1], PORT), (MASQ, first), MASQ);
    trial.udp_in((MASQ, turned), (MASQ, first), (PRIVATES[0], PORT));
}

/// What an inside sent to through an alias endpoint may answer from any port,
/// for as long as that flow lives: also when the alias address went, came
/// again and the inside was given the same endpoint anew.
#[test]
fn what_was_sent_to_gets_in_when_the_address_comes_again() {
    let mut trial = cone();
    trial.nat.set_udp(Behaviour {
        filtering: Dependence::Address,
        ..Behaviour::FULL_CONE
    });
    trial.mode(|mode| mode.deny_incoming = true);
    trial.same_ports(true);
    let inside = (PRIVATES[0], PORT);
    assert_eq!(trial.out(PRIVATES[0], (EXT, 80), MASQ), PORT);
    trial.nat.set_addresses(&[CARRIER]).unwrap();
    assert_eq!(trial.out(PRIVATES[0], (PRIVATES[1], 80), CARRIER), PORT);
    trial.udp_in((EXT, 80), (MASQ, PORT), inside);
    trial.udp_in_fails((EXT, 81), (MASQ, PORT));
    trial.nat.set_addresses(&[MASQ]).unwrap();
    assert_eq!(trial.out(PRIVATES[0], (PRIVATES[2], 80), MASQ), PORT);
    trial.udp_in((EXT, 81), (MASQ, PORT), inside);
    trial.udp_in_fails((PRIVATES[1], 81), (MASQ, PORT));
    trial.udp_in_fails((PUBLIC, 81), (MASQ, PORT));
}

/// The same endpoint given to another inside is another's: who was sent to
/// before does not get in to it.
#[test]
fn what_another_inside_sent_to_stays_outside() {
    let mut trial = cone();
    trial.nat.set_udp(Behaviour {
        filtering: Dependence::Address,
        ..Behaviour::FULL_CONE
    });
    trial.mode(|mode| mode.deny_incoming = true);
    trial.same_ports(true);
    assert_eq!(trial.out(PRIVATES[0], (EXT, 80), MASQ), PORT);
    trial.nat.set_addresses(&[CARRIER]).unwrap();
    assert_eq!(trial.out(PRIVATES[0], (PUBLIC, 80), CARRIER), PORT);
    trial.nat.set_addresses(&[MASQ]).unwrap();
    assert_eq!(trial.out(PRIVATES[1], (PUBLIC, 81), MASQ), PORT);
    trial.udp_in((PUBLIC, 82), (MASQ, PORT), (PRIVATES[1], PORT));
    trial.udp_in_fails((EXT, 81), (MASQ, PORT));
    trial.udp_in((EXT, 80), (MASQ, PORT), (PRIVATES[0], PORT));
}
