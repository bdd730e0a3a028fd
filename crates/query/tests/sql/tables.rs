//! Tables to ask about, and how they are asked. Rows of all kinds, some of
//! them odd, the same for the same seed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fingerpost_query::{Answered, Asked, Limits, Moment, Question, SqlError, Translation, answer};
use ipnet::IpNet;
use memory::Random;
use table::row::neighbour::state;
use table::{
    Address, Change, FdbEntry, GroupMember, Link, LinkLayerAddress, Neighbour, NextHop, NextHops,
    Nexthop, Placement, Reader, Route, RouteBody, Rule, Writer,
};
use view::{Format, Object};
use words::Names;

/// A namespace that nobody samples.
pub struct Namespace {
    pub reader: Reader,
    pub names: Arc<Names>,
    pub translation: Translation,
}

impl Asked for Namespace {
    fn moment(&self) -> Moment {
        Moment {
            tables: self.reader.snapshot(),
            names: Arc::clone(&self.names),
            now_millis: NOW,
            reader: self.reader.clone(),
        }
    }

    fn refresh(&self, _: Object, _: bool) {}

    fn translation(&self) -> Translation {
        self.translation.clone()
    }
}

pub const NOW: u64 = 1_700_000_000_000;

/// Limits that no test meets that is not about them.
pub const WIDE: Limits = Limits {
    time: Duration::from_secs(120),
    rows: 1 << 32,
    memory: 64 << 20,
};

impl Namespace {
    pub fn new(writer: &Writer) -> Self {
        Self {
            reader: writer.reader(),
            names: Arc::new(Names::default()),
            translation: Err("no translation runs here".to_owned()),
        }
    }

    pub fn ask(
        &self,
        statement: &str,
        limits: &Limits,
        format: Format,
    ) -> (Result<Answered, SqlError>, String) {
        let question = Question {
            statement: statement.to_owned(),
            format,
            explain: false,
        };
        let mut out = Vec::new();
        let answered = answer(&question, self, limits, || false, &mut out);
        (answered, String::from_utf8(out).unwrap())
    }

    /// The rows as lines of CSV, without the head.
    pub fn rows(&self, statement: &str) -> Vec<String> {
        let (answered, text) = self.ask(statement, &WIDE, Format::Csv);
        let answered = answered.unwrap_or_else(|error| panic!("{statement}: {error}"));
        let rows: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        assert_eq!(answered.rows, rows.len() as u64, "{statement}");
        rows
    }

    /// Rows of the answer, and rows that were looked at for it.
    pub fn counts(&self, statement: &str) -> (u64, u64) {
        let (answered, _) = self.ask(statement, &WIDE, Format::Ndjson);
        let answered = answered.unwrap_or_else(|error| panic!("{statement}: {error}"));
        (answered.rows, answered.visited)
    }

    pub fn error(&self, statement: &str) -> String {
        let (answered, _) = self.ask(statement, &WIDE, Format::Ndjson);
        answered.expect_err(statement).to_string()
    }
}

pub fn mac(last: u8) -> LinkLayerAddress {
    LinkLayerAddress::new(&[2, 0, 0, 0, 0xab, last]).unwrap()
}

pub fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

pub fn hop(link: u32, gateway: Option<IpAddr>) -> NextHop {
    NextHop {
        link,
        gateway,
        weight: 1,
        ..NextHop::default()
    }
}

pub fn route(table: u32, prefix: IpNet, metric: u32, body: RouteBody) -> Change {
    let route = Route {
        table,
        prefix,
        tos: 0,
        metric,
        body,
    };
    Change::PutRoute(route, Placement::Last)
}

/// Some hundred rows of every kind.
pub fn filled(seed: u64) -> Writer {
    let mut random = Random::new(seed);
    let mut writer = Writer::default();
    writer.set_time(NOW);
    let mut changes = Vec::new();
    for index in 1..=30 {
        changes.push(Change::PutLink(Link {
            index,
            name: format!("l{index}").into(),
            alt_names: [format!("alt{index}").into()].into(),
            flags: if index % 4 == 0 { 0x1002 } else { 0x1_1043 },
            mtu: 1500 + index,
            address: mac(index as u8),
            kind: Some(if index % 3 == 0 { "veth" } else { "bridge" }.into()),
            master: (index % 5 == 0).then_some(1),
            hardware: 1,
            ..Link::default()
        }));
        for number in 0..10_u8 {
            let local = IpAddr::from([10, 1, index as u8, number]);
            let mut row = Address::new(index, local, if number % 2 == 0 { 24 } else { 32 });
            row.scope = if number == 3 { 253 } else { 0 };
            row.flags = 0x80;
            changes.push(Change::PutAddress(row));
            changes.push(Change::PutNeighbour(Neighbour {
                link: index,
                address: match number {
                    9 => format!("fe80::{index:x}").parse().unwrap(),
                    _ => IpAddr::from([10, 0, random.below(4) as u8, number]),
                },
                proxy: number == 8,
                lladdr: mac(random.below(6) as u8),
                state: [state::STALE, state::PERMANENT, state::NOARP][random.below(3)],
                flags: 0,
                protocol: 0,
                kind: 1,
            }));
            changes.push(Change::PutFdb(FdbEntry {
                link: index,
                lladdr: mac(random.below(6) as u8),
                vlan: (number % 2 == 0).then_some(number.into()),
                state: state::PERMANENT,
                ..FdbEntry::default()
            }));
        }
        changes.push(Change::PutNexthop(Nexthop {
            id: index,
            family: 2,
            link: Some(1 + index % 3),
            gateway: Some([192, 0, 2, (index % 4) as u8].into()),
            ..Nexthop::default()
        }));
        changes.push(Change::PutRule(Rule {
            family: if index % 2 == 0 { 2 } else { 10 },
            priority: index / 4,
            table: index,
            action: 1,
            ..Rule::default()
        }));
    }
    let members = [(1, 1), (2, 3)].map(|(id, weight)| GroupMember { id, weight });
    changes.push(Change::PutNexthop(Nexthop {
        id: 100,
        group: members.into(),
        ..Nexthop::default()
    }));
    changes.extend((0..800).map(|number| any_route(number, &mut random)));
    for prefix in ["0.0.0.0/0", "::/0"] {
        changes.push(route(254, net(prefix), 0, body(number_body(1, 1))));
    }
    writer.commit(changes).unwrap();
    writer
}

fn number_body(link: u32, gateway: u8) -> NextHops {
    NextHops::One(hop(link, Some([192, 0, 2, gateway].into())))
}

pub fn body(next_hops: NextHops) -> RouteBody {
    RouteBody {
        kind: 1,
        protocol: 4,
        next_hops,
        ..RouteBody::default()
    }
}

fn any_route(number: u32, random: &mut Random) -> Change {
    let len = 8 + random.below(25) as u8;
    let prefix = match random.below(5) {
        0 => format!(
            "2001:db8:{:x}::/{}",
            random.below(64),
            40 + random.below(89)
        ),
        _ => format!(
            "10.{}.{}.{}/{len}",
            random.below(4),
            random.below(8),
            random.below(256)
        ),
    };
    let link = 1 + random.below(4) as u32;
    let gateway = random.below(4) as u8;
    let hops = match random.below(8) {
        0 => NextHops::None,
        1 => NextHops::Many(
            [
                hop(link, Some([192, 0, 2, gateway].into())),
                hop(link + 1, Some([192, 0, 2, gateway + 1].into())),
            ]
            .into(),
        ),
        2 => NextHops::One(hop(link, Some("fe80::1".parse().unwrap()))),
        3 => NextHops::One(hop(link, None)),
        _ => number_body(link, gateway),
    };
    let none = hops == NextHops::None;
    let mut body = body(hops);
    body.nexthop_id = none
        .then(|| 1 + random.below(5) as u32)
        .or(number.is_multiple_of(9).then_some(100));
    body.protocol = [2, 3, 4, 186][random.below(4)];
    body.scope = [0, 253][random.below(2)];
    body.preferred_source = (random.below(6) == 0).then(|| [10, 1, 1, gateway].into());
    let table = [254, 254, 254, 100, 255][random.below(5)];
    route(
        table,
        net(&prefix).trunc(),
        [0, 0, 7, 1024][random.below(4)],
        body,
    )
}
