//! `fdb append 02:00:00:00:00:02 dev em1 master static`, as `bridge` has it.

use table::FdbEntry;
use table::row::neighbour::{flag, state};

use crate::line::{Context, ParseError, Words, lladdr, unknown, wrong};

const KNOWN: &str = "MAC, dev, master, self, vlan, dst, port, vni, src_vni, via, nhid, permanent, \
     static, dynamic, sticky, router, extern_learn";

/// What may stand behind `master`, and is no name of a bridge there.
const BEHIND_MASTER: [&str; 20] = [
    "dev",
    "master",
    "self",
    "sticky",
    "router",
    "extern_learn",
    "offload",
    "permanent",
    "local",
    "static",
    "temp",
    "dynamic",
    "stale",
    "vlan",
    "dst",
    "port",
    "vni",
    "src_vni",
    "nhid",
    "via",
];

/// The number of a VXLAN network has 24 bits (RFC 7348 §5).
const VNI_BITS: u32 = 24;

/// Reads an entry. `master` alone means the bridge that the link is a port
/// of; a listing names the bridge behind it, and says nothing of the state of
/// what was learnt. Of an entry that is the bridge's own the two are one link.
/// O(words).
pub fn fdb(line: &str, context: &mut Context<'_>) -> Result<FdbEntry, ParseError> {
    let mut row = FdbEntry::default();
    let mut told = None;
    let mut words = Words::new(line);
    let mac = words.next().unwrap_or_default();
    row.lladdr = lladdr(mac)?;
    if row.lladdr.octets().len() != 6 {
        return Err(wrong("MAC", mac, "an address of six octets"));
    }
    while let Some(word) = words.next() {
        match word {
            "dev" => row.link = words.link(word, context)?,
            "master" => {
                row.flags |= flag::MASTER;
                let is_name = |next: &&str| !BEHIND_MASTER.contains(next);
                if words.peek().filter(is_name).is_some() {
                    row.master = Some(words.link(word, context)?);
                }
            }
            "self" => row.flags |= flag::SELF,
            "sticky" => row.flags |= flag::STICKY,
            "router" => row.flags |= flag::ROUTER,
            "extern_learn" => row.flags |= flag::EXT_LEARNED,
            // The kernel's to tell.
            "offload" => {}
            "permanent" | "local" => told = Some(state::PERMANENT),
            "static" | "temp" => told = Some(state::NOARP | state::REACHABLE),
            "dynamic" => told = Some(state::REACHABLE),
            "vlan" => row.vlan = Some(words.number(word)?),
            "dst" => row.destination = Some(words.address(word)?),
            "port" => row.port = Some(words.number(word)?),
            "vni" => row.vni = Some(vni(word, &mut words)?),
            "src_vni" => row.source_vni = Some(vni(word, &mut words)?),
            "nhid" => row.nexthop_id = Some(words.number(word)?),
            "via" => row.via_link = Some(words.link(word, context)?),
            _ => return Err(unknown(word, KNOWN)),
        }
    }
    if row.link == 0 {
        return Err("`dev` is wanted: the port the entry is of".to_owned());
    }
    row.state = told.unwrap_or(match row.master {
        Some(_) => state::REACHABLE,
        None => state::PERMANENT,
    });
    if row.master == Some(row.link) {
        row.flags = row.flags & !flag::MASTER | flag::SELF;
    }
    // As bridge(8): the device's own, unless the bridge's is asked for.
    if row.flags & (flag::MASTER | flag::SELF) == 0 {
        row.flags |= flag::SELF;
    }
    Ok(row)
}

fn vni(word: &str, words: &mut Words<'_>) -> Result<u32, ParseError> {
    let number: u32 = words.number(word)?;
    match number >> VNI_BITS {
        0 => Ok(number),
        _ => Err(wrong(word, number, "a number up to 16777215")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Links, Verb, load};

    /// Links are called by their numbers.
    struct Numbered;

    impl Links for Numbered {
        fn index(&mut self, name: &str) -> Result<u32, ParseError> {
            let number = name.strip_prefix("br").unwrap_or(name).parse();
            number.map_err(|_| format!("no link is named `{name}`"))
        }

        fn vrf_table(&mut self, name: &str) -> Result<u32, ParseError> {
            self.index(name)
        }
    }

    fn read(line: &str) -> Result<FdbEntry, ParseError> {
        let mut context = Context {
            links: &mut Numbered,
            names: &load(),
            family: None,
            verb: Verb::Add,
            now_millis: 0,
        };
        fdb(&format!("02:00:00:00:00:01 {line}"), &mut context)
    }

    #[test]
    fn a_line_of_words_and_a_line_of_a_listing() {
        let (permanent, learnt) = (state::PERMANENT, state::REACHABLE);
        for (line, flags, master, state) in [
            ("dev 4", flag::SELF, None, permanent),
            ("dev 4 self static", flag::SELF, None, state::NOARP | learnt),
            ("dev 4 master", flag::MASTER, None, permanent),
            ("dev 4 master dynamic", flag::MASTER, None, learnt),
            (
                "dev 4 master br7 permanent",
                flag::MASTER,
                Some(7),
                permanent,
            ),
            (
                "dev 4 extern_learn master br7",
                flag::MASTER | flag::EXT_LEARNED,
                Some(7),
                learnt,
            ),
            (
                "dev br7 master br7 permanent",
                flag::SELF,
                Some(7),
                permanent,
            ),
        ] {
            let row = read(line).unwrap();
            assert_eq!(
                (row.flags, row.master, row.state),
                (flags, master, state),
                "{line}"
            );
        }
        let row = read("dev 4 dst 192.0.2.1 port 4790 vni 16777215 src_vni 5 via 6 self").unwrap();
        let numbers = (row.port, row.vni, row.source_vni, row.via_link);
        assert_eq!(numbers, (Some(4790), Some(0xff_ffff), Some(5), Some(6)));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for line in [
            "",
            "dev",
            "dev em1",
            "dev 4 vni 16777216",
            "dev 4 vlan 65536",
            "dev 4 stale",
            "dev 4 locked",
            "dev 4 state=0x20",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
