use super::*;

#[cfg(not(feature = "model"))]
mod plain {
    use super::*;

    #[test]
    fn a_grace_is_over_when_all_sections_of_its_time_are() {
        let domain = Domain::new(2);
        let (mut one, mut two) = (domain.register().unwrap(), domain.register().unwrap());
        let before = domain.begin();
        assert!(domain.is_over(before));
        let first = one.enter();
        let grace = domain.begin();
        let second = two.enter();
        assert!(domain.is_over(before) && !domain.is_over(grace));
        drop(first);
        // The second section began after the grace.
        assert!(domain.is_over(grace) && !domain.is_over(domain.begin()));
        drop(second);
        assert!(domain.is_over(domain.begin()));
    }

    #[test]
    fn who_stays_online_passes_at_the_end_of_each_section() {
        let domain = Domain::new(1);
        let mut reader = domain.register().unwrap();
        let mut online = reader.online();
        let section = online.enter();
        let grace = domain.begin();
        assert!(!domain.is_over(grace));
        drop(section);
        assert!(domain.is_over(grace));
        let next = domain.begin();
        assert!(!domain.is_over(next), "online, and nothing said since");
        online.pass();
        assert!(domain.is_over(next));
        let last = domain.begin();
        drop(online);
        assert!(domain.is_over(last));
    }

    #[test]
    fn what_was_forgotten_holds_a_grace_up_until_the_reader_goes() {
        let domain = Domain::new(1);
        let mut reader = domain.register().unwrap();
        std::mem::forget(reader.enter());
        let grace = domain.begin();
        assert!(!domain.is_over(grace));
        drop(reader);
        assert!(domain.is_over(grace));
    }

    #[test]
    fn there_are_no_more_readers_than_stated() {
        let domain = Domain::new(2);
        let _one = domain.register().unwrap();
        let two = domain.register().unwrap();
        assert_eq!(domain.register().unwrap_err(), Full { max_readers: 2 });
        drop(two);
        assert!(domain.register().is_ok());
        assert_eq!(domain.max_readers(), 2);
    }

    #[test]
    fn a_section_knows_its_domain() {
        let (here, there) = (Domain::new(1), Domain::new(1));
        let mut reader = here.register().unwrap();
        assert!(Arc::ptr_eq(reader.domain(), &here));
        let section = reader.enter();
        assert!(section.is_of(&here) && !section.is_of(&there));
    }
}

/// All interleavings of a writer that reuses a place and of readers that
/// look at it. Loom itself complains of a place that is read and written at
/// once.
#[cfg(feature = "model")]
#[allow(
    unsafe_code,
    reason = "a place of loom's is read and written behind a pointer"
)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    /// Two places, one of them published, as a structure has them.
    struct Structure {
        places: [UnsafeCell<usize>; 2],
        published: AtomicUsize,
        domain: Arc<Domain>,
    }

    impl Structure {
        fn new(max_readers: usize) -> Arc<Self> {
            Arc::new(Self {
                places: [UnsafeCell::new(0), UnsafeCell::new(7)],
                published: AtomicUsize::new(0),
                domain: Domain::new(max_readers),
            })
        }

        fn read(&self, section: &Section<'_>) {
            assert!(section.is_of(&self.domain));
            let at = self.published.load(Ordering::Acquire);
            let value = self.places[at].with(|place| {
                // SAFETY: loom fails the model if this is not so.
                unsafe { *place }
            });
            assert_eq!(value, at * 7);
        }

        /// Publishes the other place; the first one is overwritten if the
        /// grace is over in time.
        fn replace(&self) {
            self.published.store(1, Ordering::Release);
            let grace = self.domain.begin();
            for _ in 0..2 {
                if self.domain.is_over(grace) {
                    self.places[0].with_mut(|place| {
                        // SAFETY: loom fails the model if this is not so.
                        unsafe { *place = 99 }
                    });
                    return;
                }
                thread::yield_now();
            }
        }
    }

    #[test]
    fn quiescent_reader_that_enters_and_leaves() {
        loom::model(|| {
            let structure = Structure::new(1);
            let shared = Arc::clone(&structure);
            let reader = thread::spawn(move || {
                let mut reader = shared.domain.register().unwrap();
                for _ in 0..2 {
                    shared.read(&reader.enter());
                }
            });
            structure.replace();
            reader.join().unwrap();
        });
    }

    #[test]
    fn quiescent_reader_that_stays_online() {
        loom::model(|| {
            let structure = Structure::new(1);
            let shared = Arc::clone(&structure);
            let reader = thread::spawn(move || {
                let mut reader = shared.domain.register().unwrap();
                let mut online = reader.online();
                for _ in 0..3 {
                    shared.read(&online.enter());
                }
            });
            structure.replace();
            reader.join().unwrap();
        });
    }

    #[test]
    fn quiescent_two_readers() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let structure = Structure::new(2);
            let read = |stays: bool| {
                let shared = Arc::clone(&structure);
                thread::spawn(move || {
                    let mut reader = shared.domain.register().unwrap();
                    if stays {
                        let mut online = reader.online();
                        shared.read(&online.enter());
                        shared.read(&online.enter());
                    } else {
                        shared.read(&reader.enter());
                    }
                })
            };
            let readers = [read(true), read(false)];
            structure.replace();
            for reader in readers {
                reader.join().unwrap();
            }
        });
    }
}
