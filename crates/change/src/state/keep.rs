//! All or nothing, and until it is confirmed: what was before is written to
//! a journal, and a process of its own, the keeper, watches over the
//! applier. It is there before the first change is sent, in a session of
//! its own, and holds the journal's lock with the applier. When the applier
//! is gone and did not say that it is done, or nobody confirms in time, the
//! keeper takes all back. Were the keeper killed too, the next `apply` finds
//! a journal without an end that nobody holds, and takes it back first.
//!
//! How a work ends is decided once, in the journal ([`Journal::decide`]):
//! who confirms and who takes back may come at the same moment.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use linux::links::journal::{End, Journal, Rows, Start, Work};
use linux::links::{self, Agreed, Deletion, How, Listing, Told};
use linux::mirror::now_millis;
use linux::{Namespace, once};
use netlink::decode::Item;
use netlink::encode::LinkSettings;
use rustix::process::setsid;
use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGHUP;
use table::row::link::flag::UP;
use words::Object;

use super::difference::Plan;
use super::look::{Look, SETTINGS};
use super::resolved::{Links, TO_BE_MADE};
use super::wanted::Wanted;
use super::{Applying, Job};
use crate::complaint::complain;
use crate::links::journals;
use crate::rows::undo::{Undo, listed, relink};

/// So long a keeper has to say that it is there.
const TO_COME: Duration = Duration::from_secs(20);
/// So often the keeper looks whether it was confirmed.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a journal keeps beside rows.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    /// Names of the links that are made.
    made: Vec<String>,
    /// Links that were there under these names: index and name.
    there: Vec<(u32, String)>,
    /// Settings as they were: path and value.
    sysctl: Vec<(String, String)>,
    /// Whether it waits to be confirmed.
    confirm: bool,
}

/// A work that is under way, with its journal and keeper.
pub struct Kept {
    journal: Journal,
    keeper: UnixStream,
}

/// Writes down what is before, and starts the keeper; nothing has been
/// changed yet.
pub fn begin(job: &Job<'_>, wanted: &Wanted, look: &Look, how: Applying) -> Result<Kept> {
    let directory = journals(job.wanted.journal.as_deref())
        .context("it needs a place for a journal: --journal DIR")?;
    let plan = &look.plan;
    let (before, touched) = before(job, look)?;
    let mut start = Start::new(Work::Apply, &job.namespace, 0, before.links.len());
    start.request = serde_json::to_value(saved(wanted, look, how))?;
    start.links += plan.make.iter().map(Vec::len).sum::<usize>();
    let journal = Journal::begin(&directory, start, &[before, touched])
        .context("nothing was done: its journal cannot be written")?;
    let keeper = keeper(job, &journal, how).inspect_err(|_| {
        // Nothing was changed: nothing is to be taken back.
        let _ = journal.decide(End::Done);
    })?;
    Ok(Kept { journal, keeper })
}

fn saved(wanted: &Wanted, look: &Look, how: Applying) -> Saved {
    let mut made = Vec::new();
    for at in look.plan.make.iter().flatten() {
        let link = &wanted.links[*at];
        made.push(link.name.to_string());
        made.extend(link.peer.as_ref().map(ToString::to_string));
    }
    let there = made.iter().filter_map(|name| look.links.named(name));
    let sysctl = look.plan.sysctl.iter().filter_map(|setting| {
        let from = setting.from.clone()?;
        Some((setting.path.clone(), from))
    });
    Saved {
        there: there
            .map(|link| (link.index, link.name.to_string()))
            .collect(),
        sysctl: sysctl.collect(),
        made,
        confirm: how.confirm.is_some(),
    }
}

/// The rows of the tables that are touched, and of those of which the kernel
/// may take something along; and the rows that are changed.
fn before(job: &Job<'_>, look: &Look) -> Result<(Rows, Rows)> {
    let plan = &look.plan;
    let mut before = Rows {
        links: changed_links(plan, &look.links),
        ..Rows::default()
    };
    let changes = plan.deletes.iter().chain(&plan.rows);
    let mut objects: HashSet<Object> = changes
        .clone()
        .map(|change| super::key::object(&change.item))
        .collect();
    if plan.takes_along_at_last() {
        objects.extend([Object::Addr, Object::Neigh, Object::Nexthop, Object::Route]);
    }
    for object in objects {
        let rows = listed(&job.namespace, object, now_millis(), &|_| true)?;
        for row in rows {
            match row {
                Item::Address(row) => before.addresses.push(row),
                row => before.others.push(row),
            }
        }
    }
    let is_of_a_new_link = |item: &Item| {
        let found = std::cell::Cell::new(false);
        relink(&mut item.clone(), &|index| {
            found.set(found.get() || index >= TO_BE_MADE);
            index
        });
        found.get()
    };
    let touched = changes.map(|change| change.item.clone());
    let mut rows = Rows {
        namespace: Some((job.namespace.spec(), job.namespace.inode())),
        ..Rows::default()
    };
    for item in touched.filter(|item| !is_of_a_new_link(item)) {
        match item {
            Item::Address(row) => rows.addresses.push(row),
            row => rows.others.push(row),
        }
    }
    Ok((before, rows))
}

/// The links that a plan changes or deletes, and what goes with them.
fn changed_links(plan: &Plan, links: &Links) -> Vec<table::Link> {
    let mut indexes: HashSet<u32> = plan.set.iter().map(|set| set.index).collect();
    for (index, _) in &plan.delete_links {
        indexes.insert(*index);
        let link = links.get(*index);
        indexes.extend(
            link.and_then(|link| link.lower)
                .filter(|_| link.is_some_and(|link| link.kind.as_deref() == Some("veth"))),
        );
    }
    let changed = links.iter().filter(|link| indexes.contains(&link.index));
    changed.cloned().collect()
}

/// Starts the keeper and waits until it is there.
fn keeper(job: &Job<'_>, journal: &Journal, how: Applying) -> Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair().context("a way to the keeper")?;
    let mut command = Command::new("/proc/self/exe");
    command.args(["apply", "--keep", &journal.id(), "--journal"]);
    command.arg(journal.directory());
    if let Some(netns) = &job.wanted.netns {
        command.args(["--netns", netns]);
    }
    if let Some(time) = how.confirm {
        command
            .arg("--confirm")
            .arg(format!("{}ms", time.as_millis()));
    }
    // Its standard output is the journal: so it holds the lock.
    command
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(journal.lock()?))
        .stderr(Stdio::null());
    command.spawn().context("starting the keeper")?;
    drop(command);
    ours.set_read_timeout(Some(TO_COME))?;
    let mut is_there = [0];
    (&ours)
        .read_exact(&mut is_there)
        .context("nothing was done: the keeper did not come")?;
    Ok(ours)
}

impl Kept {
    pub fn id(&self) -> String {
        self.journal.id()
    }

    /// All is done: it stays, or waits to be confirmed.
    pub fn done(mut self, how: Applying) -> Result<Option<&'static str>> {
        if how.confirm.is_some() {
            (&self.keeper)
                .write_all(b"d")
                .context("the keeper is gone")?;
            // The keeper holds the lock from here on.
            return Ok(Some("to be confirmed"));
        }
        match self.journal.decide(End::Done)? {
            End::Done => {
                self.journal.ended(End::Done)?;
                Ok(None)
            }
            End::Undone => bail!("it was taken back by another process"),
        }
    }

    /// Takes back what was done; gives what could not be.
    pub fn take_back(mut self, job: &Job<'_>) -> Result<usize> {
        if self.journal.decide(End::Undone)? == End::Done {
            bail!("it was confirmed already");
        }
        let failed = take_back(&job.namespace, &self.journal)?;
        if failed == 0 {
            self.journal.ended(End::Undone)?;
        }
        Ok(failed)
    }
}

/// The keeper's life.
pub fn run(job: &Job<'_>, id: &str, confirm: Option<Duration>) -> Result<bool> {
    // A session of its own: what ends that of the applier does not end it.
    setsid().context("a session of its own")?;
    let hung_up = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    signal_hook::flag::register(SIGHUP, hung_up).context("hearing of SIGHUP")?;
    std::env::set_current_dir("/").context("leaving the directory")?;
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    let mut applier = UnixStream::from(stdin);
    let directory = journals(job.wanted.journal.as_deref()).context("no place for journals")?;
    let open = || Journal::named(&directory, id, &job.namespace);
    let journal = open()?;
    applier.write_all(b"r").context("telling the applier")?;
    let mut said = [0];
    let is_done = matches!(applier.read(&mut said), Ok(1)) && said == *b"d";
    if let (true, Some(time)) = (is_done, confirm) {
        let end = Instant::now() + time;
        while Instant::now() < end && !job.is_stopped() {
            if open()?.end().is_some() {
                return Ok(true);
            }
            std::thread::sleep(LOOK_AGAIN.min(end.saturating_duration_since(Instant::now())));
        }
    }
    if journal.decide(End::Undone)? == End::Done {
        return Ok(true);
    }
    // The applier may have taken it back itself.
    let mut journal = open()?;
    if journal.end().is_some() {
        return Ok(true);
    }
    let failed = take_back(&job.namespace, &journal)?;
    if failed == 0 {
        journal.ended(End::Undone)?;
    }
    Ok(failed == 0)
}

/// `apply --confirmed`.
pub fn confirmed(job: &Job<'_>, id: Option<&str>) -> Result<bool> {
    let directory = journals(job.wanted.journal.as_deref()).context("no place for journals")?;
    let journal = match id {
        Some(id) => Some(Journal::named(&directory, id, &job.namespace)?),
        None => Journal::newest(&directory, Work::Apply, &job.namespace, &|end| {
            end.is_none()
        })?,
    };
    let mut journal = journal.context("nothing was applied here that waits to be confirmed")?;
    let saved: Saved = serde_json::from_value(journal.start.request.clone())?;
    if !saved.confirm {
        bail!("{}: it does not wait to be confirmed", journal.id());
    }
    if journal.end() == Some(End::Done) {
        bail!("{}: it was confirmed already", journal.id());
    }
    match journal.decide(End::Done)? {
        End::Done => {
            journal.ended(End::Done)?;
            println(&format!("{} stays", journal.id()))?;
            Ok(true)
        }
        End::Undone => bail!("{}: it came too late, and was taken back", journal.id()),
    }
}

fn println(text: &str) -> Result<()> {
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(())
}

/// Before something is applied: what an applier and its keeper left that
/// were killed is taken back; whether there was anything. An error while
/// another is at work, or waits to be confirmed.
pub fn settle(job: &Job<'_>) -> Result<bool> {
    let Some(directory) = journals(job.wanted.journal.as_deref()) else {
        return Ok(false);
    };
    let newest = Journal::newest(&directory, Work::Apply, &job.namespace, &|end| {
        end.is_none()
    })?;
    let Some(mut journal) = newest.filter(|journal| journal.end().is_none()) else {
        return Ok(false);
    };
    if journal.take_over().is_err() {
        bail!(
            "{}: another apply is at work here, or waits to be confirmed: `fingerpost apply \
             --confirmed {0}` says that it stays",
            journal.id()
        );
    }
    recover(job, &mut journal)?;
    Ok(true)
}

/// `apply --recover`.
pub fn recover_all(job: &Job<'_>) -> Result<bool> {
    settle(job)?;
    Ok(true)
}

fn recover(job: &Job<'_>, journal: &mut Journal) -> Result<()> {
    if journal.decide(End::Undone)? == End::Done {
        return Ok(journal.ended(End::Done)?);
    }
    let failed = take_back(&job.namespace, journal)?;
    if failed > 0 {
        bail!("{}: {failed} things could not be taken back", journal.id());
    }
    journal.ended(End::Undone)?;
    complain(&format!(
        "{}: it had been killed before its end, and was taken back",
        journal.id()
    ));
    Ok(())
}

/// Puts all back as it was before the work of a journal; gives what could
/// not be. May be begun again at any point.
fn take_back(namespace: &Namespace, journal: &Journal) -> Result<usize> {
    let saved: Saved =
        serde_json::from_value(journal.start.request.clone()).context("the journal's own words")?;
    let mut rows = journal.rows()?.into_iter();
    let before = rows.next().unwrap_or_default();
    let touched = rows.next().unwrap_or_default();
    let mut failed = 0;
    delete_made(namespace, &saved)?;
    failed += recreate(namespace, &before)?;
    sysctl(namespace, &saved)?;
    failed += settings(namespace, &before)?;
    let addresses = before.addresses.into_iter().map(Item::Address);
    let old: Vec<Item> = addresses.chain(before.others).collect();
    let addresses = touched.addresses.into_iter().map(Item::Address);
    let touched: Vec<Item> = addresses.chain(touched.others).collect();
    let undo = Undo::of(old, now_millis()).touching(&touched);
    let undone = undo.run(namespace, &mut |why| {
        complain(why.trim_start_matches("fingerpost: "));
    })?;
    Ok(failed + undone.failed as usize)
}

/// Deletes the links that were made.
fn delete_made(namespace: &Namespace, saved: &Saved) -> Result<()> {
    let made: HashSet<&str> = saved.made.iter().map(String::as_str).collect();
    let there: HashSet<(u32, &str)> = saved
        .there
        .iter()
        .map(|(index, name)| (*index, name.as_str()))
        .collect();
    let deletion = Deletion::plan(namespace, &mut |link| {
        made.contains(&*link.name) && !there.contains(&(link.index, &*link.name))
    })?;
    let terms = links::Terms {
        along: Agreed::All,
        atomic: false,
    };
    deletion.run(terms, How::default(), &mut |_| {})?;
    Ok(())
}

/// Makes again what was deleted.
fn recreate(namespace: &Namespace, before: &Rows) -> Result<usize> {
    let listing = Listing::read(namespace)?;
    let is_gone = |link: &&table::Link| {
        let now = listing.get(link.index);
        now.is_none_or(|now| now.kind != link.kind)
    };
    let gone: Vec<table::Link> = before.links.iter().filter(is_gone).cloned().collect();
    if gone.is_empty() {
        return Ok(0);
    }
    let indexes: HashSet<u32> = gone.iter().map(|link| link.index).collect();
    let addresses = before.addresses.iter();
    let addresses = addresses.filter(|address| indexes.contains(&address.link));
    let rows = Rows {
        namespace: None,
        addresses: addresses.cloned().collect(),
        links: gone,
        others: Vec::new(),
    };
    let made = links::recreate(namespace, vec![rows], 0, How::default(), &mut |told| {
        if let Told::Failed(failure) = told {
            complain(&format!(
                "{}: cannot {}: {}",
                failure.name, failure.tried, failure.refusal
            ));
        }
    })?;
    Ok(made.failed)
}

fn sysctl(namespace: &Namespace, saved: &Saved) -> Result<()> {
    namespace
        .run(|| {
            for (path, value) in &saved.sysctl {
                // The link may be gone: then its settings are, too.
                let _ = std::fs::write(std::path::Path::new(SETTINGS).join(path), value);
            }
        })
        .context("putting settings of links back")
}

/// Settings of links that are not as they were.
fn settings(namespace: &Namespace, before: &Rows) -> Result<usize> {
    let listing = Listing::read(namespace)?;
    let mut changes = Vec::new();
    let mut failed = 0;
    for link in &before.links {
        let Some(now) = listing.get(link.index) else {
            failed += 1;
            continue;
        };
        let settings = LinkSettings {
            up: Some(link.flags & UP != 0),
            mtu: Some(link.mtu),
            address: (!link.address.is_none()).then_some(link.address),
            master: Some(link.master.unwrap_or(0)),
            group: Some(link.group),
            tx_queue_len: Some(link.tx_queue_len),
            alias: Some(link.alias.clone().unwrap_or_default()),
            kind: links::kind_again(link).filter(|_| link.kind_data != now.kind_data),
            ..LinkSettings::default()
        };
        if !links::is_as(now, &settings) || settings.kind.is_some() {
            changes.push(links::Change {
                index: link.index,
                name: link.name.clone(),
                settings,
            });
        }
        let new: Vec<&str> = now
            .alt_names
            .iter()
            .filter(|name| !link.alt_names.contains(name))
            .map(|name| &**name)
            .collect();
        failed += unname(namespace, link.index, &new)?;
    }
    let set = links::set(namespace, &changes, How::default(), &mut |told| {
        if let Told::Failed(failure) = told {
            complain(&format!(
                "{}: putting it back: {}",
                failure.name, failure.refusal
            ));
        }
    })?;
    Ok(failed + set.failed)
}

/// Takes alternative names from a link.
fn unname(namespace: &Namespace, index: u32, names: &[&str]) -> Result<usize> {
    if names.is_empty() || once::link(index, namespace)?.is_none() {
        return Ok(0);
    }
    let mut failed = 0;
    let request = |sequence, out: &mut Vec<u8>| {
        let request = netlink::encode::Request::plain(netlink::decode::Operation::Delete, sequence);
        // Names that the kernel has told fit a message.
        let _ = netlink::encode::alternative_names(out, &request, index, names);
    };
    linux::bulk::apply(namespace, [request], &mut |_, result| {
        failed += usize::from(result.is_err());
    })?;
    Ok(failed)
}
