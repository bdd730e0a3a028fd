//! A row to be changed as a request to the kernel.

use netlink::TooLong;
use netlink::decode::{Item, Operation};
use netlink::encode::{self, Request};
use netlink::message::flag;
use words::Verb;

use super::asked::Asked;

/// The message of a row.
pub fn message(
    asked: &Asked,
    sequence: u32,
    now_millis: u64,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let request = Request {
        operation: operation(asked.verb),
        flags: flags(asked.verb),
        sequence,
        now_millis,
    };
    match &asked.item {
        Item::Rule(rule) if !asked.is_placed => encode::unplaced_rule(out, &request, rule),
        item => encode::row(out, &request, item),
    }
}

fn operation(verb: Verb) -> Operation {
    match verb {
        Verb::Delete => Operation::Delete,
        _ => Operation::New,
    }
}

/// `NLM_F_…` of a verb's request.
fn flags(verb: Verb) -> u16 {
    match verb {
        Verb::Add => flag::CREATE | flag::EXCL,
        Verb::Replace => flag::CREATE | flag::REPLACE,
        Verb::Change => flag::REPLACE,
        Verb::Append => flag::CREATE | flag::APPEND,
        Verb::Prepend => flag::CREATE,
        Verb::Delete => 0,
    }
}
