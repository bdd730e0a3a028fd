//! Names of hardware types.

use table::row::link::hardware;

/// Number and net-tools' name of the types of `linux/if_arp.h` that it
/// knows, ordered by number.
const LINUX: [(u16, &str); 25] = [
    (0, "netrom"),
    (1, "ether"),
    (3, "ax25"),
    (7, "arcnet"),
    (15, "dlci"),
    (27, "eui64"),
    (256, "slip"),
    (257, "cslip"),
    (258, "slip6"),
    (259, "cslip6"),
    (264, "adaptive"),
    (270, "rose"),
    (271, "x25"),
    (512, "ppp"),
    (513, "hdlc"),
    (516, "lapb"),
    (768, "tunnel"),
    (770, "frad"),
    (772, "loop"),
    (774, "fddi"),
    (776, "sit"),
    (780, "hippi"),
    (781, "ash"),
    (782, "ec"),
    (783, "irda"),
];

/// net-tools' name of a hardware type in its ARP table. A type that it does
/// not know is `ether` to it, and to whoever parses it.
pub fn linux_type(number: u16) -> &'static str {
    match LINUX.binary_search_by_key(&number, |(number, _)| *number) {
        Ok(at) => LINUX[at].1,
        Err(_) => "ether",
    }
}

/// The hardware type of a name of net-tools.
pub fn linux_type_number(name: &str) -> Option<u16> {
    LINUX
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(number, _)| *number)
}

/// What the BSDs write between brackets at the end of a line.
pub fn bsd_type(number: u16) -> Option<&'static str> {
    match number {
        hardware::ETHER => Some("ethernet"),
        hardware::INFINIBAND => Some("infiniband"),
        774 => Some("fddi"),
        24 => Some("firewire"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_ordered_and_its_names_lead_back() {
        assert!(LINUX.is_sorted());
        for (number, name) in LINUX {
            assert_eq!(linux_type(number), name);
            assert_eq!(linux_type_number(name), Some(number));
        }
        assert_eq!(linux_type(0xFFFE), "ether");
    }
}
