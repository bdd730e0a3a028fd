//! How the tables fare, for the objects that tell it: asked once a request,
//! and only where a name needs it.

use std::cell::OnceCell;
use std::sync::Arc;

use table::{Source, Status};

/// How the tables of a request fare.
#[derive(Debug, Default)]
pub struct Health {
    source: Option<Arc<dyn Source>>,
    known: OnceCell<Known>,
}

/// What is known of it.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) status: Status,
    /// Why an answer may lack rows, in words; none: it is whole.
    pub(crate) incomplete: Option<String>,
}

impl Health {
    /// To be asked of a source.
    pub fn of(source: Arc<dyn Source>) -> Self {
        Self {
            source: Some(source),
            known: OnceCell::new(),
        }
    }

    pub(crate) fn known(&self) -> &Known {
        self.known.get_or_init(|| match &self.source {
            Some(source) => Known {
                status: source.status(),
                incomplete: source.incomplete(),
            },
            None => Known::default(),
        })
    }
}
