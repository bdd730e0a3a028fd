//! interfaces(5) of ifupdown, and what ifupdown2 adds to it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use netlink::encode::named_value;

use super::draft::{
    Draft, Place, Table, hardware, hundredths, is_name, is_plain, network, row, yes,
};
use super::{Imported, Texts};

/// Files that name one another, at most so deep.
const MAX_DEPTH: usize = 8;

/// What ifupdown2 takes where no port is said; the kernel takes another.
const VXLAN_PORT: &str = "4789";

/// What begins a stanza.
const BEGINS: &[&str] = &[
    "iface",
    "auto",
    "mapping",
    "source",
    "source-directory",
    "template",
    "no-auto-down",
    "no-scripts",
    "rename",
];

/// A line of a stanza.
struct Said {
    line: usize,
    key: String,
    value: String,
}

/// `iface NAME FAMILY METHOD` and its lines.
struct Iface {
    path: PathBuf,
    line: usize,
    words: Vec<String>,
    lines: Vec<Said>,
}

#[derive(Default)]
struct Read {
    ifaces: Vec<Iface>,
    /// Brought up by themselves.
    auto: Vec<String>,
    draft: Draft,
}

/// Reads a file and those that it names.
pub fn import(texts: &mut dyn Texts, path: &Path) -> Result<Imported, String> {
    let mut read = Read::default();
    let text = texts.read(path)?;
    read.text(texts, path, &text, 0);
    let Read {
        ifaces,
        auto,
        mut draft,
    } = read;
    for iface in &ifaces {
        of_iface(&mut draft, iface, &auto);
    }
    Ok(draft.finish())
}

/// Lines joined over `\`, without comments, with their numbers.
fn logical(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        let (number, mut whole) = match open.take() {
            Some(open) => open,
            None if line.trim_start().starts_with('#') => continue,
            None => (at + 1, String::new()),
        };
        match line.strip_suffix('\\') {
            Some(begun) => {
                whole += begun;
                whole.push(' ');
                open = Some((number, whole));
            }
            None => {
                whole += line;
                found.push((number, whole));
            }
        }
    }
    found.extend(open);
    found.retain(|(_, line)| !line.trim().is_empty());
    found
}

impl Read {
    fn text(&mut self, texts: &mut dyn Texts, path: &Path, text: &str, depth: usize) {
        let mut is_open = false;
        for (line, text) in logical(text) {
            let at = Place { path, line };
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let Some((first, rest)) = words.split_first() else {
                continue;
            };
            let begins = BEGINS.contains(&first.as_str()) || first.starts_with("allow-");
            if !begins {
                let value = text.trim_start().get(first.len()..).unwrap_or("").trim();
                match self.ifaces.last_mut().filter(|_| is_open) {
                    Some(iface) => iface.lines.push(Said {
                        line,
                        key: first.clone(),
                        value: value.to_owned(),
                    }),
                    None => self
                        .draft
                        .leave(at, first, "it stands in no stanza that is known"),
                }
                continue;
            }
            is_open = first == "iface";
            match first.as_str() {
                "iface" => self.ifaces.push(Iface {
                    path: path.to_owned(),
                    line,
                    words: rest.to_vec(),
                    lines: Vec::new(),
                }),
                "auto" | "allow-auto" | "allow-hotplug" => self.auto.extend(rest.iter().cloned()),
                "source" | "source-directory" => {
                    for pattern in rest {
                        self.source(texts, at, first, pattern, depth);
                    }
                }
                _ => self
                    .draft
                    .leave(at, first, "there is nothing like it in declared state"),
            }
        }
    }

    fn source(
        &mut self,
        texts: &mut dyn Texts,
        at: Place<'_>,
        key: &str,
        name: &str,
        depth: usize,
    ) {
        if depth >= MAX_DEPTH {
            let why = format!("files name one another more than {MAX_DEPTH} deep");
            return self.draft.leave(at, key, why);
        }
        let base = at.path.parent().unwrap_or(Path::new(""));
        let mut pattern = base.join(name);
        if key == "source-directory" {
            pattern.push("*");
        }
        let found = match texts.matching(&pattern) {
            Ok(found) => found,
            Err(why) => return self.draft.leave(at, key, why),
        };
        // As run-parts has it: others are left over by editors and packages.
        let is_run = |path: &PathBuf| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or("");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            key == "source" || name.chars().all(is_plain)
        };
        for path in found.iter().filter(|path| is_run(path)) {
            match texts.read(path) {
                Ok(text) => self.text(texts, path, &text, depth + 1),
                Err(why) => self.draft.leave(at, key, why),
            }
        }
    }
}

/// A stanza under way.
struct Stanza<'a> {
    draft: &'a mut Draft,
    path: &'a Path,
    name: String,
    is_v6: Option<bool>,
    /// Addresses, as far as their length is known.
    addresses: Vec<(usize, String)>,
    netmask: Option<String>,
    broadcast: Option<(usize, String)>,
    peer: Option<(usize, String)>,
    gateways: Vec<(usize, String)>,
    metric: Option<u32>,
}

fn of_iface(draft: &mut Draft, iface: &Iface, auto: &[String]) {
    let at = Place {
        path: &iface.path,
        line: iface.line,
    };
    let mut words = iface.words.iter().map(String::as_str);
    let whole = words.next().unwrap_or("");
    // `eth0:1` is a label of eth0.
    let (name, label) = whole.split_once(':').unwrap_or((whole, ""));
    if !is_name(name) {
        return draft.leave(at, whole, "this is no name of a link");
    }
    if !auto.iter().any(|one| one == whole || one == name) && name != "lo" {
        let why = "it is brought up by hand alone (no `auto`, no `allow-hotplug`)";
        return draft.leave(at, whole, why);
    }
    let rest: Vec<&str> = words.collect();
    let (is_v6, method) = match rest[..] {
        [] => (None, "static"),
        ["inet", method] => (Some(false), method),
        ["inet6", method] => (Some(true), method),
        ["inet" | "inet6", method, "inherits", ..] => {
            draft.leave(at, "inherits", "what it inherits is not carried over");
            (Some(rest[0] == "inet6"), method)
        }
        _ => return draft.leave(at, &rest.join(" "), "this family is not known"),
    };
    draft.link(name).up = Some(true);
    match method {
        "static" | "manual" | "loopback" => {}
        "auto" if is_v6 == Some(true) => draft.sysctl(name, "ipv6", "autoconf", 1),
        "dhcp" => draft.leave(at, method, "addresses by DHCP are not declared"),
        _ => draft.leave(at, method, "this method is not declared state"),
    }
    if let Some((below, number)) = name.rsplit_once('.')
        && number.parse::<u16>().is_ok_and(|id| id < 4_095)
    {
        let link = draft.link(name);
        if link.kind.is_none() {
            link.kind = Some("vlan".to_owned());
            link.link = Some(below.to_owned());
            draft.option(name, "id", number);
        }
    }
    let mut stanza = Stanza {
        draft,
        path: &iface.path,
        name: name.to_owned(),
        is_v6,
        addresses: Vec::new(),
        netmask: None,
        broadcast: None,
        peer: None,
        gateways: Vec::new(),
        metric: None,
    };
    for said in &iface.lines {
        stanza.line(said);
    }
    let says = |key: &str| iface.lines.iter().any(|said| said.key == key);
    if says("vxlan-id") && !says("vxlan-port") {
        stanza.draft.option(name, "dstport", VXLAN_PORT);
    }
    stanza.finish(label);
}

impl Stanza<'_> {
    fn leave(&mut self, said: &Said, why: &str) {
        let at = Place {
            path: self.path,
            line: said.line,
        };
        self.draft.leave(at, &said.key, why);
    }

    fn line(&mut self, said: &Said) {
        let done = match said.key.replace('_', "-").as_str() {
            "address" => {
                self.addresses.push((said.line, said.value.clone()));
                Some(())
            }
            "netmask" => {
                self.netmask = Some(said.value.clone());
                Some(())
            }
            "broadcast" => {
                self.broadcast = Some((said.line, said.value.clone()));
                Some(())
            }
            "pointopoint" => {
                self.peer = Some((said.line, said.value.clone()));
                Some(())
            }
            "gateway" => {
                let all = said.value.split_whitespace();
                self.gateways
                    .extend(all.map(|one| (said.line, one.to_owned())));
                Some(())
            }
            "metric" => said
                .value
                .parse()
                .ok()
                .map(|metric| self.metric = Some(metric)),
            // What the address and its length say already.
            "network" => Some(()),
            key if key.starts_with("bridge-") => self.bridge(key, &said.value),
            key if key.starts_with("bond-") => self.bond(key, &said.value),
            key if key.starts_with("vxlan-") => self.vxlan(key, &said.value),
            "up" | "post-up" | "pre-up" => self.command(&said.value),
            key => self.link(key, &said.value),
        };
        if done.is_none() {
            let why = match said.key.as_str() {
                "down" | "post-down" | "pre-down" => "what is done at going down is not declared",
                "up" | "post-up" | "pre-up" => {
                    "a command is carried over where it is `ip route add …` or `ip rule add … pref …`"
                }
                _ => "it is not known, or its value is not understood",
            };
            self.leave(said, why);
        }
    }

    /// What is said of the link itself.
    fn link(&mut self, key: &str, value: &str) -> Option<()> {
        let name = self.name.clone();
        match key {
            "mtu" => self.draft.link(&name).mtu = Some(value.parse().ok()?),
            "txqueuelen" => self.draft.link(&name).txqueuelen = Some(value.parse().ok()?),
            "hwaddress" => {
                let address = value.strip_prefix("ether").unwrap_or(value).trim();
                self.draft.link(&name).address = Some(hardware(address)?);
            }
            "alias" | "description" if is_plain(value) => {
                self.draft.link(&name).alias = Some(value.trim_matches('"').to_owned());
            }
            "vlan-raw-device" if is_name(value) => {
                let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
                let id = name
                    .rsplit_once('.')
                    .map_or(digits, |(_, id)| id)
                    .to_owned();
                let link = self.draft.link(&name);
                link.link = Some(value.to_owned());
                if link.kind.is_none() {
                    id.parse::<u16>().ok()?;
                    self.draft.link(&name).kind = Some("vlan".to_owned());
                    self.draft.option(&name, "id", &id);
                }
            }
            "vlan-id" => {
                value.parse::<u16>().ok()?;
                self.draft.link(&name).kind = Some("vlan".to_owned());
                self.draft.option(&name, "id", value);
            }
            "vlan-protocol"
                if matches!(value.to_ascii_lowercase().as_str(), "802.1q" | "802.1ad") =>
            {
                self.draft
                    .option(&name, "protocol", &value.to_ascii_lowercase());
            }
            "vrf" if is_name(value) => self.draft.link(&name).master = Some(value.to_owned()),
            "vrf-table" => {
                value.parse::<u32>().ok()?;
                self.draft.link(&name).kind = Some("vrf".to_owned());
                self.draft.option(&name, "table", value);
            }
            "link-type" if matches!(value, "dummy" | "veth" | "bridge") => {
                self.draft.link(&name).kind = Some(value.to_owned());
            }
            "veth-peer-name" if is_name(value) => {
                let link = self.draft.link(&name);
                link.kind = Some("veth".to_owned());
                link.peer = Some(value.to_owned());
            }
            "accept-ra" | "autoconf" | "privext" | "dad-attempts" => {
                let setting = match key {
                    "accept-ra" => "accept_ra",
                    "privext" => "use_tempaddr",
                    "dad-attempts" => "dad_transmits",
                    _ => "autoconf",
                };
                self.draft
                    .sysctl(&name, "ipv6", setting, value.parse().ok()?);
            }
            "ip-forward" | "ip6-forward" => {
                let family = if key == "ip-forward" { "ipv4" } else { "ipv6" };
                let value = yes(value)?;
                self.draft.sysctl(&name, family, "forwarding", value.into());
            }
            _ => return None,
        }
        Some(())
    }

    fn bridge(&mut self, key: &str, value: &str) -> Option<()> {
        let name = self.name.clone();
        let centis = |value: &str| hundredths(value).map(|value| value.to_string());
        let (word, value) = match key {
            "bridge-ports" => {
                let ports: Vec<&str> = value.split_whitespace().collect();
                if ports
                    .iter()
                    .any(|port| !is_name(port) || *port == "all" || *port == "regex")
                {
                    return None;
                }
                self.draft.link(&name).kind = Some("bridge".to_owned());
                for port in ports.iter().filter(|port| **port != "none") {
                    let link = self.draft.link(port);
                    link.master = Some(name.clone());
                    link.up = Some(true);
                    // ifupdown2 and Debian's bridge-utils both do it.
                    self.draft.sysctl(port, "ipv6", "disable_ipv6", 1);
                }
                return Some(());
            }
            "bridge-stp" => ("stp_state", u32::from(yes(value)?).to_string()),
            "bridge-fd" => ("forward_delay", centis(value)?),
            "bridge-hello" => ("hello_time", centis(value)?),
            "bridge-maxage" => ("max_age", centis(value)?),
            "bridge-ageing" => ("ageing_time", centis(value)?),
            "bridge-bridgeprio" => ("priority", value.parse::<u16>().ok()?.to_string()),
            "bridge-vlan-aware" => ("vlan_filtering", u32::from(yes(value)?).to_string()),
            "bridge-mcsnoop" => ("mcast_snooping", u32::from(yes(value)?).to_string()),
            _ => return None,
        };
        self.draft.link(&name).kind = Some("bridge".to_owned());
        self.draft.option(&name, word, &value);
        Some(())
    }

    fn bond(&mut self, key: &str, value: &str) -> Option<()> {
        let name = self.name.clone();
        let number = |value: &str| value.parse::<u32>().ok().map(|value| value.to_string());
        let (word, value) = match key {
            "bond-slaves" => {
                let ports: Vec<&str> = value.split_whitespace().collect();
                if ports.iter().any(|port| !is_name(port)) {
                    return None;
                }
                self.draft.link(&name).kind = Some("bond".to_owned());
                for port in ports.iter().filter(|port| **port != "none") {
                    self.draft.link(port).master = Some(name.clone());
                }
                return Some(());
            }
            "bond-master" if is_name(value) => {
                self.draft.link(&name).master = Some(value.to_owned());
                return Some(());
            }
            "bond-mode" => ("mode", named_value("bond", "mode", value)?.to_owned()),
            "bond-miimon" => ("miimon", number(value)?),
            "bond-updelay" => ("updelay", number(value)?),
            "bond-downdelay" => ("downdelay", number(value)?),
            "bond-primary" if is_name(value) => ("primary", value.to_owned()),
            "bond-xmit-hash-policy" if is_word(value) => ("xmit_hash_policy", value.to_owned()),
            "bond-lacp-rate" => {
                let rate = match value {
                    "0" | "slow" => "slow",
                    "1" | "fast" => "fast",
                    _ => return None,
                };
                ("lacp_rate", rate.to_owned())
            }
            _ => return None,
        };
        self.draft.link(&name).kind = Some("bond".to_owned());
        self.draft.option(&name, word, &value);
        Some(())
    }

    fn vxlan(&mut self, key: &str, value: &str) -> Option<()> {
        let name = self.name.clone();
        let address = |value: &str| value.parse::<IpAddr>().ok().map(|value| value.to_string());
        let (word, value) = match key {
            "vxlan-id" => ("id", value.parse::<u32>().ok()?.to_string()),
            "vxlan-local-tunnelip" => ("local", address(value)?),
            "vxlan-remoteip" => return self.remotes(value),
            "vxlan-svcnodeip" => ("group", address(value)?),
            "vxlan-port" => ("dstport", value.parse::<u16>().ok()?.to_string()),
            "vxlan-physdev" if is_name(value) => ("dev", value.to_owned()),
            "vxlan-ageing" => ("ageing", value.parse::<u32>().ok()?.to_string()),
            "vxlan-learning" => {
                let word = if yes(value)? {
                    "learning"
                } else {
                    "nolearning"
                };
                (word, String::new())
            }
            _ => return None,
        };
        self.draft.link(&name).kind = Some("vxlan".to_owned());
        self.draft.option(&name, word, &value);
        Some(())
    }

    /// Where ifupdown2 sends what it knows no station of: entries of the
    /// link's, which has no remote end of its own.
    fn remotes(&mut self, value: &str) -> Option<()> {
        let remotes: Result<Vec<IpAddr>, _> = value.split_whitespace().map(str::parse).collect();
        for remote in remotes.ok()? {
            let entry = row([
                ("mac", "00:00:00:00:00:00".into()),
                ("dst", remote.to_string().into()),
                ("ifname", self.name.clone().into()),
                ("flags", vec!["self"].into()),
            ]);
            self.draft.row(Table::Fdb, entry);
        }
        Some(())
    }

    /// A command that says a route or a rule.
    fn command(&mut self, command: &str) -> Option<()> {
        let command = command.replace("$IFACE", &self.name);
        let is_odd = |c: char| "|&;<>()$`\\\"'*?[]#~{}".contains(c);
        if command.contains(is_odd) {
            return None;
        }
        let mut words: Vec<&str> = command.split_whitespace().collect();
        let program = words.first()?.rsplit('/').next()?;
        if program != "ip" {
            return None;
        }
        words.remove(0);
        let family = match words.first()? {
            word @ (&"-4" | &"-6") => Some(*word),
            _ => None,
        };
        words.drain(..usize::from(family.is_some()));
        let (table, rest) = match words[..] {
            [
                "route" | "ro" | "r",
                "add" | "replace" | "append",
                ref rest @ ..,
            ] => (Table::Route, rest),
            ["rule" | "ru", "add", ref rest @ ..]
                if rest
                    .iter()
                    .any(|word| matches!(*word, "pref" | "priority" | "prio")) =>
            {
                (Table::Rule, rest)
            }
            _ => return None,
        };
        if rest.is_empty() {
            return None;
        }
        let mut made = row([("words", rest.join(" ").into())]);
        if family == Some("-6") {
            made.insert("family".to_owned(), "inet6".into());
        }
        self.draft.row(table, made);
        Some(())
    }

    /// Addresses and gateways, once all is said.
    fn finish(mut self, label: &str) {
        let addresses = std::mem::take(&mut self.addresses);
        for (line, text) in &addresses {
            let said = Said {
                line: *line,
                key: "address".to_owned(),
                value: text.clone(),
            };
            let Some(address) = self.with_length(text) else {
                self.leave(&said, "no address with its length (`netmask`)");
                continue;
            };
            if self
                .is_v6
                .is_some_and(|is_v6| is_v6 != address.addr().is_ipv6())
            {
                self.leave(&said, "it is of another family than its stanza");
                continue;
            }
            self.one(address, label);
        }
        for (line, text) in std::mem::take(&mut self.gateways) {
            let said = Said {
                line,
                key: "gateway".to_owned(),
                value: text.clone(),
            };
            let Ok(gateway) = text.parse::<IpAddr>() else {
                self.leave(&said, "this is no address");
                continue;
            };
            let mut route = row([
                ("dst", "default".into()),
                ("gateway", gateway.to_string().into()),
                ("dev", self.name.clone().into()),
            ]);
            if gateway.is_ipv6() {
                route.insert("family".to_owned(), "inet6".into());
            }
            let metric = self
                .metric
                .map(|metric| ("metric".to_owned(), metric.into()));
            route.extend(metric);
            self.draft.row(Table::Route, route);
        }
    }

    fn with_length(&self, text: &str) -> Option<IpNet> {
        if text.contains('/') {
            return network(text);
        }
        let address: IpAddr = text.parse().ok()?;
        let length = match &self.netmask {
            None if address.is_ipv4() => 32,
            // ifupdown and ifupdown2 differ in what they take it for.
            None => return None,
            Some(mask) => match mask.parse::<IpAddr>() {
                Ok(mask) => ipnet::ip_mask_to_prefix(mask).ok()?,
                Err(_) => mask.parse().ok()?,
            },
        };
        IpNet::new(address, length).ok()
    }

    /// An address: with the link, or a row where more is said of it.
    fn one(&mut self, address: IpNet, label: &str) {
        let usual = match address {
            IpNet::V4(v4) if v4.prefix_len() < 31 => Some(v4.broadcast().to_string()),
            _ => None,
        };
        let broadcast = self.broadcast.as_ref().map(|(_, text)| text.clone());
        let broadcast = broadcast.filter(|text| text != "+" && Some(text) != usual.as_ref());
        let peer = self.peer.as_ref().map(|(_, text)| text.clone());
        if broadcast.is_none() && peer.is_none() && label.is_empty() {
            return self.draft.address(&self.name, address);
        }
        let mut made = row([
            ("dev", self.name.clone().into()),
            ("local", address.to_string().into()),
        ]);
        let mut put = |key: &str, value: String| made.insert(key.to_owned(), value.into());
        match broadcast.or(usual) {
            Some(text) if text != "-" => drop(put("broadcast", text)),
            _ => {}
        }
        if let Some(peer) = peer {
            put("address", peer);
        }
        if !label.is_empty() {
            put("label", format!("{}:{label}", self.name));
        }
        self.draft.row(Table::Address, made);
    }
}

fn is_word(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '_');
    !text.is_empty() && text.chars().all(is_part)
}

#[cfg(test)]
mod tests;
