//! `rule add from 10.0.0.0/8 lookup 100`, as `ip` has it.

use crate::NameFile;
use ipnet::IpNet;
use table::row::route::table_id;
use table::row::rule::{action, flag};
use table::{AF_INET, AF_INET6, Rule};

use crate::Verb;
use crate::line::{Context, ParseError, Words, family_of, number, unknown, wrong};
use crate::values;

const KNOWN: &str = "not, from, to, priority, fwmark, tos, iif, oif, uidrange, ipproto, sport, \
     dport, tun_id, lookup TABLE, goto, nop, blackhole, prohibit, unreachable, l3mdev, realms, \
     suppress_prefixlength, suppress_ifgroup, protocol";

/// A rule as it is asked for.
#[derive(Debug)]
pub struct AskedRule {
    /// The rule.
    pub rule: Rule,
    /// Whether its place was said. If not, the kernel chooses one, or
    /// deletes at whatever place.
    pub is_placed: bool,
}

/// Reads a rule. O(words).
pub fn rule(line: &str, context: &mut Context<'_>) -> Result<AskedRule, ParseError> {
    let mut rule = Rule::default();
    let mut priority = None;
    let mut told_family = None;
    let mut table = None;
    let mut words = Words::new(line);
    // `ip rule show` begins its lines with the place: `50:`.
    if let Some(place) = words.peek().and_then(|word| word.strip_suffix(':')) {
        priority = Some(number(place).ok_or_else(|| wrong("priority", place, "a number"))?);
        words.next();
    }
    while let Some(word) = words.next() {
        match word {
            "from" | "to" => {
                let prefix = prefix(word, words.value(word)?, &mut told_family)?;
                *match word {
                    "from" => &mut rule.source,
                    _ => &mut rule.destination,
                } = prefix;
            }
            "pref" | "preference" | "priority" | "order" => priority = Some(words.number(word)?),
            "lookup" | "table" if words.peek() == Some("[l3mdev-table]") => {}
            "lookup" | "table" => table = Some(words.named(word, NameFile::Tables, context)?),
            "not" => rule.flags |= flag::INVERT,
            "fwmark" => rule.fwmark = Some(mark(word, &mut words)?),
            "tos" | "dsfield" => rule.tos = words.named_byte(word, NameFile::DsField, context)?,
            "iif" | "dev" => rule.iif = Some(words.value(word)?.into()),
            "oif" => rule.oif = Some(words.value(word)?.into()),
            "uidrange" => rule.uids = Some(range(word, words.value(word)?)?),
            "ipproto" => {
                let text = words.value(word)?;
                let number = values::ip_protocol(text).ok();
                rule.ip_protocol = Some(number.ok_or_else(|| wrong(word, text, "an IP protocol"))?);
            }
            "sport" => rule.source_ports = Some(range(word, words.value(word)?)?),
            "dport" => rule.destination_ports = Some(range(word, words.value(word)?)?),
            "tun_id" => rule.tunnel_id = Some(words.number(word)?),
            "goto" => {
                rule.goto = Some(words.number(word)?);
                rule.action = action::GOTO;
            }
            "nop" => rule.action = action::NOP,
            "blackhole" => rule.action = action::BLACKHOLE,
            "prohibit" => rule.action = action::PROHIBIT,
            "unreachable" => rule.action = action::UNREACHABLE,
            "l3mdev" | "[l3mdev-table]" => rule.l3mdev = true,
            "realms" => rule.realms = Some(crate::route::realms(word, &mut words, context)?),
            "suppress_prefixlength" | "suppress_prefixlen" | "sup_pl" => {
                rule.suppress_prefix_len = Some(words.number(word)?);
            }
            "suppress_ifgroup" | "sup_group" => {
                rule.suppress_group = Some(words.named(word, NameFile::Groups, context)?);
            }
            "protocol" | "proto" => {
                rule.protocol = words.named_byte(word, NameFile::Protocols, context)?;
            }
            "[detached]" | "[unresolved]" => {}
            _ => return Err(unknown(word, KNOWN)),
        }
    }
    rule.family = told_family.or(context.family).unwrap_or(AF_INET);
    rule.priority = priority.unwrap_or(0);
    settle_action(&mut rule, table, context.verb);
    Ok(AskedRule {
        rule,
        is_placed: priority.is_some(),
    })
}

/// A new rule that says nothing else looks up a table, the main one unless
/// said; an old one is found by what was said.
fn settle_action(rule: &mut Rule, table: Option<u32>, verb: Verb) {
    rule.table = table.unwrap_or(0);
    if rule.action != action::UNSPEC {
        return;
    }
    if verb != Verb::Delete || table.is_some() {
        rule.action = action::TO_TABLE;
    }
    if verb != Verb::Delete && table.is_none() && !rule.l3mdev {
        rule.table = table_id::MAIN;
    }
}

/// `all` is no condition.
fn prefix(word: &str, text: &str, family: &mut Option<u8>) -> Result<Option<IpNet>, ParseError> {
    if matches!(text, "all" | "any" | "default") {
        return Ok(None);
    }
    let prefix = crate::line::prefix(text, *family)?;
    let of = family_of(prefix.addr());
    if *family.get_or_insert(of) != of {
        let expected = if of == AF_INET6 { "IPv4" } else { "IPv6" };
        return Err(wrong(word, text, &format!("a prefix of {expected}")));
    }
    Ok(Some(prefix))
}

/// `MARK[/MASK]`.
fn mark(word: &str, words: &mut Words<'_>) -> Result<(u32, u32), ParseError> {
    let text = words.value(word)?;
    let (mark, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
    let expected = || wrong(word, text, "MARK or MARK/MASK");
    Ok((
        number(mark).ok_or_else(expected)?,
        number(mask).ok_or_else(expected)?,
    ))
}

/// `A-B`, or `A` alone.
fn range<T: TryFrom<u64> + Copy + PartialOrd>(
    word: &str,
    text: &str,
) -> Result<(T, T), ParseError> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (number::<T>(low), number::<T>(high)) {
        (Some(low), Some(high)) if low <= high => Ok((low, high)),
        _ => Err(wrong(word, text, "a number or FROM-TO")),
    }
}
