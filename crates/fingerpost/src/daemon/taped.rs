//! What feeds hear goes into the recording of the mirror that their rows
//! stand beside: joins `feed`, which says what was heard, and `linux`, which
//! writes the file.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use feed::Door;
use feed::recording::{Declaration, Kind, Tape};
use linux::recording::Tap;

use crate::config::feed::Kind as Configured;

/// A feed's place in a recording.
#[derive(Debug)]
pub struct Taped(Tap);

impl Taped {
    /// For a feed beside the mirror that a tap is of.
    pub fn tape(beside: &Tap, name: &str, door: &Door, kind: Configured) -> Arc<dyn Tape> {
        let declaration = Declaration {
            kind: match kind {
                Configured::Fpm => Kind::Fpm,
                Configured::Bmp => Kind::Bmp,
            },
            name: name.to_owned(),
            listening: door.address().to_string(),
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = since.map_or(0, |since| since.as_micros() as u64);
        Arc::new(Self(beside.feed(now, &declaration.bytes())))
    }
}

impl Tape for Taped {
    fn heard(&self, at_micros: u64, payload: &[&[u8]]) {
        self.0.feed_heard(at_micros, payload);
    }

    fn state(&self, at_micros: u64, is_whole: bool) {
        self.0.feed_state(at_micros, is_whole);
    }

    fn ended(&self, at_micros: u64, why: &str) {
        self.0.feed_ended(at_micros, why);
    }

    fn wanted(&self) -> (u32, u64) {
        self.0.wants_listing()
    }

    fn has_room(&self) -> bool {
        self.0.has_room()
    }
}
