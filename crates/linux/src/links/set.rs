//! Settings of many links, packed.

use netlink::decode::Operation;
use netlink::encode::{self, LinkSettings, Request};
use rustix::io::Errno;
use table::Link;
use table::row::link::flag::UP;

use super::{Cost, Failure, How, Told};
use crate::bulk::{Bulk, Heard};
use crate::error::{Error, Refusal};
use crate::namespace::Namespace;

/// A link and what is to be changed of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// `ifi_index`.
    pub index: u32,
    /// Its name, for who reads of a failure.
    pub name: Box<str>,
    /// What is to be changed.
    pub settings: LinkSettings,
}

/// Whether a link is as some settings would make it: nothing has to be sent.
pub fn is_as(link: &Link, settings: &LinkSettings) -> bool {
    fn holds<T: PartialEq>(wanted: Option<&T>, is: &T) -> bool {
        wanted.is_none_or(|wanted| wanted == is)
    }
    let changed = settings.flags_changed;
    holds(settings.up.as_ref(), &(link.flags & UP != 0))
        && settings.flags & changed == link.flags & changed
        && holds(settings.name.as_ref(), &link.name)
        && holds(settings.mtu.as_ref(), &link.mtu)
        && holds(settings.address.as_ref(), &link.address)
        && holds(settings.broadcast.as_ref(), &link.broadcast)
        && holds(settings.master.as_ref(), &link.master.unwrap_or(0))
        && holds(settings.group.as_ref(), &link.group)
        && holds(settings.tx_queue_len.as_ref(), &link.tx_queue_len)
        && settings
            .alias
            .as_deref()
            .is_none_or(|alias| alias == link.alias.as_deref().unwrap_or_default())
}

/// How many changes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changed {
    /// Links that are as wanted.
    pub done: usize,
    /// Links that are not.
    pub failed: usize,
    /// It was told to stop before the last.
    pub stopped: bool,
    /// What it took.
    pub cost: Cost,
}

/// Changes settings of links, in order. A failure does not stop the rest. A
/// change whose answer was lost is made again: twice is as well as once.
pub fn set(
    namespace: &Namespace,
    changes: &[Change],
    how: How<'_>,
    told: &mut dyn FnMut(Told),
) -> Result<Changed, Error> {
    let mut bulk = Bulk::open(namespace, how.options(false))?;
    let mut changed = Changed::default();
    let mut lost = Vec::new();
    let all: Vec<usize> = (0..changes.len()).collect();
    run(&mut bulk, changes, &all, &mut changed, &mut lost, told)?;
    let again = std::mem::take(&mut lost);
    run(&mut bulk, changes, &again, &mut changed, &mut lost, told)?;
    for place in lost {
        fail(changes, place, lost_answer(), &mut changed, told);
    }
    Ok(changed)
}

fn run(
    bulk: &mut Bulk<'_>,
    changes: &[Change],
    places: &[usize],
    changed: &mut Changed,
    lost: &mut Vec<usize>,
    told: &mut dyn FnMut(Told),
) -> Result<(), Error> {
    let wanted = places.iter().filter_map(|place| changes.get(*place));
    let requests = wanted.map(|change| {
        move |sequence, out: &mut Vec<u8>| {
            let request = Request::plain(Operation::New, sequence);
            // What is too long makes no message, and is refused for it.
            let _ = encode::set_link(out, &request, change.index, &change.settings);
        }
    });
    let ended = bulk.run(requests, &mut |heard| match heard {
        Heard::Done(at) => {
            let place = places.get(at).copied().unwrap_or(at);
            changed.done += 1;
            let index = changes.get(place).map_or(0, |change| change.index);
            told(Told::Done { place, index });
        }
        Heard::Refused(at, refusal) => {
            let place = places.get(at).copied().unwrap_or(at);
            fail(changes, place, refusal, changed, told);
        }
        Heard::Lost(at) => lost.extend(places.get(at).copied()),
        Heard::Sent(sent) => {
            changed.cost.count(&sent);
            told(Told::Sent(sent));
        }
        Heard::Echo(..) => {}
    })?;
    changed.stopped |= ended.stopped;
    Ok(())
}

fn fail(
    changes: &[Change],
    place: usize,
    refusal: Refusal,
    changed: &mut Changed,
    told: &mut dyn FnMut(Told),
) {
    changed.failed += 1;
    let change = changes.get(place);
    let name = change.map(|change| change.name.clone());
    let new_name = change.and_then(|change| change.settings.name.as_deref());
    told(Told::Failed(Failure {
        place,
        name: name.unwrap_or_default(),
        tried: match new_name {
            Some(new) => format!("rename it to {new}"),
            None => "change it".to_owned(),
        },
        refusal,
    }));
}

/// The refusal of what was tried in vain because answers get lost.
pub(super) fn lost_answer() -> Refusal {
    Refusal {
        source: Errno::NOBUFS.into(),
        message: Some("the kernel's answer was lost every time".into()),
    }
}
