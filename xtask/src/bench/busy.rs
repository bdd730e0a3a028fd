//! Other work on all cores, as on the machine of the report.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Keeps every core busy until dropped.
pub struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// A thread for each core, twice over.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..2 * cores).map(|_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let mut number = 1_u64;
                while !stop.load(Ordering::Relaxed) {
                    number = black_box(number.wrapping_mul(3));
                }
            })
        });
        Self {
            threads: threads.collect(),
            stop,
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that only multiplies does not panic.
            let _ = thread.join();
        }
    }
}
