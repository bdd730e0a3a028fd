//! Both families against the plain oracle, a map of prefixes asked longest
//! first. What only one of them can get wrong is in its own tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lab::Random;
use memory::quiescent::Domain;
use proptest::prelude::*;

use super::*;

const PATHS: [Path; 3] = [Path::Portable, Path::Avx2, Path::Avx512];

/// What the tests know of a family.
pub trait Family: Address + Default {
    /// Bytes that a small table may have.
    const BYTES: usize;
    /// The last address.
    const LAST: Self;
    /// Lengths at which something else answers.
    fn lengths() -> BoxedStrategy<u8>;
    /// An address near to others: a few bits decide where it lies.
    fn nearby() -> BoxedStrategy<Self>;
    /// The number's bits as an address, the last ones.
    fn of(bits: u128) -> Self;
    /// An address as bits, the last ones.
    fn bits(self) -> u128;
    /// Prefixes within one another and addresses within them.
    fn crowd(random: &mut Random) -> (Self, u8);
}

impl Family for u32 {
    const BYTES: usize = 4 << 20;
    const LAST: Self = Self::MAX;

    fn lengths() -> BoxedStrategy<u8> {
        prop_oneof![0..=32_u8, 17..=19_u8, 23..=26_u8, Just(32)].boxed()
    }

    fn nearby() -> BoxedStrategy<Self> {
        let base = prop::sample::select(vec![0_u32, 0x0a00_0000, 0x0a00_4000, 0xffff_ff00]);
        let parts = (base, any::<u32>(), 0..=32_u32);
        let meet =
            |(base, random, bits): (u32, u32, u32)| base ^ random.checked_shr(bits).unwrap_or(0);
        parts.prop_map(meet).boxed()
    }

    fn of(bits: u128) -> Self {
        bits as Self
    }

    fn bits(self) -> u128 {
        self.into()
    }

    fn crowd(random: &mut Random) -> (Self, u8) {
        let len = [8, 14, 19, 22, 24, 26, 29, 32][random.below(8)];
        (0x0a00_0000 | (random.number() as Self & 0x0001_ffff), len)
    }
}

impl Family for u128 {
    const BYTES: usize = 16 << 20;
    const LAST: Self = Self::MAX;

    fn lengths() -> BoxedStrategy<u8> {
        prop_oneof![
            0..=128_u8,
            14..=18_u8,
            28..=33_u8,
            48..=64_u8,
            92..=98_u8,
            124..=128_u8
        ]
        .boxed()
    }

    fn nearby() -> BoxedStrategy<Self> {
        let bases = vec![0_u128, 0x2001 << 112, (0x2001_0db8 << 96) | 7, u128::MAX];
        let parts = (prop::sample::select(bases), any::<u128>(), 0..=128_u32);
        let meet =
            |(base, random, bits): (u128, u128, u32)| base ^ random.checked_shr(bits).unwrap_or(0);
        parts.prop_map(meet).boxed()
    }

    fn of(bits: u128) -> Self {
        bits
    }

    fn bits(self) -> u128 {
        self
    }

    fn crowd(random: &mut Random) -> (Self, u8) {
        let len = [12, 20, 29, 32, 40, 48, 64, 128][random.below(8)];
        let bits =
            Self::from(random.number() & 0xffff_ffff) << 64 | Self::from(random.number() & 3);
        ((0x2001_0db8 << 96) | bits, len)
    }
}

/// An address without the bits after a prefix.
pub fn masked<A: Family>(address: A, len: u8) -> A {
    let after = u32::from(A::BITS - len);
    let kept = u128::MAX.checked_shl(after).unwrap_or(0);
    A::of(address.bits() & kept)
}

/// The last address of a prefix.
fn last<A: Family>(prefix: A, len: u8) -> A {
    let after = A::LAST.bits().checked_shr(len.into()).unwrap_or(0);
    A::of(prefix.bits() | after)
}

pub fn change<A: Family>(prefix: A, len: u8, next_hop: Option<u16>) -> Change<A> {
    Change {
        prefix: masked(prefix, len),
        len,
        next_hop,
    }
}

/// A plain map of all routes.
#[derive(Debug, Clone)]
pub struct Oracle<A>(BTreeMap<(u8, A), u16>);

impl<A: Family> Oracle<A> {
    pub fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub fn apply(&mut self, change: Change<A>) {
        let key = (change.len, change.prefix);
        match change.next_hop {
            Some(next_hop) => self.0.insert(key, next_hop),
            None => self.0.remove(&key),
        };
    }

    fn lookup(&self, address: A) -> u16 {
        let mut lens = (0..=A::BITS).rev();
        let found = lens.find_map(|len| self.0.get(&(len, masked(address, len))));
        found.copied().unwrap_or(0)
    }

    fn routes(&self) -> impl Iterator<Item = Route<A>> {
        self.0.iter().map(|((len, prefix), next_hop)| Route {
            prefix: *prefix,
            len: *len,
            next_hop: *next_hop,
        })
    }
}

type Made<A> = (Arc<Domain>, Writer<A>, Reader<A>);

pub fn table<A: Family>() -> Made<A> {
    table_of(Config {
        max_bytes: A::BYTES,
        ..Config::default()
    })
}

pub fn table_of<A: Family>(config: Config) -> Made<A> {
    let domain = Domain::new(4);
    let (writer, reader) = fib(config, &domain).unwrap();
    (domain, writer, reader)
}

/// The answers, which are the same by every path, with lines asked for ahead
/// and not, and in batches of every length.
pub fn lookup<A: Family>(domain: &Arc<Domain>, reader: &Reader<A>, addresses: &[A]) -> Vec<u16> {
    let mut registered = domain.register().unwrap();
    let section = registered.enter();
    let mut answers = vec![0xffff; addresses.len()];
    reader.lookup(&section, addresses, &mut answers);
    for path in PATHS {
        let Some(reader) = reader.with_path(path) else {
            continue;
        };
        let mut others = vec![0xffff; addresses.len()];
        for (batch, is_large) in [1, 7, 64, 100, 256]
            .into_iter()
            .flat_map(|batch| [(batch, false), (batch, true)])
        {
            others.fill(0xffff);
            for (addresses, answers) in addresses.chunks(batch).zip(others.chunks_mut(batch)) {
                reader.lookup_as(is_large, &section, addresses, answers);
            }
            assert_eq!(answers, others, "{path:?}, batches of {batch}, {is_large}");
        }
    }
    answers
}

pub fn assert_exact<A: Family>(
    domain: &Arc<Domain>,
    reader: &Reader<A>,
    oracle: &Oracle<A>,
    addresses: &[A],
) {
    let answers = lookup(domain, reader, addresses);
    for (address, answer) in addresses.iter().zip(answers) {
        assert_eq!(answer, oracle.lookup(*address), "{address:#x}");
    }
}

/// Where answers may change: the ends of prefixes and the next addresses.
pub fn borders<A: Family>(changes: &[Change<A>]) -> Vec<A> {
    let of = |change: &Change<A>| {
        let (first, last) = (change.prefix, last(change.prefix, change.len));
        [
            first,
            A::of(first.bits().wrapping_sub(1)),
            last,
            A::of(last.bits().wrapping_add(1)),
        ]
    };
    changes.iter().flat_map(of).collect()
}

fn some_change<A: Family>() -> impl Strategy<Value = Change<A>> {
    let next_hop = prop::option::weighted(0.7, prop_oneof![1..4_u16, 1..=MAX_NEXT_HOP]);
    (A::nearby(), A::lengths(), next_hop)
        .prop_map(|(address, len, next_hop)| change(address, len, next_hop))
}

/// Changes in steps, and addresses to look up after each.
fn some_steps<A: Family>() -> impl Strategy<Value = (Vec<Vec<Change<A>>>, Vec<A>)> {
    let step = prop::collection::vec(some_change(), 1..60);
    let random = prop::collection::vec(any::<u128>().prop_map(A::of), 50);
    (prop::collection::vec(step, 1..7), random)
}

fn every_answer_is_the_oracle_s<A: Family>(steps: Vec<Vec<Change<A>>>, random: Vec<A>) {
    let (domain, mut writer, reader) = table();
    let mut oracle = Oracle::new();
    let mut addresses = random;
    addresses.extend(borders(&steps.concat()));
    for changes in steps {
        changes.iter().for_each(|change| oracle.apply(*change));
        writer.apply(&changes).unwrap();
        assert_exact(&domain, &reader, &oracle, &addresses);
        assert_eq!(writer.stats().routes, oracle.0.len());
    }
    // Built at once, it answers the same, also over what was there.
    for over in [false, true] {
        let (domain, mut writer, reader) = table();
        if over {
            let place = oracle
                .0
                .keys()
                .next()
                .map_or(A::LAST, |(_, prefix)| *prefix);
            let others = [8, 20, 26, A::BITS].map(|len| change(place, len, Some(9)));
            writer.apply(&others).unwrap();
        }
        writer.build(oracle.routes()).unwrap();
        assert_exact(&domain, &reader, &oracle, &addresses);
        assert_eq!(writer.stats().routes, oracle.0.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(35))]

    #[test]
    fn every_ipv4_answer_is_the_oracle_s((steps, random) in some_steps::<u32>()) {
        every_answer_is_the_oracle_s(steps, random);
    }

    #[test]
    fn every_ipv6_answer_is_the_oracle_s((steps, random) in some_steps::<u128>()) {
        every_answer_is_the_oracle_s(steps, random);
    }
}

/// Of several routes for one prefix, the last is built.
fn the_last_of_equals_is_built<A: Family>() {
    let (domain, mut writer, reader) = table::<A>();
    let route = |len, next_hop| Route {
        prefix: A::of(0),
        len,
        next_hop,
    };
    let routes = [
        route(8, 1),
        route(24, 7),
        route(8, 2),
        route(24, 8),
        route(8, 3),
    ];
    writer.build(routes.into_iter()).unwrap();
    assert_eq!(writer.stats().routes, 2);
    let beside = A::of(1 << (A::BITS - 9));
    assert_eq!(lookup(&domain, &reader, &[A::of(0), beside]), [8, 3]);
}

#[test]
fn the_last_of_equal_prefixes_is_built() {
    the_last_of_equals_is_built::<u32>();
    the_last_of_equals_is_built::<u128>();
}

fn empty_and_default<A: Family>() {
    let (domain, mut writer, reader) = table::<A>();
    let addresses = [A::of(0), A::of(1), A::of(A::LAST.bits() / 2), A::LAST];
    assert_eq!(lookup(&domain, &reader, &addresses), [0; 4]);
    let default = |next_hop| change(A::of(0), 0, next_hop);
    writer.apply(&[default(Some(MAX_NEXT_HOP))]).unwrap();
    assert_eq!(lookup(&domain, &reader, &addresses), [MAX_NEXT_HOP; 4]);
    writer.apply(&[default(None)]).unwrap();
    assert_eq!(lookup(&domain, &reader, &addresses), [0; 4]);
    assert_eq!(writer.stats().routes, 0);
}

#[test]
fn an_empty_table_and_one_default_route() {
    empty_and_default::<u32>();
    empty_and_default::<u128>();
}

/// At the limit what is there can still be changed and withdrawn, what would
/// be new is refused, and after a withdrawal there is room again.
fn limited<A: Family>() {
    let (domain, mut writer, reader) = table_of::<A>(Config {
        max_routes: 2,
        ..Config::default()
    });
    let top = |at: u128| A::of(at << (A::BITS - 8));
    let [short, long] = [8, A::BITS - 8];
    let all = [
        change(top(0x20), short, Some(5)),
        change(top(0x21), long, Some(5)),
        change(top(0x22), long, Some(5)),
    ];
    let addresses = [top(0x20), top(0x21), top(0x22)];
    let full = writer.apply(&all).unwrap_err();
    assert!(matches!(
        full,
        Error::Full {
            at: 2,
            max_routes: 2
        }
    ));
    for len in [short, long] {
        let full = writer
            .apply(&[change(top(0x22), len, Some(5))])
            .unwrap_err();
        assert!(matches!(full, Error::Full { at: 0, .. }));
    }
    assert_eq!(lookup(&domain, &reader, &addresses), [5, 5, 0]);
    assert_eq!(writer.stats().routes, 2);
    let is_wrong = Change {
        prefix: A::of(1),
        len: short,
        next_hop: Some(5),
    };
    assert!(writer.apply(&[is_wrong]).is_err());
    // Of what is not there, a withdrawal is nothing; what is there moves.
    writer
        .apply(&[
            change(top(0x22), long, None),
            change(top(0x20), short, Some(6)),
            change(top(0x21), long, Some(7)),
        ])
        .unwrap();
    assert_eq!(lookup(&domain, &reader, &addresses), [6, 7, 0]);
    writer
        .apply(&[
            change(top(0x21), long, None),
            change(top(0x22), long, Some(8)),
        ])
        .unwrap();
    assert_eq!(lookup(&domain, &reader, &addresses), [6, 0, 8]);
    let routes = (0x20..0x23).map(|at| Route {
        prefix: top(at),
        len: short,
        next_hop: 1,
    });
    assert!(matches!(
        writer.build(routes),
        Err(Error::Full { max_routes: 2, .. })
    ));
    assert_eq!(lookup(&domain, &reader, &addresses), [6, 0, 8]);
}

#[test]
fn what_is_too_much_is_refused_and_the_rest_stays() {
    limited::<u32>();
    limited::<u128>();
}

/// Tells readers to end.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes changes, again and again while there is no space: a reader that has
/// lost its core within a batch holds up what was taken out.
fn apply_patiently<A: Family>(writer: &mut Writer<A>, changes: &[Change<A>]) {
    let until = Instant::now() + Duration::from_secs(60);
    while let Err(error) = writer.apply(changes) {
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        assert!(Instant::now() < until, "{error}");
        std::thread::yield_now();
    }
}

/// The two next hops that a route of the crowd leads to by turns.
fn hops<A: Family>((prefix, len): (A, u8)) -> [u16; 2] {
    let bits = (prefix.bits() >> (A::BITS / 4)) as u32;
    let of = bits.wrapping_mul(33).wrapping_add(len.into()) % 16_000;
    [1 + 2 * of as u16, 2 + 2 * of as u16]
}

/// Each route leads to one of two next hops of its own at any time: a
/// reader that sees a third reads something that was reused too early.
fn old_or_new<A: Family>() {
    let (domain, mut writer, reader) = table::<A>();
    let mut random = Random::new(11);
    let routes: Vec<(A, u8)> = (0..500)
        .map(|_| A::crowd(&mut random))
        .map(|(address, len)| (masked(address, len), len))
        .collect();
    let addresses: Vec<A> = (0..256)
        .map(|at| match at % 2 {
            0 => A::crowd(&mut random).0,
            _ => routes[random.below(routes.len())].0,
        })
        .collect();
    let possible: Vec<Vec<u16>> = addresses
        .iter()
        .map(|address| {
            let holds = |(prefix, len): &&(A, u8)| masked(*address, *len) == *prefix;
            let around = routes.iter().filter(holds);
            around.flat_map(|route| hops(*route)).chain([0]).collect()
        })
        .collect();
    let is_done = AtomicBool::new(false);
    let rounds = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for path in PATHS.into_iter().filter(|path| path.is_here()) {
            let (reader, domain) = (reader.with_path(path).unwrap(), Arc::clone(&domain));
            let (addresses, possible, is_done, rounds) = (&addresses, &possible, &is_done, &rounds);
            scope.spawn(move || {
                let mut registered = domain.register().unwrap();
                let mut online = registered.online();
                let mut is_large = false;
                let mut answers = [0; 256];
                while !is_done.load(Ordering::Relaxed) {
                    let section = online.enter();
                    // With lines asked for ahead, and without.
                    is_large = !is_large;
                    reader.lookup_as(is_large, &section, addresses, &mut answers);
                    for (at, answer) in answers.iter().enumerate() {
                        let address = addresses[at];
                        assert!(possible[at].contains(answer), "{address:#x}: {answer}");
                    }
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // They end also when the writer fails.
        let _done = Done(&is_done);
        // Until readers have looked often enough, whatever the machine does.
        let mut oracle = Oracle::new();
        let mut steps = 0;
        while steps < 2_500 || rounds.load(Ordering::Relaxed) < 300 {
            steps += 1;
            let changes: Vec<Change<A>> = (0..1 + random.below(20))
                .map(|_| {
                    let route = routes[random.below(routes.len())];
                    let which = random.below(3).checked_sub(1);
                    change(route.0, route.1, which.map(|which| hops(route)[which]))
                })
                .collect();
            changes.iter().for_each(|change| oracle.apply(*change));
            apply_patiently(&mut writer, &changes);
        }
        is_done.store(true, Ordering::Relaxed);
        assert_exact(&domain, &reader, &oracle, &addresses);
    });
}

#[test]
fn ipv4_readers_see_an_old_or_a_new_answer_and_nothing_else() {
    old_or_new::<u32>();
}

#[test]
fn ipv6_readers_see_an_old_or_a_new_answer_and_nothing_else() {
    old_or_new::<u128>();
}
