use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use table::{Change, Counted, Link, LinkCounters, Sample, Writer};

use super::*;

/// Tables that change no more, and their samples.
#[derive(Debug)]
struct Still(table::Reader, Samples);

impl Source for Still {
    fn reader(&self) -> table::Reader {
        self.0.clone()
    }

    fn status(&self) -> table::Status {
        table::Status::default()
    }

    fn samples(&self) -> Option<&Samples> {
        Some(&self.1)
    }

    fn now_millis(&self) -> u64 {
        0
    }
}

#[derive(Debug, Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counted(at: Instant) -> Counted {
    Counted {
        counters: LinkCounters::default(),
        at: Some(at),
    }
}

/// Two links; the first was counted at this time, the second never.
fn source(at: Instant) -> Still {
    let link = |index: u32| {
        Change::PutLink(Link {
            index,
            name: format!("l{index}").into(),
            ..Link::default()
        })
    };
    let mut writer = Writer::default();
    writer.commit([link(1), link(2)]).unwrap();
    writer.count_alone([(1, counted(at))]);
    writer.publish_counted();
    Still(writer.reader(), Samples::new(|| ()))
}

/// What is read beside the source now, of the first link alone.
fn take_beside(source: &Still) {
    let begun = Instant::now();
    source.1.took_beside(CountedBeside {
        begun,
        links: Sample::new(1, vec![(1, counted(begun))]),
        sums_alone: BTreeSet::new(),
    });
}

fn read(freshness: &Freshness, source: &Still, link: u32) {
    freshness.reads().note(link);
    freshness.behind(&source.reader().snapshot(), source);
}

#[test]
fn who_reads_a_link_that_the_file_lacks_waits_for_the_next_reading() {
    let source = source(Instant::now());
    take_beside(&source);
    let bell = Arc::new(Bell::default());
    let put_off = Manner::PutOff(Waker::from(Arc::clone(&bell)));
    let freshness = Freshness::new(put_off, &source);
    read(&freshness, &source, 2);
    assert!(freshness.is_waiting() && !freshness.is_stale());
    assert_eq!(bell.0.load(Ordering::Relaxed), 0);
    take_beside(&source);
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    // One that came before it was put off wakes at once.
    read(&freshness, &source, 2);
    assert_eq!(bell.0.load(Ordering::Relaxed), 2);
}

#[test]
fn nobody_waits_for_a_source_that_has_ended() {
    let source = source(Instant::now() - 2 * FRESH);
    source.1.end();
    let bell = Arc::new(Bell::default());
    let put_off = Manner::PutOff(Waker::from(Arc::clone(&bell)));
    let freshness = Freshness::new(put_off, &source);
    read(&freshness, &source, 1);
    let needed = mib::sampled(&[1, 3, 6, 1, 2, 1, 4, 35, 1, 5]);
    assert!(!needed.is_empty());
    let before = freshness.before(needed, &source);
    assert_eq!(before, Before::Answer);
    let is = (
        freshness.is_waiting(),
        freshness.is_old(),
        freshness.is_stale(),
    );
    assert_eq!(is, (false, true, false));
    assert_eq!(bell.0.load(Ordering::Relaxed), 0);
}

#[test]
fn what_is_too_old_in_one_part_of_a_request_stays_so() {
    let source = source(Instant::now() - 2 * FRESH);
    for manner in [Manner::Take, Manner::Wait] {
        let freshness = Freshness::new(manner, &source);
        read(&freshness, &source, 2);
        assert!(!freshness.is_stale());
        read(&freshness, &source, 1);
        read(&freshness, &source, 2);
        assert!(freshness.is_stale());
        assert!(freshness.take_stale() && !freshness.take_stale());
    }
}

#[test]
fn a_listing_that_had_to_wait_is_as_new_as_its_counters() {
    let now = Instant::now();
    let mut writer = Writer::default();
    let link = Link {
        index: 1,
        ..Link::default()
    };
    writer.commit([Change::PutLink(link)]).unwrap();
    let sample = |at: Option<Instant>| {
        let counters = LinkCounters::default();
        Sample::new(1, vec![(1, Counted { counters, at })])
    };
    let source = Still(writer.reader(), Samples::new(|| ()));
    source.1.took(Sampled::Counters, now - 2 * FRESH, now);
    for (at, is_stale) in [(Some(now), false), (None, true)] {
        writer.publish_link_counters(sample(at));
        let freshness = Freshness::new(Manner::Take, &source);
        read(&freshness, &source, 1);
        assert_eq!(freshness.is_stale(), is_stale);
    }
}
