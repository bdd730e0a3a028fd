//! What is wanted beside what is there: the requests that lead from one to
//! the other, in an order that works. Pure; called by [`mod@super`].

use std::collections::{HashMap, HashSet};

use netlink::decode::Item;
use netlink::encode::{LinkKind, LinkSettings, words_of_kind};
use table::NextHops;
use words::{Object, Verb};

use super::key::{Key, is_as_wanted, is_ours, key, object};
use super::resolved::{Links, Resolved, Row, TO_BE_MADE};
use super::wanted::{Link, Wanted};
use crate::rows::undo::ROWS;

/// Beginning of the alternative name that marks a link as made by us; its
/// index follows.
pub const ALT_MARK: &str = "fingerpost.";

/// What is there, beside the links: of rows those that are wanted, and
/// those that carry our mark.
#[derive(Debug, Default)]
pub struct Current {
    pub rows: HashMap<Key, Vec<Item>>,
    /// Values of the settings that are wanted; `None`: there is none such.
    pub sysctl: HashMap<String, Option<String>>,
}

/// A field that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub from: String,
    pub to: String,
}

/// A link that is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub index: u32,
    pub name: Box<str>,
    pub settings: LinkSettings,
    pub alt_names: Vec<Box<str>>,
    pub fields: Vec<Field>,
    /// No other link stands on it, and it stands on none: what it becomes,
    /// no other does.
    pub is_alone: bool,
}

/// A setting under `/proc/sys/net`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    pub path: String,
    pub from: Option<String>,
    pub to: String,
}

/// A row that is made, replaced or deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub verb: Verb,
    pub item: Item,
    /// What stands there and is replaced.
    pub before: Option<Item>,
    /// Its place in [`Wanted::rows`]; `None`: nobody wants it.
    pub line: Option<usize>,
}

/// The requests. Links are made level by level: what others stand on first.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Rows that go first: those that nobody wants any more.
    pub deletes: Vec<Change>,
    /// Links that go: index and name.
    pub delete_links: Vec<(u32, Box<str>)>,
    /// Places in [`Wanted::links`].
    pub make: Vec<Vec<usize>>,
    pub set: Vec<Set>,
    pub sysctl: Vec<Sysctl>,
    pub rows: Vec<Change>,
}

impl Plan {
    /// Whether all is as it is wanted.
    pub fn is_empty(&self) -> bool {
        self.requests() == 0
    }

    /// So many things change.
    pub fn requests(&self) -> usize {
        self.deletes.len()
            + self.delete_links.len()
            + self.make.iter().map(Vec::len).sum::<usize>()
            + self.set.len()
            + self.sysctl.len()
            + self.rows.len()
    }

    /// Whether the kernel may take along what was not named: it is looked
    /// again afterwards.
    pub fn takes_along(&self) -> bool {
        self.removes() || self.set.iter().any(Set::takes_along)
    }

    /// Whether it may, now or when all is taken back: who came up goes down
    /// then.
    pub fn takes_along_at_last(&self) -> bool {
        self.removes() || self.set.iter().any(Set::moves)
    }

    fn removes(&self) -> bool {
        let is_address =
            |change: &Change| matches!(change.item, Item::Address(_) | Item::Nexthop(_));
        !self.delete_links.is_empty()
            || self.deletes.iter().any(is_address)
            || self.rows.iter().any(|change| change.verb == Verb::Delete)
            || !self.sysctl.is_empty()
    }
}

/// Links of a smaller MTU have no IPv6.
const LEAST_MTU: u32 = 1280;

impl Set {
    /// Whether it becomes something that rows go by.
    fn moves(&self) -> bool {
        let settings = &self.settings;
        settings.up.is_some() || settings.master.is_some() || settings.mtu.is_some()
    }

    fn takes_along(&self) -> bool {
        let settings = &self.settings;
        settings.up == Some(false)
            || settings.master.is_some()
            || settings.mtu.is_some_and(|mtu| mtu < LEAST_MTU)
            || self.moves() && !self.is_alone
    }
}

/// The requests that lead from what is there to what is wanted. With
/// `prune` also those that remove what carries our mark and nobody wants.
pub fn difference(
    wanted: &Wanted,
    resolved: &Resolved,
    links: &Links,
    current: &Current,
    prune: bool,
) -> Result<Plan, String> {
    let mut plan = Plan::default();
    let mut to_make = Vec::new();
    for (at, link) in wanted.links.iter().enumerate() {
        if resolved.waits.contains(&at) {
            continue;
        }
        let Some(is) = resolved.there[at].and_then(|index| links.get(index)) else {
            if link.kind.is_some() {
                to_make.push(at);
            }
            continue;
        };
        let maker = link.end_of.filter(|of| resolved.there[*of].is_none());
        if let Some(of) = maker {
            return Err(format!(
                "{}: {} is there, but its other end {} is not",
                wanted.place_of(at),
                link.name,
                wanted.links[of].name
            ));
        }
        let set = changed(wanted, resolved, links, at, is)
            .map_err(|why| format!("{}: {why}", wanted.place_of(at)))?;
        plan.set.extend(set);
    }
    find_alone(links, &mut plan.set);
    plan.make = levels(wanted, resolved, to_make)?;
    for (at, link) in wanted.links.iter().enumerate() {
        if resolved.waits.contains(&at) {
            continue;
        }
        for setting in &link.sysctl {
            let from = current.sysctl.get(&setting.path).cloned().flatten();
            if from.as_ref() != Some(&setting.value) {
                plan.sysctl.push(Sysctl {
                    path: setting.path.clone(),
                    from,
                    to: setting.value.clone(),
                });
            }
        }
    }
    rows(resolved, current, &mut plan);
    if prune {
        self::prune(wanted, resolved, links, current, &mut plan);
    }
    plan.deletes
        .sort_by_key(|change| std::cmp::Reverse(order(&change.item)));
    plan.rows.sort_by_key(|change| order(&change.item));
    Ok(plan)
}

/// Which of the links that change stand alone. The ends of a pair stand on
/// each other by name only.
fn find_alone(links: &Links, sets: &mut [Set]) {
    if sets.is_empty() {
        return;
    }
    let is_pair = |link: &table::Link| link.kind.as_deref() == Some("veth");
    let below = |link: &table::Link| {
        let lower = link.lower.filter(|_| !is_pair(link));
        [lower, link.master].into_iter().flatten()
    };
    let lowest: HashSet<u32> = links.iter().flat_map(below).collect();
    for set in sets {
        let stands = links
            .get(set.index)
            .is_none_or(|link| below(link).next().is_some());
        set.is_alone = !stands && !lowest.contains(&set.index);
    }
}

/// Links by levels: each stands only on those of the levels before, and on
/// what is there.
fn levels(
    wanted: &Wanted,
    resolved: &Resolved,
    to_make: Vec<usize>,
) -> Result<Vec<Vec<usize>>, String> {
    let mut level_of: HashMap<usize, usize> = HashMap::new();
    let mut levels: Vec<Vec<usize>> = Vec::new();
    let mut left = to_make;
    while !left.is_empty() {
        let mut later = Vec::new();
        let mut level = Vec::new();
        for at in left {
            let waits = needs(wanted, resolved, at)
                .any(|needed| resolved.there[needed].is_none() && !level_of.contains_key(&needed));
            match waits {
                true => later.push(at),
                false => level.push(at),
            }
        }
        if level.is_empty() {
            let names: Vec<&str> = later.iter().map(|at| &*wanted.links[*at].name).collect();
            return Err(format!(
                "{} stand on each other around a circle",
                names.join(", ")
            ));
        }
        for at in &level {
            level_of.insert(*at, levels.len());
            let peer = wanted.links[*at].peer.as_deref();
            let peer = peer.and_then(|peer| wanted.named(peer));
            level_of.extend(peer.map(|(at, _)| (at, levels.len())));
        }
        levels.push(level);
        left = later;
    }
    Ok(levels)
}

/// The links that a link stands on, its other end's too.
fn needs<'a>(
    wanted: &'a Wanted,
    resolved: &'a Resolved,
    at: usize,
) -> impl Iterator<Item = usize> + 'a {
    let link = &wanted.links[at];
    let peer = link.peer.as_deref().and_then(|peer| wanted.named(peer));
    let of_kind = match &resolved.kinds[at] {
        Some(LinkKind::Other { name, data }) => {
            let mut found = Vec::new();
            words_of_kind(name, data, &mut |index| {
                found.extend((index >= TO_BE_MADE).then_some((index & !TO_BE_MADE) as usize));
                Some(String::new())
            });
            found
        }
        _ => Vec::new(),
    };
    let names = [
        link.master.as_deref(),
        link.lower.as_deref(),
        peer.and_then(|(_, peer)| peer.master.as_deref()),
    ];
    let named = names.into_iter().flatten();
    named
        .filter_map(|name| Some(wanted.named(name)?.0))
        .chain(of_kind)
        .filter(move |needed| *needed != at)
}

/// What changes of a link that is there.
fn changed(
    wanted: &Wanted,
    resolved: &Resolved,
    links: &Links,
    at: usize,
    is: &table::Link,
) -> Result<Option<Set>, String> {
    let link = &wanted.links[at];
    let name = &link.name;
    let mut set = Set {
        index: is.index,
        name: is.name.clone(),
        settings: LinkSettings::default(),
        alt_names: Vec::new(),
        fields: Vec::new(),
        is_alone: false,
    };
    let kind = is.kind.as_deref().unwrap_or("none of its own");
    if link.kind.as_deref().is_some_and(|wanted| wanted != kind) {
        return Err(format!(
            "{name} is there as a link of kind {kind}; `fingerpost link delete {name}` makes room"
        ));
    }
    let name_of = |index: Option<u32>| {
        let link = index.filter(|index| *index != 0).map(|index| {
            let link = links.get(index);
            link.map_or_else(|| format!("index {index}"), |link| link.name.to_string())
        });
        link.unwrap_or_default()
    };
    let lower = name_of(is.lower.filter(|_| is.lower_netns_id.is_none()));
    for (what, said) in [("other end", &link.peer), ("lower link", &link.lower)] {
        if said.as_deref().is_some_and(|said| said != lower) {
            let said = said.as_deref().unwrap_or_default();
            return Err(format!(
                "{name} is there, and its {what} is `{lower}`, not `{said}`; `fingerpost link \
                 delete {name}` makes room"
            ));
        }
    }
    let settings = &mut set.settings;
    let fields = &mut set.fields;
    let mut field = |name: &str, from: String, to: String| {
        let name = name.to_owned();
        fields.push(Field { name, from, to });
    };
    if let Some(master) = &link.master {
        let from = name_of(is.master);
        if *from != **master {
            settings.master = Some(match (master.is_empty(), links.named(master)) {
                (true, _) => 0,
                (false, Some(master)) => master.index,
                (false, None) => wanted.named(master).map_or(0, |(at, _)| resolved.index(at)),
            });
            field("master", from, master.to_string());
        }
    }
    if let Some(mtu) = link.mtu.filter(|mtu| *mtu != is.mtu) {
        settings.mtu = Some(mtu);
        field("mtu", is.mtu.to_string(), mtu.to_string());
    }
    if let Some(len) = link.tx_queue_len.filter(|len| *len != is.tx_queue_len) {
        settings.tx_queue_len = Some(len);
        field("txqueuelen", is.tx_queue_len.to_string(), len.to_string());
    }
    if let Some(group) = link.group.filter(|group| *group != is.group) {
        settings.group = Some(group);
        field("group", is.group.to_string(), group.to_string());
    }
    if let Some(address) = link.address.filter(|address| *address != is.address) {
        settings.address = Some(address);
        field("address", is.address.to_string(), address.to_string());
    }
    let alias = is.alias.as_deref().unwrap_or_default();
    if let Some(said) = link.alias.as_deref().filter(|said| *said != alias) {
        settings.alias = Some(said.into());
        field("alias", alias.to_owned(), said.to_owned());
    }
    of_kind(
        resolved.kinds[at].as_ref(),
        is,
        settings,
        &mut field,
        &name_of,
    );
    let missing = link
        .alt_names
        .iter()
        .filter(|name| !is.alt_names.contains(name));
    set.alt_names = missing.cloned().collect();
    for name in &set.alt_names {
        field("altname", String::new(), name.to_string());
    }
    if let Some(up) = link.up.filter(|up| *up != is.is_up()) {
        let word = |up| if up { "up" } else { "down" }.to_owned();
        settings.up = Some(up);
        field("state", word(!up), word(up));
    }
    Ok((!set.fields.is_empty()).then_some(set))
}

/// What changes of the settings of its kind.
fn of_kind(
    wanted: Option<&LinkKind>,
    is: &table::Link,
    settings: &mut LinkSettings,
    field: &mut dyn FnMut(&str, String, String),
    name_of: &dyn Fn(Option<u32>) -> String,
) {
    let Some(kind @ LinkKind::Other { name, data }) = wanted else {
        return;
    };
    let mut link = |index| Some(name_of(Some(index)));
    let wanted = words_of_kind(name, data, &mut link);
    if wanted.is_empty() {
        return;
    }
    let is: HashMap<_, _> = words_of_kind(name, &is.kind_data, &mut link)
        .into_iter()
        .collect();
    let before = settings.kind.is_some();
    for (word, value) in wanted {
        let from = is.get(word);
        if from != Some(&value) {
            settings.kind = Some(kind.clone());
            let shown = |value: &str| if value.is_empty() { "set" } else { value }.to_owned();
            let from = from.map_or_else(|| "not set".to_owned(), |from| shown(from));
            field(word, from, shown(&value));
        }
    }
    debug_assert!(!before, "kinds are compared once");
}

/// What changes of rows.
fn rows(resolved: &Resolved, current: &Current, plan: &mut Plan) {
    let mut rules: HashMap<&Key, Vec<&Row>> = HashMap::new();
    for row in &resolved.rows {
        if matches!(row.item, Item::Rule(_)) {
            rules.entry(&row.key).or_default().push(row);
        }
    }
    for row in &resolved.rows {
        let are = current.rows.get(&row.key);
        let are = are.map(Vec::as_slice).unwrap_or_default();
        if are.iter().any(|is| row.is(is)) {
            continue;
        }
        let mut put = |verb, before: Option<&Item>| {
            plan.rows.push(Change {
                verb,
                item: row.item.clone(),
                before: before.cloned(),
                line: Some(row.line),
            });
        };
        match (&row.item, are.first()) {
            (Item::Rule(_), _) => {
                put(Verb::Add, None);
                // Ours in the same place that nobody wants is what it was;
                // of several that are new it goes once.
                let wanted = rules.remove(&row.key).unwrap_or_default();
                let is_old = |is: &&Item| is_ours(is) && !wanted.iter().any(|row| row.is(is));
                if !wanted.is_empty() {
                    plan.deletes.extend(are.iter().filter(is_old).map(delete));
                }
            }
            (_, None) => put(Verb::Add, None),
            (Item::Address(_), Some(is)) => {
                // The kernel changes little of an address in its place.
                plan.deletes.push(delete(is));
                put(Verb::Add, Some(is));
            }
            (_, Some(is)) => put(Verb::Replace, Some(is)),
        }
    }
}

impl Row {
    /// Whether a row is there as it is wanted.
    fn is(&self, is: &Item) -> bool {
        is_as_wanted(&self.item, self.has_protocol, is)
    }
}

fn delete(item: &Item) -> Change {
    Change {
        verb: Verb::Delete,
        item: item.clone(),
        before: None,
        line: None,
    }
}

/// What carries our mark and nobody wants.
fn prune(wanted: &Wanted, resolved: &Resolved, links: &Links, current: &Current, plan: &mut Plan) {
    let mut going = HashSet::new();
    for link in links.iter() {
        let mark = format!("{ALT_MARK}{}", link.index);
        let is_marked = link.alt_names.iter().any(|name| **name == mark);
        let is_wanted = wanted.named(&link.name).is_some();
        if is_marked && !is_wanted {
            plan.delete_links.push((link.index, link.name.clone()));
            going.insert(link.index);
            going.extend(link.lower.filter(|_| link.kind.as_deref() == Some("veth")));
        }
    }
    let keys: HashSet<&Key> = resolved.rows.iter().map(|row| &row.key).collect();
    for (key, are) in &current.rows {
        if keys.contains(key) {
            continue;
        }
        let ours = are
            .iter()
            .filter(|is| is_ours(is) && !crate::rows::undo::stands_on(is, &going));
        plan.deletes.extend(ours.map(delete));
    }
}

/// In which order rows can be made: what others use first.
fn order(item: &Item) -> u8 {
    match item {
        Item::Address(_) => 0,
        Item::Neighbour(_) => 1,
        Item::Nexthop(row) => 2 + u8::from(!row.group.is_empty()),
        Item::Route(row) => {
            let has_gateway =
                |hops: &NextHops| hops.as_slice().iter().any(|hop| hop.gateway.is_some());
            4 + u8::from(has_gateway(&row.body.next_hops) || row.body.nexthop_id.is_some())
        }
        Item::Rule(_) => 6,
        Item::Fdb(_) | Item::Link(_) | Item::OtherRoute(_) => 7,
    }
}

/// What has to be read of the kernel's tables: those of the wanted rows, all
/// where the marked ones are looked for.
pub fn objects(resolved: &Resolved, prune: bool) -> Vec<Object> {
    let wanted: HashSet<Object> = resolved.rows.iter().map(|row| object(&row.item)).collect();
    let is_needed = |object: &Object| wanted.contains(object) || prune && *object != Object::Fdb;
    ROWS.into_iter().filter(is_needed).collect()
}

/// Whether a row is looked for.
pub fn is_looked_for(keys: &HashSet<&Key>, prune: bool, item: &Item) -> bool {
    prune && is_ours(item) || key(item).is_some_and(|key| keys.contains(&key))
}

/// The settings that a link gets once it is made, beside what it is made
/// with: the kernel takes no alias before, and what has settings of its own
/// comes up after them.
pub fn afterwards(link: &Link) -> LinkSettings {
    LinkSettings {
        alias: link.alias.clone().filter(|alias| !alias.is_empty()),
        up: link.up.filter(|up| *up && !link.sysctl.is_empty()),
        ..LinkSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolved::resolve;
    use super::super::source::{Said, parse};
    use super::*;

    fn there(index: u32, name: &str, kind: &str) -> table::Link {
        table::Link {
            index,
            name: name.into(),
            kind: Some(kind.into()),
            mtu: 1500,
            ..table::Link::default()
        }
    }

    fn plan(
        text: &str,
        links: Vec<table::Link>,
        rows: Vec<Item>,
        prune: bool,
    ) -> Result<Plan, String> {
        let mut said = Said::default();
        parse(&"f".into(), text, &mut said)?;
        let wanted = Wanted::of(said)?;
        let links = Links::of(links);
        let resolved = resolve(&wanted, &links, &words::Names::default(), 0)?;
        let mut current = Current::default();
        for row in rows {
            current
                .rows
                .entry(key(&row).unwrap())
                .or_default()
                .push(row);
        }
        difference(&wanted, &resolved, &links, &current, prune)
    }

    #[test]
    fn what_stands_on_others_is_made_after_them() {
        let text = "[[link]]\nname = \"v\"\nkind = \"veth\"\npeer = \"w\"\n\
            [[link]]\nname = \"w\"\nmaster = \"br\"\n\
            [[link]]\nname = \"m\"\nkind = \"macvlan\"\nlink = \"v\"\n\
            [[link]]\nname = \"br\"\nkind = \"bridge\"\nmaster = \"vrf\"\n\
            [[link]]\nname = \"vrf\"\nkind = \"vrf\"\noptions = \"table 5\"\n\
            [[route]]\ndst = \"10.0.0.0/8\"\ngateway = \"10.1.0.1\"\ndev = \"m\"\n\
            [[address]]\ndev = \"m\"\nlocal = \"10.1.0.2/24\"\n";
        let plan = plan(text, Vec::new(), Vec::new(), false).unwrap();
        assert_eq!(plan.make, [vec![4], vec![3], vec![0], vec![2]]);
        let rows: Vec<Object> = plan
            .rows
            .iter()
            .map(|change| object(&change.item))
            .collect();
        assert_eq!(rows, [Object::Addr, Object::Route]);
        let circle = "[[link]]\nname = \"a\"\nkind = \"bridge\"\nmaster = \"b\"\n\
            [[link]]\nname = \"b\"\nkind = \"bridge\"\nmaster = \"a\"\n";
        assert!(super::tests::plan(circle, Vec::new(), Vec::new(), false).is_err());
    }

    #[test]
    fn fields_that_differ_are_told_and_no_others() {
        let text =
            "[[link]]\nname = \"a\"\nmtu = 1400\nup = false\nalias = \"x\"\nmaster = \"br\"\n";
        let links = vec![there(1, "a", "dummy"), there(2, "br", "bridge")];
        let set = plan(text, links, Vec::new(), false).unwrap().set.remove(0);
        let fields: Vec<_> = set
            .fields
            .iter()
            .map(|f| format!("{} {} {}", f.name, f.from, f.to))
            .collect();
        assert_eq!(fields, ["master  br", "mtu 1500 1400", "alias  x"]);
        assert_eq!(
            (set.settings.master, set.settings.mtu, set.settings.up),
            (Some(2), Some(1400), None)
        );
        let other = "[[link]]\nname = \"a\"\nkind = \"bridge\"\n";
        let why = plan(other, vec![there(1, "a", "dummy")], Vec::new(), false).unwrap_err();
        assert!(why.starts_with("f:1: ") && why.contains("dummy"), "{why}");
    }

    #[test]
    fn what_is_there_is_not_sent_and_what_is_ours_goes() {
        let route = |metric| {
            Item::Route(table::Route {
                table: 254,
                prefix: "10.0.0.0/8".parse().unwrap(),
                tos: 0,
                metric,
                body: table::RouteBody {
                    kind: 1,
                    protocol: super::super::key::MARK,
                    scope: 253,
                    next_hops: NextHops::One(table::NextHop {
                        link: 1,
                        weight: 1,
                        ..table::NextHop::default()
                    }),
                    ..table::RouteBody::default()
                },
            })
        };
        let text = "[[route]]\ndst = \"10.0.0.0/8\"\ndev = \"a\"\n";
        let links = || vec![there(1, "a", "dummy")];
        let same = plan(text, links(), vec![route(0)], true).unwrap();
        assert!(same.is_empty(), "{same:?}");
        let more = plan(text, links(), vec![route(0), route(7)], false).unwrap();
        assert!(more.is_empty());
        let pruned = plan(text, links(), vec![route(0), route(7)], true).unwrap();
        assert_eq!(
            pruned
                .deletes
                .iter()
                .map(|change| change.item.clone())
                .collect::<Vec<_>>(),
            [route(7)]
        );
        let mut theirs = route(7);
        *super::super::key::protocol(&mut theirs).unwrap() = 4;
        assert!(
            plan(text, links(), vec![route(0), theirs], true)
                .unwrap()
                .is_empty()
        );
    }
}
