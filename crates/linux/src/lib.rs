//! The mirror of the kernel tables, and bulk changes to them.
