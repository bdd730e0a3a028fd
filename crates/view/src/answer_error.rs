//! Why there is no answer, whole or in pieces.

use std::io;

use thiserror::Error;

use crate::selection::BadQuestion;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum AnswerError {
    /// The question is at fault.
    #[error(transparent)]
    BadQuestion(#[from] BadQuestion),
    /// There is too little memory to sort the rows in; nothing was written.
    #[error("the rows are too many to be sorted in the memory that there is")]
    NoRoom,
    /// The answer could not be written.
    #[error("cannot write the answer: {0}")]
    Write(#[from] io::Error),
}
