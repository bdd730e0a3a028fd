//! `neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 nud permanent dev em1`,
//! as `ip` has it.

use crate::NameFile;
use table::row::neighbour::{flag, state};
use table::{LinkLayerAddress, Neighbour};

use crate::Verb;
use crate::line::{Context, ParseError, Words, address, lladdr, unknown, wrong};

const KNOWN: &str = "ADDRESS or proxy ADDRESS, lladdr, dev, nud STATE, router, use, managed, \
     extern_learn, proto";

/// `NUD_…` by `ip`'s names.
const STATES: &[(&str, u16)] = &[
    ("permanent", state::PERMANENT),
    ("noarp", state::NOARP),
    ("reachable", state::REACHABLE),
    ("stale", state::STALE),
    ("delay", state::DELAY),
    ("probe", state::PROBE),
    ("failed", state::FAILED),
    ("incomplete", state::INCOMPLETE),
    ("none", state::NONE),
];

const FLAGS: &[(&str, u32)] = &[
    ("router", flag::ROUTER),
    ("use", flag::USE),
    ("managed", flag::EXT_MANAGED),
    ("extern_learn", flag::EXT_LEARNED),
];

/// Reads a neighbour. O(words).
pub fn neighbour(line: &str, context: &mut Context<'_>) -> Result<Neighbour, ParseError> {
    let mut to = None;
    let mut link = None;
    let mut told = None;
    let mut row_lladdr = LinkLayerAddress::NONE;
    let (mut flags, mut protocol, mut proxy) = (0, 0, false);
    let mut words = Words::new(line);
    while let Some(word) = words.next() {
        match word {
            "dev" => link = Some(words.link(word, context)?),
            "lladdr" => row_lladdr = lladdr(words.value(word)?)?,
            "nud" | "state" => {
                let text = words.value(word)?;
                told = Some(state_of(text).ok_or_else(|| {
                    wrong(
                        word,
                        text,
                        "permanent, noarp, stale, reachable or another state",
                    )
                })?);
            }
            "proto" | "protocol" => {
                protocol = words.named_byte(word, NameFile::Protocols, context)?;
            }
            "proxy" => {
                proxy = true;
                // What is shown says it behind the address.
                if to.is_none() {
                    to = Some(words.address(word)?);
                }
            }
            "to" => to = Some(words.address(word)?),
            _ => {
                if let Some((_, flag)) = FLAGS.iter().find(|(name, _)| *name == word) {
                    flags |= flag;
                } else if let Some(state) = state_of(word).filter(|_| to.is_some()) {
                    // `ip neigh show` ends its lines so.
                    told = Some(state);
                } else if to.is_none() {
                    to = Some(address(word).ok_or_else(|| wrong("address", word, "an address"))?);
                } else {
                    return Err(unknown(word, KNOWN));
                }
            }
        }
    }
    let default_state = match context.verb {
        Verb::Delete => state::NONE,
        _ if proxy => state::NONE,
        _ => state::PERMANENT,
    };
    Ok(Neighbour {
        link: match link {
            Some(link) => link,
            None if proxy => 0,
            None => return Err("`dev` is wanted: the link the neighbour is on".to_owned()),
        },
        address: to.ok_or_else(|| "a neighbour wants an address".to_owned())?,
        proxy,
        lladdr: row_lladdr,
        state: told.unwrap_or(default_state),
        flags,
        protocol,
        kind: 0,
    })
}

fn state_of(text: &str) -> Option<u16> {
    STATES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text))
        .map(|(_, state)| *state)
}
