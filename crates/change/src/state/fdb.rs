//! A forwarding entry from `bridge fdb`'s words, as a file's line has them.
//! Pure; called by [`super::resolved`].

use table::FdbEntry;
use table::row::neighbour::{flag, state};
use words::line::{lladdr, unknown};
use words::{Context, ParseError, Words};

const KNOWN: &str = "MAC, dev, master, self, vlan, dst, port, vni, src_vni, via, nhid, permanent, \
     static, sticky, router, extern_learn";

/// Reads an entry; that its port is in a bridge is told by `master`.
pub fn entry(line: &str, context: &mut Context<'_>) -> Result<FdbEntry, ParseError> {
    let mut row = FdbEntry {
        state: state::PERMANENT,
        ..FdbEntry::default()
    };
    let mut words = Words::new(line);
    let mac = words.next().unwrap_or_default();
    row.lladdr = lladdr(mac)?;
    while let Some(word) = words.next() {
        match word {
            "dev" => row.link = words.link(word, context)?,
            "master" => row.flags |= flag::MASTER,
            "self" => row.flags |= flag::SELF,
            "sticky" => row.flags |= flag::STICKY,
            "router" => row.flags |= flag::ROUTER,
            "extern_learn" => row.flags |= flag::EXT_LEARNED,
            "permanent" | "local" => row.state = state::PERMANENT,
            "static" => row.state = state::NOARP,
            "vlan" => row.vlan = Some(words.number(word)?),
            "dst" => row.destination = Some(words.address(word)?),
            "port" => row.port = Some(words.number(word)?),
            "vni" => row.vni = Some(words.number(word)?),
            "src_vni" => row.source_vni = Some(words.number(word)?),
            "nhid" => row.nexthop_id = Some(words.number(word)?),
            "via" => row.via_link = Some(words.link(word, context)?),
            _ => return Err(unknown(word, KNOWN)),
        }
    }
    if row.link == 0 {
        return Err("`dev` is wanted: the port the entry is of".to_owned());
    }
    // As bridge(8): the device's own, unless the bridge's is asked for.
    if row.flags & (flag::MASTER | flag::SELF) == 0 {
        row.flags |= flag::SELF;
    }
    Ok(row)
}
