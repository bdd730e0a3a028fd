//! Links made to be measured, and removed again: what making and deleting
//! them costs (`ifaceseq`), and how fast a mirror sees that thousands went
//! down and up (`failover`). Called by the program.

pub mod failover;
pub mod ifaceseq;
mod making;
mod pass;
