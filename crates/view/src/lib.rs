//! A snapshot as text (like iproute2's, arp(8)'s), JSON and CSV.
//!
//! Pure: rows and a time in, bytes out. A [`Question`] says what is asked
//! and how it is to be shown; it is the same for the command line, the
//! control socket and whatever else asks.
//!
//! - [`Printer`]: filters and writes rows as they come, from a dump or a
//!   snapshot.
//! - [`answer`]: answers a question from a snapshot, by the access path that
//!   the planner (`plan`) chose.
//! - [`Walk`]: the same in pieces, each from the newest snapshot.
//! - [`RowScan`], [`Cells`]: rows as they are and values of their columns, for
//!   who has a language of questions of its own.
//! - [`route_get`]: which route a packet would take.
//! - [`RouteDiff`], [`RouteDiffWatch`]: where the routes of two sources differ.
//! - [`route_why`]: what each source knows of a prefix, and what packets do.
//! - [`route_flaps`](mod@route_flaps): which routes changed how often.
//! - [`event`], [`Watch`]: changes as lines of JSON; [`row`]: one row.
//! - [`arp`], [`ifconfig`]: rows as the tools of those names show them.
//! - [`plot`]: costs over sizes as a picture.
//! - [`conditions`]: what a question may be narrowed by, word by word.

mod address;
mod answer;
mod answer_error;
pub mod arp;
mod bridge;
mod brief;
pub mod colour;
mod column;
mod columns;
pub mod conditions;
mod context;
mod event;
mod fdb;
mod fields;
mod format;
pub mod ifconfig;
mod link;
mod link_counters;
mod link_kind;
mod monitor;
mod neighbour;
mod nexthop;
mod path_patterns;
mod pattern;
mod plan;
pub mod plot;
mod printer;
mod put;
pub mod question;
mod route;
mod route_diff;
mod route_encap;
pub mod route_flaps;
mod route_get;
mod route_match;
mod route_metrics;
mod route_path;
mod route_why;
mod rows;
mod rule;
mod rule_match;
mod selected_fields;
mod selection;
mod walk;

pub use answer::{Within, answer, answer_within};
pub use answer_error::AnswerError;
pub use bridge::BridgeRow;
pub use column::{Column, ColumnType};
pub use columns::{are_sampled, columns, csv_line, shows_timers, table_line};
pub use context::Context;
pub use event::{Watch, event, event_names, row};
pub use fields::push_json_text;
pub use format::{push_address, push_prefix};
pub use monitor::{Monitored, device, monitored, padded_device};
pub use pattern::matches as matches_name;
pub use plan::KernelFilter;
pub use printer::Printer;
pub use question::{Filter, Format, Object, Output, Question, Units};
pub use route_diff::{RouteDiff, RouteDiffQuestion, RouteDiffWatch, Side};
pub use route_flaps::{FlapSource, RouteFlapsQuestion, route_flaps};
pub use route_get::{RouteAnswer, RouteQuestion, link_of, route_get, route_got};
pub use route_why::{RouteWhyQuestion, WhySource, route_why};
pub use rows::{Cells, FoundRow, Narrowed, PrefixLookup, RowScan};
pub use rule_match::RuleMatch;
pub use selected_fields::CellValue;
pub use selection::{BadQuestion, Selection, address_flag, states_of};
pub use walk::{Bounds, Position, Walk};
pub use words::{NameFile, Names};
