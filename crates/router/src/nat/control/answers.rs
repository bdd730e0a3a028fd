//! The answer to a request, made of the pieces that translating threads give.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::Write;
use std::net::IpAddr;

use anyhow::{Result, anyhow, bail};
use nat::{Config, Statistics, SubscriberView};
use serde_json::{Value, json};
use translation::request::{Filter, Request, Table};

use super::pieces::{Asking, PLACES, Piece, Place, Rows, Wanted};
use super::rows;
use crate::nat::report;

/// Inside addresses that are counted for the top ones at most.
const COUNTED: usize = 4 << 20;
/// Subscribers that are kept as the top ones at most.
const TOP: usize = 100_000;

/// Who waits for an answer.
pub trait Waits {
    /// Whether nobody takes it any more.
    fn has_gone(&self) -> bool;
}

/// Writes an answer; where its walk goes on. `life` tells this translation
/// from one before it. A walk ends where nobody waits for it any more; what
/// changes something is done to its end.
pub fn answer(
    request: Request,
    asking: &mut Asking,
    life: u64,
    client: &dyn Waits,
    out: &mut impl Write,
) -> Result<Option<String>> {
    match request {
        Request::Show {
            table,
            filter,
            count,
            limit,
            top,
            after,
        } => {
            if let Some(stray) = filter.stray(table) {
                bail!("{stray} is of no use here: these rows have no such thing");
            }
            let from = match after {
                None => Place::default(),
                Some(text) => Place::read(&text, life).ok_or_else(|| {
                    anyhow!("`after` is of another life of this translation, or none: begin anew")
                })?,
            };
            let mut walk = Walk {
                asking,
                client,
                table,
                filter,
                place: Some(from),
            };
            match (count, top) {
                (true, _) => walk.count(out)?,
                (_, Some(top)) if table == Table::Subscribers => walk.top_subscribers(top, out)?,
                (_, Some(top)) => walk.top(top, out)?,
                _ => {
                    let next = walk.rows(limit.unwrap_or(usize::MAX), out)?;
                    return Ok(next.map(|place| place.written(life)));
                }
            }
        }
        Request::Clear { filter } => {
            let mut ended = 0;
            each(asking, &Wanted::Clear(filter), &mut |rows| {
                if let Rows::Ended(more) = rows {
                    ended += more;
                }
                Ok(())
            })?;
            writeln!(out, "{}", json!({"ended": ended}))?;
        }
        Request::Reload => match asking.ask(Wanted::Reload, Place::default())?.rows {
            Rows::Reloaded(Ok(later)) => {
                let mut said = json!({"reloaded": true});
                if !later.is_empty() {
                    said["for_the_next_start"] = later.join("; ").into();
                }
                writeln!(out, "{said}")?;
            }
            Rows::Reloaded(Err(error)) => bail!("the rules stay as they were: {error}"),
            _ => bail!("no answer"),
        },
        Request::Who { alias, port } => {
            each(asking, &Wanted::Who(alias, port), &mut |rows| {
                if let Rows::Blocks(found) = rows {
                    for block in &found {
                        writeln!(out, "{}", rows::block(block))?;
                    }
                }
                Ok(())
            })?;
        }
        Request::Statistics => {
            let overview = Overview::of(asking)?;
            let limits = [overview.flows_max, overview.subscribers_max];
            writeln!(out, "{}", report::counted(&overview.statistics, limits))?;
        }
    }
    Ok(None)
}

/// What all engines counted together, and their settings.
#[derive(Debug)]
pub struct Overview {
    pub statistics: Statistics,
    /// Most flows and subscribers of all engines.
    pub flows_max: usize,
    pub subscribers_max: usize,
    /// Those of one of them: they differ in these limits alone.
    pub config: Config,
}

impl Overview {
    /// Asks one engine after the other.
    pub fn of(asking: &mut Asking) -> Result<Self> {
        let mut all: Option<Self> = None;
        each(asking, &Wanted::Statistics, &mut |rows| {
            let Rows::Statistics(of) = rows else {
                return Ok(());
            };
            let (statistics, config) = *of;
            let (flows, subscribers) = (config.limits.max_flows, config.subscribers.most);
            match &mut all {
                Some(all) => {
                    all.statistics.add(&statistics);
                    all.flows_max += flows;
                    all.subscribers_max += subscribers;
                }
                None => {
                    all = Some(Self {
                        statistics,
                        flows_max: flows,
                        subscribers_max: subscribers,
                        config,
                    });
                }
            }
            Ok(())
        })?;
        all.ok_or_else(|| anyhow!("no answer"))
    }
}

/// Asks one engine after the other, to the end.
pub fn each(
    asking: &mut Asking,
    wanted: &Wanted,
    sink: &mut dyn FnMut(Rows) -> Result<()>,
) -> Result<()> {
    let mut place = Some(Place::default());
    while let Some(from) = place {
        let piece = asking.ask(wanted.clone(), from)?;
        place = piece.next;
        sink(piece.rows)?;
    }
    Ok(())
}

/// A walk through a table.
struct Walk<'a> {
    asking: &'a mut Asking,
    client: &'a dyn Waits,
    table: Table,
    filter: Filter,
    place: Option<Place>,
}

impl Walk<'_> {
    /// The next piece.
    fn next(&mut self) -> Result<Option<Rows>> {
        let Some(from) = self.place else {
            return Ok(None);
        };
        let piece = self.piece(PLACES, from)?;
        self.place = piece.next;
        Ok(Some(piece.rows))
    }

    fn piece(&mut self, places: usize, from: Place) -> Result<Piece> {
        if self.client.has_gone() {
            bail!("the client has gone");
        }
        self.asking.ask(Wanted::Rows(self.table, places), from)
    }

    /// Writes so many rows at most. Where it goes on, if there may be more.
    fn rows(&mut self, limit: usize, out: &mut impl Write) -> Result<Option<Place>> {
        let mut left = limit;
        let mut places = PLACES;
        while let Some(from) = self.place.filter(|_| left > 0) {
            let piece = self.piece(places, from)?;
            let meant = rows::meant(&piece.rows, &self.filter);
            // A piece with more rows than are wanted is asked for again, half
            // as long, so that the place behind it is that behind its last row.
            if meant.len() > left && places > 1 {
                places /= 2;
                continue;
            }
            places = PLACES;
            for (_, row) in meant.into_iter().take(left) {
                writeln!(out, "{}", row.json())?;
                left -= 1;
            }
            self.place = piece.next;
        }
        Ok(self.place)
    }

    fn count(&mut self, out: &mut impl Write) -> Result<()> {
        let mut count = 0;
        while let Some(rows) = self.next()? {
            count += rows::meant(&rows, &self.filter).len();
        }
        writeln!(out, "{}", json!({"count": count}))?;
        Ok(())
    }

    /// The inside addresses with the most rows.
    fn top(&mut self, top: usize, out: &mut impl Write) -> Result<()> {
        let mut by_inside: HashMap<IpAddr, u64> = HashMap::new();
        while let Some(rows) = self.next()? {
            for (inside, _) in rows::meant(&rows, &self.filter) {
                let inside = inside.ok_or_else(|| anyhow!("these rows have no inside address"))?;
                if by_inside.len() >= COUNTED && !by_inside.contains_key(&inside) {
                    bail!("more than {COUNTED} inside addresses: narrow it down by --inside");
                }
                *by_inside.entry(inside).or_default() += 1;
            }
        }
        let mut all: Vec<(IpAddr, u64)> = by_inside.drain().collect();
        all.sort_unstable_by_key(|(inside, count)| (Reverse(*count), *inside));
        for (inside, count) in all.into_iter().take(top) {
            writeln!(out, "{}", json!({"inside": inside, "rows": count}))?;
        }
        Ok(())
    }

    /// The subscribers with the most sessions.
    fn top_subscribers(&mut self, top: usize, out: &mut impl Write) -> Result<()> {
        let top = top.min(TOP);
        let mut most: BinaryHeap<Reverse<(u64, u64, String)>> = BinaryHeap::new();
        let mut number = u64::MAX;
        while let Some(rows) = self.next()? {
            let Rows::Subscribers(views) = &rows else {
                continue;
            };
            for view in views.iter().filter(|view| meant(&self.filter, view)) {
                // Of those with as many the first one found stays.
                number -= 1;
                let sessions = view.sessions.iter().map(|of| u64::from(*of)).sum();
                let is_less = |least: &Reverse<(u64, u64, String)>| sessions <= least.0.0;
                if most.len() == top && most.peek().is_none_or(is_less) {
                    continue;
                }
                let row: Value = rows::subscriber(view);
                most.push(Reverse((sessions, number, row.to_string())));
                if most.len() > top {
                    most.pop();
                }
            }
        }
        for Reverse((_, _, row)) in most.into_sorted_vec() {
            writeln!(out, "{row}")?;
        }
        Ok(())
    }
}

fn meant(filter: &Filter, view: &SubscriberView) -> bool {
    let of = view.subscriber;
    filter.fits_range(of.first, of.last, view.alias)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::Ipv4Addr;
    use std::thread;
    use std::time::Duration;

    use nat::Nat;

    use super::*;
    use crate::nat::control::pieces::pair;

    /// Goes after so many pieces.
    struct Leaves(Cell<usize>);

    impl Waits for Leaves {
        fn has_gone(&self) -> bool {
            let left = self.0.get();
            self.0.set(left.saturating_sub(1));
            left == 0
        }
    }

    fn patient() -> Leaves {
        Leaves(Cell::new(usize::MAX))
    }

    /// Rows of an answer, and where it goes on.
    fn asked(asking: &mut Asking, limit: usize, after: Option<String>) -> (usize, Option<String>) {
        let request = Request::Show {
            table: Table::Helpers,
            filter: Filter::default(),
            count: false,
            limit: Some(limit),
            top: None,
            after,
        };
        let mut out = Vec::new();
        let next = answer(request, asking, 7, &patient(), &mut out).unwrap();
        (out.iter().filter(|byte| **byte == b'\n').count(), next)
    }

    #[test]
    fn a_short_table_is_walked_in_steps_as_well() {
        let (mut asking, mut jobs) = pair().unwrap();
        let asks = thread::spawn(move || {
            let all = nat::helper::REGISTRY.len();
            for limit in 1..all {
                let (mut rows, mut steps, mut after) = (0, 0, None);
                loop {
                    let (more, next) = asked(&mut asking, limit, after);
                    assert!(more <= limit);
                    (rows, steps, after) = (rows + more, steps + 1, next);
                    if after.is_none() {
                        break;
                    }
                }
                assert_eq!((rows, steps), (all, all.div_ceil(limit)), "{limit}");
            }
            assert_eq!(asked(&mut asking, all, None), (all, None));
        });
        let mut nat = Nat::new(Config::new(&[Ipv4Addr::new(192, 0, 2, 1)])).unwrap();
        while !asks.is_finished() {
            if let Some(job) = jobs.next_within(Duration::from_millis(10)) {
                job.answer(&mut nat, 1);
            }
        }
        asks.join().unwrap();
    }

    /// Every engine has a piece at least, and a count writes nothing before it
    /// knows it.
    #[test]
    fn a_walk_ends_where_nobody_waits_for_it() {
        const ENGINES: usize = 9;
        let show = |count, top| Request::Show {
            table: Table::Subscribers,
            filter: Filter::default(),
            count,
            limit: None,
            top,
            after: None,
        };
        let mut nat = Nat::new(Config::new(&[Ipv4Addr::new(192, 0, 2, 1)])).unwrap();
        for (count, top) in [(true, None), (false, Some(3)), (false, None)] {
            for (leaves, pieces) in [(0, 0), (4, 4), (ENGINES, ENGINES)] {
                let (mut asking, mut jobs) = pair().unwrap();
                let request = show(count, top);
                let asks = thread::spawn(move || {
                    let client = Leaves(Cell::new(leaves));
                    answer(request, &mut asking, 7, &client, &mut Vec::new()).is_ok()
                });
                let mut asked = 0;
                while !asks.is_finished() {
                    if let Some(job) = jobs.next_within(Duration::from_millis(10)) {
                        asked += 1;
                        job.answer(&mut nat, ENGINES);
                    }
                }
                let is_whole = pieces == ENGINES;
                assert_eq!((asks.join().unwrap(), asked), (is_whole, pieces));
            }
        }
    }
}
