//! How a line ends that is not done: the message and the exit status that
//! `ip` has for it. Called by all of [`super`].

use linux::error::Refusal;

/// A line that was not done.
#[derive(Debug)]
pub enum Stop {
    /// What `ip` says of it.
    Said {
        /// The exit status: 1 it failed, 2 the kernel refused it.
        status: u8,
        /// For standard error, without the line's end; empty: nothing.
        text: String,
    },
    /// The same where `ip` leaves at once, which ends a batch too.
    Left {
        /// The exit status.
        status: u8,
        /// For standard error.
        text: String,
    },
    /// A line before it failed, which has been said and ends the batch.
    Told,
    /// A word of `ip` that is not built here.
    NotBuilt(String),
    /// Something else broke: a socket, standard output.
    Broken(anyhow::Error),
}

/// The status of words that are wrong.
pub const WRONG_WORDS: u8 = 255;
/// The status of a line that failed.
pub const FAILED: u8 = 1;
/// The status of a line that the kernel refused.
pub const REFUSED: u8 = 2;

impl Stop {
    /// The words are wrong.
    pub fn wrong(text: impl Into<String>) -> Self {
        Self::Left {
            status: WRONG_WORDS,
            text: text.into(),
        }
    }

    /// The line failed.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Said {
            status: FAILED,
            text: text.into(),
        }
    }

    /// An address or a prefix that is none.
    pub fn no_address(text: String) -> Self {
        Self::Left {
            status: FAILED,
            text,
        }
    }

    /// A value that is not what it should be.
    pub fn argument(value: &str, why: &str) -> Self {
        Self::wrong(format!("Error: argument \"{value}\" is wrong: {why}"))
    }

    /// A value is missing.
    pub fn incomplete() -> Self {
        Self::wrong("Command line is not complete. Try option \"help\"")
    }

    /// A word that may be said once.
    pub fn duplicate(word: &str, value: &str) -> Self {
        Self::wrong(format!(
            "Error: duplicate \"{word}\": \"{value}\" is the second value."
        ))
    }

    /// A word too many.
    pub fn garbage(before: &str, word: &str) -> Self {
        Self::wrong(format!(
            "Error: either \"{before}\" is duplicate, or \"{word}\" is a garbage."
        ))
    }

    /// No link has this name.
    pub fn no_device(name: &str) -> Self {
        Self::failed(format!("Cannot find device \"{name}\""))
    }

    /// The kernel said no.
    pub fn refused(refusal: &Refusal) -> Self {
        Self::Said {
            status: REFUSED,
            text: Self::words_of(refusal),
        }
    }

    /// What is said of a refusal.
    pub fn words_of(refusal: &Refusal) -> String {
        match &refusal.message {
            Some(message) if message.ends_with('.') => format!("Error: {message}"),
            Some(message) => format!("Error: {message}."),
            None => format!("RTNETLINK answers: {}", reason(&refusal.source)),
        }
    }

    /// The object has no such command.
    pub fn no_command(word: &str, object: &str) -> Self {
        Self::wrong(format!(
            "Command \"{word}\" is unknown, try \"{object} help\"."
        ))
    }
}

/// The system's words for an error, without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<linux::Error> for Stop {
    fn from(error: linux::Error) -> Self {
        Self::Broken(error.into())
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.into())
    }
}
