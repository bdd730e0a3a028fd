//! From lines to rows.
