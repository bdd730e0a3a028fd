//! rtnetlink messages to rows and back; no socket.
