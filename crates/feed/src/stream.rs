//! The bytes of a connection that came and were not read yet.

/// Holds no more than was pushed since something was taken last.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    bytes: Vec<u8>,
    /// Where what was not taken begins in `bytes`.
    at: usize,
    /// Bytes of the stream before `bytes`.
    before: u64,
}

impl Stream {
    /// Takes bytes as they came. O(bytes).
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.at > 0 {
            self.bytes.drain(..self.at);
            self.before += self.at as u64;
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// What was not taken.
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Where in the stream that begins.
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Takes so many bytes, as many as there are at most.
    pub(crate) fn take(&mut self, len: usize) -> &[u8] {
        let begin = self.at;
        self.at = self.bytes.len().min(begin.saturating_add(len));
        self.bytes.get(begin..self.at).unwrap_or_default()
    }
}
