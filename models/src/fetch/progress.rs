//! Progress of reading files.

/// How far the reading of one file has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file's name.
    pub file: &'a str,
    /// Bytes received or checked so far.
    pub done_bytes: u64,
    /// Bytes in all, where that is known.
    pub total_bytes: Option<u64>,
}

/// Receives progress: after every mebibyte of a file that is read, ten times a second while another program fetches it.
pub type Report<'a> = dyn FnMut(Progress<'_>) + 'a;
