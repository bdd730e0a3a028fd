//! UDP with endpoint-independent mapping and filtering.

use fingerpost_nat::{Behaviour, Dependence};

use crate::trial::{EXT, MASQ, PRIVATES, PUBLIC, Trial};

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
