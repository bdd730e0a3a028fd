//! `nexthop add id 5 via 192.0.2.1 dev em1`, `nexthop add id 9 group
//! 5,10/6`, as `ip` has it.

use crate::NameFile;
use table::row::route::hop_flag;
use table::{AF_INET, GroupMember, Nexthop, Resilient};

use crate::Verb;
use crate::encap::encap;
use crate::line::{Context, ParseError, Words, family, family_of, number, unknown, wrong};

const KNOWN: &str = "id, via, dev, onlink, blackhole, fdb, group ID[,WEIGHT]/…, type mpath or \
     resilient, buckets, idle_timer, unbalanced_timer, proto";

/// The kernel's own choice (`NH_RES_DEFAULT_IDLE_TIMER`).
const IDLE_CENTISECS: u32 = 12_000;

/// Reads a next-hop object. O(words).
pub fn nexthop(line: &str, context: &mut Context<'_>) -> Result<Nexthop, ParseError> {
    let mut row = Nexthop::default();
    let mut words = Words::new(line);
    let mut told_family = context.family;
    while let Some(word) = words.next() {
        match word {
            "id" => row.id = words.number(word)?,
            "dev" => row.link = Some(words.link(word, context)?),
            "via" => {
                if words.peek().is_some_and(|text| family(text).is_some()) {
                    words.next();
                }
                let gateway = words.address(word)?;
                told_family = Some(family_of(gateway));
                row.gateway = Some(gateway);
            }
            "onlink" => row.flags |= hop_flag::ONLINK,
            "blackhole" => row.blackhole = true,
            "fdb" => row.fdb = true,
            "proto" | "protocol" => {
                row.protocol = words.named_byte(word, NameFile::Protocols, context)?;
            }
            "group" => row.group = members(words.value(word)?)?,
            "type" => {
                row.group_kind = match words.value(word)? {
                    "mpath" => 0,
                    "resilient" => 1,
                    other => return Err(wrong(word, other, "mpath or resilient")),
                };
            }
            "buckets" => resilient(&mut row).buckets = words.number(word)?,
            "idle_timer" => resilient(&mut row).idle_timer_centisecs = centisecs(word, &mut words)?,
            "unbalanced_timer" => {
                resilient(&mut row).unbalanced_timer_centisecs = centisecs(word, &mut words)?;
            }
            "encap" => row.encap = Some(encap(&mut words, context)?),
            // What is shown and not told.
            "scope" | "unbalanced_time" => {
                words.value(word)?;
            }
            "dead" | "linkdown" | "offload" | "trap" => {}
            _ => return Err(unknown(word, KNOWN)),
        }
    }
    // Of one that is made the kernel chooses it.
    if row.id == 0 && context.verb != Verb::Add {
        return Err("a next hop wants its `id`".to_owned());
    }
    if context.verb != Verb::Delete {
        let is_told = row.link.is_some() || row.gateway.is_some();
        if !(is_told || row.blackhole || row.fdb || !row.group.is_empty()) {
            return Err("a next hop wants `via`, `dev`, `blackhole` or `group`".to_owned());
        }
        if row.group.is_empty() {
            row.family = told_family.unwrap_or(AF_INET);
        }
    }
    Ok(row)
}

fn resilient(row: &mut Nexthop) -> &mut Resilient {
    row.resilient.get_or_insert(Resilient {
        idle_timer_centisecs: IDLE_CENTISECS,
        ..Resilient::default()
    })
}

/// `5,10/6`: identifiers with weights.
fn members(text: &str) -> Result<Vec<GroupMember>, ParseError> {
    let expected = || wrong("group", text, "ID[,WEIGHT]/ID[,WEIGHT]/…");
    text.split('/')
        .map(|member| {
            let (id, weight) = member.split_once(',').unwrap_or((member, "1"));
            let id = number(id).ok_or_else(expected)?;
            let weight = number(weight).filter(|weight| *weight > 0);
            Ok(GroupMember {
                id,
                weight: weight.ok_or_else(expected)?,
            })
        })
        .collect()
}

/// Seconds, with hundredths.
fn centisecs(word: &str, words: &mut Words<'_>) -> Result<u32, ParseError> {
    let text = words.value(word)?;
    let secs: f64 = text.parse().map_err(|_| wrong(word, text, "seconds"))?;
    let centisecs = (secs * 100.0).round();
    if (0.0..=f64::from(u32::MAX)).contains(&centisecs) {
        Ok(centisecs as u32)
    } else {
        Err(wrong(word, text, "seconds"))
    }
}
