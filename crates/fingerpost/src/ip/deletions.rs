//! Lines of a batch that delete one link each, behind each other: the
//! kernel waits for its grace periods once for all of them. Only where the
//! lines by themselves would do the same: each link is there, none goes
//! along with one before it, and all can be deleted. Called by
//! [`super::batch`].

use std::collections::HashSet;

use linux::links::{Agreed, Deletion, How, Listing, Terms, Way};

use super::grammar::begins;
use super::session::Session;
use super::stop::Stop;

/// So many are worth it.
const FEW: usize = 4;
/// Links below each other that are looked at.
const MAX_DEPTH: usize = 8;

/// The link that a line deletes, if it says nothing else.
pub fn link_of(words: &[String]) -> Option<&str> {
    let (object, rest) = words.split_first()?;
    let (command, rest) = rest.split_first()?;
    // `l` alone means `link`, and `d` alone `delete`.
    if !begins(object, "link") || !begins(command, "delete") {
        return None;
    }
    match rest {
        [name] if name != "dev" && name != "help" => Some(name),
        [dev, name] if dev == "dev" => Some(name),
        _ => None,
    }
}

/// Deletes links together. False: nothing was done, and each has to be
/// deleted by itself.
pub fn together(session: &mut Session, names: &[String]) -> Result<bool, Stop> {
    if names.len() < FEW {
        return Ok(false);
    }
    let listing = Listing::read(&session.namespace)?;
    let Some(wanted) = in_turn(&listing, names) else {
        return Ok(false);
    };
    let planned = Deletion::plan_from(&session.namespace, listing, &mut |link| {
        wanted.contains(&link.index)
    });
    let Ok(deletion) = planned else {
        return Ok(false);
    };
    if !deletion.not_virtual().is_empty() || !matches!(deletion.way(), Way::Group { .. }) {
        return Ok(false);
    }
    let terms = Terms {
        along: Agreed::All,
        atomic: true,
    };
    // After an error they are in their old groups again.
    let ended = deletion.run(terms, How::default(), &mut |_| {});
    session.links_changed();
    Ok(ended.is_ok_and(|ended| ended.done == names.len()))
}

/// The links of these names, if each is there when its turn comes.
fn in_turn(listing: &Listing, names: &[String]) -> Option<HashSet<u32>> {
    let mut gone = HashSet::with_capacity(names.len());
    for name in names {
        let link = listing.named(name)?;
        let mut below = Some(link);
        for _ in 0..MAX_DEPTH {
            let Some(lower) =
                below.and_then(|link| link.lower.filter(|_| link.lower_netns_id.is_none()))
            else {
                break;
            };
            if gone.contains(&lower) {
                return None;
            }
            below = listing.get(lower);
            // The two of a pair stand on each other.
            if below.is_some_and(|lower| lower.lower == Some(link.index)) {
                break;
            }
        }
        if !gone.insert(link.index) {
            return None;
        }
    }
    Some(gone)
}
