//! What files say, put together: each link once, each row as a line of
//! `ip`'s words. What two places say differently of a link is refused.
//! Pure; called by [`mod@super`].

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;
use table::LinkLayerAddress;
use words::Object;

use super::file::{self, Row};
use super::numbers;
use super::source::{Place, Said};
use crate::links::check_name;

/// So many links and rows all files say at most: some gigabytes of memory.
const MAX_ROWS: usize = 1 << 24;

/// All that is wanted.
#[derive(Debug, Default)]
pub struct Wanted {
    pub links: Vec<Link>,
    by_name: HashMap<Box<str>, usize>,
    pub rows: Vec<Line>,
    /// Places that [`Link`] and [`Line`] count.
    pub places: Vec<Place>,
    /// So many links and rows at most.
    most: usize,
}

/// A link; what is `None` or empty is left as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    pub name: Box<str>,
    pub kind: Option<Box<str>>,
    pub options: Vec<String>,
    pub peer: Option<Box<str>>,
    /// What is said of the pair, and so of its other end.
    pub pair_mtu: Option<u32>,
    pub pair_up: Option<bool>,
    /// It is the other end of this link, and made with it.
    pub end_of: Option<usize>,
    pub lower: Option<Box<str>>,
    pub master: Option<Box<str>>,
    pub up: Option<bool>,
    pub mtu: Option<u32>,
    pub tx_queue_len: Option<u32>,
    pub group: Option<u32>,
    pub address: Option<LinkLayerAddress>,
    pub alias: Option<Box<str>>,
    pub alt_names: Vec<Box<str>>,
    pub sysctl: Vec<Setting>,
    /// Which field was said where.
    said: Vec<(&'static str, usize)>,
}

/// A setting of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Under `/proc/sys/net`, with the link's name in it.
    pub path: String,
    pub value: String,
    /// Where it was said.
    place: usize,
}

/// A row, in `ip`'s words behind the verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub object: Object,
    pub words: String,
    /// Whether its protocol was said.
    pub has_protocol: bool,
    pub family: Option<u8>,
    pub place: usize,
}

impl Wanted {
    /// Puts together what files say. What is wrong is said with its place.
    pub fn of(said: Said) -> Result<Self, String> {
        Self::within(said, MAX_ROWS)
    }

    /// The same of so many links and rows at most.
    pub fn within(said: Said, most: usize) -> Result<Self, String> {
        let mut wanted = Self {
            most,
            ..Self::default()
        };
        for (place, link) in said.links {
            let at = wanted.place(&place);
            let mut each = |link: file::Link| wanted.link(&link, at);
            match place.is_listed {
                true => each(link),
                false => numbers::rows(link, &mut each),
            }
            .map_err(|why| at_place(&place, &why))?;
        }
        wanted.ends()?;
        for (place, object, row) in said.rows {
            let at = wanted.place(&place);
            let mut each = |row: Row| {
                let line = line(object, row, at)?;
                wanted.rows.push(line);
                wanted.is_within()
            };
            match place.is_listed {
                true => each(row),
                false => numbers::rows(row, &mut each),
            }
            .map_err(|why| at_place(&place, &why))?;
        }
        Ok(wanted)
    }

    fn is_within(&self) -> Result<(), String> {
        match self.links.len() + self.rows.len() <= self.most {
            true => Ok(()),
            false => Err(format!("more than {} links and rows in all", self.most)),
        }
    }

    fn place(&mut self, place: &Place) -> usize {
        self.places.push(place.clone());
        self.places.len() - 1
    }

    /// The wanted link of a name. O(1).
    pub fn named(&self, name: &str) -> Option<(usize, &Link)> {
        let at = *self.by_name.get(name)?;
        Some((at, self.links.get(at)?))
    }

    /// Where a link is said first.
    pub fn place_of(&self, at: usize) -> String {
        self.place_of_field(at, "name")
    }

    /// Where a field of a link is said first.
    fn place_of_field(&self, at: usize, field: &str) -> String {
        let said = self.links.get(at).map(|link| link.said.iter());
        let said = said.and_then(|mut said| said.find(|(known, _)| *known == field));
        let place = said.and_then(|(_, at)| self.places.get(*at));
        place.map_or_else(|| "?".to_owned(), ToString::to_string)
    }

    fn entry(&mut self, name: &str) -> Result<usize, String> {
        if let Some(at) = self.by_name.get(name) {
            return Ok(*at);
        }
        check_name(name)?;
        self.by_name.insert(name.into(), self.links.len());
        self.links.push(Link {
            name: name.into(),
            ..Link::default()
        });
        Ok(self.links.len() - 1)
    }

    fn link(&mut self, said: &file::Link, place: usize) -> Result<(), String> {
        if said.name.is_empty() {
            return Err("the link has no `name`".to_owned());
        }
        check(said)?;
        let at = self.entry(&said.name)?;
        let places = &self.places;
        let link = &mut self.links[at];
        let mut merge = Merge {
            said: &mut link.said,
            name: &said.name,
            place,
            places,
        };
        let boxed = |text: &Option<String>| text.as_deref().map(Box::<str>::from);
        merge.said.push(("name", place));
        merge.field("kind", &mut link.kind, boxed(&said.kind))?;
        merge.field("peer", &mut link.peer, boxed(&said.peer))?;
        merge.field("link", &mut link.lower, boxed(&said.link))?;
        merge.field("master", &mut link.master, boxed(&said.master))?;
        merge.field("up", &mut link.up, said.up)?;
        merge.field("mtu", &mut link.mtu, said.mtu)?;
        merge.field("txqueuelen", &mut link.tx_queue_len, said.txqueuelen)?;
        merge.field("group", &mut link.group, said.group)?;
        merge.field("alias", &mut link.alias, boxed(&said.alias))?;
        merge.field("address", &mut link.address, lladdr(&said.address)?)?;
        let options = said.options.as_deref().map(|text| {
            let words = text.split_whitespace();
            words.map(str::to_owned).collect::<Vec<_>>()
        });
        let mut told = (!link.options.is_empty()).then(|| std::mem::take(&mut link.options));
        merge.field("options", &mut told, options)?;
        link.options = told.unwrap_or_default();
        for name in &said.altnames {
            if !link.alt_names.iter().any(|known| **known == **name) {
                link.alt_names.push(name.as_str().into());
            }
        }
        for (path, value) in sysctl(said)? {
            match link.sysctl.iter().find(|known| known.path == path) {
                Some(known) if known.value != value => {
                    let (other, at) = (&known.value, &places[known.place]);
                    return Err(format!("{path} is to be {value} here, and {other} at {at}"));
                }
                Some(_) => {}
                None => link.sysctl.push(Setting { path, value, place }),
            }
        }
        self.addresses(&said.name, &said.addresses, place)?;
        if let Some(peer) = &said.peer {
            let link = &mut self.links[at];
            link.pair_mtu = link.pair_mtu.or(said.mtu);
            link.pair_up = link.pair_up.or(said.up);
            if *peer == said.name {
                return Err(format!("`{peer}` cannot be its own other end"));
            }
            let other = self.entry(peer)?;
            let known = self.links[other].end_of.filter(|known| *known != at);
            if let Some(known) = known {
                return Err(format!(
                    "`{peer}` is the other end of `{}` at {}",
                    self.links[known].name,
                    self.place_of(known)
                ));
            }
            let places = &self.places;
            let link = &mut self.links[other];
            link.end_of = Some(at);
            let mut merge = Merge {
                said: &mut link.said,
                name: peer,
                place,
                places,
            };
            merge.said.push(("name", place));
            let address = lladdr(&said.peer_address)?;
            merge.field("address", &mut link.address, address)?;
            self.addresses(peer, &said.peer_addresses, place)?;
        }
        self.is_within()
    }

    fn addresses(&mut self, link: &str, texts: &[String], place: usize) -> Result<(), String> {
        for text in texts {
            let net = interface(text)?;
            let brd = match net {
                IpNet::V4(net) if net.prefix_len() < 31 => format!(" brd {}", net.broadcast()),
                _ => String::new(),
            };
            self.rows.push(Line {
                object: Object::Addr,
                words: format!("{net}{brd} dev {link}"),
                has_protocol: false,
                family: None,
                place,
            });
        }
        Ok(())
    }

    /// What is said of a pair is its other end's too, unless that says
    /// otherwise. Of two that name each other the first makes the pair.
    fn ends(&mut self) -> Result<(), String> {
        for at in 0..self.links.len() {
            let Some(of) = self.links[at].end_of else {
                continue;
            };
            if self.links[at].kind.is_some() {
                let (end, maker) = (&self.links[at], &self.links[of]);
                if end.kind != maker.kind || end.peer.as_ref() != Some(&maker.name) {
                    let place = self.place_of_field(at, "kind");
                    let (end, maker) = (&end.name, &maker.name);
                    return Err(format!(
                        "{place}: `{end}` is the other end of `{maker}` at {}, and says otherwise",
                        self.place_of(of)
                    ));
                }
                let (first, later) = (at.min(of), at.max(of));
                self.links[first].end_of = None;
                let later = &mut self.links[later];
                (later.kind, later.peer, later.end_of) = (None, None, Some(first));
            }
            let Some(of) = self.links[at].end_of else {
                continue;
            };
            let (mtu, up) = (self.links[of].pair_mtu, self.links[of].pair_up);
            let end = &mut self.links[at];
            end.mtu = end.mtu.or(mtu);
            end.up = end.up.or(up);
        }
        Ok(())
    }
}

/// `10.0.0.1/30`; without a length the address alone.
fn interface(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let net = text.parse().ok().or_else(address);
    net.ok_or_else(|| format!("`{text}`: an address like 10.0.0.1/30 is expected"))
}

fn at_place(place: &Place, why: &str) -> String {
    format!("{place}: {why}")
}

/// A field that several places may say, if they say the same.
struct Merge<'a> {
    said: &'a mut Vec<(&'static str, usize)>,
    name: &'a str,
    place: usize,
    places: &'a [Place],
}

impl Merge<'_> {
    fn field<T: PartialEq + std::fmt::Debug>(
        &mut self,
        field: &'static str,
        is: &mut Option<T>,
        said: Option<T>,
    ) -> Result<(), String> {
        let Some(said) = said else { return Ok(()) };
        match is {
            Some(is) if *is == said => {}
            Some(is) => {
                let other = self.said.iter().find(|(known, _)| *known == field);
                let other = other.and_then(|(_, at)| self.places.get(*at));
                let other = other.map_or_else(String::new, |place| format!(" at {place}"));
                return Err(format!(
                    "{field} of `{}` is to be {said:?} here, and {is:?}{other}",
                    self.name
                ));
            }
            None => {
                *is = Some(said);
                self.said.push((field, self.place));
            }
        }
        Ok(())
    }
}

/// What makes no sense of a link by itself.
fn check(said: &file::Link) -> Result<(), String> {
    let name = &said.name;
    let is_pair = said.kind.as_deref() == Some("veth");
    if is_pair && said.peer.is_none() {
        return Err(format!("`{name}`: veths come in pairs: `peer` is missing"));
    }
    if !is_pair && said.peer.is_some() {
        return Err(format!("`{name}`: only links of kind veth have a `peer`"));
    }
    if said.peer.is_none() && (said.peer_address.is_some() || !said.peer_addresses.is_empty()) {
        return Err(format!(
            "`{name}`: it has no `peer` that could have addresses"
        ));
    }
    if [&said.master, &said.link].contains(&&Some(name.clone())) {
        return Err(format!("`{name}` cannot stand on itself"));
    }
    if said.kind.is_none() && (said.options.is_some() || said.link.is_some()) {
        return Err(format!("`{name}`: `options` and `link` want a `kind`"));
    }
    Ok(())
}

fn lladdr(text: &Option<String>) -> Result<Option<LinkLayerAddress>, String> {
    text.as_deref().map(words::line::lladdr).transpose()
}

/// Paths under `/proc/sys/net`, and values.
fn sysctl(said: &file::Link) -> Result<Vec<(String, String)>, String> {
    const FAMILIES: [&str; 3] = ["ipv4", "ipv6", "mpls"];
    let is_plain = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        !text.is_empty() && text.chars().all(plain)
    };
    let mut settings = Vec::new();
    for (family, names) in &said.sysctl {
        if !FAMILIES.contains(&family.as_str()) {
            return Err(format!("sysctl.{family}: ipv4, ipv6 or mpls is expected"));
        }
        for (name, value) in names {
            let value = match value {
                Value::Number(number) => number.to_string(),
                Value::Bool(on) => u8::from(*on).to_string(),
                Value::String(text) if !text.is_empty() && !text.contains('\n') => text.clone(),
                _ => return Err(format!("sysctl.{family}.{name}: a number is expected")),
            };
            if !is_plain(name) {
                return Err(format!("sysctl.{family}.{name}: no setting is called so"));
            }
            let conf = match family.as_str() {
                "mpls" => format!("mpls/conf/{}/{name}", said.name),
                family => format!("{family}/conf/{}/{name}", said.name),
            };
            settings.push((conf, value));
        }
    }
    Ok(settings)
}

/// What ends by itself is not declared.
const EXPIRES: [(&str, &str); 5] = [
    ("expires", "expires"),
    ("valid_life_time", "valid_lft"),
    ("preferred_life_time", "preferred_lft"),
    ("valid_lft", "valid_lft"),
    ("preferred_lft", "preferred_lft"),
];

/// A row's keys as a line of `ip`'s words.
fn line(object: Object, mut row: Row, place: usize) -> Result<Line, String> {
    let more = match row.remove("words") {
        None => String::new(),
        Some(Value::String(words)) => words,
        Some(_) => return Err("words: a text is expected".to_owned()),
    };
    let expires = EXPIRES.iter().find(|(key, word)| {
        row.contains_key(*key) || more.split_whitespace().any(|said| said == *word)
    });
    if let Some((key, _)) = expires {
        return Err(format!("{key}: rows that expire are not declared"));
    }
    if row.contains_key("encap") {
        return Err("encap: say it in `words`, as ip does: words = \"encap mpls 100\"".to_owned());
    }
    let family = match row.remove("family") {
        None => None,
        Some(Value::String(name)) => {
            Some(words::line::family(&name).ok_or("family: inet or inet6 is expected")?)
        }
        Some(_) => return Err("family: inet or inet6 is expected".to_owned()),
    };
    let has_protocol = row.contains_key("protocol")
        || more
            .split_whitespace()
            .any(|word| matches!(word, "proto" | "protocol"));
    let mut words = String::new();
    if !row.is_empty() {
        words = match object {
            Object::Addr => of_keys(object, &on_link(row)?)?,
            _ => of_keys(object, &Value::Object(row.into_iter().collect()))?,
        };
    }
    // `ip`'s words begin with what the row is about.
    let words = match (words.is_empty(), more.is_empty()) {
        (true, _) => more,
        (_, true) => words,
        _ => format!("{words} {more}"),
    };
    if object == Object::Rule && !is_placed(&words) {
        return Err(
            "a rule wants its `priority`: without it each time would make another".to_owned(),
        );
    }
    Ok(Line {
        object,
        words,
        has_protocol,
        family,
        place,
    })
}

fn is_placed(words: &str) -> bool {
    let mut words = words.split_whitespace();
    words.any(|word| matches!(word, "priority" | "pref" | "preference" | "order"))
}

fn of_keys(object: Object, keys: &Value) -> Result<String, String> {
    let text = serde_json::to_vec(keys).map_err(|error| error.to_string())?;
    let mut lines = Vec::new();
    words::json::lines(object, &text, &mut lines)?;
    Ok(lines.pop().unwrap_or_default().trim_start().to_owned())
}

/// `dev` and `local = "10.0.0.1/24"` as the listing of a link has them.
fn on_link(mut row: Row) -> Result<Value, String> {
    let text = |value: Option<Value>| match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let link = text(row.remove("dev").or_else(|| row.remove("ifname")));
    let link = link.ok_or("dev: the address wants its link")?;
    let local = text(row.remove("local")).ok_or("local: the address is missing")?;
    if let Some((address, len)) = local.split_once('/') {
        let len: u8 = len
            .parse()
            .map_err(|_| format!("local: `{local}` has no length"))?;
        row.insert("local".to_owned(), address.into());
        row.insert("prefixlen".to_owned(), len.into());
    } else {
        let whole = if local.contains(':') { 128_u8 } else { 32 };
        row.entry("prefixlen".to_owned()).or_insert(whole.into());
        row.insert("local".to_owned(), local.into());
    }
    let row: serde_json::Map<String, Value> = row.into_iter().collect();
    Ok(serde_json::json!({ "ifname": link, "addr_info": [row] }))
}

#[cfg(test)]
mod tests {
    use super::super::source::parse;
    use super::*;

    fn wanted(files: &[&str]) -> Result<Wanted, String> {
        let mut said = Said::default();
        for (number, text) in files.iter().enumerate() {
            parse(&format!("f{number}").into(), text, &mut said)?;
        }
        Wanted::of(said)
    }

    fn lines(text: &str) -> Vec<String> {
        let wanted = wanted(&[text]).unwrap();
        wanted.rows.into_iter().map(|line| line.words).collect()
    }

    #[test]
    fn a_pair_and_its_addresses() {
        let wanted = wanted(&[
            "[[link]]\nname = \"a{1..2}\"\nkind = \"veth\"\npeer = \"b{}\"\n\
            up = true\nmtu = 1400\naddresses = \"10.0.0.{*4+1}/30\"\n\
            peer_addresses = [\"2001:db8::{}/64\"]\n[[link]]\nname = \"b2\"\nup = false\n",
        ])
        .unwrap();
        let names: Vec<&str> = wanted.links.iter().map(|link| &*link.name).collect();
        assert_eq!(names, ["a1", "b1", "a2", "b2"]);
        let ends: Vec<_> = wanted
            .links
            .iter()
            .map(|l| (l.end_of, l.up, l.mtu))
            .collect();
        assert_eq!(
            ends,
            [
                (None, Some(true), Some(1400)),
                (Some(0), Some(true), Some(1400)),
                (None, Some(true), Some(1400)),
                (Some(2), Some(false), Some(1400))
            ]
        );
        let lines: Vec<&str> = wanted.rows.iter().map(|line| &*line.words).collect();
        assert_eq!(lines[0], "10.0.0.5/30 brd 10.0.0.7 dev a1");
        assert_eq!(lines[1], "2001:db8::1/64 dev b1");
    }

    #[test]
    fn rows_become_words() {
        let text = "[[address]]\ndev = \"a\"\nlocal = \"10.0.0.1/24\"\nbroadcast = \"10.0.0.255\"\nnodad = true\n\
            [[route]]\ndst = \"10.{1..2}.0.0/16\"\ngateway = \"10.0.0.2\"\nmetric = 5\n\
            [[rule]]\npriority = 5\nsrc = \"10.0.0.0/8\"\ntable = 100\n\
            [[nexthop]]\nid = 7\ngroup = [{id = 1, weight = 2}]\n\
            [[neighbour]]\ndst = \"10.0.0.9\"\ndev = \"a\"\nlladdr = \"02:00:00:00:00:09\"\n\
            [[route]]\nwords = \"10.9.0.0/16 encap mpls 100 via 10.0.0.2\"\n\
            [[fdb]]\nmac = \"02:00:00:00:00:01\"\ndev = \"a\"\nmaster = \"br\"\nvlan = 5\n";
        let lines = lines(text);
        for (line, wanted) in lines
            .iter()
            .zip(["10.0.0.1/24 dev a brd 10.0.0.255 nodad", "group 1,2 id 7"])
        {
            assert!(lines.iter().any(|line| line == wanted), "{line}: {wanted}");
        }
        assert!(
            lines.contains(&"02:00:00:00:00:01 dev a master br vlan 5".to_owned()),
            "{lines:?}"
        );
        assert!(
            lines.iter().any(|line| line.starts_with("10.2.0.0/16")),
            "{lines:?}"
        );
    }

    #[test]
    fn what_contradicts_is_said_with_both_places() {
        let one = "[[link]]\nname = \"a\"\nmtu = 1400\n";
        let two = "\n[[link]]\nname = \"a\"\nmtu = 1500\n";
        let why = wanted(&[one, two]).unwrap_err();
        assert!(why.starts_with("f1:2: ") && why.contains("f0:1"), "{why}");
        assert!(wanted(&[one, one]).is_ok());
        let setting = |value| format!("[[link]]\nname = \"a\"\nsysctl.ipv4.rp_filter = {value}\n");
        let why = wanted(&[&setting(1), &setting(2)]).unwrap_err();
        assert!(
            why.starts_with("f1:1: ") && why.contains("1 at f0:1"),
            "{why}"
        );
        let pair = |name| format!("[[link]]\nname = \"{name}\"\nkind = \"veth\"\npeer = \"p\"\n");
        let why = wanted(&[&pair("a"), &pair("b")]).unwrap_err();
        assert!(
            why.starts_with("f1:1: ") && why.contains("`a` at f0:1"),
            "{why}"
        );
        let end = "[[link]]\nname = \"p\"\nkind = \"bridge\"\n";
        let why = wanted(&[&pair("a"), end]).unwrap_err();
        assert!(why.contains("f0:1") && why.contains("f1:1"), "{why}");
        let other = "[[link]]\nname = \"a\"\nup = true\n";
        let merged = wanted(&[one, other]).unwrap();
        assert_eq!(
            (merged.links[0].mtu, merged.links[0].up),
            (Some(1400), Some(true))
        );
    }

    #[test]
    fn of_links_and_rows_there_are_so_many_at_most() {
        let text = "[[link]]\nname = \"a{1..2}\"\nkind = \"bridge\"\naddresses = \"10.0.{}.1/24\"\n\
            [[rule]]\npriority = \"{1..3}\"\ntable = 7\n";
        let within = |most| {
            let mut said = Said::default();
            parse(&"f".into(), text, &mut said).unwrap();
            Wanted::within(said, most)
        };
        assert_eq!(within(7).unwrap().rows.len(), 5);
        let why = within(6).unwrap_err();
        assert_eq!(why, "f:5: more than 6 links and rows in all");
        assert!(within(3).unwrap_err().starts_with("f:1: "));
    }

    #[test]
    fn a_pattern_stands_for_a_hundred_thousand_links() {
        let wanted = wanted(&["[[link]]\nname = \"a{1..100000}\"\nkind = \"bridge\"\n\
            addresses = \"10.{/65536}.{/256%256}.{%256}/32\"\n"])
        .unwrap();
        assert_eq!((wanted.links.len(), wanted.rows.len()), (100_000, 100_000));
        assert_eq!(&*wanted.links[99_999].name, "a100000");
        assert_eq!(wanted.rows[99_999].words, "10.1.134.160/32 dev a100000");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            "[[link]]\nkind = \"bridge\"\n",
            "[[link]]\nname = \"much-too-long-a-name\"\n",
            "[[link]]\nname = \"a\"\nkind = \"veth\"\n",
            "[[link]]\nname = \"a\"\npeer = \"b\"\n",
            "[[link]]\nname = \"a\"\nkind = \"veth\"\npeer = \"a\"\n",
            "[[link]]\nname = \"a\"\noptions = \"id 5\"\n",
            "[[link]]\nname = \"a\"\naddresses = \"10.0.0.999/8\"\n",
            "[[link]]\nname = \"a\"\naddress = \"zz\"\n",
            "[[link]]\nname = \"a\"\nsysctl.ipx.x = 1\n",
            "[[link]]\nname = \"a\"\nsysctl.ipv4.\"../x\" = 1\n",
            "[[rule]]\nsrc = \"10.0.0.0/8\"\ntable = 5\n",
            "[[route]]\ndst = \"default\"\nexpires = 5\n",
            "[[route]]\ndst = \"default\"\nencap = \"mpls\"\n",
            "[[route]]\ndst = \"default\"\ncolour = 5\n",
            "[[address]]\nlocal = \"10.0.0.1/8\"\n",
            "[[fdb]]\ndev = \"a\"\n",
        ] {
            let why = wanted(&[text]).unwrap_err();
            assert!(why.starts_with("f0:1: "), "{text}: {why}");
        }
    }
}
