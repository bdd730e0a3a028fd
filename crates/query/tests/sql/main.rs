//! Statements over generated tables: equal to what the command line answers,
//! looked up in the indexes, and cut off at their limits.

mod equal;
mod limits;
mod looked_up;
mod osquery;
mod tables;
