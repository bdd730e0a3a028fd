//! `fingerpost apply`, `diff`, `export`: links and rows as files say they
//! are to be. By the process that asks and with its rights.
//!
//! - [`file`]: a file as it is written.
//! - [`import`]: such a file out of others' files.

pub mod file;
pub mod import;
