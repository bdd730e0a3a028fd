//! What `ip` prints, a line each, to lines that can be read as rows: a route
//! with several next hops goes over lines of its own (or `\` parts them,
//! with `-o`), and an address stands below its link, its lifetimes below it.
//! Called by whatever reads files of rows.

use std::net::IpAddr;

use crate::Object;

/// Puts the lines of a listing together. Lines that are no listing's pass
/// as they are.
#[derive(Debug)]
pub struct Listing {
    object: Object,
    /// The link whose addresses follow.
    link: String,
    /// A line that may go on, and its number.
    open: Option<(u64, String)>,
}

/// What `ip` shows of an address and nobody sets.
const SHOWN: [&str; 9] = [
    "secondary",
    "temporary",
    "dynamic",
    "permanent",
    "tentative",
    "deprecated",
    "dadfailed",
    "stable-privacy",
    "offload",
];

/// What stands in an address's line with a value behind it.
const VALUED: [&str; 6] = ["peer", "brd", "any", "scope", "metric", "proto"];

/// What stands in it alone and is set.
const FLAGS: [&str; 6] = [
    "nodad",
    "noprefixroute",
    "home",
    "mngtmpaddr",
    "autojoin",
    "optimistic",
];

impl Listing {
    /// Of a kind of rows.
    pub fn new(object: Object) -> Self {
        Self {
            object,
            link: String::new(),
            open: None,
        }
    }

    /// Takes a line with its number. Gives the lines that are whole, with
    /// the numbers of those that they began in.
    pub fn take(&mut self, number: u64, line: &str) -> Vec<(u64, String)> {
        // What parts lines with `-o`.
        let line = line.replace("\\\t", " ").replace("\\ ", " ");
        // The object that a route goes by, which has a listing of its own.
        let line = match line.strip_prefix("\tnh_info ") {
            Some(info) if self.object == Object::Route => match info.split_once("nexthop ") {
                Some((_, hops)) => format!("\tnexthop {hops}"),
                None => return Vec::new(),
            },
            _ => line,
        };
        match self.object {
            Object::Route => self.route(number, &line),
            Object::Addr => self.address(number, &line),
            Object::Fdb => vec![(number, entry(&line))],
            _ => vec![(number, line.trim().to_owned())],
        }
    }

    /// No more lines: what was still open.
    pub fn end(&mut self) -> Option<(u64, String)> {
        self.open.take()
    }

    fn route(&mut self, number: u64, line: &str) -> Vec<(u64, String)> {
        let text = line.trim();
        if let Some((_, open)) = &mut self.open
            && line.starts_with(char::is_whitespace)
            && text.starts_with("nexthop ")
        {
            open.push(' ');
            open.push_str(text);
            return Vec::new();
        }
        let mut whole: Vec<_> = self.open.take().into_iter().collect();
        if leads_nowhere(text) {
            self.open = Some((number, text.to_owned()));
        } else {
            whole.push((number, text.to_owned()));
        }
        whole
    }

    fn address(&mut self, number: u64, line: &str) -> Vec<(u64, String)> {
        let text = line.trim();
        if text.starts_with("valid_lft ")
            && let Some((began, open)) = self.open.take()
        {
            return vec![(began, address(&format!("{open} {text}"), &self.link))];
        }
        let open = self.open.take();
        let mut whole: Vec<_> = open
            .map(|(began, open)| (began, address(&open, &self.link)))
            .into_iter()
            .collect();
        let (head, rest) = head(text).unwrap_or(("", text));
        let is_address = rest.starts_with("inet ") || rest.starts_with("inet6 ");
        match (head, is_address) {
            // `2: em1    inet 192.0.2.1/24 …`
            (name, true) if !name.is_empty() => whole.push((number, address(rest, name))),
            (_, true) if !self.link.is_empty() => self.open = Some((number, text.to_owned())),
            // `2: em1@em2: <BROADCAST,…> mtu …`
            (name, false) if rest.starts_with('<') => {
                let name = name.strip_suffix(':').unwrap_or(name);
                let own = name.split_once('@').map_or(name, |(own, _)| own);
                self.link = own.to_owned();
            }
            // What else is told of the link; an address alone is a row.
            _ if !self.link.is_empty()
                && line.starts_with(char::is_whitespace)
                && !begins_with_address(text) => {}
            _ => whole.push((number, text.to_owned())),
        }
        whole
    }
}

/// A forwarding entry. The listing ends with its state, which is nothing for
/// one that was learnt: the blank before it is all that tells.
fn entry(line: &str) -> String {
    let text = line.trim();
    let is_learnt = line.trim_end_matches(['\r', '\n']).ends_with(' ');
    match is_learnt && line.contains(" dev ") {
        true => format!("{text} dynamic"),
        false => text.to_owned(),
    }
}

/// Whether a route says nothing of where it leads: its next hops are to
/// come.
fn leads_nowhere(text: &str) -> bool {
    const LEADS: [&str; 5] = ["via", "dev", "nhid", "nexthop", "encap"];
    const REFUSES: [&str; 4] = ["blackhole", "unreachable", "prohibit", "throw"];
    !text.is_empty()
        && !text
            .split_whitespace()
            .any(|word| LEADS.contains(&word) || REFUSES.contains(&word))
}

fn begins_with_address(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let address = first.split_once('/').map_or(first, |(address, _)| address);
    address.parse::<IpAddr>().is_ok()
}

/// `2: em1 …`: the name and what stands behind it.
fn head(text: &str) -> Option<(&str, &str)> {
    let (number, rest) = text.split_once(": ")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let (name, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    is_number.then_some((name, rest.trim_start()))
}

/// `inet 192.0.2.1/24 brd 192.0.2.255 scope global secondary em1 valid_lft
/// forever preferred_lft forever` in the words of `ip addr add`.
fn address(text: &str, link: &str) -> String {
    let mut words = text.split_whitespace().skip(1);
    let mut line = String::new();
    let mut put = |word: &str| {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    };
    put(words.next().unwrap_or_default());
    while let Some(word) = words.next() {
        let value = |words: &mut dyn Iterator<Item = &str>| words.next().map(str::to_owned);
        match word {
            _ if SHOWN.contains(&word) => {}
            "valid_lft" | "preferred_lft" => {
                let time = value(&mut words).unwrap_or_default();
                put(word);
                put(time.strip_suffix("sec").unwrap_or(&time));
            }
            "flags" => drop(words.next()),
            _ if VALUED.contains(&word) => {
                put(if word == "any" { "anycast" } else { word });
                put(&value(&mut words).unwrap_or_default());
            }
            _ if FLAGS.contains(&word) => put(word),
            label => {
                put("label");
                put(label);
            }
        }
    }
    put("dev");
    put(link);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(object: Object, text: &str) -> Vec<(u64, String)> {
        let mut listing = Listing::new(object);
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            lines.extend(listing.take(number, line));
        }
        lines.extend(listing.end());
        lines
    }

    #[test]
    fn a_route_s_next_hops_are_put_behind_it() {
        let text = "10.0.0.0/8 via 192.0.2.9 dev em1 \n\
                    10.1.0.0/16 proto static metric 5 \n\
                    \tnexthop via 192.0.2.1 dev em1 weight 2 \n\
                    \tnexthop via 192.0.2.2 dev em1 weight 1 \n\
                    blackhole 10.2.0.0/16 \n\
                    10.3.0.0/16 \\\tnexthop via 192.0.2.1 dev em1 weight 1 \n\
                    10.4.0.0/16\n";
        let lines = read(Object::Route, text);
        let lines: Vec<(u64, &str)> = lines.iter().map(|(n, line)| (*n, &**line)).collect();
        assert_eq!(
            lines,
            [
                (1, "10.0.0.0/8 via 192.0.2.9 dev em1"),
                (
                    2,
                    "10.1.0.0/16 proto static metric 5 nexthop via 192.0.2.1 dev em1 weight 2 \
                     nexthop via 192.0.2.2 dev em1 weight 1"
                ),
                (5, "blackhole 10.2.0.0/16"),
                (6, "10.3.0.0/16  nexthop via 192.0.2.1 dev em1 weight 1"),
                (7, "10.4.0.0/16"),
            ]
        );
    }

    #[test]
    fn addresses_know_their_links() {
        let text = "2: em1@em2: <BROADCAST,UP> mtu 1500 qdisc noqueue state UP group default\n    \
                    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n    \
                    inet 192.0.2.1/24 brd 192.0.2.255 scope global secondary em1:x\n       \
                    valid_lft 85sec preferred_lft forever\n    \
                    inet6 2001:db8::1/64 scope global nodad \n       \
                    valid_lft forever preferred_lft forever\n\
                    3: em2    inet 192.0.2.5 peer 192.0.2.6/32 scope link em2\\       valid_lft \
                    forever preferred_lft forever\n\
                    192.0.2.7/24 dev em2\n    \
                    192.0.2.8/24 dev em2\n";
        let lines = read(Object::Addr, text);
        let lines: Vec<&str> = lines.iter().map(|(_, line)| &**line).collect();
        assert_eq!(
            lines,
            [
                "192.0.2.1/24 brd 192.0.2.255 scope global label em1:x valid_lft 85 \
                 preferred_lft forever dev em1",
                "2001:db8::1/64 scope global nodad valid_lft forever preferred_lft forever dev em1",
                "192.0.2.5 peer 192.0.2.6/32 scope link label em2 valid_lft forever \
                 preferred_lft forever dev em2",
                "192.0.2.7/24 dev em2",
                "192.0.2.8/24 dev em2",
            ]
        );
    }
}
