//! A line of `ip`'s words as a row that is to be changed, and how. Called by
//! what applies lines.

use netlink::decode::Item;
use words::{Context, Object, ParseError, Verb, Words};

/// A line that has been read.
pub struct Asked {
    /// What is done.
    pub verb: Verb,
    /// The row.
    pub item: Item,
    /// Of a rule: whether its priority was said.
    pub is_placed: bool,
}

/// Reads a line: `ip`'s words after the verb, or the whole of `ip`'s line
/// (`-6 route add …`), whose object and verb then count.
pub fn read(
    line: &str,
    object: Object,
    verb: Verb,
    context: &mut Context<'_>,
) -> Result<Asked, ParseError> {
    let (object, verb, family, line) = head(line, object, verb)?;
    let usual = (context.verb, context.family);
    context.verb = verb;
    context.family = family.or(context.family);
    let read = row(line, object, context);
    (context.verb, context.family) = usual;
    let (item, is_placed) = read?;
    // Without it nothing could be undone.
    if matches!(&item, Item::Nexthop(row) if row.id == 0) {
        return Err("a next hop wants its `id`".to_owned());
    }
    Ok(Asked {
        verb,
        item,
        is_placed,
    })
}

/// Reads `ip`'s words after the verb, which the context has.
pub fn read_row(
    line: &str,
    object: Object,
    context: &mut Context<'_>,
) -> Result<Asked, ParseError> {
    let (item, is_placed) = row(line, object, context)?;
    Ok(Asked {
        verb: context.verb,
        item,
        is_placed,
    })
}

fn row(line: &str, object: Object, context: &mut Context<'_>) -> Result<(Item, bool), ParseError> {
    let item = match object {
        Object::Addr => Item::Address(words::address(line, context)?),
        Object::Route => Item::Route(words::route(line, context)?),
        Object::Neigh => Item::Neighbour(words::neighbour(line, context)?),
        Object::Nexthop => Item::Nexthop(words::nexthop(line, context)?),
        Object::Rule => {
            let asked = words::rule(line, context)?;
            return Ok((Item::Rule(asked.rule), asked.is_placed));
        }
        Object::Fdb => Item::Fdb(words::fdb(line, context)?),
        Object::Link => {
            return Err("links are changed by `fingerpost link`".to_owned());
        }
    };
    Ok((item, true))
}

/// Object, verb and family that a line of `ip -batch` begins with; what
/// follows them.
fn head(
    line: &str,
    object: Object,
    verb: Verb,
) -> Result<(Object, Verb, Option<u8>, &str), ParseError> {
    let mut words = Words::new(line);
    let mut family = None;
    let mut rest = line;
    while let Some(option) = words.peek().filter(|word| word.starts_with('-')) {
        words.next();
        family = match option {
            "-4" => Some(table::AF_INET),
            "-6" => Some(table::AF_INET6),
            _ => {
                return Err(format!(
                    "`{option}` is not understood at the start of a line"
                ));
            }
        };
        rest = words.rest();
    }
    // No row begins with a letter that one of these does, but for a route's
    // type and `default`, which are no objects.
    let Some(named) = words.next().and_then(object_named) else {
        return Ok((object, verb, family, rest));
    };
    let Some(told) = words.next() else {
        return Ok((object, verb, family, rest));
    };
    match Verb::meant(named, told) {
        Some(verb) => Ok((named, verb, family, words.rest())),
        // A next hop may begin with `fdb`.
        None if named == object || named == Object::Fdb => Ok((object, verb, family, rest)),
        None => Err(format!("`{told}` is no change that is made here")),
    }
}

fn object_named(word: &str) -> Option<Object> {
    Some(match word {
        "route" | "ro" | "r" => Object::Route,
        "addr" | "address" | "a" => Object::Addr,
        "neigh" | "neighbor" | "neighbour" | "n" => Object::Neigh,
        "rule" | "ru" => Object::Rule,
        "nexthop" => Object::Nexthop,
        "fdb" => Object::Fdb,
        "link" | "l" => Object::Link,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
