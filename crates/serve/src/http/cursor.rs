//! Cursors: where a page of rows ended, as text that only we can read
//! something into. It holds the key of the last row, not a number of rows:
//! the next page goes on after that key, whatever came and went.

use std::hash::{DefaultHasher, Hash, Hasher};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use view::{Position, Question};

use super::problem::Problem;

/// What a position that holds for a time only belongs to: a start of the
/// daemon, and there a feeder that has joined.
#[derive(Debug)]
pub struct ToldBy(String);

impl ToldBy {
    /// A start, and the number of the feeder whose rows they are.
    pub fn new(start: &str, feeder: Option<u64>) -> Self {
        Self(match feeder {
            Some(feeder) => format!("{start}/{feeder}"),
            None => start.to_owned(),
        })
    }
}

/// A cursor: the question it belongs to, what it was told by where that
/// matters, the position.
type Written = (u64, Option<String>, Position);

/// Characters of a cursor at most.
const MAX_CHARACTERS: usize = 1024;

/// Which rows a question is about, whatever they are written as.
fn about(question: &Question, netns: Option<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let filter = serde_json::to_vec(&question.filter).unwrap_or_default();
    (question.object, filter, netns).hash(&mut hasher);
    hasher.finish()
}

/// Writes a position down.
pub fn write(
    position: &Position,
    question: &Question,
    netns: Option<&str>,
    told_by: &ToldBy,
) -> String {
    let of = position.is_of_one_start().then(|| told_by.0.clone());
    let written: Written = (about(question, netns), of, position.clone());
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&written).unwrap_or_default())
}

/// Reads a position that a page of the same question ended at.
pub fn read(
    text: &str,
    question: &Question,
    netns: Option<&str>,
    told_by: &ToldBy,
) -> Result<Position, Problem> {
    let nonsense = || {
        Problem::bad_request(
            "parameter `after`: what the Link header of the page before says is expected, as it is",
        )
    };
    if text.len() > MAX_CHARACTERS {
        return Err(nonsense());
    }
    let octets = URL_SAFE_NO_PAD.decode(text).map_err(|_| nonsense())?;
    let (of, of_one, position): Written =
        serde_json::from_slice(&octets).map_err(|_| nonsense())?;
    if of != about(question, netns) {
        return Err(Problem::bad_request(
            "parameter `after`: it belongs to a question with another filter; begin without it",
        ));
    }
    if of_one.is_some_and(|of| of != told_by.0) {
        return Err(Problem::new(
            StatusCode::GONE,
            "parameter `after`: it belongs to another start of the daemon, or to a source that has \
             left since; begin without it",
        ));
    }
    Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use view::{Filter, Object, Output};

    fn question(dev: Option<&str>) -> Question {
        Question {
            object: Object::Neigh,
            filter: Filter {
                dev: dev.map(str::to_owned),
                ..Filter::default()
            },
            output: Output::default(),
        }
    }

    #[test]
    fn a_cursor_is_of_its_question_only() {
        let position = Position::Neighbour(7, "2001:db8::1".parse().unwrap(), false);
        let asked = question(Some("eth0"));
        let (start, another) = (ToldBy::new("start", None), ToldBy::new("another", None));
        let text = write(&position, &asked, None, &start);
        assert_eq!(read(&text, &asked, None, &another).unwrap(), position);
        assert!(read(&text, &question(None), None, &start).is_err());
        assert!(read(&text, &asked, Some("blue"), &start).is_err());
        assert!(read(&text[1..], &asked, None, &start).is_err());
    }

    proptest! {
        #[test]
        fn nonsense_is_refused(text in "[A-Za-z0-9_=-]{0,200}") {
            let refused = read(&text, &question(None), None, &ToldBy::new("start", None)).unwrap_err();
            prop_assert!(refused.status.is_client_error());
        }
    }
}
