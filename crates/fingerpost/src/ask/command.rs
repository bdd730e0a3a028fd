//! The command line of questions: `fingerpost link|addr|…`, `route get` and
//! `status`.

use std::io::IsTerminal;
use std::net::IpAddr;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use ipnet::IpNet;
use rustix::process::geteuid;
use serve::control::protocol::Ask;
use view::conditions::{FILTERS, GET, Packet, of_object, settle_family};
use view::route_flaps::{LIMIT, MAX_LIMIT, SECS};
use view::{
    Filter, Format, Object, Output, Question, RouteDiffQuestion, RouteFlapsQuestion, RouteQuestion,
    RouteWhyQuestion,
};
use words::values;

use super::arguments::{From, from, from_arguments, switch};
use super::conditions;

/// The condition that names the source of rows; who compares sources names
/// two.
const SOURCE: &str = "source";

fn about(object: Object) -> &'static str {
    match object {
        Object::Link => "Links (network interfaces)",
        Object::Addr => "IP addresses of links",
        Object::Neigh => "ARP and ND neighbours",
        Object::Route => "Routes; `route get ADDR`: the one a packet would take",
        Object::Nexthop => "Next-hop objects and groups",
        Object::Rule => "Rules of policy routing",
        Object::Fdb => "Bridge and VXLAN forwarding entries",
    }
}

/// `fingerpost status`.
pub fn status() -> Command {
    Command::new("status")
        .about("How the daemon is: what it mirrors, how much, how well")
        .arg(switch("json", Some('j'), "As one JSON object"))
        .args(from_arguments().into_iter().filter(is_of_now))
        .mut_arg("direct", |arg| arg.hide(true))
}

/// Whether an argument says from where, and not when.
fn is_of_now(argument: &Arg) -> bool {
    !matches!(argument.get_id().as_str(), "at" | "history")
}

/// Questions about an object's rows.
pub fn command(object: Object) -> Command {
    let bare = of_object(FILTERS, object).flat_map(|word| word.bare.iter().copied());
    let spoken: Vec<&str> = ["show", "list"].into_iter().chain(bare).collect();
    Command::new(object.name())
        .about(about(object))
        .args(of_object(FILTERS, object).map(conditions::argument))
        .args(output_arguments())
        .arg(
            switch(
                "watch",
                None,
                "Changes as they happen, one line of JSON each",
            )
            // A change is a line of JSON, and there is no last one.
            .conflicts_with_all(["fields", "csv", "sort", "count", "at"])
            .help_heading("How"),
        )
        .group(ArgGroup::new("family").args(["ipv4", "ipv6"]))
        .args(from_arguments())
        .arg(
            Arg::new("words")
                .value_name("WORDS")
                .num_args(0..)
                .value_parser(PossibleValuesParser::new(spoken))
                .hide_possible_values(true)
                .help("ip's own words for the same: show, dev NAME, …"),
        )
        .args_conflicts_with_subcommands(true)
}

/// `fingerpost route get`.
pub fn route_get() -> Command {
    Command::new("get")
        .about("The route that a packet would take")
        .arg(
            Arg::new("address")
                .value_name("ADDRESS")
                .required(true)
                .value_parser(values::address)
                .help("Where it goes"),
        )
        .args(of_object(GET, Object::Route).map(conditions::argument))
        .args(output_arguments())
        .args(from_arguments())
        .mut_arg("sort", |arg| arg.hide(true))
        .mut_arg("count", |arg| arg.hide(true))
}

/// `fingerpost route diff`.
pub fn route_diff() -> Command {
    let words = of_object(FILTERS, Object::Route).filter(|word| word.flag != SOURCE);
    let source = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .value_name("SOURCE")
            .required(true)
            .value_parser(values::name)
            .help(help)
    };
    Command::new("diff")
        .about("Where the routes of two sources differ, prefix by prefix")
        .arg(source("first", "`kernel`, or a feed"))
        .arg(source("second", "What it is compared with"))
        .args(words.map(conditions::argument))
        .group(ArgGroup::new("family").args(["ipv4", "ipv6"]))
        .arg(switch(
            "strict",
            None,
            "Compare all routes of a prefix, with metric, protocol, scope, source and metrics; \
             without: the type and the next hops of the best",
        ))
        .arg(
            switch(
                "watch",
                None,
                "Differences as they come and go, one line of JSON each",
            )
            .conflicts_with_all(["json", "ndjson", "count", "at"])
            .help_heading("How"),
        )
        .args(few_output_arguments())
        .arg(switch("count", None, "Only the number of prefixes that differ").help_heading("How"))
        .args(from_arguments())
        .mut_arg("direct", |arg| arg.hide(true))
}

/// `fingerpost route why`.
pub fn route_why() -> Command {
    Command::new("why")
        .about("What each source knows of a prefix, and what packets do")
        .arg(
            Arg::new("prefix")
                .value_name("PREFIX")
                .required(true)
                .value_parser(values::prefix)
                .help("A prefix or an address"),
        )
        .arg(
            Arg::new("table")
                .long("table")
                .value_name("TABLE")
                .help("The table, by name or number; without: main"),
        )
        .args(few_output_arguments())
        .args(from_arguments())
        .mut_arg("direct", |arg| arg.hide(true))
}

/// `fingerpost route flaps`.
pub fn route_flaps() -> Command {
    let option = |id: &'static str, value: &'static str, help: &'static str| {
        Arg::new(id).long(id).value_name(value).help(help)
    };
    let number = |id, value, most: u32, help| {
        let range = clap::value_parser!(u32).range(1..=i64::from(most));
        option(id, value, help).value_parser(range)
    };
    let json = switch("json", Some('j'), "As JSON").help_heading("How");
    Command::new("flaps")
        .about("Which routes changed how often, and how far back that is known")
        .arg(
            option(
                SOURCE,
                "SOURCE",
                "Prefix by prefix of this source: `kernel`, or a feed; without: a sum for each",
            )
            .value_parser(values::name),
        )
        .arg(option(
            "table",
            "TABLE",
            "Only in this table; without: in all",
        ))
        .arg(
            option("within", "PREFIX", "Only prefixes within this one")
                .value_parser(values::prefix),
        )
        .arg(number(
            "secs",
            "SECS",
            u32::MAX,
            "Over so many seconds; without: 3600",
        ))
        .arg(number(
            "limit",
            "NUMBER",
            MAX_LIMIT,
            "So many at most; without: 100",
        ))
        .arg(
            option(
                "sort",
                "FIELD",
                "By changes, added, changed, deleted, last or name; -FIELD: downwards; without: \
                 -changes",
            )
            .allow_hyphen_values(true)
            .help_heading("How"),
        )
        .arg(json.conflicts_with("count"))
        .arg(switch("count", None, "Only the number").help_heading("How"))
        .args(from_arguments())
        .mut_arg("direct", |arg| arg.hide(true))
}

/// How an answer that has no columns is written.
fn few_output_arguments() -> Vec<Arg> {
    let known = ["json", "ndjson", "details", "oneline"];
    let some = output_arguments().into_iter();
    let some = some.filter(|arg| known.contains(&arg.get_id().as_str()));
    // What these conflict with is not among them.
    some.map(|arg| match arg.get_id().as_str() {
        "json" => switch("json", Some('j'), "As JSON")
            .conflicts_with("ndjson")
            .help_heading("How"),
        "ndjson" => switch("ndjson", None, "One JSON object a line").help_heading("How"),
        _ => arg,
    })
    .collect()
}

fn output_arguments() -> Vec<Arg> {
    let mut arguments = vec![
        switch("json", Some('j'), "One JSON array, in the shape of ip -j")
            .conflicts_with_all(["ndjson", "csv"]),
        switch("ndjson", None, "One JSON object a line").conflicts_with("csv"),
        switch("csv", None, "Comma-separated values with a header"),
        Arg::new("fields")
            .long("fields")
            .value_name("A,B,…")
            .action(ArgAction::Append)
            .value_delimiter(',')
            .help("Only these columns, in this order"),
        Arg::new("sort")
            .long("sort")
            .value_name("FIELD")
            .allow_hyphen_values(true)
            .help("Sort by a column; -FIELD: downwards"),
        switch("count", None, "Only the number of rows"),
        switch("details", Some('d'), "More of each row"),
        switch("statistics", Some('s'), "Counters and ages"),
        switch("oneline", Some('o'), "One line a row"),
        Arg::new("colour")
            .long("colour")
            .visible_alias("color")
            .value_name("WHEN")
            .value_parser(["auto", "always", "never"])
            .default_value("auto")
            .hide_possible_values(true)
            .help("auto, always or never"),
    ];
    for argument in &mut arguments {
        *argument = argument.clone().help_heading("How");
    }
    arguments
}

/// What `fingerpost status` asks, and whom.
pub fn status_wanted(matches: &ArgMatches) -> (Ask, From) {
    let json = matches.get_flag("json");
    (Ask::Status { json }, from(matches))
}

/// What is asked of an object's rows, and whom.
pub fn wanted(object: Object, matches: &ArgMatches) -> Result<(Ask, From), String> {
    if object == Object::Route
        && let Some(("get", matches)) = matches.subcommand()
    {
        let question = Box::new(route_to_get(matches)?);
        return Ok((Ask::RouteGet(question), from(matches)));
    }
    if object == Object::Route
        && let Some(("diff", matches)) = matches.subcommand()
    {
        let question = Box::new(routes_to_compare(matches)?);
        let from = from(matches);
        let ask = match from.watch {
            true => Ask::WatchDiff(question),
            false => Ask::RouteDiff(question),
        };
        return Ok((ask, from));
    }
    if object == Object::Route
        && let Some(("why", matches)) = matches.subcommand()
    {
        let question = Box::new(prefix_to_explain(matches)?);
        return Ok((Ask::RouteWhy(question), from(matches)));
    }
    if object == Object::Route
        && let Some(("flaps", matches)) = matches.subcommand()
    {
        let question = Box::new(changes_to_count(matches));
        return Ok((Ask::RouteFlaps(question), from(matches)));
    }
    let question = Box::new(asked(object, matches)?);
    let from = from(matches);
    let ask = if from.watch {
        Ask::Watch(question)
    } else {
        Ask::Question(question)
    };
    Ok((ask, from))
}

fn route_to_get(matches: &ArgMatches) -> Result<RouteQuestion, String> {
    let mut packet = Packet::default();
    for word in of_object(GET, Object::Route) {
        conditions::apply(word, matches, &mut packet)?;
    }
    let to: Option<&IpAddr> = matches.get_one("address");
    let to = to.ok_or("where does the packet go?")?;
    let mut question = packet.question(*to);
    question.asker = geteuid().as_raw();
    question.output = output(matches);
    Ok(question)
}

fn routes_to_compare(matches: &ArgMatches) -> Result<RouteDiffQuestion, String> {
    let mut filter = Filter::default();
    for word in of_object(FILTERS, Object::Route).filter(|word| word.flag != SOURCE) {
        conditions::apply(word, matches, &mut filter)?;
    }
    settle_family(&mut filter);
    let source = |id: &str| matches.get_one::<String>(id).cloned().unwrap_or_default();
    Ok(RouteDiffQuestion {
        sources: [source("first"), source("second")],
        strict: matches.get_flag("strict"),
        filter,
        output: Output {
            count: matches.get_flag("count"),
            ..few_outputs(matches)
        },
    })
}

fn prefix_to_explain(matches: &ArgMatches) -> Result<RouteWhyQuestion, String> {
    let to: Option<&IpNet> = matches.get_one("prefix");
    Ok(RouteWhyQuestion {
        to: *to.ok_or("which prefix?")?,
        table: matches.get_one("table").cloned(),
        output: few_outputs(matches),
    })
}

fn changes_to_count(matches: &ArgMatches) -> RouteFlapsQuestion {
    let text = |id: &str| matches.get_one::<String>(id).cloned();
    let number = |id: &str, usual| matches.get_one::<u32>(id).copied().unwrap_or(usual);
    RouteFlapsQuestion {
        source: text(SOURCE),
        table: text("table"),
        within: matches.get_one("within").copied(),
        secs: number("secs", SECS),
        limit: number("limit", LIMIT),
        sort: text("sort"),
        parts: 0,
        output: Output {
            format: match matches.get_flag("json") {
                true => Format::Json,
                false => Format::Text,
            },
            count: matches.get_flag("count"),
            ..Output::default()
        },
    }
}

fn few_outputs(matches: &ArgMatches) -> Output {
    let format = match (matches.get_flag("json"), matches.get_flag("ndjson")) {
        (true, _) => Format::Json,
        (_, true) => Format::Ndjson,
        _ => Format::Text,
    };
    Output {
        format,
        details: matches.get_flag("details"),
        oneline: matches.get_flag("oneline"),
        ..Output::default()
    }
}

fn asked(object: Object, matches: &ArgMatches) -> Result<Question, String> {
    let mut filter = Filter::default();
    for word in of_object(FILTERS, object) {
        conditions::apply(word, matches, &mut filter)?;
    }
    settle_family(&mut filter);
    Ok(Question {
        object,
        filter,
        output: output(matches),
    })
}

fn output(matches: &ArgMatches) -> Output {
    let format = if matches.get_flag("json") {
        Format::Json
    } else if matches.get_flag("ndjson") {
        Format::Ndjson
    } else if matches.get_flag("csv") {
        Format::Csv
    } else {
        Format::Text
    };
    let colour = matches
        .get_one::<String>("colour")
        .map_or("auto", String::as_str);
    Output {
        format,
        fields: matches
            .get_many("fields")
            .unwrap_or_default()
            .cloned()
            .collect(),
        sort: matches.get_one("sort").cloned(),
        count: matches.get_flag("count"),
        details: matches.get_flag("details"),
        statistics: matches.get_flag("statistics"),
        oneline: matches.get_flag("oneline"),
        colour: colour == "always" || colour == "auto" && colours_suit_the_output(),
        locks: format == Format::Ndjson,
        ..Output::default()
    }
}

/// Whether standard output is a terminal that may show colours
/// (<https://no-color.org>).
fn colours_suit_the_output() -> bool {
    std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
