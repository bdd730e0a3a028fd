//! `ip route get` and `ip neigh get`: single questions to the kernel. Called
//! by the table of commands.

use std::io::Write;
use std::sync::Arc;

use linux::mirror::now_millis;
use netlink::decode;
use serve::control::protocol::Ask;
use table::{NeighbourSample, Sample};
use view::{Context, Format, Monitored, Object, Output, Question, conditions, monitored};
use words::NameFile;

use super::grammar::{self, Key, Value, begun, whole};
use super::session::{Session, complain};
use super::show::{answer, output};
use super::stop::{REFUSED, Stop};
use crate::direct;

const TOS_VALUE: Value = Value::Named(NameFile::DsField, "TOS value is invalid\n");

const ROUTE: &[Key] = &[
    whole("tos", TOS_VALUE),
    begun("dsfield", TOS_VALUE).means("tos"),
    begun("from", Value::Prefix),
    begun("iif", Value::Link),
    whole("mark", Value::Text),
    begun("oif", Value::Link),
    whole("dev", Value::Link).means("oif"),
    begun("notify", Value::NotBuilt),
    begun("connected", Value::NotBuilt),
    begun("vrf", Value::Vrf("Invalid VRF\n")),
    whole("uid", Value::Text),
    begun("fibmatch", Value::None),
    whole("as", Value::NotBuilt),
    begun("ipproto", Value::Text),
    begun("sport", Value::Text),
    begun("dport", Value::Text),
    begun("to", Value::Selector),
];

const NEIGHBOUR: &[Key] = &[
    whole("dev", Value::Text),
    begun("proxy", Value::Address),
    whole("to", Value::Address),
];

/// `ip route get`.
pub fn route(
    session: &mut Session,
    arguments: &[String],
    out: &mut impl Write,
) -> Result<(), Stop> {
    if session.options.statistics > 0 {
        return Err(Stop::NotBuilt("-statistics route get".to_owned()));
    }
    let told = grammar::read(ROUTE, arguments, session)?;
    let (mut to, mut as_it_stands) = (None, false);
    let mut packet = conditions::Packet::default();
    let words: Vec<_> = conditions::of_object(conditions::GET, Object::Route).collect();
    for told in &told {
        let place = told.key.map_or("to", |key| key.means);
        if place == "to" {
            let family = to.map(words::line::family_of).or(session.family());
            let prefix = grammar::prefix(told.value, family)?;
            let is_word = matches!(told.value, "default" | "any" | "all");
            if !is_word && prefix.prefix_len() != prefix.max_prefix_len() {
                complain(&format!(
                    "Warning: /{} as prefix is invalid, only /{} (or none) is supported.",
                    prefix.prefix_len(),
                    prefix.max_prefix_len()
                ));
            }
            to = Some(prefix.addr());
            continue;
        }
        if place == "fibmatch" {
            as_it_stands = true;
            continue;
        }
        if place == "from" && matches!(told.value, "default" | "any" | "all") {
            return Err(Stop::NotBuilt(format!("from {}", told.value)));
        }
        let spoken = conditions::spoken(&words, place, None);
        let (word, _) = spoken.ok_or_else(|| Stop::NotBuilt(told.said.to_owned()))?;
        let wrong = |why: String| Stop::argument(told.value, said_of(place).unwrap_or(&why));
        (word.set)(&mut packet, &grammar::spelt_as(told_as(told), told.value)).map_err(wrong)?;
    }
    let to = to.ok_or_else(|| Stop::failed("need at least a destination address"))?;
    let mut question = packet.question(to);
    question.asker = rustix::process::getuid().as_raw();
    question.uid = question.uid.or(Some(question.asker));
    question.output = output(session);
    if as_it_stands {
        return route_as_it_stands(session, &question, out);
    }
    answer(session, Ask::RouteGet(Box::new(question)), out).map(drop)
}

/// What `ip` says of a value of a packet that is none.
fn said_of(place: &str) -> Option<&'static str> {
    Some(match place {
        "mark" => "invalid mark value\n",
        "uid" => "invalid UID\n",
        "ipproto" => "Invalid \"ipproto\" value\n",
        "sport" => "invalid sport\n",
        "dport" => "invalid dport\n",
        _ => return None,
    })
}

fn told_as(told: &grammar::Told<'_>) -> Value {
    told.key.map_or(Value::Selector, |key| key.value)
}

/// The route that a packet takes, as it stands in its table.
fn route_as_it_stands(
    session: &Session,
    question: &view::RouteQuestion,
    out: &mut impl Write,
) -> Result<(), Stop> {
    let row = direct::route_get::as_it_stands(question, &session.namespace);
    let row = row.map_err(super::show::no_route)?;
    let mut listing = Question {
        object: Object::Route,
        filter: view::Filter::default(),
        output: question.output.clone(),
    };
    // Its table is told, if it is not the main one.
    listing.filter.table = Some("all".to_owned());
    direct::rows_of(&listing, &session.namespace, out, |printer| {
        printer.route(&row.with_body(&row.body))
    })?;
    Ok(())
}

/// `ip neigh get`: there is no JSON of it.
pub fn neighbour(
    session: &mut Session,
    arguments: &[String],
    out: &mut impl Write,
) -> Result<(), Stop> {
    let told = grammar::read(NEIGHBOUR, arguments, session)?;
    let (mut address, mut device, mut proxy) = (None, None, false);
    for told in &told {
        match told.key.map_or("to", |key| key.means) {
            "dev" => device = Some(told.value),
            place => {
                if told.key.is_none() && address.is_some() {
                    return Err(Stop::garbage("to", told.said));
                }
                proxy |= place == "proxy";
                address = Some(grammar::address(told.value, session.family())?);
            }
        }
    }
    let (Some(address), Some(device)) = (address, device) else {
        return Err(Stop::failed("Device and address are required arguments."));
    };
    let link = session.index(device)?;
    let answered = linux::once::neighbour(&session.namespace, address, link, proxy);
    let payload = match answered {
        Err(linux::Error::Refused {
            source, message, ..
        }) => {
            let text = match message {
                Some(message) => format!("Error: {}.", message.trim_end_matches('.')),
                None => format!("RTNETLINK answers: {}", super::stop::reason(&source)),
            };
            return Err(Stop::Said {
                status: REFUSED,
                text,
            });
        }
        answered => answered?,
    };
    let row = decode::neighbour(&payload).map_err(anyhow::Error::from)?;
    let (mut tables, _) = direct::links(&session.namespace, &Output::default())?;
    if let Some(ages) = decode::neighbour_ages(&payload) {
        let sample = vec![(row.key(), NeighbourSample { ages })];
        tables.neighbour_samples = Arc::new(Sample::new(now_millis(), sample));
    }
    let context = Context {
        links: &tables.links,
        tables: Some(&tables),
        now_millis: now_millis(),
        names: &session.names,
    };
    let output = Output {
        format: Format::Text,
        ..output(session)
    };
    let mut text = Vec::new();
    monitored(
        Monitored::Neighbour(&row),
        false,
        &output,
        &context,
        &mut text,
    );
    out.write_all(&text)?;
    Ok(())
}
