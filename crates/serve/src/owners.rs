//! Rows of several owners of one namespace at one moment: for questions
//! that compare them. For the control socket and HTTP.

use std::sync::Arc;
use std::time::Duration;

use table::{Bell, Event, Events, Generation, KERNEL, Reader, RouteChanges, Tables};
use view::{
    AnswerError, FlapSource, Names, RouteDiffQuestion, RouteDiffWatch, RouteFlapsQuestion,
    RouteWhyQuestion, Side, WhySource,
};

use crate::namespace::Namespace;
use crate::route_times::RouteTimes;

/// How often it is looked whether anybody still watches.
const LOOK: Duration = Duration::from_millis(500);
/// Of how many sources it is said why they may lack rows.
const NAMED: usize = 3;

/// Two owners of one namespace.
#[derive(Debug, Clone)]
pub struct Pair {
    whole: Namespace,
    names: [String; 2],
    /// Each with its own rows.
    of: [Namespace; 2],
}

impl Pair {
    /// The owners of two names. Else, in words, what is wrong.
    pub fn new(whole: &Namespace, names: &[String; 2]) -> Result<Self, String> {
        if names[0] == names[1] {
            return Err(format!(
                "`{}` is compared with itself: name two sources",
                names[0]
            ));
        }
        let [first, second] = names;
        Ok(Self {
            of: [whole.of(Some(first))?, whole.of(Some(second))?],
            whole: whole.clone(),
            names: names.clone(),
        })
    }

    /// The time of their rows, milliseconds since the UNIX epoch.
    pub fn now_millis(&self) -> u64 {
        self.whole.source.now_millis()
    }

    /// Why an answer may lack rows of either.
    pub fn incomplete(&self) -> Option<String> {
        incomplete(self.names.iter().zip(&self.of))
    }

    /// Both at one moment, with when their routes changed. Else why there
    /// are none any more.
    pub fn moment(&self, times: &RouteTimes) -> Result<Moment, String> {
        for of in &self.of {
            if let Some(why) = of.left() {
                return Err(format!(
                    "the answer is cut off: the source {why}, and its rows with it"
                ));
            }
        }
        let all = self.whole.tables();
        let tables = |name: &String| match &**name {
            KERNEL => Ok(Arc::clone(&all)),
            name => all
                .of(name)
                .ok_or_else(|| format!("the source {name} left")),
        };
        let [first, second] = &self.names;
        let changes = [0, 1].map(|at| times.of(&self.of[at], &self.names[at]));
        Ok(Moment {
            tables: [tables(first)?, tables(second)?],
            changes,
        })
    }

    fn readers(&self) -> [Reader; 2] {
        self.of.each_ref().map(|of| of.source.reader())
    }
}

/// Why an answer may lack rows of some sources.
fn incomplete<'a>(sources: impl Iterator<Item = (&'a String, &'a Namespace)>) -> Option<String> {
    let why = |(name, of): (&String, &Namespace)| Some(format!("{name}: {}", of.incomplete()?));
    let mut all: Vec<String> = sources.filter_map(why).collect();
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    match (all.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(all.join("; ")),
        (false, more) => Some(format!("{}; and {more} sources more", all.join("; "))),
    }
}

/// The rows of two owners at one moment.
#[derive(Debug)]
pub struct Moment {
    tables: [Arc<Tables>; 2],
    changes: [Arc<RouteChanges>; 2],
}

impl Moment {
    /// Whether it has not all that was seen.
    fn is_before(&self, seen: &[Generation; 2]) -> bool {
        let mut both = self.tables.iter().zip(seen);
        both.any(|(of, seen)| of.generation < *seen)
    }

    /// As `view` compares them.
    pub fn sides(&self) -> [Side<'_>; 2] {
        [0, 1].map(|at| Side {
            tables: &self.tables[at],
            changes: &self.changes[at],
        })
    }
}

/// Somebody who watches the difference of two owners. Holds no tables while
/// it waits.
#[derive(Debug)]
pub struct Following {
    pair: Pair,
    readers: [Reader; 2],
    seen: [Generation; 2],
    bell: Arc<Bell>,
    watch: RouteDiffWatch,
    is_begun: bool,
}

impl Following {
    /// From now on.
    pub fn new(pair: Pair, question: RouteDiffQuestion) -> Self {
        let readers = pair.readers();
        let bell = Arc::new(Bell::default());
        readers.iter().for_each(|reader| reader.ring(&bell));
        Self {
            seen: readers
                .each_ref()
                .map(|reader| reader.snapshot().generation),
            pair,
            readers,
            bell,
            watch: RouteDiffWatch::new(question),
            is_begun: false,
        }
    }

    /// Writes what differs and what agrees again since the last time, at
    /// first all that differs; waits a moment for a change. Gives the number
    /// of lines. Else why it cannot go on.
    pub fn tell(
        &mut self,
        times: &RouteTimes,
        names: &Names,
        out: &mut Vec<u8>,
    ) -> Result<u64, AnswerErrorOrLeft> {
        if self.is_begun {
            self.bell.wait(LOOK);
        }
        // The events first: what they tell of is in the moment. A feeder's
        // rows are among all a little after its events are told.
        let events = self.events();
        let mut moment = self.pair.moment(times).map_err(AnswerErrorOrLeft::Left)?;
        while moment.is_before(&self.seen) {
            std::thread::sleep(Duration::from_micros(100));
            moment = self.pair.moment(times).map_err(AnswerErrorOrLeft::Left)?;
        }
        let now = self.pair.now_millis();
        let told = match events {
            Some(events) if self.is_begun => {
                let sides = moment.sides();
                self.watch.changed(&events, sides, names, now, out)
            }
            _ => self.watch.all(moment.sides(), names, now, out),
        };
        self.is_begun = true;
        Ok(told?)
    }

    /// What happened to either since the last time; `None`: too much.
    fn events(&mut self) -> Option<Vec<Event>> {
        let mut all = Some(Vec::new());
        for (reader, seen) in self.readers.iter().zip(&mut self.seen) {
            match reader.events_after(*seen, Duration::ZERO) {
                Events::FellBehind => {
                    *seen = reader.snapshot().generation;
                    all = None;
                }
                Events::Batches(batches) => {
                    for batch in batches {
                        *seen = batch.generation;
                        if let Some(all) = &mut all {
                            all.extend(batch.events.iter().cloned());
                        }
                    }
                }
            }
        }
        all
    }
}

/// Why a watcher is told no more.
#[derive(Debug)]
pub enum AnswerErrorOrLeft {
    /// The question is at fault.
    Answer(AnswerError),
    /// A source left, in words.
    Left(String),
}

impl From<AnswerError> for AnswerErrorOrLeft {
    fn from(error: AnswerError) -> Self {
        Self::Answer(error)
    }
}

/// All owners of a namespace, the kernel first, each with its own rows.
fn all(whole: &Namespace) -> Vec<(String, Namespace)> {
    let tables = whole.tables();
    let owners = tables.owners().map(|owner| owner.name());
    let names = [KERNEL].into_iter().chain(owners);
    // One that left since is left out.
    let found = names.filter_map(|name| Some((name.to_owned(), whole.of(Some(name)).ok()?)));
    found.collect()
}

/// Why an answer about all owners may lack rows.
pub fn incomplete_of_all(whole: &Namespace) -> Option<String> {
    incomplete(all(whole).iter().map(|(name, of)| (name, of)))
}

/// Answers which routes changed how often: of one owner, or a sum for each.
/// One at a time, since it is a pass over all events that are kept.
pub fn route_flaps(
    question: &RouteFlapsQuestion,
    whole: &Namespace,
    names: &Names,
    times: &RouteTimes,
    out: impl std::io::Write,
) -> Result<u64, AnswerErrorOrLeft> {
    let of = match &question.source {
        None => all(whole),
        Some(name) => {
            let of = whole.of(Some(name)).map_err(AnswerErrorOrLeft::Left)?;
            vec![(name.clone(), of)]
        }
    };
    let readers: Vec<Reader> = of.iter().map(|(_, of)| of.source.reader()).collect();
    let tables: Vec<Arc<Tables>> = readers.iter().map(Reader::snapshot).collect();
    let status = of.iter().map(|(_, of)| of.source.status().feed);
    let downs = status.map(|feed| Some(feed?.monitored?.downs));
    let sources: Vec<FlapSource<'_>> = (of.iter().zip(&readers).zip(&tables).zip(downs))
        .map(|((((name, _), reader), tables), downs)| FlapSource {
            name,
            tables,
            reader,
            downs,
        })
        .collect();
    let now = whole.source.now_millis();
    let mut told = Vec::new();
    let rows = times.alone(|| view::route_flaps(question, &sources, names, now, &mut told))?;
    let mut out = out;
    out.write_all(&told).map_err(AnswerError::from)?;
    Ok(rows)
}

/// Answers why packets go where they go, from all owners at one moment.
pub fn route_why(
    question: &RouteWhyQuestion,
    whole: &Namespace,
    names: &Names,
    out: impl std::io::Write,
) -> Result<u64, AnswerError> {
    let all_tables = whole.tables();
    // One that joined since is left out.
    let tables_of = |name: &str| match name {
        KERNEL => Some(Arc::clone(&all_tables)),
        name => all_tables.of(name),
    };
    let found = all(whole).into_iter();
    let found = found.filter_map(|(name, of)| Some((tables_of(&name)?, (name, of))));
    let (tables, owners): (Vec<Arc<Tables>>, Vec<_>) = found.unzip();
    let readers: Vec<Reader> = owners.iter().map(|(_, of)| of.source.reader()).collect();
    let sources: Vec<WhySource<'_>> = (owners.iter().zip(&tables).zip(&readers))
        .map(|(((name, _), tables), reader)| WhySource {
            name,
            tables,
            reader,
        })
        .collect();
    let Some((kernel, others)) = sources.split_first() else {
        return Ok(0);
    };
    let now = whole.source.now_millis();
    view::route_why(question, kernel, others, names, now, out)
}
