//! Where a translation is asked, and by how many at a time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::asking::Places;
use super::metrics::Counted;

/// The translation that is asked.
#[derive(Debug, Default)]
pub struct Translation {
    path: Mutex<Option<Arc<Path>>>,
    /// Places for questions.
    pub places: Places,
    /// What it counted, as it was told last.
    pub counted: Counted,
}

impl Translation {
    /// Asks there from now on.
    pub fn set(&self, path: Option<PathBuf>) {
        let mut at = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        *at = path.map(Arc::from);
    }

    /// Where it is asked.
    pub fn path(&self) -> Option<Arc<Path>> {
        let at = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        at.clone()
    }
}
